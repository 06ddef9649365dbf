"""Derivatives on JAX: those of TensorFlow, also where JAX itself has none."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import Case, as_tensorflow_gives, assert_as_tensorflow, over, tf_of

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


# Points where a slope is infinite, jumps or is not there, and where operands are equal.
POINTS = np.array([0.0, 1.0, -1.0, 6.0, 0.5, np.inf, -np.inf, np.nan])
PAIRS = tuple(np.array(np.meshgrid(POINTS[:-1], POINTS[:-1])).reshape(2, -1))
ROW = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0], [-np.inf, -np.inf, -np.inf], [3.0, 0.0, -1.0]])
COMPLEX_POINTS = np.array([0, 1 + 2j, -1, 1j])
AT_EDGES = {
    "abs": (lambda tf, x: tf.abs(x), POINTS),
    "abs of complex": (lambda tf, x: tf.abs(x), COMPLEX_POINTS),
    "sqrt": (lambda tf, x: tf.sqrt(x), POINTS),
    "sqrt of complex": (lambda tf, x: tf.sqrt(x), COMPLEX_POINTS),
    "rsqrt": (lambda tf, x: tf.math.rsqrt(x), POINTS),
    "reciprocal": (lambda tf, x: tf.math.reciprocal(x), POINTS),
    "reciprocal_no_nan": (lambda tf, x: tf.math.reciprocal_no_nan(x), POINTS),
    "log": (lambda tf, x: tf.math.log(x), POINTS),
    "relu": (lambda tf, x: tf.nn.relu(x), POINTS),
    "relu6": (lambda tf, x: tf.nn.relu6(x), POINTS),
    "elu": (lambda tf, x: tf.nn.elu(x), POINTS),
    "selu": (lambda tf, x: tf.nn.selu(x), POINTS),
    "leaky_relu": (lambda tf, x: tf.nn.leaky_relu(x), POINTS),
    "softsign": (lambda tf, x: tf.nn.softsign(x), POINTS),
    "clip_by_value": (lambda tf, x: tf.clip_by_value(x, -1.0, 0.5), POINTS),
    "clip_by_value of limits": (lambda tf, x, y: tf.clip_by_value(x, -1.0, y), *PAIRS),
    "maximum": (lambda tf, x, y: tf.maximum(x, y), *PAIRS),
    "minimum": (lambda tf, x, y: tf.minimum(x, y), *PAIRS),
    "pow": (lambda tf, x, y: tf.pow(x, y), *PAIRS),
    "multiply_no_nan": (lambda tf, x, y: tf.math.multiply_no_nan(x, y), *PAIRS),
    "divide_no_nan": (lambda tf, x, y: tf.math.divide_no_nan(x, y), *PAIRS),
    "xlogy": (lambda tf, x, y: tf.math.xlogy(x, y), *PAIRS),
    "where of a root": (lambda tf, x: tf.where(x > 0, tf.sqrt(x), 0.0), POINTS),
    "norm": (lambda tf, x: tf.norm(x, axis=-1), ROW),
    "norm of order 1": (lambda tf, x: tf.norm(x, ord=1, axis=-1), ROW),
    "reduce_std": (lambda tf, x: tf.math.reduce_std(x, axis=-1), ROW),
    "reduce_max": (lambda tf, x: tf.reduce_max(x, axis=-1), ROW),
    "reduce_min": (lambda tf, x: tf.reduce_min(x, axis=-1), ROW),
    "l2_normalize": (lambda tf, x: tf.math.l2_normalize(x, axis=-1), ROW),
    "clip_by_norm": (lambda tf, x: tf.clip_by_norm(x, 1.0, axes=[-1]), ROW[:2]),
}


# By case and upstream gradient: its name in comparing.CHANGED.
CHANGED_AT_EDGES = {
    **{(name, upstream): f"{name} at NaN" for name in ("elu", "selu") for upstream in (0.0, 1.0)},
    **{("xlogy", upstream): "xlogy at 0" for upstream in (0.0, 1.0)},
    ("norm", 1.0): "norm at 0",
}


@pytest.mark.parametrize("upstream", [0.0, 1.0])
@pytest.mark.parametrize("name", AT_EDGES)
def test_derivatives_at_edges(name, upstream):
    program, *points = AT_EDGES[name]
    tensors = [tensorflow.constant(p) for p in points]
    with tensorflow.GradientTape() as tape:
        tape.watch(tensors)
        value = program(tensorflow, *tensors)
    upstreams = np.full(value.shape, upstream, value.numpy().dtype)
    expected = tape.gradient(value, tensors, output_gradients=tensorflow.constant(upstreams))
    with jax.enable_x64(True):

        def pulled(upstreams, *points):
            return jax.vjp(lambda *args: program(tf_of("jax"), *args), *points)[1](upstreams)

        actual = [*jax.jit(pulled)(upstreams, *points)]
        # Holomorphic derivatives are JAX's convention, conjugate ones TensorFlow's.
        with as_tensorflow_gives(CHANGED_AT_EDGES.get((name, upstream), name)):
            for a, e in zip(actual, expected, strict=True):
                np.testing.assert_allclose(np.conj(a), e, rtol=1e-12, atol=1e-15)


ROOTS = {
    "sqrt": lambda tf, x: tf.sqrt(x),
    "rsqrt": lambda tf, x: tf.math.rsqrt(x),
    "reciprocal": lambda tf, x: tf.math.reciprocal(x),
    "abs": lambda tf, x: tf.abs(x) * x,
    "pow": lambda tf, x: tf.pow(x, 0.5 * x),
    "multiply_no_nan": lambda tf, x: tf.math.multiply_no_nan(x, x * x),
}


@pytest.mark.parametrize("name", ROOTS)
def test_second_derivatives_and_maps_of_own_derivatives(name):
    points = np.array([0.5, 2.0, 3.0])
    variable = tensorflow.constant(points)
    with tensorflow.GradientTape() as outer:
        outer.watch(variable)
        with tensorflow.GradientTape() as inner:
            inner.watch(variable)
            value = ROOTS[name](tensorflow, variable)
        slope = inner.gradient(value, variable)
    expected = outer.gradient(slope, variable).numpy()
    with jax.enable_x64(True):
        of_x = lambda x: ROOTS[name](tf_of("jax"), x)  # noqa: E731
        for twice in (
            jax.grad(jax.grad(of_x)),
            jax.hessian(of_x),
            jax.jacfwd(jax.jacfwd(of_x)),
            jax.jacrev(jax.jacfwd(of_x)),
        ):
            np.testing.assert_allclose(jax.jit(jax.vmap(twice))(points), expected, rtol=1e-12)


@over(
    [
        Case(
            f"{name} of infinities", lambda tf, name=name, x=x: getattr(tf.math, name)(x, [0, 0, 2])
        )
        for name, x in (
            ("segment_max", np.float32([-np.inf, -np.inf, 3.0])),
            ("segment_min", np.array([np.inf, np.inf, -np.inf])),
        )
    ]
)
def test_extrema_of_segments_of_infinities(case, substrate):
    assert_as_tensorflow(case, substrate)
