"""Elementwise arithmetic, comparison and logic; identities.

The tables at the top list the primitives that are one TensorFlow op; `in_kernel_dtype` casts if the
op has no kernel for a dtype. The primitives below need several ops. integers.py has division,
shifts and bits; complex_math.py has complex numbers at infinities, NaNs and branch cuts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context, op_type_of
from jax2tf._src.lowering.emit import complex_math, float_bits, known_values, truth_values
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import (
    COMPARED,
    COMPUTED,
    FLOAT8,
    IN_FLOAT32,
    carrier_of,
)
from jax2tf._src.lowering.emit.elementwise import (
    FUNCTIONS,
    IN_ONE_OP,
    Function,
    at_least,
    at_most,
    beside_a_constant,
    binary,
    by_rows,
    exponential,
    in_kernel_dtype,
    negative,
    of_operands,
    or_complex,
    unary,
)
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import register, register_table
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Param


def _larger(x: Tensor, y: Tensor) -> Tensor:
    # Form: smaller_for_larger.
    return raw.Less(x=y, y=x) if x.dtype.is_floating else raw.Greater(x=x, y=y)


_COMPARISONS = {
    "ge": at_least,
    "le": at_most,
}
_STRICT = {"gt": _larger, "lt": binary(raw.Less)}

_IN_CONTEXT = frozenset({"abs", "exp", "is_finite"})
register_table(
    of_operands(
        {name: f for name, f in FUNCTIONS.items() if name not in IN_ONE_OP.keys() | _IN_CONTEXT}
    )
)
for _name, _function in IN_ONE_OP.items():
    register_table(of_operands({_name: _function}), op=_name.capitalize())


def _unless_known(op: Function, known: Callable[..., Tensor | None], turned: bool) -> Function:
    """A comparison that is left out if its result is known."""
    plain = in_kernel_dtype(op, COMPARED)

    def compare(x: Tensor, y: Tensor) -> Tensor:
        result = None if ops.executing_eagerly() else known(*((y, x) if turned else (x, y)))
        return plain(x, y) if result is None else result

    return compare


register_table(
    of_operands(
        {
            **{
                name: _unless_known(f, truth_values.at_most, turned=name == "ge")
                for name, f in _COMPARISONS.items()
            },
            **{
                name: _unless_known(f, truth_values.less, turned=name == "gt")
                for name, f in _STRICT.items()
            },
        }
    )
)

_exp, _log = (FUNCTIONS[name] for name in ("exp", "log"))
_add = in_kernel_dtype(binary(raw.AddV2))
_difference = in_kernel_dtype(binary(raw.Sub))
_product = in_kernel_dtype(binary(raw.Mul))
_square = in_kernel_dtype(unary(raw.Square))
_quotient = in_kernel_dtype(binary(raw.RealDiv))
_reciprocal = in_kernel_dtype(or_complex(unary(raw.Reciprocal), complex_math.reciprocal))


@register("sub")
@known_values.without(known_values.zero)
def _sub(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    return beside_a_constant(ctx, _difference, x, y)


@register("add", "add_any")
@known_values.without(known_values.negative_zero, known_values.negative_zero)
def _sum(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    return _joined_with_inverse(ctx, _add, x, y, "Neg")


def _joined_with_inverse(
    ctx: Context, function: Function, x: Tensor, y: Tensor, inverse: str
) -> Tensor:
    """x + y or x * y, which LiteRT's converter turns into x - y or x / y for inverted operands."""
    if not ctx.has(Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE):
        return function(x, y)
    of_x, of_y = map(op_type_of, (x, y))
    if of_x == inverse:
        return beside_a_constant(ctx, function, y, x)
    return beside_a_constant(ctx, function, x, y) if of_y == inverse else function(x, y)


@register("neg")
def _neg(ctx: Context, x: Tensor) -> Tensor:
    return _product(x, _scalar(-1, x.dtype)) if _is_product(ctx, x) else negative(x)


@register("square")
def _squared(ctx: Context, x: Tensor) -> Tensor:
    return _product(x, x) if _is_product(ctx, x) else _square(x)


def _is_product(ctx: Context, x: Tensor) -> bool:
    """Whether a square or a negation has to be a product, for LiteRT's converter."""
    return x.dtype == dtypes.float32 and ctx.has(Quirk.NO_INTEGER_SQUARE)


# Logic: TensorFlow has different ops for bools and for bits.


def _logic(logical: Function, bitwise: Function) -> Function:
    bits = in_kernel_dtype(bitwise)

    def either(*operands: Tensor) -> Tensor:
        return logical(*operands) if operands[0].dtype == dtypes.bool_ else bits(*operands)

    return either


register_table(
    of_operands(
        {
            "and": _logic(binary(raw.LogicalAnd), binary(raw.BitwiseAnd)),
            "or": _logic(binary(raw.LogicalOr), binary(raw.BitwiseOr)),
            "xor": _logic(binary(raw.NotEqual), binary(raw.BitwiseXor)),
            "not": _logic(unary(raw.LogicalNot), unary(raw.Invert)),
        }
    )
)


# Identities: they concern placement, memory, names or derivatives.


@register("copy", "layout_constraint", "name", "stop_gradient", "xla_metadata_value")
def _identity(ctx: Context, x: Tensor, **_: object) -> Tensor:
    return x


@register("device_put")
def _identities(ctx: Context, *xs: Tensor, **_: object) -> tuple[Tensor, ...]:
    return xs


# Complex numbers and their parts.

register_table(of_operands({"complex": ops.complex, "real": ops.real, "imag": ops.imag}))


@register("conj")
def _conj(ctx: Context, x: Tensor, *, input_dtype: np.dtype | None = None) -> Tensor:
    return ops.conj(x) if x.dtype.is_complex else ops.complex(x, ops.zeros_like(x))


# Products, quotients and powers.


@register("mul")
@known_values.without(known_values.one, known_values.one)
def _mul(ctx: Context, x: Tensor, y: Tensor, *, out_dtype: np.dtype | None = None) -> Tensor:
    if out_dtype is not None:
        x, y = (cast(operand, ctx.out) for operand in (x, y))
    if x.dtype.is_complex and x.shape.rank != y.shape.rank:
        x, y = _of_one_shape(ctx, x, y)
    product = functools.partial(by_rows, ctx, _product)
    return _joined_with_inverse(ctx, product, x, y, "Reciprocal")


def _of_one_shape(ctx: Context, *operands: Tensor) -> list[Tensor]:
    """Broadcasts scalars in graphs, because Grappler would otherwise multiply them last.

    For infinite complex numbers, that order changes the result. Not every target broadcasts complex
    numbers.
    """
    if ops.executing_eagerly() or not ctx.wants("BroadcastTo", operands[0].dtype.name):
        return list(operands)
    shape = ctx.vector(ctx.avals_out[0].shape)
    return [x if x.shape.rank else raw.BroadcastTo(input=x, shape=shape) for x in operands]


@register("integer_pow")
def _integer_pow(ctx: Context, x: Tensor, *, y: int) -> Tensor:
    """Squares and multiplies, as JAX does; tf.pow would take logarithms."""
    if y == 0:
        return ops.cast(ops.ones_like(x, COMPUTED.get(x.dtype)), x.dtype)
    result: Any = None
    exponent = abs(y)
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
        # LiteRT's converter turns a Reciprocal into a quotient.
        return beside_a_constant(ctx, _quotient, ops.constant(1, x.dtype), result)
    return _reciprocal(result)


@register("pow")
def _pow(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    return _power(x, cast(y, x.dtype))


_power = in_kernel_dtype(or_complex(binary(raw.Pow), complex_math.power))


@register("abs")
def _abs(ctx: Context, x: Tensor) -> Tensor:
    if x.dtype == dtypes.int32 and ctx.has(Quirk.MAGNITUDES_AS_FLOATS):
        return raw.Maximum(x=x, y=negative(x))
    return FUNCTIONS["abs"](ctx.to_abs(x))


@register("cbrt")
def _cbrt(ctx: Context, x: Tensor) -> Tensor:
    return in_kernel_dtype(functools.partial(_cube_root, ctx), IN_FLOAT32)(x)


def _cube_root(ctx: Context, x: Tensor) -> Tensor:
    # tf.pow takes no root of a negative number, and 1/3 is not exact: one step of Newton's method
    # corrects that. Zero, infinity and NaN are their own roots.
    size = ops.abs(ctx.to_abs(x))
    root = ops.pow(size, ops.constant(1 / 3, x.dtype))
    root -= (root - size / (root * root)) / 3
    root = select(ctx, x < 0, -root, root)
    return select(ctx, ops.is_finite(x) & ops.not_equal(x, 0), root, x)


register("exp")(exponential)


@register("is_finite")
def _is_finite(ctx: Context, x: Tensor) -> Tensor:
    if ctx.has(Quirk.INFINITE_SUBNORMALS):
        return raw.Less(x=raw.Abs(x=ctx.to_abs(x)), y=math.inf)
    return FUNCTIONS["is_finite"](x)


@register("exp2")
def _exp2(ctx: Context, x: Tensor) -> Tensor:
    return exponential(ctx, _product(x, _scalar(math.log(2), x.dtype)))


def _log2(x: Tensor) -> Tensor:
    return _product(_log(x), _scalar(1 / math.log(2), x.dtype))


def _logistic(x: Tensor) -> Tensor:
    if x.dtype not in FLOAT8:
        return raw.Sigmoid(x=x)
    return _reciprocal(_add(_scalar(1, x.dtype), _exp(negative(x))))


def _one_minus_square(x: Tensor) -> Tensor:
    one = _scalar(1, x.dtype)
    return _product(_add(one, x), _add(one, negative(x)))


def _scalar(value: float, dtype: DType) -> Tensor:
    """A constant, created in the carrier of `dtype`, because few ops create float8 or int4."""
    return ops.cast(ops.constant(value, carrier_of(COMPUTED, dtype)), dtype)


register_table(
    of_operands(
        {
            "log2": or_complex(_log2, complex_math.log2),
            "logistic": or_complex(_logistic, complex_math.logistic),
            "one_minus_square": _one_minus_square,
        }
    )
)


@register("polynomial")
def _polynomial(
    ctx: Context, x: Tensor, *coefficients: Tensor, unroll: int | None = None
) -> Tensor:
    # Horner's rule; the coefficient of the highest power comes last.
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = _add(_product(result, x), coefficient)
    return result


# Order.


@register("sign")
def _sign(ctx: Context, x: Tensor) -> Tensor:
    if ctx.avals_in[0].dtype.kind == "u" or x.dtype.is_unsigned:
        return in_kernel_dtype(_one_at_most)(x)
    of_real = functools.partial(_sign_of_real, ctx)
    return in_kernel_dtype(or_complex(of_real, complex_math.sign))(x)


def _one_at_most(x: Tensor) -> Tensor:
    return raw.Minimum(x=x, y=ops.constant(1, x.dtype))


def _sign_of_real(ctx: Context, x: Tensor) -> Tensor:
    if x.dtype.is_integer:
        return raw.Sign(x=x)
    # TensorFlow's kernel drops the sign of -0.
    return select(ctx, ops.equal(x, 0), x, raw.Sign(x=x))


@register("round")
def _round(ctx: Context, x: Tensor, *, rounding_method: Param) -> Tensor:
    to_even = int(rounding_method) == int(jax.lax.RoundingMethod.TO_NEAREST_EVEN)
    half_away = functools.partial(_round_half_away, ctx)
    return in_kernel_dtype(unary(raw.Round) if to_even else half_away)(x)


def _round_half_away(ctx: Context, x: Tensor) -> Tensor:
    # tf.round rounds halves to even. Only halves differ, and for them x + 0.5 is exact.
    rounded = raw.Round(x=x)
    half = ops.constant(0.5, x.dtype)
    is_half = ops.equal(ops.abs(x - rounded), half)
    return select(ctx, is_half, x + raw.Sign(x=x) * half, rounded)


@register("nextafter")
def _nextafter(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype in (dtypes.float32, dtypes.float64):
        return raw.NextAfter(x1=x, x2=y)
    if x.dtype in FLOAT8:
        bits, back = float_bits.float8_to_bytes(x), float_bits.bytes_to_float8
        of_bits: Function = functools.partial(back, ctx, dtype=x.dtype)
    else:
        bits, of_bits = ops.bitcast(x, dtypes.uint16), lambda b: ops.bitcast(b, x.dtype)
    return _neighbour(x, y, bits, of_bits)


def _neighbour(x: Tensor, y: Tensor, bits: Tensor, of_bits: Function) -> Tensor:
    """The next number after x towards y: counts the bits of the magnitude up or down."""
    wide_x, wide_y = ops.cast(x, dtypes.float32), ops.cast(y, dtypes.float32)
    smallest = ops.where(wide_y > 0, 1, 1 + 2 ** (8 * x.dtype.size - 1))
    outwards = ops.equal(wide_y > wide_x, wide_x > 0)
    stepped = ops.cast(bits, dtypes.int32) + ops.where(outwards, 1, -1)
    stepped = ops.where(ops.equal(wide_x, 0), smallest, stepped)
    result = ops.cast(of_bits(ops.cast(stepped, bits.dtype)), dtypes.float32)
    # y itself, if x equals y or y is NaN.
    result = ops.where(ops.equal(wide_x, wide_y) | ops.is_nan(wide_y), wide_y, result)
    return ops.cast(ops.where(ops.is_nan(wide_x), wide_x, result), x.dtype)
