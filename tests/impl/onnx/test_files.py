"""`jax2tf.onnx`: files of TensorFlow functions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

import jax2tf.onnx
from harnesses.engine.adapter import Adapter, ImplementationError
from jax2tf._src.export.onnx import opsets, passes

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


@pytest.mark.parametrize("opset", [17, 99, "21", True])
def test_what_is_no_opset(opset):
    with pytest.raises(ValueError, match=r"file_of: opset should be one of 18, .*, got"):
        jax2tf.onnx.file_of(_tanh_of_twice, opset)
    with pytest.raises(ValueError, match=r"file_of_jax: opset should be one of 18, .*, got"):
        jax2tf.onnx.file_of_jax(jnp.tanh, "b", opset)


def test_the_newest_opset_is_that_of_onnx_runtime():
    newest = opsets.newest()
    assert newest >= opsets.DEFAULT
    file = jax2tf.onnx.file_of_jax(lambda x: jnp.tanh(x).sum(0), "b, 3", newest)
    session = onnxruntime.InferenceSession(file)
    (result,) = session.run(None, {"x": X})
    np.testing.assert_allclose(result, np.tanh(X).sum(0), rtol=1e-6)


def test_a_name_of_an_input_and_of_an_output():
    function = tf.function(
        lambda x: {"x": tf.tanh(x)},
        autograph=False,
        input_signature=[tf.TensorSpec([3], tf.float32, "x")],
    )
    with pytest.raises(ValueError, match=r"file_of: x is the name of an input and of an output"):
        jax2tf.onnx.file_of(function)


def test_a_file_of_a_jax_function():
    file = jax2tf.onnx.file_of_jax(lambda x, y: {"x": x @ y["w"]}, ("b, 3", {"w": "3, 2"}))
    session = onnxruntime.InferenceSession(file)
    assert [x.name for x in session.get_inputs()] == ["x", "y_w"]
    assert [x.name for x in session.get_outputs()] == ["x_1"]
    (result,) = session.run(None, {"x": X, "y_w": np.ones([3, 2], np.float32)})
    np.testing.assert_allclose(result, X @ np.ones([3, 2]), rtol=1e-6)


def test_a_function_that_calls_tensorflow(tmp_path):
    def function(x):
        return jnp.sin(jax2tf.call_tf(tf.cos, output_shape_dtype=x)(x))

    jax2tf.export(function, None, "2, 3", tmp_path / "m.onnx")


def test_a_mistake_of_a_pass_is_ours(tmp_path, monkeypatch):
    def fail(model):
        raise KeyError("a pass")

    monkeypatch.setattr(passes, "improve", fail)
    with pytest.raises(jax2tf.ExportError, match=r"mistake in jax2tf and not in your function"):
        jax2tf.export(jnp.tanh, None, "b", tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


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
