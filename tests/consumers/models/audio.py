"""Models of sound: a spectrogram and what classifies it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.consumers.models.model import Model, Models, floats, weights

_FRAME, _HOP, _SAMPLES, _BANDS = 32, 16, 128, 12


def _frames(sound: jax.Array) -> jax.Array:
    """(batch, samples) to (batch, frames, samples of a frame), windowed."""
    count = (_SAMPLES - _FRAME) // _HOP + 1
    places = _HOP * np.arange(count)[:, None] + np.arange(_FRAME)
    return sound[:, places] * np.hanning(_FRAME).astype(np.float32)


def _bands(power: jax.Array) -> jax.Array:
    """Logarithms of the energies of overlapping bands."""
    triangles = np.abs(weights(power.shape[-1], _BANDS))
    return jnp.log(power @ triangles + 1e-6)


def _classified(bands: jax.Array) -> jax.Array:
    x = lax.conv_general_dilated(
        bands, weights(3, _BANDS, 16), (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )
    return jax.nn.softmax(jax.nn.relu(x).max(1) @ weights(16, 6))


def keywords(sound: jax.Array) -> jax.Array:
    """A classifier of the spectrogram's bands, by jnp.fft."""
    return _classified(_bands(jnp.abs(jnp.fft.rfft(_frames(sound))) ** 2))


def keywords_by_product(sound: jax.Array) -> jax.Array:
    """The same by products with cosines and sines, as it is written for small devices."""
    angles = 2 * np.pi * np.outer(np.arange(_FRAME), np.arange(_FRAME // 2 + 1)) / _FRAME
    frames = _frames(sound)
    real, imag = (frames @ f(angles).astype(np.float32) for f in (np.cos, np.sin))
    return _classified(_bands(real**2 + imag**2))


def denoised(sound: jax.Array) -> jax.Array:
    """Frames whose weak frequencies are left out, put together again."""
    spectrum = jnp.fft.rfft(_frames(sound))
    size = jnp.abs(spectrum)
    kept = spectrum * jax.nn.sigmoid(size - size.mean(-1, keepdims=True))
    frames = jnp.fft.irfft(kept, _FRAME)
    halves = frames.reshape(frames.shape[0], -1, 2, _HOP)
    before, behind = jnp.pad(halves[:, :, 0], ((0, 0), (0, 1), (0, 0))), halves[:, :, 1]
    summed = before + jnp.pad(behind, ((0, 0), (1, 0), (0, 0)))
    return summed.reshape(summed.shape[0], _SAMPLES)


def _sounds(batch: int, length: int) -> tuple[np.ndarray, ...]:
    del length
    return (floats(batch, _SAMPLES),)


_SHAPES = (f"b, {_SAMPLES}",)

MODELS: Models = {
    "spectrogram": Model(keywords, _sounds, _SHAPES),
    "spectrogram by products": Model(keywords_by_product, _sounds, _SHAPES),
    "spectra there and back": Model(denoised, _sounds, _SHAPES),
}
