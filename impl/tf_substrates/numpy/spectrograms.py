"""tf.signal: windows of audio, spectrograms of it, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, special
from tf_substrates.numpy.cosine_transforms import dct
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS, widened
from tf_substrates.numpy.namespaces import EXPORTS, op
from tf_substrates.numpy.signal import frame, length_of_window, overlap_and_add, window_dtype
from tf_substrates.numpy.tensors import convert, require, static_value, wrap

# Those that tables define.
hann_window, rfft, irfft = (EXPORTS[f"signal.{n}"] for n in ("hann_window", "rfft", "irfft"))

# Windows.


@op("signal.kaiser_window")
def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: Any = None
) -> Any:
    """I0(beta * sqrt(1 - t^2)) / I0(beta) for t from -1 to 1 (Kaiser and Schafer, 1980)."""
    here, length = window_dtype(dtype), length_of_window(window_length)
    if length == 1:
        return xp.ones((1,), here)
    if length < 1:
        raise invalid_argument(f"Requires start <= limit when delta > 0: {length} [Op:Range]")
    half = np.asarray((length - 1) / 2, here)
    places = np.arange(-(length - 1) / 2, (length - 1) / 2 + 0.1).astype(here) / half
    shape = convert(beta, hint=here).astype(here)
    inner = shape * np.sqrt(np.maximum(1 - np.square(places), np.zeros((), here)))
    return widened(special.i0, inner) / widened(special.i0, shape)


@op("signal.kaiser_bessel_derived_window")
def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: Any = None
) -> Any:
    """The root of the sums of a Kaiser window, and its mirror image."""
    here, length = window_dtype(dtype), length_of_window(window_length)
    sums = xp.cumsum(convert(kaiser_window(length // 2 + 1, beta, here)), dtype=here)
    half = xp.sqrt(sums[:-1] / sums[-1])
    return xp.concatenate([half, half[::-1]])


@op("signal.vorbis_window")
def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: Any = None) -> Any:
    """sin(pi/2 sin^2(pi (n + 1/2) / N)), of the Vorbis I specification."""
    here, length = window_dtype(dtype), length_of_window(window_length)
    if length < 1:
        return xp.zeros((0,), here)
    places = np.arange(length).astype(here) + np.asarray(0.5, here)
    inner = np.sin(np.asarray(np.pi, here) / np.asarray(length, here) * places)
    return np.sin(np.asarray(np.pi / 2, here) * np.square(inner))


# Spectrograms.


def _weighted(frames: Any, window_fn: Callable | None, length: int) -> Any:
    if window_fn is None:
        return frames
    return frames * convert(window_fn(length, dtype=dtypes.as_dtype(frames.dtype)))


def _enclosing_power_of_two(length: int) -> int:
    return 1 if length < 1 else 1 << (length - 1).bit_length()


def _length(value: Any, what: str) -> int:
    return int(static_value(value, what))


@op("signal.stft")
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
    name: Any = None,
) -> Any:
    """The Fourier transform of each frame of a signal, weighted by a window.

    Args:
      signals: `[..., samples]`, float32 or float64.
      frame_length: samples of a frame, known under jax.jit.
      frame_step: samples from a frame to the next, known under jax.jit.
      fft_length: of each transform; by default the next power of two.
      window_fn: a function of a length and `dtype`, or None for no window.
      pad_end: whether frames that begin inside and end outside are there, with zeros.

    Returns:
      `[..., frames, fft_length // 2 + 1]`, complex.

    Raises:
      ValueError: the signals are no float32 or float64, or a scalar.
    """
    x = convert(signals)
    length = _length(frame_length, "frame_length")
    size = _enclosing_power_of_two(length) if fft_length is None else _length(fft_length, "fft")
    frames = convert(frame(x, length, frame_step, pad_end=pad_end))
    return convert(rfft(wrap(_weighted(frames, window_fn, length)), [size]))


@op("signal.inverse_stft")
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    name: Any = None,
) -> Any:
    """The signal that frames, of which `stfts` are the transforms, add up to.

    Args: as of tf.signal.stft; for its inverse `window_fn` is
      tf.signal.inverse_stft_window_fn(frame_step).
    """
    length = _length(frame_length, "frame_length")
    size = _enclosing_power_of_two(length) if fft_length is None else _length(fft_length, "fft")
    frames = convert(irfft(stfts, [size]))[..., :length]
    missing = [(0, 0)] * (len(frames.shape) - 1) + [(0, length - frames.shape[-1])]
    frames = xp.pad(frames, missing)
    return convert(overlap_and_add(_weighted(frames, window_fn, length), frame_step))


@op("signal.inverse_stft_window_fn")
def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Any = hann_window, name: Any = None
) -> Any:
    """The window for tf.signal.inverse_stft (Griffin and Lim, 1984).

    Returns:
      A function of a frame's length and of `dtype`: the forward window, divided by the sum of the
      squares of all windows over a sample.
    """
    step = _length(frame_step, "frame_step")

    def inverse_window(frame_length: Any, dtype: Any = dtypes.float32) -> Any:
        length = _length(frame_length, "frame_length")
        forward = convert(forward_window_fn(length, dtype=dtype))
        overlaps = -(-length // step)
        squares = xp.pad(xp.square(forward), (0, overlaps * step - length))
        sums = xp.sum(squares.reshape((overlaps, step)), axis=0)
        return convert(forward / xp.tile(sums, overlaps)[:length])

    return inverse_window


@op("signal.mdct")
def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Any = vorbis_window,
    pad_end: bool = False,
    norm: Any = None,
    name: Any = None,
) -> Any:
    """The modified cosine transform of frames that overlap by half.

    Raises:
      ValueError: the length of a frame is no multiple of 4.
    """
    length = _length(frame_length, "frame_length")
    if length % 4:
        raise ValueError("The frame length must be a multiple of 4.")
    frames = convert(frame(convert(signals), length, length // 2, pad_end=pad_end))
    a, b, c, d = xp.split(_folded_weights(frames, window_fn, length), 4, axis=-1)
    turned = xp.concatenate([-xp.flip(c, -1) - d, a - xp.flip(b, -1)], axis=-1)
    return convert(dct(turned, type=4, norm=norm))


@op("signal.inverse_mdct")
def inverse_mdct(
    mdcts: Any, window_fn: Any = vorbis_window, norm: Any = None, name: Any = None
) -> Any:
    """The signal of which `mdcts`, `[..., frames, coefficients]`, are the transforms."""
    x = convert(mdcts)
    half = x.shape[-1]
    turned = convert(dct(x, type=4, norm=norm))
    if norm is None:
        turned = turned * np.asarray(0.5 / half, x.dtype)
    first, second = xp.split(turned, 2, axis=-1)
    frames = xp.concatenate([second, -xp.flip(second, -1), -xp.flip(first, -1), -first], axis=-1)
    return convert(overlap_and_add(_folded_weights(frames, window_fn, 2 * half), half))


def _folded_weights(frames: Any, window_fn: Callable | None, length: int) -> Any:
    if window_fn is None:
        return frames * np.asarray(np.sqrt(0.5), frames.dtype)
    return _weighted(frames, window_fn, length)


# Mel scales.


def _mel(hertz: Any) -> Any:
    """The mel scale of the Hidden Markov Toolkit."""
    return 1127.0 * np.log(1 + np.asarray(hertz) / 700.0)


@op("signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
) -> Any:
    """The matrix `[spectrogram bins, mel bins]` of triangles that are even on the mel scale.

    Raises:
      ValueError: there are no bins, or the edges are not between 0 and half the sample rate.
    """
    here = window_dtype(dtype)
    rate = static_value(sample_rate, "sample_rate").astype(here)
    low, high = float(lower_edge_hertz), float(upper_edge_hertz)
    _check_mel(num_mel_bins, num_spectrogram_bins, float(rate), low, high)
    nyquist = rate / np.asarray(2, here)
    # The lowest bin is no part of a triangle.
    linear = np.linspace(np.zeros((), here), nyquist, num_spectrogram_bins, dtype=here)[1:]
    places = _mel(linear).astype(here)[:, None]
    edges = np.linspace(_mel(low), _mel(high), num_mel_bins + 2).astype(here)
    lower, center, upper = (edges[k : k + num_mel_bins] for k in range(3))
    rising = (places - lower) / (center - lower)
    falling = (upper - places) / (upper - center)
    weights = np.maximum(np.zeros((), here), np.minimum(rising, falling))
    return np.pad(weights, [(1, 0), (0, 0)])


def _check_mel(bins: int, spectrogram_bins: int, rate: float, low: float, high: float) -> None:
    if bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {bins}")
    if spectrogram_bins <= 0:
        raise ValueError(f"num_spectrogram_bins must be positive. Got: {spectrogram_bins}")
    if rate <= 0:
        raise ValueError(f"sample_rate must be positive. Got: {rate}")
    if low < 0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {low}")
    if low >= high:
        raise ValueError(f"lower_edge_hertz {low} >= upper_edge_hertz {high}")
    if high > rate / 2:
        raise ValueError(
            f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2)."
            f" Got {high} for sample_rate: {rate}"
        )


@op("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: Any = None) -> Any:
    """The cosine transform of log mel spectrograms, orthonormal but for its first coefficient.

    Raises:
      ValueError: there are no bins.
    """
    x = require("RFFT", convert(log_mel_spectrograms), REAL_FLOATS)
    bins = x.shape[-1] if x.shape else 0
    if bins == 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {log_mel_spectrograms}")
    return convert(dct(x, type=2)) * np.asarray(1 / np.sqrt(bins * 2.0), x.dtype)
