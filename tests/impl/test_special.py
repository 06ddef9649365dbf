"""Special functions: values that the matrix does not compare."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from jax import lax

import jax2tf


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_inv_keeps_its_digits_near_zero_and_one(dtype, jit_compile):
    with jax.enable_x64(dtype == np.float64):
        erf_inv = tf.function(jax2tf.convert(lax.erf_inv), jit_compile=jit_compile, autograph=False)
        near_one = 1 - np.finfo(dtype).eps * np.array([0.5, 8, 1024])
        x = np.concatenate([np.logspace(-30, -1, 30), near_one]).astype(dtype)
        result = erf_inv(x).numpy()
    # The rounding of 1 - x**2 is what is left near one.
    tolerance = np.where(x < 0.5, 4, 64 if dtype == np.float32 else 1e9) * np.finfo(dtype).eps
    exact = scipy.special.erfinv(x.astype(np.float64))
    assert (np.abs(result / exact - 1) <= tolerance).all()


def test_digamma_of_zero_is_what_this_jax_says():
    x = np.array([0.0, -0.0, -1.0], np.float32)
    np.testing.assert_array_equal(jax2tf.convert(lax.digamma)(x), lax.digamma(x))


@pytest.mark.parametrize("fun", [lax.igamma, lax.igammac], ids=lambda fun: fun.__name__)
def test_igamma_of_infinity_is_what_this_jax_says(fun):
    a = np.array([math.inf] * 6, np.float32)
    x = np.array([0, 0.5, 1, 7, math.inf, math.nan], np.float32)
    np.testing.assert_array_equal(jax2tf.convert(fun)(a, x), fun(a, x))


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "compiled"])
def test_zeta_is_jaxs_where_it_is_not_the_function_too(jit_compile):
    # Terms that no longer count overflow to NaN; far below -10 the formula does not converge.
    args = np.float32([50, 5e3, 1e30, 2, 2]), np.float32([1, 1, 1, -10.8, -20.5])
    expected = lax.zeta(*args)
    assert np.isnan(expected[1])
    assert expected[0] == 1
    zeta = tf.function(jax2tf.convert(lax.zeta), jit_compile=jit_compile, autograph=False)
    np.testing.assert_allclose(zeta(*args), expected, rtol=1e-6)


def test_zeta_where_each_term_of_its_formula_counts():
    with jax.enable_x64(True):
        args = np.array([2.0, 3, 4, 6]), np.array([-8.7, -9.2, -8.7, -9.5])
        zeta = tf.function(jax2tf.convert(lax.zeta), autograph=False)
        np.testing.assert_allclose(zeta(*args), lax.zeta(*args), rtol=1e-12)


def test_second_derivative_of_lgamma_is_a_zeta_function():
    trigamma = jax2tf.convert(jax.grad(jax.grad(lax.lgamma)))
    np.testing.assert_allclose(trigamma(np.float32(1)), math.pi**2 / 6, rtol=1e-6)
