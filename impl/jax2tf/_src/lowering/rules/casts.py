"""Conversions between dtypes: convert_element_type, bitcast_convert_type, reduce_precision."""

from __future__ import annotations

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import FLOAT8, HOLDS_INT4, INT4
from jax2tf._src.lowering.emit.float_bits import (
    bits_of_float,
    bytes_to_float8,
    float8_to_bytes,
    float_of_bits,
    with_fewer_bits,
)
from jax2tf._src.lowering.registry import register
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor


@register("convert_element_type")
def _convert_element_type(ctx: Context, x: Tensor, *, new_dtype: np.dtype) -> Tensor:
    del new_dtype  # The result's aval has it.
    return cast(x, ctx.out)


@register("bitcast_convert_type")
def _bitcast_convert_type(ctx: Context, x: Tensor, *, new_dtype: np.dtype) -> Tensor:
    """Bitcasts; the parts of a wide element get a new last dimension, lowest bits first."""
    del new_dtype
    dtype = ctx.out
    if x.dtype == dtype:
        return x
    if not ctx.takes("Bitcast"):
        return _bitcast_by_arithmetic(ctx, x, dtype)
    # tf.bitcast takes neither float8 nor 4-bit integers; both are converted by way of bytes.
    if x.dtype in FLOAT8:
        x = float8_to_bytes(x)
    if x.dtype in INT4:
        if dtype in INT4:
            return ops.cast(ops.cast(x, HOLDS_INT4[x.dtype]), dtype)
        x = _int4_to_bytes(x)
    if dtype in FLOAT8:
        return bytes_to_float8(ctx, _bitcast(x, dtypes.uint8), dtype)
    if dtype in INT4:
        return _bytes_to_int4(ctx, _bitcast(x, dtypes.uint8), dtype)
    return _bitcast(x, dtype)


def _bitcast(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype == dtype else ops.bitcast(x, dtype)


def _bitcast_by_arithmetic(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """Bitcasts between integers of the same width, or between float32 and a 32-bit integer."""
    if x.dtype.is_integer and dtype.is_integer and x.dtype.size == dtype.size:
        return ops.cast(x, dtype)
    if x.dtype in (dtypes.int32, dtypes.uint32) and dtype == dtypes.float32:
        return float_of_bits(ctx, ops.cast(x, dtypes.int32))
    if x.dtype == dtypes.float32 and dtype in (dtypes.int32, dtypes.uint32):
        return ops.cast(bits_of_float(ctx, x), dtype)
    raise ctx.unsupported(
        f"the target has no op that takes the bits of {x.dtype.name} for {dtype.name}",
        "write that part with functions of numbers, or convert for another target",
    )


def _int4_to_bytes(x: Tensor) -> Tensor:
    """Packs pairs of 4-bit integers along the last dimension into bytes."""
    nibbles = ops.bitwise_and(ops.cast(ops.cast(x, HOLDS_INT4[x.dtype]), dtypes.uint8), 15)
    low, high = nibbles[..., ::2], nibbles[..., 1::2]
    both = ops.bitwise_or(low, ops.left_shift(high, ops.constant(4, dtypes.uint8)))
    return ops.squeeze(both, -1) if both.shape[-1] == 1 else both


def _bytes_to_int4(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    low = ops.bitwise_and(x, 15)
    high = ops.right_shift(x, ops.constant(4, dtypes.uint8))
    nibbles = ctx.reshaped(ops.stack([low, high], -1), ctx.avals_out[0].shape)
    # A cast to int4 keeps the low four bits.
    return cast(nibbles, dtype)


@register("reduce_precision", op="XlaReducePrecision")
def _reduce_precision_xla(
    ctx: Context, x: Tensor, *, exponent_bits: int, mantissa_bits: int
) -> Tensor:
    return ops.xla.xla_reduce_precision(x, exponent_bits, mantissa_bits)


register("reduce_precision")(with_fewer_bits)
