"""Weights as integers with scales, whatever file they are stored in."""

import numpy as np
import pytest

from jax2tf._src.export.weights import in_half_bytes, quantized

WEIGHTS = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)


def _error(scales, numbers):
    return np.square(numbers * scales - WEIGHTS).sum(0)


@pytest.mark.parametrize(("bits", "most"), [(4, 7), (8, 127)])
def test_integers_with_a_scale_for_each_index(bits, most):
    scales, numbers = quantized(WEIGHTS, bits, axis=1)
    assert scales.shape == (1, 8)
    assert numbers.dtype == np.int8
    assert np.abs(numbers).max() == most
    step = np.abs(WEIGHTS).max(0) / most
    assert np.all(_error(scales, numbers) <= WEIGHTS.shape[0] * step**2)


def test_of_the_scales_of_four_bits_each_index_has_the_best():
    scales, numbers = quantized(WEIGHTS, 4, axis=1)
    whole = np.abs(WEIGHTS).max(0, keepdims=True) / np.float32(7)
    plain = np.clip(np.rint(WEIGHTS / whole), -7, 7)
    assert np.all(_error(scales, numbers) <= _error(whole, plain))
    assert np.any(scales < whole)


def test_weights_that_are_zero_stay_zero():
    scales, numbers = quantized(np.zeros((4, 2), np.float32), 4, axis=1)
    assert np.all(numbers == 0)
    assert np.all(np.isfinite(scales))


def test_two_integers_in_a_byte():
    assert in_half_bytes(np.int8([1, -1, 7, -7, 3])).tolist() == [0xF1, 0x97, 0x03]
