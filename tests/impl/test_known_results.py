"""Costly equations of constants are computed when a function is converted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.known_results import with_known_results
from jax2tf._src.tracing.jaxprs import equations

MATRIX = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 4.0]], np.float32)
X = np.float32([0.5, -1.0, 2.0])


def names_in(closed):
    return {eqn.primitive.name for eqn in equations(closed.jaxpr)}


def after(f, *args):
    """The program after the pass, whose results are those before it."""
    before = jax.jit(f).trace(*args).jaxpr
    program = with_known_results(before)
    results = (jax.jit(jex_core.jaxpr_as_fun(p))(*args) for p in (before, program))
    for expected, actual in zip(*results, strict=True):
        np.testing.assert_array_max_ulp(np.asarray(actual), np.asarray(expected), 2)
        assert actual.dtype == expected.dtype
    return program


def inverse_of_constant(x):
    return jnp.linalg.inv(MATRIX) @ x


def fitted(x):
    # The matrix of the fit is an argument of a jitted function.
    return jnp.polyfit(jnp.arange(3.0), x, 1)


@jax.jit
def layer(matrix, x):
    return jnp.linalg.inv(matrix) @ x


def shared_layers(x):
    return layer(MATRIX, layer(2 * MATRIX, x)) + layer(MATRIX, x)


@pytest.mark.parametrize(
    ("function", "gone"),
    [
        (inverse_of_constant, {"lu", "triangular_solve"}),
        (fitted, {"svd", "qr", "while"}),
        (shared_layers, {"lu", "triangular_solve"}),
        (jax.jit(jax.jit(inverse_of_constant)), {"lu"}),
        (lambda x: x + jax.random.normal(jax.random.key(0), (3,)), {"random_bits", "erf_inv"}),
        (lambda x: x + jax.random.uniform(jax.random.PRNGKey(1), (3,)), {"random_bits"}),
        (lambda x: x * lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) + i, jnp.ones(3)), {"scan"}),
        (lambda x: x[jnp.argsort(jnp.array([2, 0, 1]))], {"sort"}),
        (lambda x: (x + jnp.fft.fft(jnp.arange(3.0)).real, jnp.cumsum(jnp.ones(3))), {"fft"}),
        (lambda x: x * lax.igamma(jnp.ones(3), jnp.full(3, 2.0)), {"igamma"}),
        # Diffrax takes the neighbour of the end of the time a hundred times.
        (lambda x: x + lax.nextafter(jnp.float32(10.0), jnp.float32(jnp.inf)), {"nextafter"}),
    ],
)
def test_what_is_computed(function, gone):
    program = after(function, X)
    before = names_in(jax.jit(function).trace(X).jaxpr)
    assert gone & before
    assert not gone & names_in(program)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: jnp.linalg.inv(MATRIX * x), "lu"),
        (lambda x: x + jnp.sin(jnp.arange(3.0)), "sin"),
        # The result takes more room than the ops.
        (lambda x: x[0] + jnp.cumsum(jnp.ones(5000)), "cumsum"),
        (lambda x: x + lax.rng_uniform(0.0, 0.0, (3,)), "rng_uniform"),
        (
            lambda x: x + jax.pure_callback(lambda: X, jax.ShapeDtypeStruct((3,), np.float32)),
            "pure_callback",
        ),
        (lambda x: lax.scan(lambda c, _: (c @ MATRIX, None), x, None, 2)[0], "dot_general"),
    ],
)
def test_what_is_left(function, left):
    before = jax.jit(function).trace(X).jaxpr
    program = after(function, X)
    assert left in names_in(program)
    assert program is before


def test_open_sizes_are_left():
    (n,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n,), np.float32)
    program = jax.jit(lambda x: x + jnp.cumsum(jnp.ones(x.shape[0]))).trace(spec).jaxpr
    assert "cumsum" in names_in(with_known_results(program))


def test_a_shared_function_stays_shared():
    def twice(x):
        return layer(MATRIX, layer(MATRIX, x * x[0]) * x[0])

    def of_arguments(m, x):
        return layer(m * x[0], layer(m * x[0], x))

    program = after(of_arguments, MATRIX, X)
    assert program is jax.jit(of_arguments).trace(MATRIX, X).jaxpr
    assert "lu" not in names_in(after(twice, X))


def test_x64():
    with jax.enable_x64(True):
        program = after(lambda x: jnp.linalg.inv(MATRIX.astype(np.float64)) @ x, X.astype(float))
    assert "lu" not in names_in(program)
