"""The measure of error: it has to be exact, because tolerances are stated in it."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harnesses.engine.compare import ulp_errors
from harnesses.harness import ALL, FLOATS, edge_values

_NARROW = (np.dtype(jnp.float16), np.dtype(jnp.bfloat16))


def _float32s(**kwargs):
    return st.floats(width=32, allow_nan=False, allow_infinity=False, **kwargs).map(np.float32)


def _error(expected, actual, **kwargs):
    return ulp_errors(np.asarray(expected), np.asarray(actual), **kwargs).item()


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_edge_values_are_no_distance_from_themselves(dtype):
    values = edge_values(dtype)
    assert not ulp_errors(values, values).any()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_infinities_and_zeros_agree_with_themselves_alone(dtype):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]).astype(dtype)
    expected, actual = np.meshgrid(values, values, indexing="ij")
    errors = ulp_errors(expected, actual)
    special = errors[:3]
    assert (special[:, :3] == np.where(np.eye(3), 0, np.inf)).all()
    assert np.isinf(special[:, 3:]).all()
    assert errors[3:5, 3:5].tolist() == [[0, 1], [1, 0]]


@pytest.mark.fuzz
@given(_float32s(min_value=2.0**-100, max_value=2.0**100), st.integers(0, 1000), st.booleans())
def test_a_step_is_one_ulp(value, steps, negative):
    value = -value if negative else value
    away = (value.view(np.int32) + np.int32(steps)).view(np.float32)
    error = _error(value, away)
    # Beyond the next power of two the steps are twice as long as at `value`.
    assert steps <= error <= 2 * steps
    if np.frexp(value)[1] == np.frexp(away)[1]:
        assert error == steps


@pytest.mark.parametrize("dtype", _NARROW, ids=str)
def test_every_normal_number_and_the_next(dtype):
    limits = ml_dtypes.finfo(dtype)
    bits = np.arange(2**15, dtype=np.uint16)
    values = bits.view(dtype)
    values = values[np.isfinite(values.astype(np.float32))]
    values = values[values > limits.smallest_normal]
    assert (ulp_errors(values[:-1], values[1:]) == 1).all()


@pytest.mark.fuzz
@given(_float32s(), _float32s())
def test_sign_does_not_matter(expected, actual):
    assert _error(expected, actual) == _error(-expected, -actual)


@pytest.mark.fuzz
@given(_float32s(), _float32s(), _float32s())
def test_further_away_is_more(expected, near, far):
    assume(abs(np.float64(near) - expected) < abs(np.float64(far) - expected))
    assume(near != 0 or expected != 0)
    assert _error(expected, near) <= _error(expected, far)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_flushed_subnormals_are_below_one_ulp(dtype):
    limits = ml_dtypes.finfo(dtype)
    subnormals = [limits.smallest_subnormal, limits.smallest_normal * limits.eps * 7]
    zero = np.zeros((), dtype)
    for value in subnormals:
        assert 0 < _error(np.asarray(value, dtype), zero) < 1
        assert 0 < _error(zero, np.asarray(value, dtype)) < 1
    assert _error(np.asarray(limits.smallest_normal, dtype), zero) == 1
    assert _error(np.asarray(limits.smallest_normal * 2, dtype), zero) > 4


def test_scale_of_the_array():
    expected = np.array([1e-6, 1.0, np.inf, 1000.0], np.float32)
    actual = np.array([2e-6, 1.0, np.inf, 1000.0], np.float32)
    assert ulp_errors(expected, actual).max() > 1e6
    assert ulp_errors(expected, actual, "array").max() < 1


def test_complex_counts_in_ulps_of_the_magnitude():
    expected = np.array([3e4 + 1e-3j, complex(np.nan, 1), complex(np.inf, 1)], np.complex64)
    assert ulp_errors(expected, expected.copy()).tolist() == [0, 0, 0]
    nearly = expected + np.array([1e-4j, 0, 0], np.complex64)
    assert 0 < ulp_errors(expected, nearly)[0] < 1
    other_part = np.array([3e4, complex(1, np.nan), complex(1, np.inf)], np.complex64)
    assert np.isinf(ulp_errors(expected, other_part)[1:]).all()


@pytest.mark.fuzz
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_count_in_ones_and_are_equal_only_to_themselves(expected, actual):
    error = _error(np.int64(expected), np.int64(actual))
    assert (error == 0) == (expected == actual)
    assert error == pytest.approx(abs(expected - actual))


def test_bools_differ_by_one():
    assert _error(np.bool_(True), np.bool_(False)) == 1
