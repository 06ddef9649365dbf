"""Elementwise functions that several rules share, and helpers that make rules of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import complex_math
from jax2tf._src.lowering.emit.compute_dtypes import COMPUTED, SIGNED, Carriers
from jax2tf._src.lowering.emit.known_values import known_value, repeated
from jax2tf._src.lowering.emit.selection import unrepeated
from jax2tf._src.lowering.registry import Lowered
from jax2tf._src.lowering.supported import is_computed
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor

Function = Callable[..., Tensor]
F = TypeVar("F", bound=Callable[..., Lowered])


def in_kernel_dtype(function: Function, carriers: Carriers = COMPUTED) -> Function:
    """`function`, computed in the carrier of the operands' dtype.

    The result is cast back, unless it is a bool.
    """

    def computed(*operands: Tensor) -> Tensor:
        dtype = operands[0].dtype
        kernel_dtype = carriers.get(dtype)
        if kernel_dtype is None:
            return function(*operands)
        result = function(*(ops.cast(x, kernel_dtype) for x in operands))
        return result if result.dtype == dtypes.bool_ else ops.cast(result, dtype)

    return _named_as(function, computed)


def or_complex(function: Function, complex_function: Function) -> Function:
    def either(*operands: Tensor) -> Tensor:
        return (complex_function if operands[0].dtype.is_complex else function)(*operands)

    return _named_as(function, either)


def in_one_shape(function: Function) -> Callable[..., Tensor]:
    """The rule of `function`, whose op does not broadcast (_src/ops/broadcasting.py)."""

    def rule(ctx: Context, *operands: Tensor) -> Tensor:
        shape = ctx.avals_out[0].shape
        return function(*(repeated(ctx, x, shape) for x in operands))

    return rule


def unary(op: Function) -> Function:
    return _named_as(op, lambda x: op(x=x))


def binary(op: Function) -> Function:
    return _named_as(op, lambda x, y: op(x=x, y=y))


def of_operands(table: Mapping[str, Callable[..., Lowered]]) -> dict[str, Callable[..., Lowered]]:
    """Makes rules from functions that take only the operands: `{"sin": tf.sin}`."""
    return {primitive: _without_context(function) for primitive, function in table.items()}


def _without_context(function: Callable[..., Lowered]) -> Callable[..., Lowered]:
    def rule(ctx: Context, *operands: Tensor) -> Lowered:
        return function(*in_ranks_for_choices(ctx, *operands))

    return _named_as(function, rule)


def _named_as(function: Callable[..., Lowered], other: F) -> F:
    """`other` with the module and the name of `function`, which `python -m jax2tf plan` prints.

    Not functools.wraps, whose `__wrapped__` would hide the signature of `other`.
    """
    other.__module__ = getattr(function, "__module__", other.__module__)
    other.__qualname__ = getattr(function, "__qualname__", other.__qualname__)
    return other


def in_ranks_for_choices(ctx: Context, *operands: Tensor) -> Sequence[Tensor]:
    """The operands of an elementwise primitive, with scalars reshaped to the rank of the arrays.

    Only for targets with the quirk "no_scalar_choice" (DTensor): a rule that tests a scalar
    operand, such as a divisor, would otherwise emit a SelectV2 of arrays with a scalar condition.
    """
    rank = max((x.shape.rank for x in operands), default=0)
    if not (rank and ctx.has(Quirk.NO_SCALAR_CHOICE)):
        return operands
    return [x if x.shape.rank else ops.reshape(x, [1] * rank) for x in operands]


_UNARY = {
    "ceil": unary(raw.Ceil),
    "floor": unary(raw.Floor),
    "is_finite": unary(raw.IsFinite),
}
# Functions that are one op for real numbers, with the function for complex numbers.
_ANALYTIC = {
    "abs": (raw.Abs, complex_math.absolute),
    "acos": (raw.Acos, complex_math.acos),
    "acosh": (raw.Acosh, complex_math.acosh),
    "asin": (raw.Asin, complex_math.asin),
    "asinh": (raw.Asinh, complex_math.asinh),
    "atan": (raw.Atan, complex_math.atan),
    "atanh": (raw.Atanh, complex_math.atanh),
    "cos": (raw.Cos, complex_math.cos),
    "cosh": (raw.Cosh, complex_math.cosh),
    "exp": (raw.Exp, complex_math.exp),
    "expm1": (raw.Expm1, complex_math.expm1),
    "log": (raw.Log, complex_math.log),
    "log1p": (raw.Log1p, complex_math.log1p),
    "rsqrt": (raw.Rsqrt, complex_math.rsqrt),
    "sin": (raw.Sin, complex_math.sin),
    "sinh": (raw.Sinh, complex_math.sinh),
    "sqrt": (raw.Sqrt, complex_math.sqrt),
    "tan": (raw.Tan, complex_math.tan),
    "tanh": (raw.Tanh, complex_math.tanh),
}
_BINARY = {
    "atan2": or_complex(lambda y, x: raw.Atan2(y=y, x=x), complex_math.atan2),
    "eq": binary(raw.Equal),
    "ne": binary(raw.NotEqual),
}
_OF_EITHER = {name: or_complex(unary(op), other) for name, (op, other) in _ANALYTIC.items()}
# Primitives that are one op (or a complex function), by name.
FUNCTIONS = {name: in_kernel_dtype(f) for name, f in {**_UNARY, **_OF_EITHER, **_BINARY}.items()}
# decomposed.py computes these for targets that lack the op.
_DECOMPOSED = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "expm1", "log1p", "sinh", "tan"),
)
IN_ONE_OP = {name: FUNCTIONS[name] for name in _DECOMPOSED}
negative = in_kernel_dtype(unary(raw.Neg), SIGNED)
erfc = unary(raw.Erfc)


def beside_a_constant(ctx: Context, function: Function, x: Tensor, y: Tensor) -> Tensor:
    """`function(x, y)`, written so that a constant `x` stays the first operand.

    See the quirk "exchanges_constant_and_transpose"; it spares a constant vector of one element.
    """
    rank = y.shape.rank
    if not ctx.has(Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE) or rank is None or rank < 2:
        return function(x, y)
    value = None if ops.executing_eagerly() else known_value(unrepeated(x))
    if value is None or not value.size or known_value(y) is not None:
        return function(x, y)
    shape = ctx.avals_out[0].shape
    if (value == value.flat[0]).all():
        whole = repeated(ctx, y, shape)
        return function(ops.constant(value.reshape(-1)[:1], x.dtype), whole)
    flat = (ops.reshape(repeated(ctx, v, shape), [-1]) for v in (x, y))
    return ctx.reshaped(function(*flat), shape)


def by_rows(ctx: Context, function: Function, x: Tensor, y: Tensor) -> Tensor:
    """A product or quotient in which a vector that is known, and repeats the other, is a row.

    See the quirk "factors_repeat_in_products". A vector as the result is left: `as_row_product`
    writes it anew where it is multiplied by a matrix.
    """
    if ops.executing_eagerly() or not ctx.has(Quirk.FACTORS_REPEAT_IN_PRODUCTS):
        return function(x, y)
    if _is_repeating_factor(x, y):
        return function(ops.reshape(x, [1, -1]), y)
    return function(x, ops.reshape(y, [1, -1])) if _is_repeating_factor(y, x) else function(x, y)


def _is_repeating_factor(factor: Tensor, other: Tensor) -> bool:
    """Whether it is a known vector that may be longer than the last dimension of the other."""
    rank = other.shape.rank
    if factor.shape.rank != 1 or rank is None or rank < 2 or factor.shape[0] == other.shape[-1]:
        return False
    return is_computed(other) and not is_computed(factor)


def as_row_product(ctx: Context, x: Tensor) -> Tensor:
    """`x`; if it is a known vector times a number, or divided by it, computed as a row."""
    if ops.executing_eagerly() or not ctx.has(Quirk.FACTORS_REPEAT_IN_PRODUCTS):
        return x
    vector = x.op.inputs[0] if x.op.type in ("ExpandDims", "Reshape") else x
    function = {"Mul": raw.Mul, "RealDiv": raw.RealDiv}.get(vector.op.type)
    if function is None or vector.shape.rank != 1 or vector.shape[0] in (1, None):
        return x
    operands = list(vector.op.inputs)
    if not any(v.shape.num_elements() == 1 and is_computed(v) for v in operands):
        return x
    first, second = (ops.reshape(v, [1, -1]) for v in operands)
    return ops.reshape(function(x=first, y=second), x.shape.as_list())


def exponential(ctx: Context, x: Tensor) -> Tensor:
    """exp(x), with NaN for NaN; OpenVINO's Exp gives infinity for NaN."""
    power = FUNCTIONS["exp"](x)
    is_exact = ctx.target.assume_finite or not ctx.has(Quirk.INFINITE_EXP_OF_NAN)
    if is_exact or not x.dtype.is_floating:
        return power
    # exp(x) exceeds x, so the maximum is exp(x); where x is NaN, the second operand x wins.
    return raw.Maximum(x=power, y=x)


def erf(x: Tensor) -> Tensor:
    """erf(x), clipped so that TensorFlow's kernel does not overflow."""
    if x.dtype == dtypes.float64:
        # TensorFlow's CPU kernel overflows to NaN; in float64, erf(x) is 1 from 6 on.
        six = ops.constant(6, x.dtype)
        x = raw.Maximum(x=raw.Minimum(x=x, y=six), y=-six)
    return raw.Erf(x=x)


def at_least(x: Tensor, y: Tensor) -> Tensor:
    # Form: smaller_for_larger.
    return raw.LessEqual(x=y, y=x) if x.dtype.is_floating else raw.GreaterEqual(x=x, y=y)


at_most = binary(raw.LessEqual)
