"""Fourier transforms over the last dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jax2tf._src.graph.ops.arrays import concat, pad, shape, stack, zeros, zeros_like
from jax2tf._src.graph.ops.control_flow import get_static_value
from jax2tf._src.graph.ops.elementwise import maximum
from jax2tf._src.graph.ops.operands import integers
from jax2tf._src.graph.symbols import Symbol, converted, raw
from jax2tf._src.util.dtypes import complex64, complex128, float64
from jax2tf._src.util.typing import PyTree


def _complex(op: str) -> Callable[[PyTree], Symbol]:
    return lambda input: getattr(raw, op)(input=input)


fft = _complex("FFT")
fft2d = _complex("FFT2D")
fft3d = _complex("FFT3D")
ifft = _complex("IFFT")
ifft2d = _complex("IFFT2D")
ifft3d = _complex("IFFT3D")


def _of_real(op: str, rank: int) -> Callable[..., Symbol]:
    """The spectrum of real numbers, which are cut or padded to the lengths."""

    def transform(input_tensor: PyTree, fft_length: PyTree) -> Symbol:
        lengths = integers(fft_length)
        x = _padded(input_tensor, rank, lengths, is_inverse=False)
        of = complex128 if input_tensor.dtype == float64 else complex64
        return getattr(raw, op)(input=x, fft_length=_known(lengths), Tcomplex=of)

    return transform


def _to_real(op: str, rank: int) -> Callable[..., Symbol]:
    """The real numbers of a spectrum, as many as the lengths say."""

    def transform(input_tensor: PyTree, fft_length: PyTree) -> Symbol:
        lengths = integers(fft_length)
        x = _padded(input_tensor, rank, lengths, is_inverse=True)
        of = input_tensor.dtype.real_dtype
        return getattr(raw, op)(input=x, fft_length=_known(lengths), Treal=of)

    return transform


rfft = _of_real("RFFT", 1)
rfft2d = _of_real("RFFT2D", 2)
rfft3d = _of_real("RFFT3D", 3)
irfft = _to_real("IRFFT", 1)
irfft2d = _to_real("IRFFT2D", 2)
irfft3d = _to_real("IRFFT3D", 3)


def _known(lengths: Symbol) -> Symbol:
    known = get_static_value(lengths)
    return lengths if known is None else converted(known)


def _padded(x: Symbol, rank: int, lengths: Symbol, *, is_inverse: bool) -> Symbol:
    """The tensor with zeros behind its last dimensions where the lengths are larger."""
    given: PyTree = x.shape.as_list()
    if 0 in given:
        return x
    known = get_static_value(lengths)
    if known is None or None in given[-rank:]:
        return _padded_when_it_runs(x, rank, lengths, is_inverse)
    wanted = [int(n) for n in known]
    if is_inverse:
        wanted[-1] = wanted[-1] // 2 + 1
    edges = [[0, max(n - size, 0)] for n, size in zip(wanted, given[-rank:], strict=True)]
    if not np.any(edges):
        return x
    return pad(x, [[0, 0]] * (len(given) - rank) + edges)


def _padded_when_it_runs(x: Symbol, rank: int, lengths: PyTree, is_inverse: bool) -> Symbol:
    n_dimensions: PyTree = converted(x.shape.rank)
    given: PyTree = shape(x)[-rank:]
    outer = zeros([maximum(0, n_dimensions - rank)], lengths.dtype)
    if is_inverse:
        lengths = concat([lengths[:-1], lengths[-1:] // 2 + 1], 0)
    edges = concat([outer, maximum(0, lengths - given)], 0)
    return pad(x, stack([zeros_like(edges), edges], axis=1))
