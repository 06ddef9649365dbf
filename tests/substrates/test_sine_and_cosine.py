"""The sine and cosine of angles within one turn."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_within_ulps_at_every_angle_of_a_normal_sample(substrate: str):
    # Box and Muller's method takes angles of 23 random bits.
    angle = np.float32(2 * np.pi) * (np.arange(2**23, dtype=np.float32) * np.float32(2.0**-23))
    module = importlib.import_module(f"tf_substrates.{substrate}.sine_and_cosine")
    exact = np.sin(angle.astype(np.float64)), np.cos(angle.astype(np.float64))
    for actual, expected in zip(module.sine_and_cosine(angle), exact, strict=True):
        assert actual.dtype == np.float32
        ulps = np.abs(np.asarray(actual, np.float64) - expected) / np.spacing(
            np.abs(expected).astype(np.float32)
        )
        assert ulps.max() < 1.5
