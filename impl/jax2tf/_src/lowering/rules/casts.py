"""Conversions between dtypes: convert_element_type, bitcast_convert_type, reduce_precision.

The semantics are StableHLO's `convert` as XLA runs it: to an integer, floats are cut towards zero
and saturate, and NaN becomes 0. TensorFlow's Cast has that in compiled code alone: its CPU kernels
leave to the processor what does not fit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeVar

import jax
import ml_dtypes
import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.emit.compute_dtypes import BITS, FLOAT8, HOLDS_INT4, INT4
from jax2tf._src.lowering.emit.constants import scalar
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import Context, register
from jax2tf._src.targets.quirks import Quirk

_UINT4 = tf.as_dtype("uint4")

T = TypeVar("T")


def in_carrier(
    carriers: Mapping[tf.DType, tf.DType], op: Callable[..., T], *operands: tf.Tensor
) -> T:
    """op(*operands), in the dtype that stands in for that of the operands where there is one.

    For ops that move elements and lack kernels: what they give has the dtype of their operands.
    """
    dtype = operands[0].dtype
    carrier = carriers.get(dtype)
    if carrier is None:
        return op(*operands)
    result = op(*(ops.cast(x, carrier) for x in operands))
    made: T = tf.nest.map_structure(lambda x: ops.cast(x, dtype), result)
    return made


@register("convert_element_type")
def _convert_element_type(ctx: Context, x: tf.Tensor, *, new_dtype: np.dtype) -> tf.Tensor:
    del new_dtype  # The result's aval has it.
    return cast(x, ctx.out)


def cast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x` converted to `dtype` with the values that XLA gives."""
    return _conversion(x.dtype, dtype)(x)


@functools.cache
def _conversion(old: tf.DType, new: tf.DType) -> Callable[[tf.Tensor], tf.Tensor]:
    """What converts tensors of one dtype to another; looked up, since eager calls want it often."""
    if old.is_complex and not new.is_complex:
        convert_part = _conversion(old.real_dtype, new)
        return lambda x: convert_part(ops.real(x))
    between = _dtype_between(old, new)
    if between is not None:
        first, second = _conversion(old, between), _conversion(between, new)
        return lambda x: second(first(x))
    if new == tf.bool and old != tf.bool:
        return lambda x: ops.not_equal(x, scalar(0, old))
    if old.is_floating and new in INT4:
        low, high = _INT4_RANGE[new]
        return lambda x: _cast(_saturated(x, tf.int8, low, high), new)
    if old.is_floating and new.is_integer:
        return functools.partial(_saturated, dtype=new, low=new.min, high=new.max)
    return functools.partial(_cast, dtype=new)


def _dtype_between(old: tf.DType, new: tf.DType) -> tf.DType | None:
    """The dtype to go through where TensorFlow has no Cast from `old` to `new`."""
    if old in FLOAT8 and not new.is_floating:
        return tf.float32
    if new in FLOAT8 and not old.is_floating:
        return tf.float32
    if old in INT4 and not new.is_integer:
        return HOLDS_INT4[old]
    if new in INT4 and old == tf.bool:
        return HOLDS_INT4[new]
    if new == _UINT4 and old == tf.uint8:
        # The Cast that `HOLDS_INT4` avoids; a number here may have more than four bits.
        return tf.int32
    return None


# TensorFlow's DType.min and .max do not know these.
_INT4_RANGE = {tf.as_dtype("int4"): (-8, 7), _UINT4: (0, 15)}


def _saturated(x: tf.Tensor, dtype: tf.DType, low: int, high: int) -> tf.Tensor:
    """`x` cut towards zero, the nearer of `low` and `high` outside of them, 0 for NaN."""
    wide = tf.float64 if x.dtype == tf.float64 else tf.float32
    x = _cast(x, wide)
    # Floats have no 2**63 - 1: clip to what they have below, and put the highest integer above.
    highest = wide.as_numpy_dtype(high)
    if int(highest) > high:
        highest = np.nextafter(highest, wide.as_numpy_dtype(0))
    # Not by ClipByValue, which is one op more for engines to have.
    clipped = ops.minimum(ops.maximum(x, scalar(low, wide)), scalar(highest, wide))
    # An engine has no choice between integers of these.
    chosen = tf.int32 if dtype in (tf.uint8, tf.uint16) else dtype
    result = _cast(clipped, chosen)
    if highest != high:
        result = ops.where(scalar(highest, wide) < x, scalar(high, chosen), result)
    # Among integers, as there are engines that choose among floats by products.
    is_number = ops.raw.Equal(x=x, y=x)
    return _cast(ops.raw.SelectV2(condition=is_number, t=result, e=scalar(0, chosen)), dtype)


def _cast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """TensorFlow's Cast, for what it converts as XLA does."""
    return x if x.dtype == dtype else ops.raw.Cast(x=x, DstT=dtype)


@register("bitcast_convert_type")
def _bitcast_convert_type(ctx: Context, x: tf.Tensor, *, new_dtype: np.dtype) -> tf.Tensor:
    """The parts of a wide element go to a new last dimension, the lowest bits first."""
    del new_dtype
    dtype = ctx.out
    if x.dtype == dtype:
        return x
    if not ctx.takes("Bitcast"):
        return _bitcast_by_arithmetic(ctx, x, dtype)
    # tf.bitcast takes neither float8 nor 4-bit integers; both have a way from and to bytes.
    if x.dtype in FLOAT8:
        x = float8_to_bytes(x)
    if x.dtype in INT4:
        if dtype in INT4:
            return ops.cast(ops.cast(x, HOLDS_INT4[x.dtype]), dtype)
        x = _int4_to_bytes(x)
    if dtype in FLOAT8:
        return bytes_to_float8(ctx, _bitcast(x, tf.uint8), dtype)
    if dtype in INT4:
        return _bytes_to_int4(ctx, _bitcast(x, tf.uint8), dtype)
    return _bitcast(x, dtype)


def _bitcast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return x if x.dtype == dtype else ops.bitcast(x, dtype)


def _bitcast_by_arithmetic(ctx: Context, x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The bits of an integer as another of the same width, or those of 32 as a float32."""
    if x.dtype.is_integer and dtype.is_integer and x.dtype.size == dtype.size:
        return ops.cast(x, dtype)
    if x.dtype in (tf.int32, tf.uint32) and dtype == tf.float32:
        return _float_of_bits(ctx, ops.cast(x, tf.int32))
    if x.dtype == tf.float32 and dtype in (tf.int32, tf.uint32):
        return ops.cast(_bits_of_float(ctx, x), dtype)
    raise ctx.unsupported(
        f"the target has no op that takes the bits of {x.dtype.name} for {dtype.name}",
        "write that part with functions of numbers, or convert for another target",
    )


_LEAST = np.int32(-(2**31))
# Exponents of the normal float32 numbers.
_EXPONENTS = (-126, 127)


def _float_of_bits(ctx: Context, bits: tf.Tensor) -> tf.Tensor:
    """The float32 of the bits of an int32."""
    negative = bits < 0
    size = ops.where(negative, bits + _LEAST, bits)
    exponent = _shifted_right(ctx, size, 23)
    fraction = size - exponent * 2**23
    # The first exponent is of subnormal numbers, which have no leading 1.
    digits = ops.cast(fraction, tf.float32) * 2.0**-23 + ops.cast(exponent > 0, tf.float32)
    # The last is of infinity, and NaN with any fraction.
    powers = 2.0 ** np.clip(np.arange(256) - 127.0, *_EXPONENTS)
    number = digits * ops.gather(ops.constant(powers, tf.float32), exponent)
    is_last = ops.equal(exponent, 255)
    number = select(ctx, is_last, ops.constant(np.inf, tf.float32), number)
    number = select(ctx, is_last & (fraction > 0), ops.constant(np.nan, tf.float32), number)
    return _with_sign(number, negative)


def _shifted_right(ctx: Context, x: tf.Tensor, distance: int) -> tf.Tensor:
    """x // 2**distance, of what is not negative, without a quotient where there are shifts."""
    if not ctx.takes("RightShift", x.dtype.name):
        return x // scalar(1 << distance, x.dtype)
    return ops.raw.RightShift(x=x, y=scalar(distance, x.dtype))


def _bits_of_float(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    """The bits of a float32 as an int32; a NaN has those of the NaN without a sign."""
    if ctx.has(Quirk.NO_BITS_OF_OPEN_SHAPE) and not x.shape.is_fully_defined():
        raise ctx.unsupported(
            "the target takes no bits of a float32 array with an open dimension: it computes them "
            "in float32, which rounds them",
            "give each dimension a number, write that part with functions of numbers, or convert "
            "for another target",
        )
    digits, exponent = _digits_and_exponent(ctx, x)
    # A leading 1 adds 1 to the exponent, and subnormal numbers have none.
    bits = ops.cast(digits * 2.0**23, tf.int32) + (exponent - _EXPONENTS[0]) * 2**23
    bits = ops.where(ops.equal(ops.abs(ctx.to_abs(x)), np.inf), np.int32(0x7F800000), bits)
    bits = ops.where(_is_negative(x), bits + _LEAST, bits)
    return ops.where(ops.not_equal(x, x), np.int32(0x7FC00000), bits)


def _is_negative(x: tf.Tensor) -> tf.Tensor:
    """Whether the sign is that of negative numbers, of zeros too."""
    return (x < 0) | (ops.equal(x, 0) & (1 / x < 0))


def _with_sign(x: tf.Tensor, negative: tf.Tensor) -> tf.Tensor:
    """The product, in which zeros have a sign: engines lose it where they choose or negate."""
    return x * (1.0 - 2.0 * ops.cast(negative, x.dtype))


def _digits_and_exponent(ctx: Context, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """|x| as digits * 2**exponent: 1 <= digits < 2, and less where x is subnormal.

    What is not finite gets digits of no meaning.
    """
    least, largest = _EXPONENTS
    size = ops.minimum(ops.abs(ctx.to_abs(x)), np.finfo(np.float32).max)
    size = select(ctx, ctx.is_nan(x), ops.constant(1.0), size)
    # One too many or too few, as engines round logarithms; the inverse of the largest power is
    # subnormal.
    about = ops.floor(ops.log(ops.maximum(size, 2.0**least)) * np.float32(1 / np.log(2)))
    exponent = ops.cast(ops.minimum(ops.maximum(about, least), largest - 1), tf.int32)
    inverses = 2.0 ** -np.arange(least, largest, dtype=np.float32)
    digits = size * ops.gather(ops.constant(inverses), exponent - least)
    too_few = digits >= 2
    too_many = (digits < 1) & (exponent > least)
    digits = select(ctx, too_few, digits * 0.5, select(ctx, too_many, digits * 2.0, digits))
    return digits, exponent + ops.cast(too_few, tf.int32) - ops.cast(too_many, tf.int32)


def float8_to_bytes(x: tf.Tensor) -> tf.Tensor:
    """The bits of a float8 as uint8, put together from those of the same number in float32."""
    dtype = x.dtype.as_numpy_dtype
    info = ml_dtypes.finfo(dtype)
    bias = 1 - info.minexp
    wide = ops.cast(x, tf.float32)
    magnitude = ops.abs(wide)
    bits = ops.bitcast(magnitude, tf.int32)
    normal = ops.right_shift(bits, 23 - info.nmant) - ((127 - bias) << info.nmant)
    subnormal = ops.cast(magnitude * 2.0 ** (bias - 1 + info.nmant), tf.int32)
    code = ops.where(magnitude < float(info.smallest_normal), subnormal, normal)
    for special in (np.inf, np.nan):
        is_special = magnitude > float(info.max) if special == np.inf else wide != wide
        code = ops.where(is_special, _code(special, dtype) & 0x7F, code)
    negative = ops.bitcast(wide, tf.int32) < 0
    if _code(np.nan, dtype) == 0x80:
        # These have one NaN, where others have -0, and no infinities.
        negative = ops.logical_or(negative, wide != wide)
    return ops.cast(ops.where(negative, code + 128, code), tf.uint8)


def _code(value: float, dtype: np.dtype) -> int:
    return int(np.array(value, dtype).view(np.uint8))


def bytes_to_float8(ctx: Context, x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The float8 numbers of these bits."""
    table = ctx.constant(_ALL_BYTES.view(dtype.as_numpy_dtype))
    return ops.gather(table, ops.cast(x, tf.int32))


_ALL_BYTES = np.arange(256, dtype=np.uint8)


def _int4_to_bytes(x: tf.Tensor) -> tf.Tensor:
    """Bytes of pairs of 4-bit integers along the last dimension."""
    nibbles = ops.bitwise_and(ops.cast(ops.cast(x, HOLDS_INT4[x.dtype]), tf.uint8), 15)
    low, high = nibbles[..., ::2], nibbles[..., 1::2]
    both = ops.bitwise_or(low, ops.left_shift(high, ops.constant(4, tf.uint8)))
    return ops.squeeze(both, -1) if both.shape[-1] == 1 else both


def _bytes_to_int4(ctx: Context, x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    low = ops.bitwise_and(x, 15)
    high = ops.right_shift(x, ops.constant(4, tf.uint8))
    nibbles = ctx.reshaped(ops.stack([low, high], -1), ctx.avals_out[0].shape)
    # Casting to int4 takes the low four bits.
    return cast(nibbles, dtype)


@register("reduce_precision", op="XlaReducePrecision")
def _reduce_precision_xla(
    ctx: Context, x: tf.Tensor, *, exponent_bits: int, mantissa_bits: int
) -> tf.Tensor:
    return ops.xla.xla_reduce_precision(x, exponent_bits, mantissa_bits)


@register("reduce_precision")
def _reduce_precision(
    ctx: Context, x: tf.Tensor, *, exponent_bits: int, mantissa_bits: int
) -> tf.Tensor:
    return with_fewer_bits(ctx, x, exponent_bits, mantissa_bits)


def with_fewer_bits(
    ctx: Context, x: tf.Tensor, exponent_bits: int, mantissa_bits: int
) -> tf.Tensor:
    """Rounds to fewer bits, ties to even; what is too small for the exponent becomes zero."""
    info = ml_dtypes.finfo(x.dtype.as_numpy_dtype)
    if x.dtype == tf.float32 and not ctx.takes("Bitcast"):
        bits = _rounded_bits(ctx, _bits_of_float(ctx, x), info, exponent_bits, mantissa_bits)
        rounded = _float_of_bits(ctx, bits)
    else:
        bits = _bitcast(x, BITS[x.dtype])
        rounded = _bitcast(_rounded_bits(ctx, bits, info, exponent_bits, mantissa_bits), x.dtype)
    # Rounding can carry a NaN's bits away.
    return select(ctx, ctx.is_nan(x), x, rounded)


def _rounded_bits(
    ctx: Context, bits: tf.Tensor, info: jax.numpy.finfo, exponent_bits: int, mantissa_bits: int
) -> tf.Tensor:
    """By arithmetic, since few engines have logic of bits."""
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
