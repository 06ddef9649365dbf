"""Integers: division by zero, remainders, shifts by any distance, counts of bits.

TensorFlow's CPU kernels raise for an integer division by zero and clamp shift distances that are
out of range. In JAX, a quotient by zero has all bits set, a remainder by zero is the dividend, and
shifts out of range leave zeros, or sign bits.
"""

from __future__ import annotations

import functools

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import complex_math
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import (
    INT4,
    REMAINDER,
    SIGNED,
    UNSIGNED,
    Carriers,
    carrier_of,
)
from jax2tf._src.lowering.emit.elementwise import (
    Function,
    beside_a_constant,
    by_rows,
    in_kernel_dtype,
    in_ranks_for_choices,
    of_operands,
)
from jax2tf._src.lowering.emit.known_values import known_value
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.emit.truth_values import is_negative
from jax2tf._src.lowering.registry import register, register_table
from jax2tf._src.ops import raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    if not x.dtype.is_integer:
        return complex_math.divide(x, y) if x.dtype.is_complex else raw.RealDiv(x=x, y=y)
    if _is_never_zero(y):
        return raw.TruncateDiv(x=x, y=y)
    by_zero = ops.equal(y, 0)
    quotient = raw.TruncateDiv(x=x, y=ops.where(by_zero, ops.ones_like(y), y))
    all_bits = ops.constant(x.dtype.max if x.dtype.is_unsigned else -1, x.dtype)
    return ops.where(by_zero, all_bits, quotient)


def _quotient_by_floor(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    """The quotient of int32 for engines without TruncateDiv, computed by FloorDiv.

    The quotient of two numbers that are not positive is not negative, so that rounding down is
    rounding towards zero.
    """
    if x.dtype != dtypes.int32:
        return _quotient(x, y)
    divisor = known_value(y)
    if divisor is not None and divisor.min(initial=2) >= 2:
        magnitude = raw.FloorDiv(x=ops.minimum(x, -x), y=ops.constant(-divisor))
        return ops.where(is_negative(x), -magnitude, magnitude)
    magnitude = raw.FloorDiv(x=ops.minimum(x, -x), y=ops.minimum(ops.minimum(y, -y), -1))
    quotient = ops.where(_have_one_sign(ctx, x, y), magnitude, -magnitude)
    return quotient if _is_never_zero(y) else ops.where(ops.equal(y, 0), -1, quotient)


def _have_one_sign(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    signs = [is_negative(x), is_negative(y)]
    if not ctx.takes("Equal", "bool"):
        signs = [ops.cast(sign, dtypes.int32) for sign in signs]
    return ops.equal(*signs)


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype == dtypes.uint64:
        # By zero, the remainder is x - quotient * 0.
        return x - _quotient(x, y) * y
    if x.dtype.is_floating or _is_never_zero(y):
        return raw.TruncateMod(x=x, y=y)
    by_zero = ops.equal(y, 0)
    return ops.where(by_zero, x, raw.TruncateMod(x=x, y=ops.where(by_zero, ops.ones_like(y), y)))


def _remainder_by_others(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    """The remainder of int32, int64 and float32 for engines without TruncateMod.

    For integers, it is computed from the quotient. For floats, FloorMod of the magnitudes is the
    same; the sign is that of the dividend, also for a zero.
    """
    if x.dtype == dtypes.float32:
        size = raw.FloorMod(x=ops.abs(x), y=ops.abs(y))
        # The reciprocal recognises -0; for large numbers it may be flushed to zero.
        return ops.where(is_negative(x) | (1 / x < 0), -size, size)
    if x.dtype == dtypes.int64:
        return _remainder_by_floor(ctx, x, y)
    if x.dtype != dtypes.int32:
        return _remainder(x, y)
    # By zero, too, the remainder is x - (-1) * 0.
    return x - _quotient_by_floor(ctx, x, y) * y


def _remainder_by_floor(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    """The remainder by FloorMod, whose sign is the divisor's.

    An engine may end the process at a remainder by 0, or of the least number by -1.
    """
    minus_one, zero, one = (ctx.constant(x.dtype.as_numpy_dtype(n)) for n in (-1, 0, 1))
    by_zero = None if _is_never_zero(y) else ops.equal(y, zero)
    divisor = y if by_zero is None else ops.where(by_zero, one, y)
    divisor = ops.where(ops.equal(divisor, minus_one), one, divisor)
    rest = raw.FloorMod(x=x, y=divisor)
    has_other_sign = ops.not_equal(is_negative(x), ops.less(rest, zero))
    is_other = ops.logical_and(ops.not_equal(rest, zero), has_other_sign)
    rest = ops.where(is_other, rest - divisor, rest)
    return rest if by_zero is None else ops.where(by_zero, x, rest)


register_table(of_operands({"div": in_kernel_dtype(_quotient)}), op="TruncateDiv")
register_table(of_operands({"rem": in_kernel_dtype(_remainder, REMAINDER)}), op="TruncateMod")


@register("rem")
def _rem(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    remainder = in_kernel_dtype(functools.partial(_remainder_by_others, ctx), REMAINDER)
    return remainder(*in_ranks_for_choices(ctx, x, y))


@register("div")
def _div(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    x, y = in_ranks_for_choices(ctx, x, y)
    quotient = in_kernel_dtype(functools.partial(_quotient_by_floor, ctx))
    return beside_a_constant(ctx, functools.partial(by_rows, ctx, quotient), x, y)


@register("mulhi")
def _product_high(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    """The upper half of the bits of the full product."""
    bits = _bits(x.dtype)
    if bits < 64:
        wide = dtypes.uint64 if x.dtype == dtypes.uint32 else dtypes.int64
        product = ops.cast(x, wide) * ops.cast(y, wide)
        return ops.cast(raw.RightShift(x=product, y=ops.constant(bits, wide)), x.dtype)
    half = ops.constant(32, x.dtype)
    low_half = ops.constant(2**32 - 1, x.dtype)
    (x_high, x_low), (y_high, y_low) = (
        (raw.RightShift(x=v, y=half), raw.BitwiseAnd(x=v, y=low_half)) for v in (x, y)
    )
    # The product of the low halves is unsigned and fills all bits.
    carry = _shift_as(ctx, UNSIGNED, x_low * y_low, half)
    middle = x_high * y_low + carry
    other = x_low * y_high + raw.BitwiseAnd(x=middle, y=low_half)
    return x_high * y_high + raw.RightShift(x=middle, y=half) + raw.RightShift(x=other, y=half)


def _is_never_zero(x: Tensor) -> bool:
    value = known_value(x)
    return value is not None and bool(value.all())


@register("shift_left")
def _shift_left(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    x, distance = in_ranks_for_choices(ctx, x, distance)
    if x.dtype in INT4:
        return _shift_narrow(ctx, raw.LeftShift, x, distance, signed=False)
    return _shift(ctx, raw.LeftShift, x, distance, _bits(x.dtype))


@register("shift_right_logical")
def _shift_right_logical(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    x, distance = in_ranks_for_choices(ctx, x, distance)
    if x.dtype in INT4:
        return _shift_narrow(ctx, raw.RightShift, x, distance, signed=False)
    return _shift_as(ctx, UNSIGNED, x, distance)


@register("shift_right_arithmetic")
def _shift_right_arithmetic(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    x, distance = in_ranks_for_choices(ctx, x, distance)
    if x.dtype in INT4:
        return _shift_narrow(ctx, raw.RightShift, x, distance, signed=True)
    return _shift_as(ctx, SIGNED, x, distance)


def _shift_as(ctx: Context, carriers: Carriers, x: Tensor, distance: Tensor) -> Tensor:
    """Shifts x to the right in its carrier, whose signedness decides which bits fill."""
    dtype = carrier_of(carriers, x.dtype)
    x_bits, distance = ops.cast(x, dtype), ops.cast(distance, dtype)
    shifted = _shift(ctx, raw.RightShift, x_bits, distance, _bits(dtype))
    return ops.cast(shifted, x.dtype)


def _shift_narrow(ctx: Context, op: Function, x: Tensor, distance: Tensor, signed: bool) -> Tensor:
    """Shifts an integer with fewer than eight bits as an int32 or a uint32."""
    bits = _bits(x.dtype)
    wide = _unsigned(x)
    wide = wide - 2 * (wide & 2 ** (bits - 1)) if signed else ops.cast(wide, dtypes.uint32)
    distance = ops.cast(_unsigned(distance), wide.dtype)
    return ops.cast(_shift(ctx, op, wide, distance, bits), x.dtype)


def _shift(ctx: Context, op: Function, x: Tensor, distance: Tensor, bits: int) -> Tensor:
    """`op(x, distance)`, with zeros or sign bits for distances outside of [0, bits)."""
    known = known_value(distance)
    if known is not None and ((known >= 0) & (known < bits)).all():
        return op(x=x, y=distance)
    last = ops.constant(bits - 1, distance.dtype)
    outside = raw.Greater(x=distance, y=last)
    if not distance.dtype.is_unsigned:
        outside |= raw.Less(x=distance, y=ops.zeros_like(distance))
    if op is raw.RightShift and not x.dtype.is_unsigned:
        return op(x=x, y=ops.where(outside, last, distance))
    if bits == 64:
        # A GPU's shift reads 32 bits of the distance. XLA (TensorFlow 2.21) assumes that it reads
        # all 64 and drops the select below, so the 32 bits have to be in range.
        distance = raw.BitwiseAnd(x=distance, y=last)
    return select(ctx, outside, ops.zeros_like(x), op(x=x, y=distance))


@register("population_count")
def _population_count(ctx: Context, x: Tensor) -> Tensor:
    return cast(raw.PopulationCount(x=_unsigned(x)), x.dtype)


@register("clz")
def _count_leading_zeros(ctx: Context, x: Tensor) -> Tensor:
    # The zeros that remain once all bits below the highest one are set.
    filled, bits, shift = _unsigned(x), _bits(x.dtype), 1
    while shift < bits:
        filled |= raw.RightShift(x=filled, y=ops.constant(shift, filled.dtype))
        shift *= 2
    return ops.cast(bits - ops.cast(raw.PopulationCount(x=filled), dtypes.int32), x.dtype)


def _bits(dtype: DType) -> int:
    return int(dtype.name[-1]) if dtype in INT4 else 8 * dtype.size


def _unsigned(x: Tensor) -> Tensor:
    """The bits of x as a number: in the unsigned dtype of its size, or in int32 for 4 bits."""
    if x.dtype in INT4:
        return ops.cast(x, dtypes.int32) & (2 ** _bits(x.dtype) - 1)
    return ops.cast(x, carrier_of(UNSIGNED, x.dtype))
