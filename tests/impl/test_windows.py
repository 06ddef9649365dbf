"""Reductions of windows: which TensorFlow ops they become, and windows of open sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_in_order


def _max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_pooling_with_xla_knows_what_max_pool_does_not(value):
    x = np.full((1, 4, 4, 1), value, np.float32)
    np.testing.assert_array_equal(jax2tf.convert(_max_pool)(x), jax.jit(_max_pool)(x))


def test_a_long_window_takes_few_ops():
    fun = lambda x: lax.reduce_window(x, 0, lax.add, (1000,), (1,), "VALID")  # noqa: E731
    x = np.arange(3000, dtype=np.int32)
    assert len(ops_in_order(graph_of(fun, "tensorflow", x))) < 100
    np.testing.assert_array_equal(jax2tf.convert(fun, enable_xla=False)(x), jax.jit(fun)(x))


def _product_and_largest(a, b):
    return a[0] * b[0], lax.max(a[1], b[1])


WINDOWS_OF_UNKNOWN_SIZE = {
    "sum": lambda x, n: lax.reduce_window(x, 0.0, lax.add, (n, 1), (1, 1), "VALID"),
    "max_padded": lambda x, n: lax.reduce_window(
        x, -np.inf, lax.max, (n, 2), (2, 1), ((1, 0), (0, 1))
    ),
    "dilated": lambda x, n: lax.reduce_window(
        x, 0.0, lax.add, (n // 2 + 1, 1), (1, 1), "VALID", window_dilation=(2, 1)
    ),
    "two_operands": lambda x, n: lax.reduce_window(
        (x, x),
        (np.float32(1), np.float32(-np.inf)),
        _product_and_largest,
        (n // 2 + 1, 1),
        (1, 1),
        ((0, 2), (1, 0)),
    ),
}


@pytest.mark.parametrize("case", WINDOWS_OF_UNKNOWN_SIZE)
@pytest.mark.parametrize("enable_xla", [True, False])
def test_windows_of_unknown_size(case, enable_xla):
    def fun(x):
        return WINDOWS_OF_UNKNOWN_SIZE[case](x, x.shape[0])

    converted = jax2tf.convert(fun, polymorphic_shapes="n, _", enable_xla=enable_xla)
    spec = tf.TensorSpec([None, 3], tf.float32)
    calls = (
        converted,
        tf.function(converted, autograph=False, input_signature=[spec]),
        tf.function(converted, autograph=False, jit_compile=True),
    )
    for size in (1, 2, 5, 8):
        x = np.random.default_rng(size).normal(0, 2, [size, 3]).astype(np.float32)
        expected = jax.tree.leaves(jax.jit(fun)(x))
        for call in calls:
            for result, should in zip(tf.nest.flatten(call(x)), expected, strict=True):
                assert result.shape == should.shape
                np.testing.assert_allclose(result, should, rtol=1e-5, atol=1e-5)


_TURNED = ["Transpose", "MaxPool", "Transpose"]


@pytest.mark.parametrize(
    ("axes", "ops"),
    [
        # The op pools the two axes in the middle, and is quick if the last one has the channels.
        ((1, 2), ["MaxPool"]),
        ((2, 3), _TURNED),
        ((0, 2), _TURNED),
        ((0, 1), ["Reshape", "MaxPool", "Reshape"]),
        ((1,), ["MaxPool"]),
    ],
)
def test_pooling_leaves_the_channels_last(axes, ops):
    def pool(x):
        window = [2 if axis in axes else 1 for axis in range(4)]
        return lax.reduce_window(x, -np.inf, lax.max, window, window, "VALID")

    x = np.random.default_rng(0).normal(size=(4, 5, 6, 7)).astype(np.float32)
    assert ops_in_order(graph_of(pool, "tensorflow", x)) == ops
    actual = jax2tf.convert(pool, enable_xla=False)(x)
    np.testing.assert_array_equal(actual, pool(x), strict=True)


@pytest.mark.parametrize(
    ("padding", "ops"),
    [
        ("VALID", ["MaxPool"]),
        ("SAME", ["MaxPool"]),
        ([(0, 0), (1, 0), (0, 1), (0, 0)], ["PadV2", "MaxPool"]),
        ([(0, 0), (1, 2), (0, 0), (0, 0)], ["PadV2", "MaxPool"]),
    ],
)
def test_the_op_for_pooling_pads_as_same_alone(padding, ops):
    def pool(x, reducer=lax.max, init=-np.inf):
        return lax.reduce_window(x, init, reducer, (1, 3, 2, 1), (1, 2, 1, 1), padding)

    x = np.random.default_rng(0).normal(size=(2, 6, 5, 3)).astype(np.float32)
    assert ops_in_order(graph_of(pool, "tensorflow", x)) == ops
    actual = jax2tf.convert(pool, enable_xla=False)(x)
    np.testing.assert_array_equal(actual, pool(x), strict=True)
    actual = jax2tf.convert(lambda x: pool(x, lax.add, 0.0), enable_xla=False)(x)
    np.testing.assert_allclose(actual, pool(x, lax.add, 0.0), rtol=1e-5, atol=1e-5, strict=True)
