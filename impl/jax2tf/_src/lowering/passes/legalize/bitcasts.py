"""Computes bitcasts between dtypes by arithmetic, for targets without Bitcast.

All bits go through int32, which holds 8, 16 or 32 bits. 64 bits are two int32 in a new last
dimension, the lower half first. emit/float_bits.py computes the bits of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import Aval, aval_of

# rules/casts.py lowers bitcasts between these dtypes.
_OF_32_BITS = frozenset({"float32", "int32", "uint32"})
_OF_64_BITS = frozenset({"float64", "int64", "uint64"})
_WORD = 32


def function_of(
    eqn: jex_core.JaxprEqn, target: Target
) -> Callable[..., Sequence[jax.Array]] | None:
    """Returns the function for a bitcast between dtypes that the target lacks, or None."""
    if eqn.primitive is not lax.bitcast_convert_type_p or target.takes("Bitcast"):
        return None
    old, new = (str(aval.dtype) for aval in _avals(eqn))
    if old == new or {old, new} <= _OF_32_BITS or target.refused_dtypes & {old, new}:
        return None
    if target.has(Quirk.COMPUTES_64_BITS_IN_32) and {old, new} & _OF_64_BITS:
        return None
    return _as_other_bits if old in _TO_BITS and new in _FROM_BITS else None


def _avals(eqn: jex_core.JaxprEqn) -> tuple[Aval, Aval]:
    return aval_of(eqn.invars[0]), aval_of(eqn.outvars[0])


def _as_other_bits(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Bitcasts little-endian: a wide element becomes a new last dimension, lowest bits first."""
    old_aval, aval = _avals(eqn)
    old, new, shape = old_aval.dtype, aval.dtype, aval.shape
    old_width, new_width = 8 * old.itemsize, 8 * new.itemsize
    words = _TO_BITS[str(old)](x)
    width, wanted = min(old_width, _WORD), min(new_width, _WORD)
    if width > wanted:
        words = _cut(words, width, wanted)
    if width < wanted:
        words = _joined(words, width, wanted)
    words = words.reshape((*shape, 2) if new_width > _WORD else shape)
    return [_FROM_BITS[str(new)](words, new)]


def _cut(words: jax.Array, width: int, wanted: int) -> jax.Array:
    """Cuts each word into words with fewer bits, in a new last dimension."""
    pieces = [_shifted_right(words, start) for start in range(0, width, wanted)]
    return jnp.stack([_lowest(piece, wanted) for piece in pieces], -1)


def _joined(words: jax.Array, width: int, wanted: int) -> jax.Array:
    """Joins words along the last dimension to words with more bits."""
    count = wanted // width
    words = words.reshape((*words.shape[:-1], -1, count))
    pieces = [words[..., i] * np.int32(1 << (i * width)) for i in range(count)]
    return sum(pieces[1:], pieces[0])


def _shifted_right(x: jax.Array, distance: int) -> jax.Array:
    return lax.shift_right_logical(x, jnp.int32(distance)) if distance else x


def _lowest(x: jax.Array, width: int) -> jax.Array:
    return x & np.int32((1 << width) - 1)


def _of_integer(x: jax.Array) -> jax.Array:
    """Returns the bits of integers with at most 32 bits, as int32."""
    width = 8 * x.dtype.itemsize
    bits = lax.convert_element_type(x, jnp.int32)
    return bits if width == _WORD else _lowest(bits, width)


def _of_float32(x: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(x, jnp.int32)


def _of_float16(x: jax.Array) -> jax.Array:
    """Returns the bits of float16, from the same number in float32: its exponent is 112 larger."""
    bits = _of_float32(lax.convert_element_type(x, jnp.float32))
    size = _lowest(bits, 31)
    exponent, fraction = _shifted_right(size, 23), _lowest(size, 23)
    code = (exponent - 112) * 1024 + _shifted_right(fraction, 13)
    # The bits of a subnormal number are its multiple of the smallest number.
    small = lax.convert_element_type(jnp.abs(x).astype(jnp.float32) * 2.0**24, jnp.int32)
    code = jnp.where(exponent <= 112, small, code)
    of_nan_or_infinity = 0x7C00 + _shifted_right(fraction, 13)
    return jnp.where(exponent == 255, of_nan_or_infinity, code) + jnp.where(bits < 0, 0x8000, 0)


def _of_wide_integer(x: jax.Array) -> jax.Array:
    """Splits int64 into two words. It divides, because engines have no shifts of int64."""
    x = lax.convert_element_type(x, jnp.int64)
    low = lax.convert_element_type(x, jnp.int32)
    high = lax.div(x - _unsigned(low), jnp.int64(2**_WORD))
    return jnp.stack([low, lax.convert_element_type(high, jnp.int32)], -1)


def _unsigned(word: jax.Array) -> jax.Array:
    """Returns the unsigned value of an int32 word, as int64."""
    wide = lax.convert_element_type(word, jnp.int64)
    return wide + jnp.where(word < 0, jnp.int64(2**_WORD), jnp.int64(0))


def _to_integer(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """Converts bits to integers. They are brought into range first: engines may saturate."""
    width = 8 * dtype.itemsize
    if width < _WORD and jnp.issubdtype(dtype, jnp.signedinteger):
        bits = bits - jnp.where(bits >= 1 << (width - 1), 1 << width, 0)
    return lax.convert_element_type(bits, dtype)


def _to_float32(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    return lax.bitcast_convert_type(bits, dtype)


def _to_float16(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """Converts bits to float16, by the same number in float32."""
    size = _lowest(bits, 15)
    exponent, fraction = _shifted_right(size, 10), _lowest(size, 10)
    wide_exponent = jnp.where(exponent == 31, 255, exponent + 112)
    number = _to_float32(wide_exponent * (1 << 23) + fraction * (1 << 13), np.dtype(np.float32))
    small = lax.convert_element_type(fraction, jnp.float32) * 2.0**-24
    number = jnp.where(exponent == 0, small, number)
    return lax.convert_element_type(number * _sign(bits >= 0x8000, number.dtype), dtype)


def _sign(negative: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns 1 or -1. Multiplying by it gives zeros a sign, too."""
    return 1 - 2 * lax.convert_element_type(negative, dtype)


def _to_wide_integer(words: jax.Array, dtype: np.dtype) -> jax.Array:
    high = lax.convert_element_type(words[..., 1], jnp.int64)
    return lax.convert_element_type(high * 2**_WORD + _unsigned(words[..., 0]), dtype)


def _to_float64(words: jax.Array, dtype: np.dtype) -> jax.Array:
    """Multiplies the fraction, with its leading 1, by a power of two from a table."""
    high = words[..., 1]
    size = _lowest(high, 31)
    exponent = _shifted_right(size, 20)
    fraction = _lowest(size, 20).astype(dtype) * 2.0**_WORD + _unsigned(words[..., 0]).astype(dtype)
    digits = fraction * 2.0**-52 + (exponent > 0).astype(dtype)
    powers = jnp.asarray(2.0 ** np.clip(np.arange(2048.0) - 1023, -1022, 1023), dtype)
    number = digits * powers[exponent]
    of_last = jnp.where(fraction > 0, jnp.asarray(np.nan, dtype), jnp.asarray(np.inf, dtype))
    return jnp.where(exponent == 2047, of_last, number) * _sign(high < 0, dtype)


_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
_WIDE_INTEGERS = ("int64", "uint64")
_TO_BITS: Mapping[str, Callable[[jax.Array], jax.Array]] = {
    **dict.fromkeys(_INTEGERS, _of_integer),
    **dict.fromkeys(_WIDE_INTEGERS, _of_wide_integer),
    "float16": _of_float16,
    "float32": _of_float32,
}
_FROM_BITS: Mapping[str, Callable[[jax.Array, np.dtype], jax.Array]] = {
    **dict.fromkeys(_INTEGERS, _to_integer),
    **dict.fromkeys(_WIDE_INTEGERS, _to_wide_integer),
    "float16": _to_float16,
    "float32": _to_float32,
    "float64": _to_float64,
}
