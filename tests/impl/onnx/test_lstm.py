"""Scans that are an LSTM, as ONNX's op."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.export.onnx import engine
from tests.impl.onnx.running import Written

UNITS, FEATURES = 4, 3


def _lstm(params, x, *, reverse):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros([x.shape[1], UNITS])
    (h, c), steps = jax.lax.scan(step, (start, start + 0.5), x, reverse=reverse)
    return steps, h, c


@pytest.mark.parametrize("known", [True, False], ids=["constants", "computed"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("batch", [2, "b"])
def test_lstm(known, reverse, batch):
    generator = np.random.default_rng(0)
    shapes = {"w": (FEATURES, 4 * UNITS), "u": (UNITS, 4 * UNITS), "b": (4 * UNITS,)}
    params = {k: generator.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    x = generator.normal(size=(5, 2, FEATURES)).astype(np.float32)

    def function(x, factor):
        given = params if known else {k: v * factor for k, v in params.items()}
        return _lstm(given, x, reverse=reverse)

    shape = None if batch == 2 else f"5, {batch}, {FEATURES}"
    converted = jax2tf.convert(
        function,
        target=engine.TARGET,
        assume_finite=True,
        with_gradient=False,
        polymorphic_shapes=[shape, None],
    )
    size = None if batch == "b" else batch
    written = Written(converted, tf.TensorSpec([5, size, FEATURES]), tf.TensorSpec([], tf.float32))
    assert "LSTM" in written.ops()
    assert "Loop" not in written.ops()
    assert "ReverseSequence" not in written.ops()
    expected = jax.jit(function)(x, np.float32(1))
    for result, wanted in zip(written.run(x, np.float32(1)), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
