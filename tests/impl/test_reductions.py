"""What the matrix cannot show of reductions, scans and sorts: which ops they become."""

import itertools

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_in_order, ops_of

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], np.float32)


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


@pytest.fixture
def associative_scans():
    jax.config.update("jax2tf_associative_scan_reductions", True)
    yield
    jax.config.update("jax2tf_associative_scan_reductions", False)


@pytest.mark.usefixtures("associative_scans")
def test_the_switch_for_associative_scans():
    assert not {"Cumsum", "XlaReduceWindow"} & ops_of(
        graph_of(lambda x: lax.cumsum(x, 1), "xla", X)
    )
    for fun in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        result = jax2tf.convert(lambda x, fun=fun: fun(x, 1))(X)
        np.testing.assert_allclose(result, fun(X, 1), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("scan", [lax.cummax, lax.cummin, lax.cumlogsumexp, lax.cumprod])
def test_a_scan_along_an_open_axis(scan, reverse, axis):
    def fun(x):
        return scan(x, axis, reverse=reverse)

    spec = ", ".join("n" if i == axis else "_" for i in range(3))
    converted = tf.function(
        jax2tf.convert(fun, polymorphic_shapes=spec, enable_xla=False), autograph=False
    )
    for size in (1, 2, 7, 12):
        shape = [2, 3, 2]
        shape[axis] = size
        x = np.random.default_rng(size).normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(converted(x), fun(x), rtol=2e-6, atol=2e-6)


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
