"""Converts floats to their bits and back, with Bitcast or arithmetic, and rounds floats."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.compute_dtypes import BITS
from jax2tf._src.lowering.emit.constants import scalar
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor

_LEAST = np.int32(-(2**31))
# The exponents of the normal float32 numbers.
_EXPONENTS = (-126, 127)


def float_of_bits(ctx: Context, bits: Tensor) -> Tensor:
    """The float32 whose bits are those of an int32."""
    negative = bits < 0
    size = ops.where(negative, bits + _LEAST, bits)
    exponent = _shifted_right(ctx, size, 23)
    fraction = size - exponent * 2**23
    # The lowest exponent marks subnormal numbers, which have no leading 1.
    digits = ops.cast(fraction, dtypes.float32) * 2.0**-23 + ops.cast(exponent > 0, dtypes.float32)
    # The highest exponent marks infinity, or NaN if the fraction is not 0.
    powers = 2.0 ** np.clip(np.arange(256) - 127.0, *_EXPONENTS)
    number = digits * ops.gather(ops.constant(powers, dtypes.float32), exponent)
    is_last = ops.equal(exponent, 255)
    number = select(ctx, is_last, ops.constant(np.inf, dtypes.float32), number)
    number = select(ctx, is_last & (fraction > 0), ops.constant(np.nan, dtypes.float32), number)
    return _with_sign(number, negative)


def _shifted_right(ctx: Context, x: Tensor, distance: int) -> Tensor:
    """x // 2**distance for non-negative x; by division if the target lacks RightShift."""
    if not ctx.takes("RightShift", x.dtype.name):
        return x // scalar(1 << distance, x.dtype)
    return ops.raw.RightShift(x=x, y=scalar(distance, x.dtype))


def bits_of_float(ctx: Context, x: Tensor) -> Tensor:
    """The bits of a float32 as an int32; every NaN gets the bits of the positive quiet NaN."""
    if ctx.has(Quirk.NO_BITS_OF_OPEN_SHAPE) and not x.shape.is_fully_defined():
        raise ctx.unsupported(
            "the target takes no bits of a float32 array with an open dimension: it computes them "
            "in float32, which rounds them",
            "give each dimension a number, write that part with functions of numbers, or convert "
            "for another target",
        )
    digits, exponent = _digits_and_exponent(ctx, x)
    # A leading 1 adds 1 to the exponent, and subnormal numbers have none.
    bits = ops.cast(digits * 2.0**23, dtypes.int32) + (exponent - _EXPONENTS[0]) * 2**23
    bits = ops.where(ops.equal(ops.abs(ctx.to_abs(x)), np.inf), np.int32(0x7F800000), bits)
    bits = ops.where(_is_negative(x), bits + _LEAST, bits)
    return ops.where(ops.not_equal(x, x), np.int32(0x7FC00000), bits)


def _is_negative(x: Tensor) -> Tensor:
    """Whether x is negative or -0."""
    return (x < 0) | (ops.equal(x, 0) & (1 / x < 0))


def _with_sign(x: Tensor, negative: Tensor) -> Tensor:
    """`x` times -1 or 1: engines lose the sign of a zero in a select or a negation."""
    return x * (1.0 - 2.0 * ops.cast(negative, x.dtype))


def _digits_and_exponent(ctx: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """|x| as digits * 2**exponent, with 1 <= digits < 2, or less if x is subnormal.

    The digits of infinities and NaNs are meaningless.
    """
    least, largest = _EXPONENTS
    size = ops.minimum(ops.abs(ctx.to_abs(x)), np.finfo(np.float32).max)
    size = select(ctx, ctx.is_nan(x), ops.constant(1.0), size)
    # The exponent may be off by one, because engines round logarithms. It stays below `largest`,
    # since the inverse of the largest power is subnormal.
    about = ops.floor(ops.log(ops.maximum(size, 2.0**least)) * np.float32(1 / np.log(2)))
    exponent = ops.cast(ops.minimum(ops.maximum(about, least), largest - 1), dtypes.int32)
    inverses = 2.0 ** -np.arange(least, largest, dtype=np.float32)
    digits = size * ops.gather(ops.constant(inverses), exponent - least)
    too_few = digits >= 2
    too_many = (digits < 1) & (exponent > least)
    digits = select(ctx, too_few, digits * 0.5, select(ctx, too_many, digits * 2.0, digits))
    return digits, exponent + ops.cast(too_few, dtypes.int32) - ops.cast(too_many, dtypes.int32)


def float8_to_bytes(x: Tensor) -> Tensor:
    """The bits of a float8 as uint8, computed from the bits of the same number in float32."""
    dtype = x.dtype.as_numpy_dtype
    info = ml_dtypes.finfo(dtype)
    bias = 1 - info.minexp
    wide = ops.cast(x, dtypes.float32)
    magnitude = ops.abs(wide)
    bits = ops.bitcast(magnitude, dtypes.int32)
    normal = ops.right_shift(bits, 23 - info.nmant) - ((127 - bias) << info.nmant)
    subnormal = ops.cast(magnitude * 2.0 ** (bias - 1 + info.nmant), dtypes.int32)
    code = ops.where(magnitude < float(info.smallest_normal), subnormal, normal)
    for special in (np.inf, np.nan):
        is_special = magnitude > float(info.max) if special == np.inf else wide != wide
        code = ops.where(is_special, _code(special, dtype) & 0x7F, code)
    negative = ops.bitcast(wide, dtypes.int32) < 0
    if _code(np.nan, dtype) == 0x80:
        # These dtypes have one NaN, with the bits of -0, and no infinities.
        negative = ops.logical_or(negative, wide != wide)
    return ops.cast(ops.where(negative, code + 128, code), dtypes.uint8)


def _code(value: float, dtype: np.dtype) -> int:
    return int(np.array(value, dtype).view(np.uint8))


def bytes_to_float8(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """The float8 numbers with these bits, by table lookup."""
    table = ctx.constant(_ALL_BYTES.view(dtype.as_numpy_dtype))
    return ops.gather(table, ops.cast(x, dtypes.int32))


_ALL_BYTES = np.arange(256, dtype=np.uint8)


def with_fewer_bits(ctx: Context, x: Tensor, *, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """Rounds to fewer bits, ties to even; numbers too small for the exponent become zero."""
    info = ml_dtypes.finfo(x.dtype.as_numpy_dtype)
    if x.dtype == dtypes.float32 and not ctx.takes("Bitcast"):
        bits = _rounded_bits(ctx, bits_of_float(ctx, x), info, exponent_bits, mantissa_bits)
        rounded = float_of_bits(ctx, bits)
    else:
        bits = ops.bitcast(x, BITS[x.dtype])
        rounded = ops.bitcast(_rounded_bits(ctx, bits, info, exponent_bits, mantissa_bits), x.dtype)
    # Rounding can turn the bits of a NaN into another number.
    return select(ctx, ctx.is_nan(x), x, rounded)


def _rounded_bits(
    ctx: Context, bits: Tensor, info: jax.numpy.finfo, exponent_bits: int, mantissa_bits: int
) -> Tensor:
    """The bits of the rounded number, by arithmetic: few engines have bitwise ops."""
    sign = ops.where(bits < 0, scalar(bits.dtype.min, bits.dtype), scalar(0, bits.dtype))
    size = bits - sign
    dropped = info.nmant - mantissa_bits
    if dropped > 0:
        kept = _shifted_right(ctx, size, dropped)
        is_odd = kept - _shifted_right(ctx, kept, 1) * 2
        size = size + is_odd + ((1 << (dropped - 1)) - 1)
        size = _shifted_right(ctx, size, dropped) * (1 << dropped)
    if exponent_bits < info.nexp:
        bias, reduced_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = scalar(((1 << info.nexp) - 1) << info.nmant, bits.dtype)
        exponent = _shifted_right(ctx, size, info.nmant)
        size = ops.where(exponent > bias + reduced_bias, infinity, size)
        size = ops.where(exponent <= bias - reduced_bias, scalar(0, bits.dtype), size)
    return size + sign
