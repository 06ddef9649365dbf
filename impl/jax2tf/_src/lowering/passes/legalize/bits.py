"""Computes bitwise logic, shifts and counts of int32 by arithmetic, for targets without such ops.

Products and sums wrap around. `and` is computed from the sum: x + y is (x xor y) + 2 (x and y). For
a target without xor, a table gives the results for four bits at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.known_values import known_value
from jax2tf._src.ops import raw
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import by_primitive
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import aval_of

Rule = Callable[..., Tensor]

_BITS = 32
_LEAST = -(2**31)
# The weights of the bits, and 0 for a shift by 32.
_POWERS = np.array([*(2**i for i in range(31)), _LEAST, 0], np.int32)
# The powers that correct the bits emptied by a right shift; a shift by 0 empties none.
_FILLS = np.array([0, *_POWERS[31:0:-1]], np.int32)
# Masks of the bits that a right shift keeps; a shift by 32 keeps none.
_LOWEST = np.array([-1, *(2**i - 1 for i in range(31, -1, -1))], np.int32)
_NIBBLES = np.array([16**i for i in range(8)], np.int32)


def rule_of(eqn: jex_core.JaxprEqn, target: Target) -> Rule | None:
    """Returns the rule of a bit primitive of int32 whose op the target lacks, or None."""
    if eqn.primitive not in _RULES:
        return None
    op, rule = _RULES[eqn.primitive]
    aval = aval_of(eqn.invars[0])
    # The op of a logical right shift has the dtype uint32.
    dtype = "uint32" if rule is _shift_right_logical else "int32"
    is_lacking = aval.dtype == np.int32 and not target.takes(op, dtype)
    return rule if is_lacking else None


def _lacks(ctx: Context, op: str) -> bool:
    return not ctx.takes(op, "int32")


def _and(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    for mask, other in ((known_value(x), y), (known_value(y), x)):
        kept = None if mask is None or mask.size != 1 else int(mask.item())
        if kept is not None and kept >= 0 and not kept & (kept + 1):
            # The lowest bits are the remainder of a division.
            return other - _right(ctx, other, kept.bit_length()) * _POWERS[kept.bit_length()]
    if _lacks(ctx, "BitwiseXor"):
        return _looked_up(ctx, np.bitwise_and, x, y)
    # The sums of halves do not overflow. The lowest bits are added separately.
    x_half, y_half = _right(ctx, x, 1), _right(ctx, y, 1)
    lowest = (x - x_half * 2) * (y - y_half * 2)
    return (x_half + y_half) - raw.BitwiseXor(x=x_half, y=y_half) + lowest


def _or(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    if _lacks(ctx, "BitwiseXor"):
        return _looked_up(ctx, np.bitwise_or, x, y)
    return x + y - _and(ctx, x, y)


def _xor(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    return _looked_up(ctx, np.bitwise_xor, x, y)


def _not(ctx: Context, x: Tensor) -> Tensor:
    # The constant is a vector; see the quirk "exchanges_constant_and_transpose".
    return (np.full(1, -1, np.int32) if x.shape.rank else np.int32(-1)) - x


def _looked_up(ctx: Context, function: Callable[..., np.ndarray], x: Tensor, y: Tensor) -> Tensor:
    """Computes a function of bits, four at a time, from a table of all pairs."""
    of_x, of_y = (_nibbles(v) for v in (x, y))
    numbers = np.arange(16, dtype=np.int32)
    table = ops.constant(function(numbers[:, None], numbers).reshape(-1))
    return ops.reduce_sum(ops.gather(table, of_x * 16 + of_y) * _NIBBLES, -1)


def _nibbles(x: Tensor) -> Tensor:
    """Splits `x` into groups of four bits, from the lowest, in a new last dimension."""
    shifted = raw.FloorDiv(x=x[..., None], y=ops.constant(_NIBBLES))
    return shifted - raw.FloorDiv(x=shifted, y=ops.constant(16)) * 16


def _right(ctx: Context, x: Tensor, distance: int) -> Tensor:
    """Shifts to the right by a known distance, filling with the sign."""
    if not distance:
        return x
    if not _lacks(ctx, "RightShift"):
        return raw.RightShift(x=x, y=ops.constant(min(distance, _BITS - 1)))
    if distance >= _BITS - 1:
        return -ops.cast(x < 0, dtypes.int32)
    return raw.FloorDiv(x=x, y=ops.constant(2**distance))


def _known_distance(distance: Tensor) -> int | None:
    value = known_value(distance)
    if value is None or value.size != 1:
        return None
    return int(value.item()) if 0 <= value.item() < _BITS else _BITS


def _within(distance: Tensor) -> Tensor:
    """Returns the distance of a shift, or 32 if it is larger or negative."""
    within = ops.minimum(distance, _BITS)
    return ops.where(within < 0, _BITS, within)


def _shift_left(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    known = _known_distance(distance)
    if known is not None:
        return _shaped(ctx, x) * _POWERS[known]
    return x * ops.gather(ops.constant(_POWERS), _within(distance))


def _shift_right_arithmetic(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    known = _known_distance(distance)
    if known is not None:
        return _right(ctx, _shaped(ctx, x), known)
    within = _within(distance)
    if not _lacks(ctx, "RightShift"):
        return raw.RightShift(x=x, y=ops.minimum(within, _BITS - 1))
    divisor = ops.gather(ops.constant(_POWERS[:31]), ops.minimum(within, 30))
    by_divisor = raw.FloorDiv(x=x, y=divisor)
    return ops.where(within > 30, _right(ctx, x, _BITS - 1), by_divisor)


def _shift_right_logical(ctx: Context, x: Tensor, distance: Tensor) -> Tensor:
    known = _known_distance(distance)
    if known is not None:
        x = _shaped(ctx, x)
        if known in (0, _BITS):
            return x if not known else ops.zeros_like(x)
        if not _lacks(ctx, "BitwiseAnd"):
            return _masked(_right(ctx, x, known), int(_LOWEST[known]))
        return _right(ctx, x, known) + ops.cast(x < 0, dtypes.int32) * _FILLS[known]
    within = _within(distance)
    signed = _shift_right_arithmetic(ctx, x, distance)
    if not _lacks(ctx, "BitwiseAnd"):
        return raw.BitwiseAnd(x=signed, y=ops.gather(ops.constant(_LOWEST), within))
    fill = ops.gather(ops.constant(np.append(_FILLS, np.int32(0))), within)
    filled = signed + ops.cast(x < 0, dtypes.int32) * fill
    return ops.where(ops.equal(within, _BITS), 0, filled)


def _shaped(ctx: Context, x: Tensor) -> Tensor:
    """Broadcasts a scalar first operand to the result's shape, if the distances are an array."""
    shape = ctx.avals_out[0].shape
    return x if x.shape.rank == len(shape) else ops.broadcast_to(x, ctx.shape(shape))


def _population_count(ctx: Context, x: Tensor) -> Tensor:
    """Counts bits by Legendre's formula: x minus the sum of x // 2, x // 4, x // 8, ..."""
    if _has_logic(ctx):
        return _ones(x)
    negative = ops.cast(x < 0, dtypes.int32)
    size = x + negative * np.int32(_LEAST)
    divisors = ops.constant(_POWERS[1:31])
    return size - ops.reduce_sum(raw.FloorDiv(x=size[..., None], y=divisors), -1) + negative


def _count_leading_zeros(ctx: Context, x: Tensor) -> Tensor:
    """Returns 32 minus the number of powers of two up to x. Comparisons with them might round."""
    if _has_logic(ctx):
        for distance in (1, 2, 4, 8, 16):
            x = raw.BitwiseOr(x=x, y=_shifted(x, distance))
        return _BITS - _ones(x)
    quotients = raw.FloorDiv(x=x[..., None], y=ops.constant(_POWERS[:31]))
    return ops.where(x < 0, 0, _BITS - ops.reduce_sum(ops.minimum(quotients, 1), -1))


def _has_logic(ctx: Context) -> bool:
    return not any(_lacks(ctx, op) for op in ("BitwiseAnd", "BitwiseOr", "RightShift"))


def _ones(x: Tensor) -> Tensor:
    """Counts the set bits of pairs, of four, of eight; a product adds the counts of the bytes.

    H. S. Warren, Hacker's Delight (2nd edition), section 5-1.
    """
    x = x - _masked(_shifted(x, 1), 0x55555555)
    x = _masked(x, 0x33333333) + _masked(_shifted(x, 2), 0x33333333)
    x = _masked(x + _shifted(x, 4), 0x0F0F0F0F)
    return _shifted(x * np.int32(0x01010101), 24)


def _shifted(x: Tensor, distance: int) -> Tensor:
    return raw.RightShift(x=x, y=ops.constant(distance))


def _masked(x: Tensor, mask: int) -> Tensor:
    return raw.BitwiseAnd(x=x, y=ops.constant(mask))


# The rules of primitives, each with the op that the primitive's usual rule makes.
_RULES_BY_NAME: dict[str, tuple[str, Rule]] = {
    "and": ("BitwiseAnd", _and),
    "clz": ("PopulationCount", _count_leading_zeros),
    "not": ("Invert", _not),
    "or": ("BitwiseOr", _or),
    "population_count": ("PopulationCount", _population_count),
    "shift_left": ("LeftShift", _shift_left),
    "shift_right_arithmetic": ("RightShift", _shift_right_arithmetic),
    "shift_right_logical": ("RightShift", _shift_right_logical),
    "xor": ("BitwiseXor", _xor),
}
_RULES = by_primitive(_RULES_BY_NAME)
