"""Float32 functions in ops that every engine has.

The formulas are XLA's expansions (chlo in the StableHLO repository), except that sinh and atanh are
composed of others; they lose precision and overflow where JAX's functions do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.elementwise import IN_ONE_OP, exponential, of_operands
from jax2tf._src.lowering.registry import register, register_table
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor

# log(1 + x) = x - x**2 / 2 + x**3 * P(x) from sqrt(1/2) - 1 to sqrt(2) - 1 (Moshier, Cephes, logf).
_LOG1P = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LOG1P_RANGE = (-0.29, 0.41)


def _expm1(x: Tensor) -> Tensor:
    # This formula has no cancellation and no select; infinities and NaNs come out right.
    return ops.tanh(x / 2) * (ops.exp(x) + 1)


def _log1p(x: Tensor) -> Tensor:
    least, largest = _LOG1P_RANGE
    # Finite even where the other side is selected.
    near = ops.minimum(ops.maximum(x, least), largest)
    polynomial = ops.constant(_LOG1P[0], x.dtype)
    for coefficient in _LOG1P[1:]:
        polynomial = polynomial * near + coefficient
    near += ops.square(near) * (near * polynomial - 0.5)
    is_far = ops.logical_or(ops.greater_equal(least, x), x >= largest)
    # ONNX Runtime keeps the sign of a zero only on the side of the false condition.
    return ops.where(is_far, ops.log(1 + x), near)


def _tan(x: Tensor) -> Tensor:
    return ops.sin(x) / ops.cos(x)


def _atan(x: Tensor) -> Tensor:
    # Form: atan2_of_arrays.
    return ops.atan2(x, ops.ones_like(x))


def _asin(x: Tensor) -> Tensor:
    return 2 * ops.atan2(x, 1 + ops.sqrt((1 - x) * (1 + x)))


def _acos(x: Tensor) -> Tensor:
    angle = 2 * ops.atan2(ops.sqrt((1 - x) * (1 + x)), 1 + x)
    return ops.where(ops.equal(x, -1), ops.constant(math.pi, x.dtype), angle)


@register("cosh")
def _cosh(ctx: Context, x: Tensor) -> Tensor:
    if x.dtype != dtypes.float32:
        return IN_ONE_OP["cosh"](x)
    # Only one of the two needs to keep a NaN.
    return _sum_of_halves(functools.partial(exponential, ctx), x)


def _sum_of_halves(exp: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    # Half of the largest result does not overflow; twice that result would.
    return exp(x - math.log(2)) + ops.exp(-x - math.log(2))


def _sinh(x: Tensor) -> Tensor:
    # (cosh x + 1) tanh(x / 2) has no cancellation. The tanh keeps a NaN.
    return ops.tanh(x / 2) * (1 + _sum_of_halves(ops.exp, x))


def _atanh(x: Tensor) -> Tensor:
    return (_log1p(x) - _log1p(-x)) / 2


def _asinh(x: Tensor) -> Tensor:
    size = ops.abs(x)
    square = size * size
    result = _log1p(size + square / (1 + ops.sqrt(square + 1)))
    result = ops.where(size > _SQUARE_OVERFLOWS, _log_of_twice(size), result)
    # Below 1e-4, x**3 / 6 is negligible beside x, and x keeps the sign of zero.
    return ops.where(size < 1e-4, x, ops.where(x < 0, -result, result))


def _acosh(x: Tensor) -> Tensor:
    beyond = x - 1
    result = _log1p(beyond + ops.sqrt(beyond) * ops.sqrt(x + 1))
    return ops.where(x > _SQUARE_OVERFLOWS, _log_of_twice(x), result)


def _log_of_twice(x: Tensor) -> Tensor:
    # Form: logarithm_of_half.
    return ops.log(x / 2) + 2 * math.log(2)


# A bound below the overflow; from here on, 1 is negligible beside the square.
_SQUARE_OVERFLOWS = 1e9

_OF_FLOAT32 = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atanh": _atanh,
    "expm1": _expm1,
    "log1p": _log1p,
    "sinh": _sinh,
    "tan": _tan,
}


def _of_any_dtype(name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: (_OF_FLOAT32 if x.dtype == dtypes.float32 else IN_ONE_OP)[name](x)


register_table(of_operands({name: _of_any_dtype(name) for name in _OF_FLOAT32}))
