"""Elementwise arithmetic, comparison and logic; identities.

Most primitives are one TensorFlow op: the tables at the top. Where TensorFlow has the op but no
kernel for a dtype, `in_kernel_dtype` computes in one that it has. Below the tables stand the
primitives whose semantics no single op has. integers.py has division, shifts and bits;
complex_math.py what infinities, NaNs and branch cuts ask of complex numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.emit import complex_math, known_values, truth_values
from jax2tf._src.lowering.emit.compute_dtypes import (
    COMPARED,
    COMPUTED,
    FLOAT8,
    IN_FLOAT32,
    SIGNED,
    Carriers,
    carrier_of,
)
from jax2tf._src.lowering.emit.fusions import before_relu
from jax2tf._src.lowering.emit.known_values import is_all, known_value, repeated
from jax2tf._src.lowering.emit.selection import select, unrepeated
from jax2tf._src.lowering.registry import Context, made_by, register, register_table
from jax2tf._src.lowering.rules import casts
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util.typing import Param

Function = Callable[..., tf.Tensor]


def in_kernel_dtype(function: Function, carriers: Carriers = COMPUTED) -> Function:
    """`function`, computed in the dtype that `carriers` gives for that of the operands.

    The result is cast back, unless it is a predicate.
    """

    def computed(*operands: tf.Tensor) -> tf.Tensor:
        dtype = operands[0].dtype
        kernel_dtype = carriers.get(dtype)
        if kernel_dtype is None:
            return function(*operands)
        result = function(*(ops.cast(x, kernel_dtype) for x in operands))
        return result if result.dtype == tf.bool else ops.cast(result, dtype)

    return computed


def _or_complex(function: Function, complex_function: Function) -> Function:
    def either(*operands: tf.Tensor) -> tf.Tensor:
        return (complex_function if operands[0].dtype.is_complex else function)(*operands)

    return either


def in_one_shape(function: Function) -> Callable[..., tf.Tensor]:
    """The rule of `function`, whose op repeats none of its operands (_src/ops/broadcasting.py)."""

    def rule(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
        shape = ctx.avals_out[0].shape
        return function(*(repeated(ctx, x, shape) for x in operands))

    return rule


def _unary(op: Function) -> Function:
    return lambda x: op(x=x)


def binary(op: Function) -> Function:
    return lambda x, y: op(x=x, y=y)


_UNARY = {
    "ceil": _unary(raw.Ceil),
    "floor": _unary(raw.Floor),
    "is_finite": _unary(raw.IsFinite),
}
# Functions that are one op for real numbers and take more care for complex ones.
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
_UNARY |= {name: _or_complex(_unary(op), other) for name, (op, other) in _ANALYTIC.items()}
_BINARY = {
    "atan2": _or_complex(lambda y, x: raw.Atan2(y=y, x=x), complex_math.atan2),
    "eq": binary(raw.Equal),
    "ne": binary(raw.NotEqual),
}


def _larger(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    # Form: smaller_for_larger.
    return raw.Less(x=y, y=x) if x.dtype.is_floating else raw.Greater(x=x, y=y)


def _at_least(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    # Form: smaller_for_larger.
    return raw.LessEqual(x=y, y=x) if x.dtype.is_floating else raw.GreaterEqual(x=x, y=y)


_at_most = binary(raw.LessEqual)
_COMPARISONS = {
    "ge": _at_least,
    "le": _at_most,
}
# What is strictly larger or smaller, and what it is not.
_STRICT = {
    "gt": (_larger, raw.LessEqual),
    "lt": (binary(raw.Less), raw.GreaterEqual),
}

_FUNCTIONS = {name: in_kernel_dtype(f) for name, f in {**_UNARY, **_BINARY}.items()}
# For targets that have no such op, decomposed.py computes these.
_DECOMPOSED = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "expm1", "log1p", "sinh", "tan"),
)
IN_ONE_OP = {name: _FUNCTIONS[name] for name in _DECOMPOSED}
_IN_CONTEXT = frozenset({"abs", "exp", "is_finite"})
register_table(
    {name: f for name, f in _FUNCTIONS.items() if name not in IN_ONE_OP.keys() | _IN_CONTEXT}
)
for _name, _function in IN_ONE_OP.items():
    register_table({_name: _function}, op=_name.capitalize())


def _unless_known(op: Function, known: Callable[..., tf.Tensor | None], turned: bool) -> Function:
    """A comparison, which is left out where what it gives is known."""
    plain = in_kernel_dtype(op, COMPARED)

    def compare(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        result = None if tf.executing_eagerly() else known(*((y, x) if turned else (x, y)))
        return plain(x, y) if result is None else result

    return compare


register_table(
    {
        name: _unless_known(f, truth_values.at_most, turned=name == "ge")
        for name, f in _COMPARISONS.items()
    }
)


def _strictly(name: str, op: Function, opposite: Function) -> Callable[..., tf.Tensor]:
    plain = _unless_known(op, truth_values.less, turned=name == "gt")

    def rule(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        if x.dtype.is_integer and ctx.has(Quirk.COMPARES_INTEGERS_AS_FLOATS):
            return raw.LogicalNot(x=opposite(x=x, y=y))
        return plain(x, y)

    return rule


for _name, (_op, _opposite) in _STRICT.items():
    register(_name)(_strictly(_name, _op, _opposite))

_exp, _log = (_FUNCTIONS[name] for name in ("exp", "log"))
_add = in_kernel_dtype(binary(raw.AddV2))
_difference = in_kernel_dtype(binary(raw.Sub))
negative = in_kernel_dtype(_unary(raw.Neg), SIGNED)
_product = in_kernel_dtype(binary(raw.Mul))
_square = in_kernel_dtype(_unary(raw.Square))
_quotient = in_kernel_dtype(binary(raw.RealDiv))
_reciprocal = in_kernel_dtype(_or_complex(_unary(raw.Reciprocal), complex_math.reciprocal))


@register("sub")
@known_values.without(known_values.zero)
def _sub(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return beside_a_constant(ctx, _difference, x, y)


@register("add", "add_any")
@known_values.without(known_values.negative_zero, known_values.negative_zero)
def _sum(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _joined_with_inverse(ctx, _add, x, y, "Neg")


def _joined_with_inverse(
    ctx: Context, function: Function, x: tf.Tensor, y: tf.Tensor, inverse: str
) -> tf.Tensor:
    """x + y or x * y, which a converter turns into x - y or x / y if an operand is inverted."""
    if not ctx.has(Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE):
        return function(x, y)
    of_x, of_y = map(made_by, (x, y))
    if of_x == inverse:
        return beside_a_constant(ctx, function, y, x)
    return beside_a_constant(ctx, function, x, y) if of_y == inverse else function(x, y)


def beside_a_constant(ctx: Context, function: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`function(x, y)`, of which a constant `x` stays the first operand.

    See the quirk "exchanges_constant_and_transpose": a vector of one number is left alone.
    """
    rank = y.shape.rank
    if not ctx.has(Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE) or rank is None or rank < 2:
        return function(x, y)
    value = None if tf.executing_eagerly() else known_value(unrepeated(x))
    if value is None or not value.size or known_value(y) is not None:
        return function(x, y)
    shape = ctx.avals_out[0].shape
    if (value == value.flat[0]).all():
        whole = repeated(ctx, y, shape)
        return function(ops.constant(value.reshape(-1)[:1], x.dtype), whole)
    flat = (ops.reshape(repeated(ctx, v, shape), [-1]) for v in (x, y))
    return ctx.reshaped(function(*flat), shape)


@register("neg")
def _neg(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return _product(x, _scalar(-1, x.dtype)) if _is_product(ctx, x) else negative(x)


@register("square")
def _squared(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return _product(x, x) if _is_product(ctx, x) else _square(x)


def _is_product(ctx: Context, x: tf.Tensor) -> bool:
    """Whether a square, or what changes the sign, has to be a product."""
    return x.dtype == tf.float32 and ctx.has(Quirk.NO_INTEGER_SQUARE)


# Logic: TensorFlow has one op for bool and another for bits.


def _logic(logical: Function, bitwise: Function) -> Function:
    bits = in_kernel_dtype(bitwise)

    def either(*operands: tf.Tensor) -> tf.Tensor:
        return logical(*operands) if operands[0].dtype == tf.bool else bits(*operands)

    return either


register_table(
    {
        "and": _logic(binary(raw.LogicalAnd), binary(raw.BitwiseAnd)),
        "or": _logic(binary(raw.LogicalOr), binary(raw.BitwiseOr)),
        "xor": _logic(binary(raw.NotEqual), binary(raw.BitwiseXor)),
        "not": _logic(_unary(raw.LogicalNot), _unary(raw.Invert)),
    }
)


# Identities: they speak of placement, memory, names or derivatives.


@register("copy", "layout_constraint", "name", "stop_gradient", "xla_metadata_value")
def _identity(ctx: Context, x: tf.Tensor, **_: object) -> tf.Tensor:
    return x


@register("device_put")
def _identities(ctx: Context, *xs: tf.Tensor, **_: object) -> tuple[tf.Tensor, ...]:
    return xs


# Complex numbers and their parts.

register_table({"complex": ops.complex, "real": ops.real, "imag": ops.imag})


@register("conj")
def _conj(ctx: Context, x: tf.Tensor, *, input_dtype: np.dtype | None = None) -> tf.Tensor:
    return ops.conj(x) if x.dtype.is_complex else ops.complex(x, ops.zeros_like(x))


# Products, quotients and powers.


@register("mul")
@known_values.without(known_values.one, known_values.one)
def _mul(
    ctx: Context, x: tf.Tensor, y: tf.Tensor, *, out_dtype: np.dtype | None = None
) -> tf.Tensor:
    if out_dtype is not None:
        x, y = (casts.cast(operand, ctx.out) for operand in (x, y))
    if x.dtype.is_complex and x.shape.rank != y.shape.rank:
        x, y = _of_one_shape(ctx, x, y)
    return _joined_with_inverse(ctx, _product, x, y, "Reciprocal")


def _of_one_shape(ctx: Context, *operands: tf.Tensor) -> list[tf.Tensor]:
    """Scalars as arrays, in graphs: TensorFlow's graph optimiser would multiply them last.

    For infinite complex numbers that is another result. Not every target broadcasts complex
    numbers.
    """
    if tf.executing_eagerly() or not ctx.wants("BroadcastTo", operands[0].dtype.name):
        return list(operands)
    shape = ctx.vector(ctx.avals_out[0].shape)
    return [x if x.shape.rank else raw.BroadcastTo(input=x, shape=shape) for x in operands]


@register("integer_pow")
def _integer_pow(ctx: Context, x: tf.Tensor, *, y: int) -> tf.Tensor:
    """By squaring and multiplying, as JAX does; tf.pow would take logarithms."""
    if y == 0:
        return ops.cast(ops.ones_like(x, COMPUTED.get(x.dtype)), x.dtype)
    result, exponent = None, abs(y)
    while exponent:
        if exponent & 1:
            result = x if result is None else _product(result, x)
        exponent >>= 1
        if exponent:
            x = _squared(ctx, x)
    if y > 0:
        return result
    is_moved = x.dtype.is_floating and (x.shape.rank or 0) > 1
    if is_moved and ctx.has(Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE):
        # A converter makes a quotient of a Reciprocal.
        return beside_a_constant(ctx, _quotient, ops.constant(1, x.dtype), result)
    return _reciprocal(result)


@register("pow")
def _pow(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _power(x, casts.cast(y, x.dtype))


_power = in_kernel_dtype(_or_complex(binary(raw.Pow), complex_math.power))


@register("abs")
def _abs(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if x.dtype == tf.int32 and ctx.has(Quirk.MAGNITUDES_AS_FLOATS):
        return raw.Maximum(x=x, y=negative(x))
    return _FUNCTIONS["abs"](ctx.to_abs(x))


@register("cbrt")
def _cbrt(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(functools.partial(_cube_root, ctx), IN_FLOAT32)(x)


def _cube_root(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    # tf.pow takes no root of a negative number, and 1/3 is not exact: one of Newton's steps mends
    # that. Zero, infinity and NaN are their own roots.
    size = ops.abs(ctx.to_abs(x))
    root = ops.pow(size, ops.constant(1 / 3, x.dtype))
    root -= (root - size / (root * root)) / 3
    root = select(ctx, x < 0, -root, root)
    return select(ctx, ops.is_finite(x) & ops.not_equal(x, 0), root, x)


@register("exp")
def exponential(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    power = _exp(x)
    if not x.dtype.is_floating or ctx.assume_finite or not ctx.has(Quirk.INFINITE_EXP_OF_NAN):
        return power
    # It is larger than the exponent, which is chosen where it is NaN.
    return raw.Maximum(x=power, y=x)


@register("is_finite")
def _is_finite(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if ctx.has(Quirk.INFINITE_SUBNORMALS):
        return raw.Less(x=raw.Abs(x=ctx.to_abs(x)), y=math.inf)
    return _FUNCTIONS["is_finite"](x)


@register("exp2")
def _exp2(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return exponential(ctx, _product(x, _scalar(math.log(2), x.dtype)))


def _log2(x: tf.Tensor) -> tf.Tensor:
    return _product(_log(x), _scalar(1 / math.log(2), x.dtype))


def _logistic(x: tf.Tensor) -> tf.Tensor:
    if x.dtype not in FLOAT8:
        return raw.Sigmoid(x=x)
    return _reciprocal(_add(_scalar(1, x.dtype), _exp(negative(x))))


def _one_minus_square(x: tf.Tensor) -> tf.Tensor:
    one = _scalar(1, x.dtype)
    return _product(_add(one, x), _add(one, negative(x)))


def _scalar(value: float, dtype: tf.DType) -> tf.Tensor:
    """A constant; by way of the dtype to compute in, because few ops give float8 or int4."""
    return ops.cast(ops.constant(value, carrier_of(COMPUTED, dtype)), dtype)


def quotient(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """x / y of floats or complex numbers."""
    return complex_math.divide(x, y) if x.dtype.is_complex else raw.RealDiv(x=x, y=y)


register_table(
    {
        "log2": _or_complex(_log2, complex_math.log2),
        "logistic": _or_complex(_logistic, complex_math.logistic),
        "one_minus_square": _one_minus_square,
    }
)


@register("polynomial")
def _polynomial(
    ctx: Context, x: tf.Tensor, *coefficients: tf.Tensor, unroll: int | None = None
) -> tf.Tensor:
    # By Horner's rule, from the coefficient of the highest power, which comes last.
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = _add(_product(result, x), coefficient)
    return result


# Order.


@register("max")
def _max(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    # A maximum of 0 is a Relu.
    x, y = before_relu(ctx, x), before_relu(ctx, y)
    return _extreme(ctx, raw.Maximum, raw.LogicalOr, raw.Greater, x, y)


@register("min")
def _min(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _extreme(ctx, raw.Minimum, raw.LogicalAnd, raw.Less, x, y)


def _extreme(
    ctx: Context, op: Function, logical: Function, beats: Function, x: tf.Tensor, y: tf.Tensor
) -> tf.Tensor:
    if x.dtype == tf.bool:
        return logical(x=x, y=y)
    if x.dtype.is_complex:
        return _lexicographic(beats, x, y)
    return in_kernel_dtype(functools.partial(_with_nan, ctx, op))(x, y)


def _with_nan(ctx: Context, op: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`op(x, y)`, NaN where one of them is.

    TensorFlow's XLA keeps a NaN of the first operand alone, and that only while the second is none.
    """
    if not x.dtype.is_floating:
        return op(x=x, y=y)
    # The maximum of nothing, with which jnp.max begins.
    neutral = -math.inf if op is raw.Maximum else math.inf
    for one, other in ((x, y), (y, x)):
        if not one.shape.rank and is_all(one, neutral):
            return other
    if ctx.assume_finite:
        return op(x=x, y=y)
    for one, other in ((x, y), (y, x)):
        if ctx.is_by_kernels or _free_of_nan(other):
            if not ctx.has(Quirk.EXTREME_KEEPS_A_NAN_OF_THE_SECOND):
                return op(x=one, y=other)
            result = op(x=other, y=one)
            # A maximum of 0 becomes its Relu, which passes over a NaN.
            is_relu = op is raw.Maximum and is_all(other, 0)
            return select(ctx, ctx.is_nan(one), one, result) if is_relu else result
    beats = _at_least if op is raw.Maximum else _at_most
    return select(ctx, ctx.is_nan(x) | beats(x, y), x, y)


def _free_of_nan(x: tf.Tensor) -> bool:
    """Whether x is known to hold no NaN."""
    value = known_value(x)
    return value is not None and not np.isnan(value).any()


def _lexicographic(beats: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """By real part, among equals by imaginary part."""
    x_real, y_real = ops.real(x), ops.real(y)
    imag_wins = beats(x=ops.imag(x), y=ops.imag(y))
    x_wins = ops.where(ops.equal(x_real, y_real), imag_wins, beats(x=x_real, y=y_real))
    return ops.where(x_wins, x, y)


@register("clamp")
def _clamp(ctx: Context, low: tf.Tensor, x: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_complex:
        x = ops.where(ops.real(low) >= ops.real(x), low, x)
        return ops.where(ops.real(x) <= ops.real(high), x, high)
    # In this order, so that `high` wins where it is below `low`.
    return _min(ctx, _max(ctx, x, low), high)


@register("sign")
def _sign(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if ctx.avals_in[0].dtype.kind == "u" or x.dtype.is_unsigned:
        return in_kernel_dtype(_one_at_most)(x)
    of_real = functools.partial(_sign_of_real, ctx)
    return in_kernel_dtype(_or_complex(of_real, complex_math.sign))(x)


def _one_at_most(x: tf.Tensor) -> tf.Tensor:
    return raw.Minimum(x=x, y=ops.constant(1, x.dtype))


def _sign_of_real(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_integer:
        return raw.Sign(x=x)
    # TensorFlow's kernel drops the sign of -0.
    return select(ctx, ops.equal(x, 0), x, raw.Sign(x=x))


@register("round")
def _round(ctx: Context, x: tf.Tensor, *, rounding_method: Param) -> tf.Tensor:
    to_even = int(rounding_method) == int(jax.lax.RoundingMethod.TO_NEAREST_EVEN)
    half_away = functools.partial(_round_half_away, ctx)
    return in_kernel_dtype(_unary(raw.Round) if to_even else half_away)(x)


def _round_half_away(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    # tf.round rounds halves to even. Only halves differ, and for them x + 0.5 is exact.
    rounded = raw.Round(x=x)
    half = ops.constant(0.5, x.dtype)
    is_half = ops.equal(ops.abs(x - rounded), half)
    return select(ctx, is_half, x + raw.Sign(x=x) * half, rounded)


@register("nextafter")
def _nextafter(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if x.dtype in (tf.float32, tf.float64):
        return raw.NextAfter(x1=x, x2=y)
    if x.dtype in FLOAT8:
        bits, back = casts.float8_to_bytes(x), casts.bytes_to_float8
        of_bits: Function = functools.partial(back, ctx, dtype=x.dtype)
    else:
        bits, of_bits = ops.bitcast(x, tf.uint16), lambda b: ops.bitcast(b, x.dtype)
    return _neighbour(x, y, bits, of_bits)


def _neighbour(x: tf.Tensor, y: tf.Tensor, bits: tf.Tensor, of_bits: Function) -> tf.Tensor:
    """The number after x on the way to y, found by counting the bits of magnitudes up or down."""
    wide_x, wide_y = ops.cast(x, tf.float32), ops.cast(y, tf.float32)
    smallest = ops.where(wide_y > 0, 1, 1 + 2 ** (8 * x.dtype.size - 1))
    outwards = ops.equal(wide_y > wide_x, wide_x > 0)
    stepped = ops.cast(bits, tf.int32) + ops.where(outwards, 1, -1)
    stepped = ops.where(ops.equal(wide_x, 0), smallest, stepped)
    result = ops.cast(of_bits(ops.cast(stepped, bits.dtype)), tf.float32)
    # y itself if it is as near as that, or NaN.
    result = ops.where(ops.equal(wide_x, wide_y) | ops.is_nan(wide_y), wide_y, result)
    return ops.cast(ops.where(ops.is_nan(wide_x), wide_x, result), x.dtype)
