"""tf.signal: Fourier and cosine transforms, frames, windows."""

from harnesses.substrates import family
from harnesses.substrates.asking import (
    COMPLEX,
    FLOAT64,
    ask,
    ask_raises,
    normal,
)

LOOSE = {"float32": 64, "float64": 64, "complex64": 128, "complex128": 128}
_CUBE = (2, 4, 6)


@family.builder
def fourier_transforms() -> None:
    """Fourier transforms of one to three axes, with their lengths and shifts."""
    for suffix in ("", "2d", "3d"):
        for name in ("fft", "ifft"):
            ask(f"signal.{name}{suffix}", normal(_CUBE), dtypes=COMPLEX, ulps=LOOSE)
        ask(f"signal.rfft{suffix}", normal(_CUBE), dtypes=FLOAT64, ulps=LOOSE)
        ask(f"signal.irfft{suffix}", normal((2, 4, 4)), dtypes=COMPLEX, ulps=LOOSE)
    ask("signal.rfft", normal(_CUBE), case="longer", fft_length=[9], dtypes=FLOAT64, ulps=LOOSE)
    ask("signal.rfft", normal(_CUBE), case="shorter", fft_length=[3], dtypes=FLOAT64, ulps=LOOSE)
    ask("signal.irfft", normal((2, 4)), case="odd", fft_length=[5], dtypes=COMPLEX, ulps=LOOSE)
    for name in ("fftshift", "ifftshift"):
        ask(f"signal.{name}", normal((3, 5)), dtypes=("float32", "complex64", "int32"))
        ask(f"signal.{name}", normal((3, 5)), case="axis", axes=1)


@family.builder
def frames() -> None:
    """Signals cut into frames, and frames added up."""
    ask(
        "signal.frame",
        normal((2, 7)),
        frame_length=3,
        frame_step=2,
        dtypes=("float32", "float64", "int32"),
    )
    ask("signal.frame", normal((7,)), case="padded", frame_length=3, frame_step=2, pad_end=True,
        dtypes=FLOAT64)  # fmt: skip
    ask(
        "signal.overlap_and_add",
        normal((2, 4, 5)),
        frame_step=2,
        dtypes=("float32", "float64", "int32"),
    )


@family.builder
def cosine_transforms() -> None:
    """Cosine transforms of each type."""
    for number in (1, 2, 3, 4):
        for op in ("signal.dct", "signal.idct"):
            ask(op, normal((2, 6)), case=f"type{number}", type=number, dtypes=FLOAT64, ulps=LOOSE)
    for number in (2, 3, 4):
        ask("signal.dct", normal((2, 6)), case=f"ortho{number}", type=number, norm="ortho",
            dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip


@family.builder
def spectrograms() -> None:
    """Transforms of frames and back, cosine transforms of frames, mel scales."""
    audio = normal((2, 40))
    ask("signal.stft", audio, frame_length=16, frame_step=8, dtypes=FLOAT64, ulps=LOOSE)
    ask("signal.stft", audio, case="padded", frame_length=12, frame_step=5, pad_end=True,
        dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("signal.stft", audio, case="bare", frame_length=8, frame_step=4, fft_length=11,
        window_fn=None, dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("signal.inverse_stft", normal((2, 4, 9)), frame_length=16, frame_step=8, dtypes=COMPLEX,
        ulps=LOOSE)  # fmt: skip
    for length in (12, 20):
        ask("signal.inverse_stft", normal((2, 4, 9)),
            lambda tf, x, length=length: tf.signal.inverse_stft(
                x, length, 6, 16, tf.signal.inverse_stft_window_fn(6)),
            case=f"weighted{length}", dtypes=COMPLEX, ulps=LOOSE)  # fmt: skip
    for norm in (None, "ortho"):
        ask("signal.mdct", audio, case=str(norm), frame_length=8, norm=norm, dtypes=FLOAT64,
            ulps=LOOSE)  # fmt: skip
        ask("signal.inverse_mdct", normal((2, 4, 6)), case=str(norm), norm=norm, dtypes=FLOAT64,
            ulps=LOOSE)  # fmt: skip
    ask("signal.mdct", audio, case="bare", frame_length=8, window_fn=None, pad_end=True,
        dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("signal.mfccs_from_log_mel_spectrograms", normal((2, 10)), dtypes=FLOAT64, ulps=LOOSE)
    for dtype in FLOAT64:
        ask("signal.linear_to_mel_weight_matrix", [],
            lambda tf, dtype=dtype: tf.signal.linear_to_mel_weight_matrix(
                12, 65, 8000, 80.0, 3900.0, getattr(tf, dtype)),
            dtypes=[dtype], ulps={"float32": 256, "float64": 256})  # fmt: skip


@family.builder
def windows() -> None:
    """Windows, periodic and symmetric."""
    for name in ("hann_window", "hamming_window"):
        for dtype in FLOAT64:
            for periodic in (True, False):
                ask(f"signal.{name}", [],
                    lambda tf, name=name, periodic=periodic, dtype=dtype:
                        getattr(tf.signal, name)(7, periodic, getattr(tf, dtype)),
                    case=f"periodic{periodic:d}", dtypes=[dtype])  # fmt: skip
    for name in ("kaiser_window", "kaiser_bessel_derived_window", "vorbis_window"):
        for dtype in FLOAT64:
            for length in (1, 7, 8):
                ask(f"signal.{name}", [],
                    lambda tf, name=name, length=length, dtype=dtype:
                        getattr(tf.signal, name)(length, dtype=getattr(tf, dtype)),
                    case=str(length), dtypes=[dtype])  # fmt: skip


_REFUSED = (
    ("signal.stft", "integers", lambda tf: tf.signal.stft(tf.ones([9], tf.int32), 4, 2)),
    ("signal.stft", "scalar", lambda tf: tf.signal.stft(tf.constant(1.0), 4, 2)),
    ("signal.stft", "step", lambda tf: tf.signal.stft(tf.ones([9]), 4, 0)),
    ("signal.mdct", "length", lambda tf: tf.signal.mdct(tf.ones([9]), 6)),
    ("signal.kaiser_window", "length", lambda tf: tf.signal.kaiser_window(0)),
    ("signal.vorbis_window", "vector", lambda tf: tf.signal.vorbis_window([5])),
    ("signal.linear_to_mel_weight_matrix", "bins",
     lambda tf: tf.signal.linear_to_mel_weight_matrix(0)),
    ("signal.linear_to_mel_weight_matrix", "nyquist",
     lambda tf: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0)),
    ("signal.linear_to_mel_weight_matrix", "low",
     lambda tf: tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=-1.0)),
    ("signal.mfccs_from_log_mel_spectrograms", "no_bins",
     lambda tf: tf.signal.mfccs_from_log_mel_spectrograms(tf.zeros([2, 0]))),
    ("signal.fft", "real", lambda tf: tf.signal.fft(tf.ones([2]))),
    ("signal.fft", "scalar", lambda tf: tf.signal.fft(tf.constant(1j))),
    ("signal.fft2d", "vector", lambda tf: tf.signal.fft2d(tf.constant([1j]))),
    ("signal.rfft", "scalar", lambda tf: tf.signal.rfft(tf.constant(1.0))),
    ("signal.rfft", "float16", lambda tf: tf.signal.rfft(tf.zeros([2], tf.float16))),
    ("signal.rfft2d", "length", lambda tf: tf.signal.rfft2d(tf.ones([2, 2]), [2])),
    ("signal.irfft", "real", lambda tf: tf.signal.irfft(tf.ones([2]))),
    ("signal.frame", "step", lambda tf: tf.signal.frame(tf.ones([4]), 2, 0)),
    ("signal.frame", "scalar", lambda tf: tf.signal.frame(tf.constant(1), 2, 1)),
    ("signal.overlap_and_add", "vector", lambda tf: tf.signal.overlap_and_add(tf.ones([3]), 1)),
    ("signal.dct", "type", lambda tf: tf.signal.dct(tf.ones([4]), type=5)),
    ("signal.dct", "one", lambda tf: tf.signal.dct(tf.ones([1]), type=1)),
    ("signal.hann_window", "integers", lambda tf: tf.signal.hann_window(4, dtype=tf.int32)),
)  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with dtypes, shapes or options that do not fit."""
    for op, case, program in _REFUSED:
        ask_raises(op, case, program)
