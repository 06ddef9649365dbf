"""Results without elements: JAX's shapes and dtypes, and no op that computes them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import LOWERINGS, MODES, assert_near, each_lowering, each_mode

X = np.ones((2, 0, 3), np.float32)


@each_mode
@each_lowering
def test_a_product_with_a_constant_that_has_no_elements(mode, lowering):
    # TensorFlow's optimizer divides by zero, which ends the process, where it folds such a product.
    def fun(x):
        return jnp.zeros((2, 0, 3), x.dtype) * x * 2 + 1, x / jnp.zeros((2, 0, 3), x.dtype)

    converted = MODES[mode](jax2tf.convert(fun, enable_xla=LOWERINGS[lowering]))
    x = tf.constant(X[:1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x * 1)
    assert_near(y, jax.jit(fun)(X[:1]))
    gradient = tape.gradient(y, x, unconnected_gradients="zero")
    assert (gradient.shape, gradient.dtype) == ((1, 0, 3), tf.float32)


def _several(x):
    values, vectors = jnp.linalg.eigh(jnp.zeros((0, 3, 3)))
    best, where = lax.top_k(x, 2)
    rows = lax.scan(lambda c, row: (c, row * c), jnp.zeros((0, 3)), x)
    key = jax.random.key(0)
    return {
        "values": (values, vectors, best, where),
        "rows": rows,
        "keys": jax.random.key_data(jax.random.split(key, (0, 2))),
        "bool": x > 0,
        "narrow": x.astype(jnp.bfloat16),
        "full": x.sum(1) + 2,
    }


@each_mode
def test_what_has_several_results(mode):
    expected = jax.jit(_several)(X)
    actual = MODES[mode](jax2tf.convert(_several))(X)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), e, strict=True)


@pytest.mark.parametrize("dtype", [jnp.int4, jnp.uint4, jnp.float8_e5m2, jnp.bfloat16, jnp.int8])
@each_mode
def test_narrow_dtypes(dtype, mode):
    def fun(x):
        return jnp.concatenate([x, x], 1)[::-1]

    x = np.zeros((2, 0), dtype)
    y = MODES[mode](jax2tf.convert(fun))(x)
    assert (np.asarray(y).shape, y.dtype.name) == ((2, 0), np.dtype(dtype).name)


def test_nothing_is_computed_for_them():
    def fun(x, y):
        for _ in range(10):
            x = jnp.sin(x) @ jnp.ones((3, 3)) + y.sum()
        return x, y

    converted = jax2tf.convert(fun, with_gradient=False)
    specs = tf.TensorSpec((2, 0, 3)), tf.TensorSpec((4,))
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
    assert op_types(graph).keys() <= {"Const", "Placeholder", "Identity", "PreventGradient"}


@each_mode
def test_a_size_that_is_open_beside_the_zero(mode):
    def fun(x):
        return jnp.cumsum(x * 2, 1), x.sum(1)

    converted = jax2tf.convert(fun, polymorphic_shapes="b, 0, 3")
    function = MODES[mode](converted)
    for batch in (1, 4):
        x = np.zeros((batch, 0, 3), np.float32)
        assert_near(function(x), jax.jit(fun)(x))


def test_an_effect_stays():
    seen = []

    def fun(x):
        jax.debug.callback(lambda s: seen.append(s.shape), x, ordered=True)
        return lax.map(lambda row: jax.pure_callback(np.asarray, row, row), x)

    y = tf.function(jax2tf.convert(fun), autograph=False)(X)
    assert y.shape == X.shape
    assert seen == [X.shape]
