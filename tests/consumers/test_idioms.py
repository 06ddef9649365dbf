"""The ops that engines have for what JAX writes as many: right, of NaN and infinity too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of

ENGINES = [engine for engine in consumers.NEEDS if engine != "savedmodel"]

SCALE, BIAS = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)

# The largest error, relative to numbers of at least 1. Engines compute gelu and elu by formulas
# that are exact to the last bits of 1, and not of the result.
IDIOMS = {
    "relu": (jax.nn.relu, 0),
    "relu6": (jax.nn.relu6, 0),
    "leaky_relu": (lambda x: jax.nn.leaky_relu(x, 0.2), 1e-7),
    "elu": (jax.nn.elu, 2e-7),
    "hard_swish": (jax.nn.hard_swish, 2e-7),
    "gelu": (jax.nn.gelu, 6e-7),
    "gelu, exact": (lambda x: jax.nn.gelu(x, approximate=False), 6e-7),
    "softmax": (jax.nn.softmax, 1e-7),
    "log_softmax": (jax.nn.log_softmax, 5e-7),
    "mean": (lambda x: jnp.mean(x, -1), 2e-7),
    "variance": (lambda x: jnp.var(x, -1), 2e-7),
    "layer_norm": (
        lambda x: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
        1e-6,
    ),
    "batch_norm": (lambda x: (x - BIAS) * SCALE + 0.5 * BIAS, 1e-6),
    "one_hot": (lambda x: jax.nn.one_hot(jnp.clip(x[:, 1], -2, 5).astype(int), 4), 0),
    "erf": (jax.lax.erf, 3e-7),
    "quotient": (lambda x: x / 127.5, 1e-7),
}
# What an engine loses of NaN, with and without the idiom: in OpenVINO a maximum with a NaN is the
# other operand.
LOST = {("openvino", name): ["nan"] for name in ("relu", "relu6")}

ROWS = {
    "numbers": [0.3, -1.2, 2.5, -0.4, 1.0, -3.0],
    "large": [12.0, -40.0, 80.0, -90.0, 1e4, -1e4],
    "small": [1e-3, -1e-3, 1e-6, -1e-6, 0.0, -0.0],
    "inf": [np.inf, 1.0, 2.0, -3.0, 4.0, 0.0],
    "-inf": [-np.inf, 1.0, 2.0, -3.0, 4.0, 0.0],
    "nan": [np.nan, 1.0, 2.0, -3.0, 4.0, 0.0],
    "all -inf": [-np.inf] * 6,
}
X = np.array(list(ROWS.values()), np.float32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom(name, engine):
    fun, tolerance = IDIOMS[name]
    expected = np.asarray(jax.jit(fun)(X))
    actual = _run(engine, fun)
    for row, a, e in zip(ROWS, actual, expected, strict=True):
        if row in LOST.get((engine, name), ()):
            # It is said in the engine's guide; where it is kept, the guide is wrong.
            assert not np.array_equal(np.isnan(a), np.isnan(e)), row
            continue
        np.testing.assert_array_equal(np.isnan(a), np.isnan(e), err_msg=row)
        infinite = np.isinf(e)
        np.testing.assert_array_equal(a[infinite], e[infinite], err_msg=row)
        finite = np.isfinite(e)
        error = np.abs(a[finite] - e[finite]) / np.maximum(np.abs(e[finite]), 1)
        assert error.max(initial=0) <= tolerance, (row, error)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jax.lax.top_k(x, 3)[1],
        lambda x: jnp.argmax(x, -1),
        lambda x: jax.nn.logsumexp(x, -1),
        jax.nn.softmax,
        lambda x: jnp.maximum(x, x[::-1]),
    ],
    ids=["top_k", "argmax", "logsumexp", "softmax", "maximum"],
)
def test_finite_numbers(fun, engine):
    x = X[:2]
    actual = _run(engine, fun, x, assume_finite=True)
    np.testing.assert_allclose(actual, np.asarray(jax.jit(fun)(x)), rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("method", "size"), [("bilinear", (8, 12)), ("bilinear", (5, 7)), ("nearest", (12, 12))]
)
def test_images_that_grow(method, size, engine):
    images = np.random.default_rng(1).normal(size=(2, 4, 6, 3)).astype(np.float32)
    if method == "nearest":
        images[0, 1, 2, 0] = np.nan

    def fun(x):
        return jax.image.resize(x, (x.shape[0], *size, 3), method)

    actual = _run(engine, fun, images, assume_finite=method == "bilinear")
    # Engines compute the places in float32: 5e-7 where sizes are no multiples.
    tolerance = 0 if method == "nearest" else 1e-6
    np.testing.assert_allclose(actual, np.asarray(jax.jit(fun)(images)), tolerance, tolerance)


def _run(engine, fun, x=X, **options):
    converted = jax2tf.convert(
        fun, target=engine, polymorphic_shapes="b, ...", polymorphic_checks=False, **options
    )
    graph = graph_of(converted, [tf.TensorSpec([None, *x.shape[1:]], tf.float32)])
    return consumers.engine(engine).convert(graph)([x])[0]
