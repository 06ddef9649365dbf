"""Divides and compares integers exactly, for targets that use float32, which rounds beyond 2**24.

These targets compute sums, products, shifts and the maximum of two numbers exactly. A comparison is
exact too if float32 distinguishes one of the numbers from its neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.known_values import known_value
from jax2tf._src.lowering.passes.legalize import uint32
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import by_primitive, named
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]
Rule = Callable[..., Tensor]

_MULHI = named("mulhi")
_LEAST = np.int32(-(2**31))
# It is less than 1 by more than float32's rounding error, so that an estimate is never too large.
_LESS = np.float32(1 - 2**-20)
# Below this number, float32 represents every integer and its neighbours.
_EXACT_BELOW = 2**24


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a division or clamp that the target rounds, or for mulhi, or None.

    mulhi normally shifts a product of int64, which the target may lack.
    """
    if eqn.primitive in _MULHI:
        is_lacking = not target.takes("RightShift", "int64") and _dtype_of(eqn) == np.int32
        return _product_high if is_lacking else None
    if eqn.primitive is lax.clamp_p and target.has(Quirk.EQUATES_LARGE_INTEGERS):
        return _clamp if _dtype_of(eqn) == np.uint32 else None
    if not target.has(Quirk.DIVIDES_INTEGERS_AS_FLOATS):
        return None
    is_division = eqn.primitive in (lax.div_p, lax.rem_p)
    return _FUNCTIONS.get(str(_dtype_of(eqn))) if is_division else None


def rule_of(eqn: jex_core.JaxprEqn, target: Target) -> Rule | None:
    """Returns the rule for a comparison that the target rounds; None for other equations."""
    if eqn.primitive not in _COMPARISONS or not target.has(Quirk.EQUATES_LARGE_INTEGERS):
        return None
    return _COMPARISONS[eqn.primitive] if _dtype_of(eqn) == np.int32 else None


def _dtype_of(eqn: jex_core.JaxprEqn) -> np.dtype:
    aval = aval_of(eqn.invars[0])
    return aval.dtype


def _clamp(
    eqn: jex_core.JaxprEqn, low: jax.Array, x: jax.Array, high: jax.Array
) -> Sequence[jax.Array]:
    """Clamps by comparisons, because the target would round bounds that are large constants."""
    x = jnp.where(x < low, low, x)
    return [jnp.where(x > high, high, x)]


def _division(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    return [_result(eqn, x, y, _quotient(x, y))]


def _unsigned_division(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    divisor = _known(y)
    x, y = (v.view(np.int32) if isinstance(v, np.ndarray) else _cut(v) for v in (x, y))
    if _is_power_of_two(divisor):
        quotient = lax.shift_right_logical(x, np.int32(divisor.bit_length() - 1))
    else:
        magnitude = _quotient_of_magnitudes(x, y, _float_of_unsigned, _is_at_least)
        quotient = magnitude if divisor else magnitude | _bits_of(y == 0)
    return [lax.convert_element_type(_result(eqn, x, y, quotient), np.uint32)]


def _product_high(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    """Computes mulhi of int32 as mulhi of uint32, less the other factor for a negative factor."""
    (high,) = uint32.product_high(eqn, x, y)
    is_negative = functools.partial(lax.convert_element_type, new_dtype=np.int32)
    return [high - is_negative(x < 0) * y - is_negative(y < 0) * x]


def _result(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array, quotient: jax.Array) -> jax.Array:
    """Returns the quotient for div, the remainder for rem. A division by zero has remainder x."""
    return quotient if eqn.primitive is lax.div_p else x - quotient * y


def _quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    """Divides towards zero. It sets signs by bits, because the target selects int32 in float32."""
    divisor = _known(y)
    if _is_power_of_two(divisor):
        # A shift rounds down, so a negative dividend is made larger first.
        larger = x + (_signs(x) & np.int32(divisor - 1))
        return lax.shift_right_arithmetic(larger, np.int32(divisor.bit_length() - 1))
    size = _quotient_of_magnitudes(
        jnp.abs(x), jnp.abs(y), _float_of_magnitude, lambda rest, y: rest - y >= 0
    )
    signs = _signs(x if divisor > 0 else x ^ y)
    signed = (size ^ signs) - signs
    return signed if divisor else signed | _bits_of(y == 0)


def _known(divisor: jax.Array | np.ndarray) -> int:
    """Returns the divisor, or 0 if it is unknown."""
    return int(divisor) if isinstance(divisor, np.ndarray) and divisor.ndim == 0 else 0


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _signs(x: jax.Array) -> jax.Array:
    return lax.shift_right_arithmetic(x, np.int32(31))


def _bits_of(condition: jax.Array) -> jax.Array:
    return -lax.convert_element_type(condition, np.int32)


def _quotient_of_magnitudes(
    x: jax.Array,
    y: jax.Array,
    float_of: Callable[[jax.Array], jax.Array],
    is_at_least: Callable[[jax.Array, jax.Array], jax.Array],
) -> jax.Array:
    """Divides unsigned numbers: adds two estimates in float32, and 1 if the sum is too small.

    The rest after the first is less than 2 y + 2**13; the second estimate is at most 1 too small.
    """
    # Half of an estimate fits into int32.
    by_half = _LESS / 2 / float_of(y)
    first = _cut(float_of(x) * by_half) * np.int32(2)
    rest = x - first * y
    second = _cut(float_of(rest) * by_half * np.float32(2))
    rest = rest - second * y
    return first + second + lax.convert_element_type(is_at_least(rest, y), np.int32)


def _float_of_magnitude(x: jax.Array) -> jax.Array:
    """Converts a magnitude to float32. abs is for 2**31, whose bits are the smallest int32."""
    return jnp.abs(lax.convert_element_type(x, np.float32))


def _float_of_unsigned(x: jax.Array) -> jax.Array:
    signed = lax.convert_element_type(x, np.float32)
    return jnp.where(signed < 0, signed + np.float32(2**32), signed)


def _is_at_least(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + _LEAST >= y + _LEAST


def _cut(x: jax.Array) -> jax.Array:
    return lax.convert_element_type(x, np.int32)


_FUNCTIONS: dict[str, Function] = {"int32": _division, "uint32": _unsigned_division}


def _equality(op: Callable[..., Tensor]) -> Rule:
    def rule(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
        if _is_exact(x) or _is_exact(y):
            return op(x=x, y=y)
        return op(x=x - y, y=ops.constant(0))

    return rule


def _order(op: Callable[..., Tensor], of_rest: Callable[..., Tensor], smaller: int) -> Rule:
    """Returns the rule that compares max(x, y) - x, or max(x, y) - y, with zero."""

    def rule(ctx: Context, *operands: Tensor) -> Tensor:
        x, y = operands
        if _is_exact(x) or _is_exact(y):
            return op(x=x, y=y)
        rest = raw.Maximum(x=x, y=y) - operands[smaller]
        return of_rest(x=rest, y=ops.constant(0))

    return rule


def _is_exact(x: Tensor) -> bool:
    """Whether x is a constant whose values float32 distinguishes from all other integers."""
    value = known_value(x)
    return value is not None and bool((np.abs(value.astype(np.int64)) < _EXACT_BELOW).all())


_RULES: dict[tuple[str, ...], Rule] = {
    ("eq", "eq_to"): _equality(raw.Equal),
    ("ne",): _equality(raw.NotEqual),
    ("lt", "lt_to"): _order(raw.Less, raw.NotEqual, 0),
    ("ge",): _order(raw.GreaterEqual, raw.Equal, 0),
    ("gt",): _order(raw.Greater, raw.NotEqual, 1),
    ("le", "le_to"): _order(raw.LessEqual, raw.Equal, 1),
}
_COMPARISONS = by_primitive(_RULES)
