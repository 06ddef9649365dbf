"""Derivatives on JAX: those of TensorFlow, also where JAX itself has none."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

ROWS = np.array([[2.0, 0.0, 3.0], [-1.5, 4.0, 0.0], [0.5, 2.0, 0.0], [7.0, -1.0, 2.0]])
WEIGHTS = np.arange(1.0, 13.0).reshape(4, 3)

PRODUCTS = {
    "segment_prod": lambda tf, x: tf.math.segment_prod(x, [0, 0, 0, 2]),
    "unsorted_segment_prod": lambda tf, x: tf.math.unsorted_segment_prod(x, [2, 0, 2, -1], 4),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_derivatives_of_products_of_segments(name):
    def loss(tf, x):
        result = PRODUCTS[name](tf, x)
        return tf.reduce_sum(result * WEIGHTS[: result.shape[0]])

    variable = tensorflow.constant(ROWS)
    with tensorflow.GradientTape() as tape:
        tape.watch(variable)
        value = loss(tensorflow, variable)
    expected = tape.gradient(value, variable).numpy()
    with jax.enable_x64(True):
        of_x = jax.jit(lambda x: loss(tf_of("jax"), x))
        gradient = jax.grad(of_x)(ROWS)
        _, tangent = jax.jvp(of_x, (ROWS,), (WEIGHTS,))
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    np.testing.assert_allclose(tangent, (expected * WEIGHTS).sum(), rtol=1e-12)


def test_products_of_segments_are_mapped():
    tf = tf_of("jax")
    ids = np.array([[0, 1, 0, 1], [1, 1, 1, 0]])
    found = jax.vmap(lambda i: tf.math.unsorted_segment_prod(ROWS.astype(np.float32), i, 2))(ids)
    expected = [tensorflow.math.unsorted_segment_prod(ROWS.astype(np.float32), i, 2) for i in ids]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_the_extremum_of_nothing_has_derivatives_that_are_zero(name):
    function = getattr(tf_of("jax").math, name)
    nothing = np.zeros([0, 3], np.float32)
    value, tangent = jax.jvp(lambda x: function(x, axis=0), (nothing,), (nothing,))
    np.testing.assert_array_equal(value, getattr(tensorflow.math, name)(nothing, axis=0))
    np.testing.assert_array_equal(tangent, np.zeros(3))


COMPLEX = np.array([[1 + 2j, -0.5j], [3.0, np.inf]], np.complex64)
BITS = [
    Case(
        f"bits of {array.dtype} as {to}", lambda tf, a=array, to=to: tf.bitcast(tf.constant(a), to)
    )
    for array, to in (
        (COMPLEX, "float32"),
        (COMPLEX, "int32"),
        (COMPLEX, "uint8"),
        (COMPLEX, "float64"),
        (COMPLEX.astype(np.complex128), "float32"),
        (COMPLEX.astype(np.complex128), "complex64"),
        (COMPLEX, "complex128"),
        (np.array([1.5, -2.0]), "complex64"),
        (np.array([[1.5, -2.0]]), "complex128"),
    )
] + [Case("bits of no such size", lambda tf: tf.bitcast(tf.zeros([3], tf.complex64), "complex128"))]


@over(BITS)
def test_bits_of_complex_numbers(case, substrate):
    assert_as_tensorflow(case, substrate)


TIES = {
    "maximum": lambda tf, x, y: tf.maximum(x, y),
    "minimum": lambda tf, x, y: tf.minimum(x, y),
    "multiply_no_nan": lambda tf, x, y: tf.math.multiply_no_nan(x, y),
}


@pytest.mark.parametrize("name", TIES)
def test_derivatives_where_operands_are_equal_or_zero(name):
    x = np.array([[1.0], [0.0], [-2.0]])
    y = np.array([1.0, 0.0, -2.0, 5.0])

    def loss(tf, x, y):
        result = TIES[name](tf, x, y)
        return tf.reduce_sum(result * WEIGHTS.reshape(3, 4) + result * result)

    variables = list(map(tensorflow.constant, (x, y)))
    with tensorflow.GradientTape() as tape:
        tape.watch(variables)
        value = loss(tensorflow, *variables)
    expected = tape.gradient(value, variables)
    with jax.enable_x64(True):
        of_both = jax.jit(lambda *both: loss(tf_of("jax"), *both))
        gradients = jax.grad(of_both, (0, 1))(x, y)
        _, tangent = jax.jvp(of_both, (x, y), (x + 1, y + 2))
    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    products = [(e.numpy() * t).sum() for e, t in zip(expected, (x + 1, y + 2), strict=True)]
    np.testing.assert_allclose(tangent, sum(products), rtol=1e-12)
