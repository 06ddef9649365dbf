"""Conversions between dtypes: convert_element_type, bitcast_convert_type, reduce_precision.

The semantics are StableHLO's `convert` as XLA runs it: to an integer, floats are cut towards zero
and saturate, and NaN becomes 0. TensorFlow's Cast has that in compiled code alone: its CPU kernels
leave to the processor what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from jax2tf.compat import xla_ops
from jax2tf.lowering.rules import XLA, Context, register

# Dtypes that hold every value of a narrow one, and have kernels. Not float16 for float8: there
# float8_e5m2's smallest numbers are subnormal, which processors may flush to zero.
FLOAT8_CARRIER = {
    tf.as_dtype(name): tf.bfloat16
    for name in (
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
    )
}
INT4_CARRIER = {tf.as_dtype("int4"): tf.int8, tf.as_dtype("uint4"): tf.uint8}


def carried(
    carriers: Mapping[tf.DType, tf.DType], op: Callable[..., Any], *operands: tf.Tensor
) -> Any:
    """op(*operands), in the dtype that stands in for that of the operands where there is one.

    For ops that move elements and lack kernels: what they give has the dtype of their operands.
    """
    dtype = operands[0].dtype
    carrier = carriers.get(dtype)
    if carrier is None:
        return op(*operands)
    result = op(*(tf.cast(x, carrier) for x in operands))
    return tf.nest.map_structure(lambda x: tf.cast(x, dtype), result)


@register("convert_element_type")
def _convert_element_type(ctx: Context, x: tf.Tensor, *, new_dtype: Any) -> tf.Tensor:
    del new_dtype  # The result's aval has it.
    return cast(x, ctx.out)


def cast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x` converted to `dtype` with the values that XLA gives."""
    if x.dtype == dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = tf.math.real(x)
    if dtype == tf.bool:
        return _to_bool(x)
    if x.dtype in FLOAT8_CARRIER and not dtype.is_floating:
        x = tf.cast(x, tf.float32)
    if x.dtype in INT4_CARRIER and not dtype.is_integer:
        x = tf.cast(x, INT4_CARRIER[x.dtype])
    if dtype in INT4_CARRIER and x.dtype == tf.bool:
        x = tf.cast(x, INT4_CARRIER[dtype])
    if dtype in FLOAT8_CARRIER and not x.dtype.is_floating:
        x = tf.cast(x, tf.float32)
    if x.dtype.is_floating and dtype.is_integer:
        return _float_to_integer(x, dtype)
    return x if x.dtype == dtype else tf.cast(x, dtype)


def _to_bool(x: tf.Tensor) -> tf.Tensor:
    carrier = _COMPARED_AS.get(x.dtype)
    x = x if carrier is None else tf.cast(x, carrier)
    return tf.not_equal(x, tf.zeros([], x.dtype))


_COMPARED_AS = {**FLOAT8_CARRIER, **INT4_CARRIER}


def _float_to_integer(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    if dtype in INT4_CARRIER:
        return tf.cast(_saturated(x, tf.int8, *_INT4_RANGE[dtype]), dtype)
    return _saturated(x, dtype, dtype.min, dtype.max)


# TensorFlow's DType.min and .max do not know these.
_INT4_RANGE = {tf.as_dtype("int4"): (-8, 7), tf.as_dtype("uint4"): (0, 15)}


def _saturated(x: tf.Tensor, dtype: tf.DType, low: int, high: int) -> tf.Tensor:
    """`x` cut towards zero, the nearest of `low` and `high` outside of them, 0 for NaN."""
    wide = tf.float32 if high < 2**24 and x.dtype != tf.float64 else tf.float64
    x = tf.cast(x, wide)
    number = tf.where(tf.equal(x, x), x, tf.zeros([], wide))
    # float64 has no 2**63 - 1: clip to what it has below, and put the highest integer above.
    highest = np.nextafter(high, 0) if float(high) > high else float(high)
    result = tf.cast(tf.clip_by_value(number, float(low), highest), dtype)
    if highest == high:
        return result
    return tf.where(number > highest, tf.constant(high, dtype), result)


@register("bitcast_convert_type")
def _bitcast_convert_type(ctx: Context, x: tf.Tensor, *, new_dtype: Any) -> tf.Tensor:
    del new_dtype
    return x if x.dtype == ctx.out else tf.bitcast(x, ctx.out)


@register("reduce_precision", op_sets=(XLA,))
def _reduce_precision_xla(
    ctx: Context, x: tf.Tensor, *, exponent_bits: int, mantissa_bits: int
) -> tf.Tensor:
    return xla_ops.xla_reduce_precision(x, exponent_bits, mantissa_bits)
