"""Ops that compute each element from the elements at its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array
from jax2tf._src.stablehlo.expansions import is_arc_sine, is_of_complex_sine, is_one, log_of_sum_of
from jax2tf._src.stablehlo.magnitudes import magnitude_of
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

_lt_to_p, _le_to_p = named("lt_to", "le_to")

_UNARY: Mapping[str, Callable[[Array], Array]] = {
    "abs": lax.abs,
    "ceil": lax.ceil,
    "count_leading_zeros": lax.clz,
    "floor": lax.floor,
    "imag": lax.imag,
    "is_finite": lax.is_finite,
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "popcnt": lax.population_count,
    "real": lax.real,
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "sign": lax.sign,
}

# These have an accuracy that the writer may ask for.
_ROUNDED: Mapping[str, Callable[..., Array]] = {
    "cbrt": lax.cbrt,
    "cosine": lax.cos,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "log": lax.log,
    "log_plus_one": lax.log1p,
    "logistic": lax.logistic,
    "rsqrt": lax.rsqrt,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
}

_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "complex": lax.complex,
    "remainder": lax.rem,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "subtract": lax.sub,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
}

# Of truth values, addition is `or` and multiplication is `and`.
_BINARY_OF_BOOLS = {
    "add": (lax.add, lax.bitwise_or),
    "maximum": (lax.max, lax.bitwise_or),
    "minimum": (lax.min, lax.bitwise_and),
}

_COMPARISONS = {
    "EQ": lax.eq,
    "NE": lax.ne,
    "LT": lax.lt,
    "LE": lax.le,
    "GT": lax.gt,
    "GE": lax.ge,
}


def _register_unary(name: str, function: Callable[[Array], Array]) -> None:
    @reads(f"stablehlo.{name}")
    def rule(step: Step, x: Array) -> Array:
        return function(x)


def _register_rounded(name: str, function: Callable[..., Array]) -> None:
    @reads(f"stablehlo.{name}")
    def rule(step: Step, x: Array, *, result_accuracy: str = "") -> Array:
        if "HIGHEST" in result_accuracy:
            return function(x, accuracy=lax.AccuracyMode.HIGHEST)
        return function(x)


def _register_binary(name: str, function: Callable[[Array, Array], Array]) -> None:
    @reads(f"stablehlo.{name}")
    def rule(step: Step, x: Array, y: Array) -> Array:
        return function(x, y)


def _register_binary_of_bools(
    name: str, function: Callable[[Array, Array], Array], of_bools: Callable[[Array, Array], Array]
) -> None:
    @reads(f"stablehlo.{name}")
    def rule(step: Step, x: Array, y: Array) -> Array:
        return (of_bools if x.dtype == np.bool_ else function)(x, y)


for _name in _UNARY:
    _register_unary(_name, _UNARY[_name])
for _name in _ROUNDED:
    _register_rounded(_name, _ROUNDED[_name])
for _name in _BINARY:
    _register_binary(_name, _BINARY[_name])
for _name in _BINARY_OF_BOOLS:
    _register_binary_of_bools(_name, *_BINARY_OF_BOOLS[_name])


@reads("stablehlo.atan2")
def _atan2(step: Step, x: Array, y: Array) -> Array:
    return lax.asin(x) if is_arc_sine(step) else lax.atan2(x, y)


@reads("stablehlo.divide")
def _divide(step: Step, x: Array, y: Array) -> Array:
    """JAX writes lax.logistic as 1 / (1 + exp(-x)), whose derivative is NaN for small x."""
    of_logistic = step.chain(1, "add", "exponential", "negate")
    if of_logistic is None or not jnp.issubdtype(x.dtype, jnp.floating):
        return lax.div(x, y)
    add, _, negate = of_logistic
    ones = [step.environment.get(number) for number in (step.op.operands[0], *add.operands)]
    if sum(is_one(value) for value in ones) < 2 or not is_one(ones[0]):
        return lax.div(x, y)
    return lax.logistic(step.environment[negate.operands[0]])


@reads("stablehlo.multiply")
def _multiply(step: Step, x: Array, y: Array) -> Array:
    """JAX writes a square and a cube as products. Its square of complex numbers is another."""
    if x.dtype == np.bool_:
        return lax.bitwise_and(x, y)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.mul(x, y)
    left, right = step.op.operands
    if left == right:
        return lax.square(x)
    for place, other in ((0, right), (1, left)):
        made_by = step.definition(place)
        if (
            made_by is not None
            and made_by.name == step.op.name
            and made_by.operands == (other,) * 2
        ):
            return lax.integer_pow(y if place == 0 else x, 3)
    return lax.mul(x, y)


@reads("stablehlo.power")
def _power(step: Step, x: Array, y: Array) -> Array:
    """JAX converts an exponent of integers, and the derivative of x**0 by x is zero for these."""
    if not jnp.issubdtype(x.dtype, jnp.integer):
        converts = step.chain(1, "convert")
        before = as_array(step.environment[converts[0].operands[0]]) if converts else y
        is_array = isinstance(before, (jax.Array, np.ndarray))
        return lax.pow(x, before if is_array and before.dtype.kind in "iu" else y)
    power = jnp.power(x, y).astype(x.dtype)
    if jnp.issubdtype(x.dtype, jnp.unsignedinteger):
        return power
    # XLA rounds x ** -n to zero, and keeps that of 1 and -1.
    sign = jnp.where(y & 1, x, x * x)
    return jnp.where(y >= 0, power, jnp.where(abs(x) == 1, sign, jnp.zeros_like(x)))


@reads("stablehlo.compare")
def _compare(
    step: Step, x: Array, y: Array, *, comparison_direction: str, compare_type: str = ""
) -> Array:
    compare = _COMPARISONS[comparison_direction]
    if compare_type == "TOTALORDER" and jnp.issubdtype(x.dtype, jnp.floating):
        return _in_total_order(comparison_direction, x, y)
    return compare(x, y)


def _in_total_order(direction: str, x: Array, y: Array) -> Array:
    """Comparison where -0 is less than +0, and a NaN is less or more than all, by its sign."""
    if direction in ("GT", "GE"):
        x, y, direction = y, x, {"GT": "LT", "GE": "LE"}[direction]
    if direction in ("LT", "LE"):
        return (_lt_to_p if direction == "LT" else _le_to_p).bind(x, y)
    are_equal = lax.bitwise_and(_le_to_p.bind(x, y), _le_to_p.bind(y, x))
    return are_equal if direction == "EQ" else lax.bitwise_not(are_equal)


def ordered_bits(x: Array) -> Array:
    """Integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., +inf, NaN."""
    integers = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, integers)
    mask = jnp.asarray(np.iinfo(integers).max, integers)
    return lax.select(lax.lt(bits, lax.full_like(bits, 0)), lax.bitwise_xor(bits, mask), bits)


@reads("stablehlo.select", "chlo.broadcast_select")
def _select(step: Step, which: Array, x: Array, y: Array) -> Array:
    """What JAX writes as several ops comes back as one, which has a derivative at 0."""
    if jnp.issubdtype(x.dtype, jnp.floating) and (z := magnitude_of(step)) is not None:
        return lax.abs(z)
    if (pair := log_of_sum_of(step)) is not None:
        return jnp.logaddexp(*pair)
    if is_of_complex_sine(step):
        return _with_derivative_of_second(which, x, y)
    return lax.select(which, x, y) if which.shape in ((), x.shape) else jnp.where(which, x, y)


@jax.custom_jvp
def _with_derivative_of_second(which: Array, x: Array, y: Array) -> Array:
    return lax.select(which, x, y)


@_with_derivative_of_second.defjvp
def _tangent_of_second(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> PyTree:
    return _with_derivative_of_second(*primals), tangents[2]


@reads("stablehlo.clamp")
def _clamp(step: Step, low: Array, x: Array, high: Array) -> Array:
    return lax.clamp(low, x, high)


@reads("stablehlo.convert")
def _convert(step: Step, x: Array) -> Array:
    return lax.convert_element_type(x, step.result.dtype)


@reads("stablehlo.reduce_precision")
def _reduce_precision(step: Step, x: Array, *, exponent_bits: int, mantissa_bits: int) -> Array:
    return lax.reduce_precision(x, exponent_bits, mantissa_bits)


@reads("stablehlo.optimization_barrier")
def _optimization_barrier(step: Step, *operands: Array) -> list[Array]:
    return list(lax.optimization_barrier(operands))


@reads("stablehlo.map")
def _map(step: Step, *operands: Array, dimensions: tuple[int, ...]) -> list[Array]:
    function = step.region(0)
    flat = [jnp.reshape(x, -1) for x in operands]
    results = jax.vmap(lambda *scalars: tuple(function(*scalars)))(*flat)
    return [jnp.reshape(x, operands[0].shape) for x in results]


@reads("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize")
def _as_floats(step: Step, x: Array) -> Array:
    """The evaluator has made floats of the operand, and quantizes the result."""
    return x
