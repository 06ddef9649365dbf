"""tf.signal against TensorFlow: transforms, frames, windows."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

RANDOM = np.random.RandomState(0)
REAL = RANDOM.randn(2, 3, 4, 6).astype(np.float32)
COMPLEX = (REAL + 1j * RANDOM.randn(2, 3, 4, 6)).astype(np.complex64)
SUFFIXES = (("", 1), ("2d", 2), ("3d", 3))


def transform(name, array, *args):
    def program(tf):
        return getattr(tf.signal, name)(tf.constant(array), *args)

    return program


def close(name, program, **options):
    return Case(name, program, **{"rtol": 2e-5, "atol": 2e-5, **options})


TRANSFORMS = [
    close(f"{name}{suffix} of {kind}", transform(name + suffix, array))
    for suffix, _ in SUFFIXES
    for name, arrays in {
        "fft": {"complex64": COMPLEX, "complex128": COMPLEX.astype(np.complex128)},
        "ifft": {"complex64": COMPLEX},
        "rfft": {"float32": REAL, "float64": REAL.astype(np.float64), "odd": REAL[..., :5]},
        "irfft": {"complex64": COMPLEX, "complex128": COMPLEX.astype(np.complex128)},
    }.items()
    for kind, array in arrays.items()
] + [
    close(f"{name}{suffix} of {kind}", transform(name + suffix, array, lengths[:rank]))
    for suffix, rank in SUFFIXES
    for name, array in (("rfft", REAL), ("irfft", COMPLEX))
    for kind, lengths in {
        "shorter": ([2, 2, 2][::-1]),
        "longer": ([7, 5, 9][::-1]),
        "an odd length": [5, 5, 5],
    }.items()
]

RULES = [
    Case("fft of a real", lambda tf: tf.signal.fft(tf.constant([1.0, 2.0]))),
    Case("fft of integers", lambda tf: tf.signal.fft([1, 2]), rtol=1e-5),
    Case("fft of a scalar", lambda tf: tf.signal.fft(tf.constant(1j))),
    Case("fft2d of a vector", lambda tf: tf.signal.fft2d(tf.constant([1j]))),
    Case("fft of nothing", lambda tf: tf.signal.fft(tf.zeros([0], tf.complex64))),
    Case("fft of no rows", lambda tf: tf.signal.fft(tf.zeros([0, 2], tf.complex64))),
    close("fft of NaN", lambda tf: tf.signal.fft(tf.constant([np.nan + 0j, 1.0]))),
    Case("rfft of nothing", lambda tf: tf.signal.rfft(tf.zeros([0]))),
    Case("rfft of no rows", lambda tf: tf.signal.rfft(tf.zeros([0, 4]))),
    Case("irfft of no rows", lambda tf: tf.signal.irfft(tf.zeros([0, 3], tf.complex64))),
    Case("rfft of integers", lambda tf: tf.signal.rfft([1, 2]), rtol=1e-5),
    Case("rfft of float16", lambda tf: tf.signal.rfft(tf.zeros([2], tf.float16))),
    Case("rfft of a scalar", lambda tf: tf.signal.rfft(tf.constant(1.0))),
    Case("rfft2d of one length", lambda tf: tf.signal.rfft2d(tf.ones([2, 2]), [2])),
    Case("irfft of a real", lambda tf: tf.signal.irfft(tf.constant([1.0, 2.0]))),
    Case("shift", lambda tf: tf.signal.fftshift(tf.reshape(tf.range(12), [3, 4]))),
    Case("shift of an axis", lambda tf: tf.signal.fftshift(tf.reshape(tf.range(6), [2, 3]), 1)),
    Case("shift of axes", lambda tf: tf.signal.ifftshift(tf.reshape(tf.range(15), [3, 5]), [0, 1])),
    Case("shift back", lambda tf: tf.signal.ifftshift(tf.signal.fftshift(tf.range(5)))),
]


def signal(tf, *shape):
    return tf.reshape(tf.range(int(np.prod(shape))), shape)


FRAMES = [
    Case("frames", lambda tf: tf.signal.frame(signal(tf, 7), 3, 2)),
    Case("frames of a batch", lambda tf: tf.signal.frame(signal(tf, 2, 6), 4, 3)),
    Case("frames of an axis", lambda tf: tf.signal.frame(signal(tf, 6, 2), 4, 1, axis=0)),
    Case("padded", lambda tf: tf.signal.frame(signal(tf, 7), 3, 2, pad_end=True, pad_value=9)),
    Case(
        "padded on an axis",
        lambda tf: tf.signal.frame(signal(tf, 7, 2), 3, 4, pad_end=True, axis=0),
    ),
    Case("longer than the signal", lambda tf: tf.signal.frame(signal(tf, 2), 3, 2)),
    Case("padded, longer", lambda tf: tf.signal.frame(signal(tf, 2), 3, 2, pad_end=True)),
    Case("padded, shorter", lambda tf: tf.signal.frame(signal(tf, 7), 1, 3, pad_end=True)),
    Case("frames of length 0", lambda tf: tf.signal.frame(signal(tf, 4), 0, 1)),
    Case("a step of 0", lambda tf: tf.signal.frame(signal(tf, 4), 2, 0)),
    Case("frames of a scalar", lambda tf: tf.signal.frame(tf.constant(1), 2, 1)),
    Case("frames of nothing", lambda tf: tf.signal.frame(tf.zeros([0]), 2, 1)),
    Case("padding of floats", lambda tf: tf.signal.frame(signal(tf, 4), 2, 1, True, 9.5)),
    Case("overlap", lambda tf: tf.signal.overlap_and_add(signal(tf, 2, 3), 2)),
    Case("overlap of many", lambda tf: tf.signal.overlap_and_add(signal(tf, 2, 4, 5), 2)),
    Case("no overlap", lambda tf: tf.signal.overlap_and_add(signal(tf, 2, 3), 4)),
    Case("overlap by all but one", lambda tf: tf.signal.overlap_and_add(signal(tf, 3, 4), 1)),
    Case("overlap of floats", lambda tf: tf.signal.overlap_and_add(tf.ones([3, 4]), 3)),
    Case("an overlap's step of 0", lambda tf: tf.signal.overlap_and_add(signal(tf, 2, 3), 0)),
    Case("an overlap's step of 1.5", lambda tf: tf.signal.overlap_and_add(signal(tf, 2, 3), 1.5)),
    Case("overlap of a vector", lambda tf: tf.signal.overlap_and_add(signal(tf, 3), 1)),
]

WINDOWS = [
    Case(
        f"{name} of {length}, {periodic}, {dtype}",
        lambda tf, n=name, length=length, p=periodic, d=dtype: getattr(tf.signal, n)(
            length, p, getattr(tf, d)
        ),
        rtol=1e-5,
        atol=1e-6 if dtype != "float16" else 1e-3,
    )
    for name in ("hann_window", "hamming_window")
    for length in (0, 1, 2, 5, 8)
    for periodic in (True, False)
    for dtype in ("float32", "float64", "float16")
] + [
    Case("a window of integers", lambda tf: tf.signal.hann_window(4, dtype=tf.int32)),
    Case("a window's lengths", lambda tf: tf.signal.hamming_window([4])),
    Case("a negative window", lambda tf: tf.signal.hann_window(-4)),
]


@over([*TRANSFORMS, *RULES, *FRAMES, *WINDOWS])
def test_as_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_transforms_of_length_0(substrate):
    # TensorFlow's process ends at these.
    tf = tf_of(substrate)
    one = tf.signal.irfft(tf.ones([2, 1], tf.complex64))
    none = tf.signal.rfft(tf.ones([2, 3]), [0])
    assert (one.shape, one.dtype) == ((2, 0), np.float32)
    assert (none.shape, none.dtype) == ((2, 0), np.complex64)


def test_under_jit_with_derivatives():
    tf = tf_of("jax")

    def energy(x):
        frames = tf.signal.frame(x, 4, 2) * tf.signal.hann_window(4)
        return tf.reduce_sum(tf.abs(tf.signal.rfft(frames)) ** 2) + tf.reduce_sum(
            tf.signal.overlap_and_add(frames, 2)
        )

    x = jax.numpy.asarray(REAL[0, 0, 0] + 3)
    found = jax.jit(jax.grad(energy))(x)
    steps = np.eye(6) * 1e-2
    expected = [(energy(x + s) - energy(x - s)) / 2e-2 for s in steps.astype(np.float32)]
    np.testing.assert_allclose(found, expected, rtol=2e-2)
    with pytest.raises(ValueError, match=r"frame_length must be known when jax\.jit traces"):
        jax.jit(lambda v, n: tf.signal.frame(v, n, 1))(x, 2)
