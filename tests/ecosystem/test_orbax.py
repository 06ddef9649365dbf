"""Orbax exports what jax2tf converts, once jax2tf is installed in the place of JAX's own."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}
X = np.linspace(-2, 2, 20, dtype=np.float32).reshape(5, 4)


def apply(params, x):
    return jax.nn.gelu(x @ params["w"] + params["b"])


@pytest.fixture(scope="module")
def export():
    """The library, imported where it finds jax2tf."""
    jax2tf.install()
    yield importlib.import_module("orbax.export")
    jax2tf.uninstall()


@pytest.mark.parametrize(
    "options", [{}, {"enable_xla": False, "native_serialization": False}], ids=["default", "no_xla"]
)
def test_a_model_with_an_open_batch_that_trains_on(export, options, tmp_path):
    module = export.JaxModule(
        PARAMS,
        apply,
        trainable=True,
        input_polymorphic_shape="b, ...",
        jax2tf_kwargs={"with_gradient": True, **options},
    )
    signature = [tf.TensorSpec([None, 4], tf.float32, name="x")]
    serving = export.ServingConfig("serving_default", input_signature=signature)
    export.ExportManager(module, [serving]).save(str(tmp_path))

    restored = tf.saved_model.load(str(tmp_path))
    predict = restored.signatures["serving_default"]
    (result,) = predict(x=tf.constant(X)).values()
    np.testing.assert_allclose(result, apply(PARAMS, X), rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        (result,) = predict(x=tf.constant(X)).values()
        total = tf.reduce_sum(result)
    variables = predict.trainable_variables
    pairs = zip(variables, tape.gradient(total, variables), strict=True)
    gradients = {variable.shape.rank: gradient for variable, gradient in pairs}
    expected = jax.grad(lambda params: apply(params, X).sum())(PARAMS)
    np.testing.assert_allclose(gradients[2], expected["w"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients[1], expected["b"], rtol=1e-4, atol=1e-5)
