"""tf.signal: Fourier transforms, frames, windows."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import ask, normal
from harnesses.harness import Normal

_ULPS = {"float32": 128, "complex64": 128}
_LINE = normal((2, 8))
_COMPLEX = [Normal((2, 8), "complex64")]
_CUBE = [Normal((2, 4, 4, 4), "complex64")]


@family.builder
def complex_transforms() -> None:
    """Fourier transforms of complex numbers."""
    for name in ("fft", "ifft", "fft2d", "ifft2d", "fftshift", "ifftshift"):
        ask(
            f"tf.signal.{name}",
            getattr(tf.signal, name),
            _COMPLEX,
            dtypes=["complex64"],
            ulps=_ULPS,
        )
    for name in ("fft3d", "ifft3d"):
        ask(f"tf.signal.{name}", getattr(tf.signal, name), _CUBE, dtypes=["complex64"], ulps=_ULPS)


_OF_REAL_SIGNALS = {
    "rfft": tf.signal.rfft,
    "rfft2d": tf.signal.rfft2d,
    "irfft": lambda x: tf.signal.irfft(tf.signal.rfft(x)),
    "irfft2d": lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x)),
    "dct": tf.signal.dct,
    "idct": tf.signal.idct,
    "mdct": lambda x: tf.signal.mdct(x, 4),
    "inverse_mdct": lambda x: tf.signal.inverse_mdct(tf.reshape(x, [2, 4, 2])),
    "frame": lambda x: tf.signal.frame(x, 4, 2),
    "overlap_and_add": lambda x: tf.signal.overlap_and_add(tf.reshape(x, [2, 2, 4]), 2),
    "stft": lambda x: tf.signal.stft(x, 4, 2),
    "inverse_stft": lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 4, 2), 4, 2),
    "hann_window": lambda x: tf.signal.hann_window(8) * x,
    "hamming_window": lambda x: tf.signal.hamming_window(8) * x,
    "kaiser_window": lambda x: tf.signal.kaiser_window(8) * x,
    "kaiser_bessel_derived_window": lambda x: tf.signal.kaiser_bessel_derived_window(8) * x,
    "vorbis_window": lambda x: tf.signal.vorbis_window(8) * x,
    "linear_to_mel_weight_matrix": lambda x: (
        x @ tf.signal.linear_to_mel_weight_matrix(3, 8, 8000, 100.0, 3000.0)
    ),
    "mfccs_from_log_mel_spectrograms": tf.signal.mfccs_from_log_mel_spectrograms,
}


@family.builder
def functions_of_real_signals() -> None:
    """Transforms of real numbers, frames and windows."""
    for name, function in _OF_REAL_SIGNALS.items():
        ask(f"tf.signal.{name}", function, _LINE, ulps=_ULPS)
