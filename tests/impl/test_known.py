"""One number that is broadcast to an open shape is known, and an op that it leaves out is none."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import assert_near

TARGETS = ("xla", "tensorflow", "litert", "onnx", "openvino", "tfjs")
EDGES = np.array([[0.0, -0.0, 1.5], [np.nan, np.inf, -np.inf], [1e-40, -2.0, 3e38]], np.float32)
RNG = np.random.default_rng(0)


def _counts(fun, target, spec, dtype=tf.float32):
    """The graph of a function of an array with open dimensions, and how often it has each op."""
    shape = [int(d) if d.isdigit() else None for d in spec.split(", ")]
    converted = jax2tf.convert(fun, target=target, polymorphic_shapes=spec, with_gradient=False)
    concrete = tf.function(converted, autograph=False).get_concrete_function(
        tf.TensorSpec(shape, dtype)
    )
    return concrete, collections.Counter(op.type for op in concrete.graph.get_operations())


def _repeated(x, number):
    """The number for each element of x, by way of its rows."""
    of_rows = lax.broadcast_in_dim(np.asarray(number, x.dtype), x.shape[:1], ())
    return lax.broadcast_in_dim(of_rows, x.shape, (0,))


def _norm(x):
    """A norm without a mean, as libraries write it: by the function that has one, of zero."""
    mean = jnp.zeros(x.shape[:-1])[..., None]
    return (x - mean) * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_norm_without_a_mean_has_no_difference(target):
    concrete, counts = _counts(_norm, target, "b, n, 4")
    assert counts["Sub"] == 0, counts
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    assert_near(concrete(tf.constant(x)), _norm(x), 16)


LEFT_OUT = {
    "x - 0": (lambda x: x - _repeated(x, 0.0), "Sub"),
    "x + -0": (lambda x: x + _repeated(x, -0.0), "AddV2"),
    "-0 + x": (lambda x: _repeated(x, -0.0) + x, "AddV2"),
    "x * 1": (lambda x: x * _repeated(x, 1.0), "Mul"),
    "1 * x": (lambda x: _repeated(x, 1.0) * x, "Mul"),
    "x - zeros": (lambda x: x - jnp.zeros_like(x).T.T, "Sub"),
}
STAY = {
    "x - -0": (lambda x: x - _repeated(x, -0.0), "Sub"),
    "x + 0": (lambda x: x + _repeated(x, 0.0), "AddV2"),
    "0 - x": (lambda x: _repeated(x, 0.0) - x, "Sub"),
    "x * 0": (lambda x: x * _repeated(x, 0.0), "Mul"),
    "1 / x": (lambda x: _repeated(x, 1.0) / x, "RealDiv"),
}


@pytest.mark.parametrize("target", ["xla", "tensorflow"])
@pytest.mark.parametrize("name", [*LEFT_OUT, *STAY])
def test_an_op_is_left_out_only_if_it_changes_nothing(name, target):
    fun, op = {**LEFT_OUT, **STAY}[name]
    concrete, counts = _counts(fun, target, "b, n")
    assert counts[op] == (name in STAY), counts
    actual, expected = concrete(tf.constant(EDGES)).numpy(), np.asarray(fun(EDGES))
    np.testing.assert_array_equal(actual[np.abs(EDGES) != 1e-40], expected[np.abs(EDGES) != 1e-40])
    np.testing.assert_array_equal(np.signbit(actual[:1]), np.signbit(expected[:1]))


@pytest.mark.parametrize("name", LEFT_OUT)
def test_integers_have_no_negative_zero(name):
    fun, op = LEFT_OUT[name]
    concrete, counts = _counts(fun, "xla", "b, n", tf.int32)
    assert counts[op] == 0, counts
    x = np.array([[0, -1, 2**31 - 1]], np.int32)
    np.testing.assert_array_equal(concrete(tf.constant(x)), fun(x))


def test_an_operand_that_the_op_repeats_is_no_result():
    """It has another shape: the op, or one that repeats it, has to stay."""
    concrete, _ = _counts(lambda x: x[:1] - jnp.zeros_like(x), "tensorflow", "b, n")
    assert concrete(tf.constant(EDGES)).shape == (3, 3)


WEIGHTS = RNG.normal(size=(4, 5)).astype(np.float32)
PRODUCTS = {
    "of zeros and a matrix": (lambda x: jnp.zeros_like(x) @ WEIGHTS, 0),
    "of a matrix and zeros": (lambda x: WEIGHTS.T @ jnp.zeros_like(x).T, 0),
    "of zeros and what is computed": (lambda x: jnp.zeros_like(x) @ x.T, 1),
    "of zeros and an infinity": (lambda x: jnp.zeros_like(x) @ (WEIGHTS * np.float32(np.inf)), 1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_with_zeros_is_zeros_if_nothing_is_infinite(name):
    fun, products = PRODUCTS[name]
    concrete, counts = _counts(fun, "tensorflow", "b, 4")
    assert counts["MatMul"] + counts["BatchMatMulV2"] == products, counts
    x = np.array([[1.0, np.inf, 2.0, np.nan]], np.float32)
    np.testing.assert_array_equal(concrete(tf.constant(x)), jax.jit(fun)(x))


def _parts(z):
    return z.real, z.imag


@pytest.mark.parametrize(("n", "products"), [(8, 2), (512, 6)])
@pytest.mark.parametrize("transform", [jnp.fft.rfft, jnp.fft.fft, jnp.fft.ifft])
def test_a_transform_of_real_numbers_has_no_products_of_zeros(transform, n, products):
    concrete, counts = _counts(lambda x: _parts(transform(x)), "litert", f"b, {n}")
    made = counts["MatMul"] + counts["BatchMatMulV2"]
    assert made == products, counts
    x = RNG.normal(size=(3, n)).astype(np.float32)
    for actual, expected in zip(concrete(tf.constant(x)), _parts(transform(x)), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-5 * n**0.5)
