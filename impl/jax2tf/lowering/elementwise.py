"""Elementwise arithmetic, comparison and logic; identities.

Most primitives are one TensorFlow op: the tables at the top. Where TensorFlow has the op but no
kernel for a dtype, `_in_kernel_dtype` computes in one that it has. Below the tables stand the
primitives whose semantics no single op has (integer division by zero, shifts out of range, ...).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from jax2tf.lowering.rules import Context, register

raw = tf.raw_ops

Function = Callable[..., tf.Tensor]

FLOAT8 = (
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
)
NARROW_INTEGERS = ("int2", "int4", "uint2", "uint4")

# Dtypes that TensorFlow stores and has no kernels for, and what to compute in. Integers wrap when
# they are cast back; XLA's CPU backend computes float8 in float32 or float16 too, and rounds once.
_KERNEL_DTYPES = {
    **dict.fromkeys(FLOAT8, tf.float32),
    **dict.fromkeys(NARROW_INTEGERS, tf.int32),
}
_SIGNED = {
    **_KERNEL_DTYPES,
    "uint8": tf.int8,
    "uint16": tf.int16,
    "uint32": tf.int32,
    "uint64": tf.int64,
}
_ORDERED = {**_KERNEL_DTYPES, "bool": tf.int8}
_UNSIGNED = {"int8": tf.uint8, "int16": tf.uint16, "int32": tf.uint32, "int64": tf.uint64}


def in_kernel_dtype(
    function: Function, kernel_dtypes: Mapping[str, tf.DType] = _KERNEL_DTYPES
) -> Function:
    """A rule that computes `function` in the dtype that `kernel_dtypes` gives for the operands'.

    The result is cast back, unless it is a predicate.
    """

    @functools.wraps(function)
    def rule(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
        dtype = operands[0].dtype
        wider = kernel_dtypes.get(dtype.name)
        if wider is None:
            return function(*operands)
        result = function(*(tf.cast(x, wider) for x in operands))
        return result if result.dtype == tf.bool else tf.cast(result, dtype)

    return rule


def _unary(op: Function) -> Function:
    return lambda x: op(x=x)


def _binary(op: Function) -> Function:
    return lambda x, y: op(x=x, y=y)


_UNARY = {
    "abs": tf.abs,
    "acos": _unary(raw.Acos),
    "acosh": _unary(raw.Acosh),
    "asin": _unary(raw.Asin),
    "asinh": _unary(raw.Asinh),
    "atan": _unary(raw.Atan),
    "atanh": _unary(raw.Atanh),
    "ceil": _unary(raw.Ceil),
    "cos": _unary(raw.Cos),
    "cosh": _unary(raw.Cosh),
    "exp": _unary(raw.Exp),
    "expm1": _unary(raw.Expm1),
    "floor": _unary(raw.Floor),
    "is_finite": _unary(raw.IsFinite),
    "log": _unary(raw.Log),
    "log1p": _unary(raw.Log1p),
    "logistic": _unary(raw.Sigmoid),
    "rsqrt": _unary(raw.Rsqrt),
    "sin": _unary(raw.Sin),
    "sinh": _unary(raw.Sinh),
    "sqrt": _unary(raw.Sqrt),
    "square": _unary(raw.Square),
    "tan": _unary(raw.Tan),
    "tanh": _unary(raw.Tanh),
}
_BINARY = {
    "add": _binary(raw.AddV2),
    "add_any": _binary(raw.AddV2),
    "add_jaxvals": _binary(raw.AddV2),
    "atan2": lambda y, x: raw.Atan2(y=y, x=x),
    "eq": _binary(raw.Equal),
    "ne": _binary(raw.NotEqual),
    "sub": _binary(raw.Sub),
}
_COMPARISONS = {
    "ge": _binary(raw.GreaterEqual),
    "gt": _binary(raw.Greater),
    "le": _binary(raw.LessEqual),
    "lt": _binary(raw.Less),
}

for _primitive, _function in {**_UNARY, **_BINARY}.items():
    register(_primitive)(in_kernel_dtype(_function))
for _primitive, _function in _COMPARISONS.items():
    register(_primitive)(in_kernel_dtype(_function, _ORDERED))
register("neg")(in_kernel_dtype(_unary(raw.Neg), _SIGNED))


# Logic: TensorFlow has one op for bool and another for bits.


def _logic(logical: Function, bitwise: Function) -> Function:
    bits = in_kernel_dtype(bitwise)

    def rule(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
        return logical(*operands) if operands[0].dtype == tf.bool else bits(ctx, *operands)

    return rule


register("and")(_logic(_binary(raw.LogicalAnd), _binary(raw.BitwiseAnd)))
register("or")(_logic(_binary(raw.LogicalOr), _binary(raw.BitwiseOr)))
register("xor")(_logic(_binary(raw.NotEqual), _binary(raw.BitwiseXor)))
register("not")(_logic(_unary(raw.LogicalNot), _unary(raw.Invert)))


# Identities: they speak of placement, memory, names or derivatives.


@register("copy", "copy_p", "name", "stop_gradient")
def _identity(ctx: Context, x: tf.Tensor, **_: Any) -> tf.Tensor:
    return x


@register("device_put", "optimization_barrier")
def _identities(ctx: Context, *xs: tf.Tensor, **_: Any) -> tuple[tf.Tensor, ...]:
    return xs


# Complex numbers and their parts.


@register("complex")
def _complex(ctx: Context, real: tf.Tensor, imag: tf.Tensor) -> tf.Tensor:
    return tf.complex(real, imag)


@register("real")
def _real(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return tf.math.real(x)


@register("imag")
def _imag(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return tf.math.imag(x)


@register("conj")
def _conj(ctx: Context, x: tf.Tensor, *, input_dtype: Any) -> tf.Tensor:
    return tf.math.conj(x) if x.dtype.is_complex else tf.complex(x, -tf.zeros_like(x))


# Products and powers.


@register("mul")
def _mul(ctx: Context, x: tf.Tensor, y: tf.Tensor, *, out_dtype: Any = None) -> tf.Tensor:
    if out_dtype is not None:
        x, y = tf.cast(x, ctx.out), tf.cast(y, ctx.out)
    return _product(ctx, x, y)


_product = in_kernel_dtype(_binary(raw.Mul))


@register("integer_pow")
def _integer_pow(ctx: Context, x: tf.Tensor, *, y: int) -> tf.Tensor:
    power = functools.partial(_power, exponent=y)
    return in_kernel_dtype(power)(ctx, x)


def _power(x: tf.Tensor, exponent: int) -> tf.Tensor:
    """By squaring and multiplying, as JAX does; tf.pow would take logarithms."""
    if exponent == 0:
        return tf.ones_like(x)
    result = None
    for bit in reversed(f"{abs(exponent):b}"):
        if bit == "1":
            result = x if result is None else raw.Mul(x=result, y=x)
        x = raw.Square(x=x) if bit else x
    return result if exponent > 0 else raw.Reciprocal(x=result)


@register("pow")
def _pow(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _float_power(ctx, x, tf.cast(y, x.dtype))


_float_power = in_kernel_dtype(_binary(raw.Pow))


@register("cbrt")
def _cbrt(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(_cube_root, {**_KERNEL_DTYPES, **_HALVES})(ctx, x)


_HALVES = {"bfloat16": tf.float32, "float16": tf.float32}


def _cube_root(x: tf.Tensor) -> tf.Tensor:
    # tf.pow takes no root of a negative number; a zero keeps its sign, NaN and infinity stay.
    root = tf.pow(tf.abs(x), tf.constant(1 / 3, x.dtype))
    return tf.where(x < 0, -root, tf.where(tf.equal(x, 0), x, root))


@register("exp2")
def _exp2(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(lambda x: raw.Exp(x=x * tf.constant(math.log(2), x.dtype)))(ctx, x)


@register("log2")
def _log2(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(lambda x: raw.Log(x=x) / tf.constant(math.log(2), x.dtype))(ctx, x)


@register("one_minus_square")
def _one_minus_square(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(lambda x: (1 + x) * (1 - x))(ctx, x)


@register("polynomial")
def _polynomial(
    ctx: Context, x: tf.Tensor, *coefficients: tf.Tensor, unroll: int | None = None
) -> tf.Tensor:
    # By Horner's rule, from the coefficient of the highest power, which comes last.
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return tf.broadcast_to(result, ctx.shape(ctx.avals_out[0].shape))


# Order.


@register("max")
def _max(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
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
    return in_kernel_dtype(functools.partial(_with_nan, op))(ctx, x, y)


def _with_nan(op: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`op(x, y)`, NaN where one of them is: TensorFlow's XLA keeps a NaN of the first alone."""
    if not x.dtype.is_floating or _free_of_nan(y):
        return op(x=x, y=y)
    if _free_of_nan(x):
        return op(x=y, y=x)
    return tf.where(tf.math.is_nan(y), y, op(x=x, y=y))


def _free_of_nan(x: tf.Tensor) -> bool:
    """Whether x is known to hold no NaN; eager kernels need no such care."""
    if tf.executing_eagerly():
        return True
    value = tf.get_static_value(x)
    return value is not None and not np.isnan(value).any()


def _lexicographic(beats: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """By real part, among equals by imaginary part."""
    x_real, y_real = tf.math.real(x), tf.math.real(y)
    imag_wins = beats(x=tf.math.imag(x), y=tf.math.imag(y))
    x_wins = tf.where(tf.equal(x_real, y_real), imag_wins, beats(x=x_real, y=y_real))
    return tf.where(x_wins, x, y)


@register("clamp")
def _clamp(ctx: Context, low: tf.Tensor, x: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    # In this order, so that `high` wins where it is below `low`.
    return _min(ctx, _max(ctx, x, low), high)


@register("eq_to")
def _eq_to(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _in_total_order(raw.Equal, x, y)


@register("lt_to")
def _lt_to(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _in_total_order(raw.Less, x, y)


@register("le_to")
def _le_to(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _in_total_order(raw.LessEqual, x, y)


def _in_total_order(op: Function, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_floating:
        x, y = _rank(x), _rank(y)
    wider = _ORDERED.get(x.dtype.name, x.dtype)
    return op(x=tf.cast(x, wider), y=tf.cast(y, wider))


_BITS = {1: tf.int8, 2: tf.int16, 4: tf.int32, 8: tf.int64}


def _rank(x: tf.Tensor) -> tf.Tensor:
    """Integers in the order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    bits = tf.bitcast(x, _BITS[x.dtype.size])
    magnitude = tf.constant(bits.dtype.max, bits.dtype)
    flipped = raw.BitwiseXor(x=bits, y=magnitude)
    zero = tf.zeros_like(bits)
    if bits.dtype in (tf.int8, tf.int16):
        return tf.where(raw.Less(x=bits, y=zero), flipped, bits)
    return tf.where(bits < zero, flipped, bits)


@register("sign")
def _sign(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_unsigned:
        one = tf.constant(1, _KERNEL_DTYPES.get(x.dtype.name, x.dtype))
        return tf.cast(raw.Minimum(x=tf.cast(x, one.dtype), y=one), x.dtype)
    return in_kernel_dtype(_sign_of)(ctx, x)


def _sign_of(x: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_integer:
        return raw.Sign(x=x)
    # TensorFlow's kernel drops the sign of -0.
    return tf.where(tf.equal(x, 0), x, raw.Sign(x=x))


@register("round")
def _round(ctx: Context, x: tf.Tensor, *, rounding_method: Any) -> tf.Tensor:
    to_even = int(rounding_method) == 1
    return in_kernel_dtype(_unary(raw.Rint) if to_even else _round_half_away)(ctx, x)


def _round_half_away(x: tf.Tensor) -> tf.Tensor:
    # tf.round rounds halves to even. Only halves differ, and for them x + 0.5 is exact.
    rounded = raw.Round(x=x)
    half = tf.constant(0.5, x.dtype)
    is_half = tf.equal(tf.abs(x - rounded), half)
    return tf.where(is_half, x + raw.Sign(x=x) * half, rounded)


@register("nextafter")
def _nextafter(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if x.dtype in (tf.float32, tf.float64):
        return raw.NextAfter(x1=x, x2=y)
    return _next_bits(x, y)


def _next_bits(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The next number in the order of bit patterns, sign and magnitude."""
    wide_x, wide_y = tf.cast(x, tf.float32), tf.cast(y, tf.float32)
    stored = tf.uint8 if x.dtype.size == 1 else tf.int16
    bits = tf.cast(tf.bitcast(x, stored), tf.int32)
    outwards = tf.equal(wide_y > wide_x, wide_x > 0)
    stepped = bits + tf.where(outwards, 1, -1)
    smallest = tf.where(wide_y > 0, 1, 1 - 2 ** (8 * x.dtype.size - 1))
    stepped = tf.where(tf.equal(wide_x, 0), smallest, stepped)
    result = tf.bitcast(tf.cast(stepped, stored), x.dtype)
    result = tf.where(tf.equal(wide_x, wide_y), y, result)
    nan = tf.math.is_nan(wide_x) | tf.math.is_nan(wide_y)
    return tf.where(nan, tf.cast(wide_x + wide_y, x.dtype), result)


# Integer division, remainder, shifts and counts of bits.


@register("div")
def _div(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(_quotient)(ctx, x, y)


def _quotient(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if not x.dtype.is_integer:
        return raw.RealDiv(x=x, y=y)
    if _never(0, y):
        return raw.TruncateDiv(x=x, y=y)
    # JAX's quotient by zero has all bits set; TensorFlow's kernels raise.
    by_zero = raw.Equal(x=y, y=tf.zeros_like(y))
    quotient = raw.TruncateDiv(x=x, y=tf.where(by_zero, tf.ones_like(y), y))
    return tf.where(by_zero, raw.Invert(x=tf.zeros_like(y)), quotient)


@register("rem")
def _rem(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return in_kernel_dtype(_remainder, {**_KERNEL_DTYPES, **_HALVES, **_REMAINDER})(ctx, x, y)


_REMAINDER = {
    "int8": tf.int32,
    "int16": tf.int32,
    "uint8": tf.int32,
    "uint16": tf.int32,
    "uint32": tf.int64,
}


def _remainder(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if x.dtype == tf.uint64:
        # The remainder by zero is x, and the quotient's value does not matter.
        return x - _quotient(x, y) * y
    if x.dtype.is_floating or _never(0, y):
        return raw.TruncateMod(x=x, y=y)
    by_zero = tf.equal(y, 0)
    return tf.where(by_zero, x, raw.TruncateMod(x=x, y=tf.where(by_zero, tf.ones_like(y), y)))


def _never(value: int, x: tf.Tensor) -> bool:
    """Whether all elements of x are known, when the graph is made, to differ from `value`."""
    known = None if tf.executing_eagerly() else tf.get_static_value(x)
    return known is not None and not (known == value).any()


@register("shift_left")
def _shift_left(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _shift(raw.LeftShift, x, y)


@register("shift_right_logical")
def _shift_right_logical(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _shift(raw.RightShift, x, y, to=_UNSIGNED)


@register("shift_right_arithmetic")
def _shift_right_arithmetic(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _shift(raw.RightShift, x, y, to=_SIGNED, fill=True)


def _shift(
    op: Function,
    x: tf.Tensor,
    y: tf.Tensor,
    to: Mapping[str, tf.DType] = _KERNEL_DTYPES,
    fill: bool = False,
) -> tf.Tensor:
    """Shifts x, seen as a dtype of table `to`, by y; by all of its bits or more: zeros or signs."""
    dtype = x.dtype
    bits = dtype.size * 8
    if dtype.name in NARROW_INTEGERS:
        bits = int(dtype.name[-1])
        unsigned = tf.cast(x, tf.int32) & (2**bits - 1)
        x = unsigned - 2**bits * (unsigned >> (bits - 1)) if fill else unsigned
        y = tf.cast(y, tf.int32) & 2**31 - 1
    else:
        x, y = (tf.cast(v, to.get(dtype.name, dtype)) for v in (x, y))
    known = None if tf.executing_eagerly() else tf.get_static_value(y)
    if known is not None and ((known >= 0) & (known < bits)).all():
        return tf.cast(op(x=x, y=y), dtype)
    top = tf.constant(bits - 1, y.dtype)
    outside = raw.Greater(x=y, y=top)
    if not y.dtype.is_unsigned:
        outside = raw.LogicalOr(x=outside, y=raw.Less(x=y, y=tf.zeros_like(y)))
    if fill:
        return tf.cast(op(x=x, y=tf.where(outside, top, y)), dtype)
    return tf.cast(tf.where(outside, tf.zeros_like(x), op(x=x, y=y)), dtype)


@register("population_count")
def _population_count(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    if x.dtype.name in NARROW_INTEGERS:
        bits = int(x.dtype.name[-1])
        return tf.cast(raw.PopulationCount(x=tf.cast(x, tf.int32) & (2**bits - 1)), x.dtype)
    return tf.cast(raw.PopulationCount(x=x), x.dtype)


@register("clz")
def _clz(ctx: Context, x: tf.Tensor) -> tf.Tensor:
    """Leading zeros: what is left after all bits below the highest are set."""
    dtype = x.dtype
    bits = dtype.size * 8
    if dtype.name in NARROW_INTEGERS:
        bits = int(dtype.name[-1])
        x = tf.cast(x, tf.int32) & (2**bits - 1)
    else:
        x = tf.cast(x, _UNSIGNED.get(dtype.name, dtype))
    shift = 1
    while shift < bits:
        x |= raw.RightShift(x=x, y=tf.constant(shift, x.dtype))
        shift *= 2
    return tf.cast(bits - tf.cast(raw.PopulationCount(x=x), tf.int32), dtype)
