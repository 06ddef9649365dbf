"""The derivatives of real FFTs of symbolic length.

JAX's own rules treat a symbolic length as odd, and are wrong for even lengths (JAX 0.10 and 0.12).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad

from jax2tf._src.gradients.symbolic.padding import Cotangent
from jax2tf._src.util.symbolic_sizes import is_static
from jax2tf._src.util.typing import Dim, Param

_FFT = lax.fft_p
_of_numbers: Callable[..., Sequence[Cotangent]] = ad.primitive_transposes[_FFT]


def _transpose(
    cotangent: Cotangent,
    operand: ad.UndefinedPrimal,
    *,
    fft_type: Param,
    fft_lengths: Sequence[Dim],
) -> Sequence[Cotangent]:
    rule = _RULES.get(fft_type)
    if rule is None or is_static(fft_lengths[-1:]):
        return _of_numbers(cotangent, operand, fft_type=fft_type, fft_lengths=fft_lengths)
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(operand.aval)]
    return [rule(cotangent, tuple(fft_lengths))]


def _of_real(cotangent: jax.Array, lengths: tuple[Dim, ...]) -> jax.Array:
    """The transpose of the real FFT: its inverse without the weights and the division."""
    spectrum = lax.conj(cotangent) / _weights(cotangent, lengths)
    inverse = _FFT.bind(spectrum, fft_type=lax.FftType.IRFFT, fft_lengths=lengths)
    return inverse * _count(lengths, inverse.dtype)


def _of_inverse(cotangent: jax.Array, lengths: tuple[Dim, ...]) -> jax.Array:
    """The transpose of the inverse: the real FFT with the weights and the division."""
    spectrum = _FFT.bind(cotangent, fft_type=lax.FftType.RFFT, fft_lengths=lengths)
    return lax.conj(spectrum * _weights(spectrum, lengths)) / _count(lengths, spectrum.dtype)


_RULES = {lax.FftType.RFFT: _of_real, lax.FftType.IRFFT: _of_inverse}


def _weights(spectrum: jax.Array, lengths: Sequence[Dim]) -> jax.Array:
    """How often the inverse real FFT counts each frequency.

    It counts most frequencies twice, because the spectrum leaves out their negatives. It counts
    once those that are their own negative: 0, and half the length if the length is even.
    """
    frequency = lax.iota(np.int32, spectrum.shape[-1])
    is_own_negative = (frequency == 0) | (2 * frequency == jnp.asarray(lengths[-1]))
    return jnp.where(is_own_negative, 1, 2).astype(spectrum.dtype)


def _count(lengths: Sequence[Dim], dtype: np.dtype) -> jax.Array:
    """The number of elements, by which the inverse divides."""
    return math.prod((jnp.asarray(n).astype(dtype) for n in lengths), start=jnp.ones((), dtype))


ad.primitive_transposes[_FFT] = _transpose
