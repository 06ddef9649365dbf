"""What the matrix cannot show of reductions: open axes, and axes that are none."""

import itertools

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_of

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], np.float32)


def _affine(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


def _sum_and_largest(a, b):
    return a[0] + b[0], lax.max(a[1], b[1])


OF_UNKNOWN_SIZE = {
    "maybe_empty": lambda x: lax.reduce(
        (x[1:], x[:-1]), (np.float32(1), np.float32(0)), _affine, (0,)
    ),
    "known_too": lambda x: lax.reduce(
        (x, x), (np.float32(0), np.float32(-np.inf)), _sum_and_largest, (0, 1)
    ),
    "windows": lambda x: lax.reduce_window(
        *((x, x), (np.float32(1), np.float32(0)), _affine),
        *((x.shape[0] // 2 + 1, 1), (1, 1), "VALID"),
    ),
    "twice": lambda x: lax.reduce(
        (x @ x.T, x @ x.T), (np.float32(0), np.float32(-np.inf)), _sum_and_largest, (0, 1)
    ),
    "bits": lambda x: lax.reduce_xor(x.astype(np.int32), axes=(0,)),
    "cummax": lambda x: lax.cummax(x[1:], 0),
    "cummin_reverse": lambda x: lax.cummin(x, 0, reverse=True),
    "cumprod_complex": lambda x: lax.cumprod(lax.complex(x, 1 - x), 0),
}


@pytest.mark.parametrize("case", OF_UNKNOWN_SIZE)
@pytest.mark.parametrize("enable_xla", [True, False])
def test_axes_of_unknown_size(case, enable_xla):
    fun = OF_UNKNOWN_SIZE[case]
    converted = jax2tf.convert(fun, polymorphic_shapes="n, _", enable_xla=enable_xla)
    spec = tf.TensorSpec([None, 3], tf.float32)
    graph = tf.function(converted, autograph=False, input_signature=[spec])
    compiled = tf.function(converted, autograph=False, jit_compile=True)
    for size in (1, 2, 7):
        x = np.random.default_rng(size).normal(0, 2, [size, 3]).astype(np.float32)
        for call in (converted, graph, compiled):
            for result, expected in zip(
                tf.nest.flatten(call(x)), jax.tree.leaves(jax.jit(fun)(x)), strict=True
            ):
                assert result.shape == expected.shape
                np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2)])
def test_a_reduction_by_the_users_function_over_open_axes(axes):
    def total(x):
        return lax.reduce(x, np.float32(0), lambda a, b: a * b + a + b, axes)

    converted = tf.function(
        jax2tf.convert(total, polymorphic_shapes="n, m, _", enable_xla=False), autograph=False
    )
    for shape in ((1, 1, 3), (7, 5, 3)):
        x = np.random.default_rng(0).uniform(-0.5, 0.5, shape).astype(np.float32)
        np.testing.assert_allclose(converted(x), total(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("reduce", "dtype"),
    [
        *itertools.product((lax.reduce_max, lax.reduce_min), (bool, np.int32, np.float32)),
        *itertools.product((lax.reduce_and, lax.reduce_or, lax.reduce_xor), (bool, np.int32)),
    ],
)
def test_over_no_axes_nothing_is_reduced(reduce, dtype):
    x = np.array([0, 1, 1], dtype)
    concrete = graph_of(lambda x: reduce(x, ()), "tensorflow", x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), x, strict=True)
    assert ops_of(concrete) <= {"Placeholder", "Identity", "NoOp"}
