"""`jax2tf.onnx`: files of TensorFlow functions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

import jax2tf.onnx
from harnesses.engine.adapter import Adapter, ImplementationError

X = np.array([[0.5, -1.25, 3.0]], np.float32)


@tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
def _tanh_of_twice(x):
    tanh = jax2tf.convert(jnp.tanh, target=jax2tf.onnx.TARGET, polymorphic_shapes="b, _")
    return {"y": tanh(2 * x)}


@pytest.mark.parametrize("function", [_tanh_of_twice, _tanh_of_twice.get_concrete_function()])
def test_a_file_of_a_function(function):
    session = onnxruntime.InferenceSession(jax2tf.onnx.file_of(function))
    (result,) = session.run(["y"], {"x": X})
    np.testing.assert_allclose(result, np.tanh(2 * X), rtol=1e-6)


@pytest.mark.parametrize("function", [jnp.tanh, tf.function(tf.tanh), None])
def test_what_is_no_function_with_a_signature(function):
    with pytest.raises(TypeError, match=r"tf_function should be a tf\.function with an input_sig"):
        jax2tf.onnx.file_of(function)


def test_an_op_that_no_rule_writes():
    signature = [tf.TensorSpec([], tf.string, "x")]
    function = tf.function(
        lambda x: {"y": tf.io.read_file(x)}, autograph=False, input_signature=signature
    )
    with pytest.raises(NotImplementedError, match="no rule writes the op ReadFile as ONNX"):
        jax2tf.onnx.file_of(function)


def test_an_implementation_without_a_writer():
    assert Adapter("jax2tf").onnx is jax2tf.onnx
    with pytest.raises(ImplementationError, match=r"no module json\.onnx"):
        _ = Adapter("json").onnx
