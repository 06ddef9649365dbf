"""tf.signal: Fourier transforms, frames and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.dtype_groups import COMPLEX
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.tensors import convert, require, static_shape, static_value

# The names of transforms over the last 1, 2 and 3 axes.
_RANKS = (("", 1), ("2d", 2), ("3d", 3))


def _complex_transform(name: str, transform: Callable, rank: int) -> None:
    op_name = name.upper()

    def call(input: Any, name: Any = None) -> Any:
        x = require(op_name, convert(input, hint=np.complex64), COMPLEX)
        if len(x.shape) < rank:
            raise invalid_argument(
                f"Input must have rank of at least {rank} but got: {list(x.shape)} [Op:{op_name}]"
            )
        return transform(x, axes=tuple(range(-rank, 0))).astype(x.dtype) if x.size else x

    named(call, name, f"The transform of complex tensors over the last {rank} axes.")
    op(f"signal.{name}")(call)


def _real_transform(name: str, rank: int) -> None:
    def call(input_tensor: Any, fft_length: Any = None, name: Any = None) -> Any:
        x = convert(input_tensor, hint=np.float32)
        if x.dtype not in (np.float32, np.float64):
            raise ValueError(f"RFFT requires tf.float32 or tf.float64 inputs, got: {x}")
        lengths = _lengths(x, fft_length, rank, last=lambda n: n)
        wide = np.dtype(np.complex64 if x.dtype == np.float32 else np.complex128)
        half = lengths[-1] // 2 + 1 if lengths[-1] else 0
        if not x.size or 0 in lengths:
            return xp.zeros((*x.shape[:-rank], *lengths[:-1], half), wide)
        return xp.fft.rfftn(x, s=lengths, axes=tuple(range(-rank, 0))).astype(wide)

    named(call, name, f"The first half of the transform of real tensors over the last {rank} axes.")
    op(f"signal.{name}")(call)


def _inverse_real_transform(name: str, rank: int) -> None:
    def call(input_tensor: Any, fft_length: Any = None, name: Any = None) -> Any:
        x = convert(input_tensor, hint=np.complex64)
        if x.dtype.kind != "c":
            raise ValueError(f"IRFFT requires tf.complex64 or tf.complex128 inputs, got: {x}")
        lengths = _lengths(x, fft_length, rank, last=lambda n: max(0, 2 * (n - 1)))
        narrow = np.dtype(np.float32 if x.dtype == np.complex64 else np.float64)
        if not x.size or 0 in lengths:
            return xp.zeros((*x.shape[:-rank], *lengths), narrow)
        return xp.fft.irfftn(x, s=lengths, axes=tuple(range(-rank, 0))).astype(narrow)

    named(
        call, name, f"The real tensor of which the last {rank} axes have this half of a transform."
    )
    op(f"signal.{name}")(call)


def _lengths(x: Any, given: Any, rank: int, last: Callable[[int], int]) -> tuple:
    """The lengths of the real tensor's last axes: the input is cropped or padded to them."""
    if len(x.shape) < rank:
        raise ValueError(f"Shape {tuple(x.shape)} must have rank at least {rank}")
    if given is None:
        return (*x.shape[-rank:-1], last(x.shape[-1]))
    lengths = static_shape(given)
    if len(lengths) != rank:
        raise invalid_argument(f"fft_length must have {rank} elements, got {list(lengths)}")
    return lengths


for _suffix, _rank in _RANKS:
    _complex_transform(f"fft{_suffix}", xp.fft.fftn, _rank)
    _complex_transform(f"ifft{_suffix}", xp.fft.ifftn, _rank)
    _real_transform(f"rfft{_suffix}", _rank)
    _inverse_real_transform(f"irfft{_suffix}", _rank)


def _shifted_axes(x: Any, axes: Any) -> tuple:
    if axes is None:
        return tuple(range(len(x.shape)))
    known = np.ravel(static_value(axes, "The axes of a shift"))
    return tuple(one_axis(axis, len(x.shape), "tf.signal.fftshift") for axis in known)


@op("signal.fftshift")
def fftshift(x: Any, axes: Any = None, name: Any = None) -> Any:
    """Moves the first element of the axes, all if not given, to their middle."""
    array = convert(x)
    return xp.fft.fftshift(array, axes=_shifted_axes(array, axes))


@op("signal.ifftshift")
def ifftshift(x: Any, axes: Any = None, name: Any = None) -> Any:
    """The inverse of tf.signal.fftshift."""
    array = convert(x)
    return xp.fft.ifftshift(array, axes=_shifted_axes(array, axes))


# Frames.


@op("signal.frame")
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: Any = None,
) -> Any:
    """An axis cut into frames: in its place are the two axes `[frames, frame_length]`.

    Args:
      signal: a tensor of one axis at least.
      frame_length: of each frame, known under jax.jit.
      frame_step: from the start of a frame to that of the next, known under jax.jit.
      pad_end: whether frames that begin inside and end outside are there, with `pad_value`.

    Raises:
      ValueError: the signal is a scalar.
      tf.errors.InvalidArgumentError: the step is 0.
    """
    x = convert(signal)
    if not x.shape:
        raise ValueError("Shape () must have rank at least 1")
    along = one_axis(axis, len(x.shape), "tf.signal.frame")
    length = int(static_value(frame_length, "frame_length"))
    step = int(static_value(frame_step, "frame_step"))
    if step == 0:
        raise invalid_argument("Integer division by zero")
    size = x.shape[along]
    if pad_end:
        count = -(-size // step)
        missing = max(0, (count - 1) * step + length - size)
        widths = [(0, missing if i == along else 0) for i in range(len(x.shape))]
        x = xp.pad(x, widths, constant_values=convert(pad_value, dtype=x.dtype))
    else:
        count = max(0, 1 + (size - length) // step)
    places = step * np.arange(count)[:, None] + np.arange(length)
    if not places.size:
        return xp.zeros((*x.shape[:along], count, length, *x.shape[along + 1 :]), x.dtype)
    return xp.take(x, places, axis=along)


@op("signal.overlap_and_add")
def overlap_and_add(signal: Any, frame_step: Any, name: Any = None) -> Any:
    """The signal of which `[..., frames, frame_length]` are frames, added where they overlap.

    Raises:
      ValueError: there are fewer than two axes, or the step is no integer.
      tf.errors.InvalidArgumentError: the step is less than 1.
    """
    frames = convert(signal)
    if len(frames.shape) < 2:
        raise ValueError(f"Shape {tuple(frames.shape)} must have rank at least 2")
    known = static_value(frame_step, "frame_step")
    if known.dtype.kind not in "iu":
        raise ValueError(f"frame_step must be an integer. Got {dtypes.as_dtype(known.dtype)}")
    step = int(known)
    if step < 1:
        raise invalid_argument(f"Paddings must be non-negative: frame_step {step} [Op:Pad]")
    *batch, count, length = frames.shape
    # Each frame is pieces of the step's length; the piece k of all frames is added k steps later.
    pieces = max(1, -(-length // step))
    unpadded = [(0, 0)] * (len(batch) + 1)
    cut = xp.pad(frames, [*unpadded, (0, pieces * step - length)])
    cut = cut.reshape((*batch, count, pieces, step))
    total = xp.zeros((*batch, count + pieces - 1, step), frames.dtype)
    for k in range(pieces):
        later = [*unpadded[:-1], (k, pieces - 1 - k), (0, 0)]
        total = total + xp.pad(cut[..., k, :], later)
    flat = total.reshape((*batch, (count + pieces - 1) * step))
    return flat[..., : max(0, (count - 1) * step + length)]


# Windows.


def window_dtype(dtype: Any) -> np.dtype:
    """The dtype of a window, which is one of floats."""
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {wanted}")
    return dtypes.numpy_dtype(wanted)


def length_of_window(value: Any) -> int:
    """The length of a window, which is a scalar known under jax.jit."""
    known = static_value(value, "window_length")
    if known.ndim:
        raise ValueError(f"Shape {known.shape} must have rank 0")
    return int(known)


def _cosine_window(name: str, a: float, b: float) -> None:
    def call(
        window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        here, length = window_dtype(dtype), length_of_window(window_length)
        if length < 0:
            raise invalid_argument(f"Requires start <= limit when delta > 0: 0/{length} [Op:Range]")
        if length == 1:
            return xp.ones((1,), here)
        # Of an odd length the periodic window is the symmetric one.
        period = length - 1 + (1 if periodic and length % 2 == 0 else 0)
        angle = np.asarray(2 * np.pi, here) * np.arange(length).astype(here)
        angle = angle / np.asarray(period, here)
        return np.asarray(a, here) - np.asarray(b, here) * np.cos(angle)

    named(
        call,
        f"{name}_window",
        f"{a} - {b} cos, over one period, whose start is also its end if not periodic.",
    )
    op(f"signal.{name}_window")(call)


_cosine_window("hann", 0.5, 0.5)
_cosine_window("hamming", 0.54, 0.46)
