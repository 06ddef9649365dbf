"""Spectral densities, which scatter complex numbers by products, in engines' files."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import jax2tf

# The imaginary part of a cross spectrum is a result of its own: engines have no complex numbers.
PROGRAMS = {
    "welch": lambda x: jax.scipy.signal.welch(x, nperseg=16)[1],
    "csd": lambda x: jnp.imag(jax.scipy.signal.csd(x, x * x, nperseg=16)[1]),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("suffix", ["tflite", "onnx", "xml"])
def test_spectral_densities_are_exported_and_verified(name, suffix, tmp_path):
    path = tmp_path / f"model.{suffix}"
    jax2tf.export(PROGRAMS[name], None, "b, 64", str(path), progress=False)
    assert path.exists()
