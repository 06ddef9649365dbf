"""Comparison in the total order of floats (IEEE 754, 5.10): eq_to, le_to, lt_to.

Bits are compared. For engines that cannot read bits, float32 uses comparisons and reciprocals.
"""

from __future__ import annotations

from collections.abc import Callable

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.compute_dtypes import BITS, COMPARED, FLOAT8
from jax2tf._src.lowering.emit.elementwise import (
    Function,
    binary,
    in_kernel_dtype,
    in_ranks_for_choices,
    of_operands,
)
from jax2tf._src.lowering.registry import register, register_table
from jax2tf._src.ops import raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor


def _in_total_order(op: Function) -> Function:
    def compare(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype.is_floating:
            x, y = _rank(x), _rank(y)
        return in_kernel_dtype(op, COMPARED)(x, y)

    return compare


_TOTAL_ORDER = {
    "eq_to": _in_total_order(binary(raw.Equal)),
    "le_to": _in_total_order(binary(raw.LessEqual)),
    "lt_to": _in_total_order(binary(raw.Less)),
}


def _equal_without_bits(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    both_nan = ctx.is_nan(x) & ctx.is_nan(y)
    return (ops.equal(x, y) & ops.equal(1 / x, 1 / y)) | both_nan


def _less_without_bits(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    # The reciprocals distinguish 0 and -0.
    of_zeros = ops.equal(x, y) & (1 / x < 1 / y)
    return (x < y) | of_zeros | (ctx.is_nan(y) & ~ctx.is_nan(x))


# For engines that cannot read bits. No other op shows the sign of a NaN, so all NaNs are equal.
_WITHOUT_BITS: dict[str, Callable[..., Tensor]] = {
    "eq_to": _equal_without_bits,
    "le_to": lambda ctx, x, y: ~_less_without_bits(ctx, y, x),
    "lt_to": _less_without_bits,
}


def _by_bits_unless_float32(name: str) -> Callable[..., Tensor]:
    def compare(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
        if x.dtype == dtypes.float32:
            return _WITHOUT_BITS[name](ctx, x, y)
        return _TOTAL_ORDER[name](*in_ranks_for_choices(ctx, x, y))

    return compare


register_table(of_operands(_TOTAL_ORDER), op="Bitcast")
for _name in _TOTAL_ORDER:
    register(_name)(_by_bits_unless_float32(_name))


def _rank(x: Tensor) -> Tensor:
    """Integers in the order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    if x.dtype in FLOAT8:
        wide = ops.cast(x, dtypes.float32)
        # The only NaN of an fnuz dtype has a sign: its bits are those of -0.
        is_negative = ops.is_nan(wide) & x.dtype.name.endswith("fnuz")
        return ops.where(is_negative, dtypes.int32.min, _rank(wide))
    bits = ops.bitcast(x, BITS[x.dtype])
    flipped = raw.BitwiseXor(x=bits, y=ops.constant(bits.dtype.max, bits.dtype))
    return ops.where(raw.Less(x=bits, y=ops.zeros_like(bits)), flipped, bits)
