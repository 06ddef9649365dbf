"""Reasons of the ledger that speak of what XLA does, each proved by the smallest program of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

MASK = jnp.eye(2, dtype=bool)
DERIVATIVES = jnp.array([np.inf, 2], np.float32)
TIMES = [[np.inf, 0], [np.nan, 2]]  # 0 times an infinity is NaN
SELECTED = [[np.inf, 0], [0, 2]]


@pytest.fixture
def product():
    """A matrix of zeros and ones, of which a jacobian makes one, times derivatives."""
    return jax.jit(lambda mask, x: mask.astype(x.dtype) * x)


def test_xla_selects_where_bools_are_multiplied(product):
    """The entry of pow in under_jacobian: what jax.jit gives is not what its ops give."""
    np.testing.assert_array_equal(product(MASK, DERIVATIVES), SELECTED)
    with jax.disable_jit():
        np.testing.assert_array_equal(product(MASK, DERIVATIVES), TIMES)
    compiled = product.lower(MASK, DERIVATIVES).compile().as_text()
    assert " select(" in compiled
    assert " multiply(" not in compiled


def test_xla_multiplies_where_the_matrix_is_of_floats(product):
    matrix = MASK.astype(jnp.float32)
    np.testing.assert_array_equal(product(matrix, DERIVATIVES), TIMES)
    assert " multiply(" in product.lower(matrix, DERIVATIVES).compile().as_text()


def test_a_jacobian_multiplies_bools():
    """The derivative of x ** 0.5 is infinite at 0: the jacobian's other elements there are 0."""
    jacobian = jax.jacobian(lambda x: x**0.5)
    x = jnp.array([0.0, 4.0])
    np.testing.assert_array_equal(jax.jit(jacobian)(x), [[np.inf, 0], [0, 0.25]])
    with jax.disable_jit():
        np.testing.assert_array_equal(jacobian(x), [[np.inf, 0], [np.nan, 0.25]])
