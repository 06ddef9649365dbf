"""Cumulative sums and the like along open axes, and as associative scans."""

import itertools

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_of

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], np.float32)


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


@pytest.mark.parametrize(
    ("target", "scan", "op"),
    [
        ("litert", lax.cumprod, "Cumprod"),
        ("litert", lax.cumlogsumexp, "CumulativeLogsumexp"),
        ("onnx", lax.cumlogsumexp, "CumulativeLogsumexp"),
    ],
)
def test_a_scan_along_an_open_axis_without_the_op(target, scan, op):
    def fun(x):
        return scan(x, 1, reverse=True)

    converted = jax2tf.convert(fun, polymorphic_shapes="2, n", target=target, with_gradient=False)
    signature = [tf.TensorSpec([2, None])]
    concrete = tf.function(converted, autograph=False, input_signature=signature)
    concrete = concrete.get_concrete_function()
    assert op not in ops_of(concrete)
    for size in (1, 2, 7):
        x = np.random.default_rng(size).normal(size=[2, size]).astype(np.float32)
        x[:1, :1] = np.inf
        np.testing.assert_allclose(concrete(tf.constant(x)), fun(x), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("size", [2, None])
@pytest.mark.parametrize(
    ("scan", "reverse"),
    # Forward, what comes after an infinity is TensorFlow's product of it.
    [*itertools.product((lax.cummin, lax.cumlogsumexp), (False, True)), (lax.cumprod, True)],
)
def test_a_complex_scan_begins_with_the_identity(scan, reverse, size):
    """1 * (inf + 2j) is inf + nanj; the least of inf + 2j and inf is inf; 4j becomes -2.28j."""

    def fun(x):
        return scan(x, 0, reverse=reverse)

    x = np.array([complex(np.inf, 2), 1 + 4j], np.complex64)[:: -1 if reverse else 1]
    spec = None if size else "n"
    converted = jax2tf.convert(fun, polymorphic_shapes=[spec], enable_xla=False)
    for mode in (converted, tf.function(converted, autograph=False)):
        np.testing.assert_allclose(mode(x), jax.jit(fun)(x), rtol=2e-6)
