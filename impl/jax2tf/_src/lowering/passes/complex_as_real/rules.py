"""Has a rule for each primitive that computes complex numbers as pairs of real numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.complex_as_real import fourier, inverse_functions, pair, scatters
from jax2tf._src.lowering.passes.complex_as_real.pair import Pair, Value
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Array, Param, aval_of

# A rule gets the equation and its operands, with a Pair for each complex array. It returns the
# results, or None if it does not support the params.
Rule = Callable[..., Sequence[Value] | None]


def rule_of(primitive: jex_core.Primitive) -> Rule | None:
    """Returns the rule of a primitive for pairs, or None."""
    return _rules().get(primitive)


def _part_by_part(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
    """Applies a primitive that moves or adds numbers to the real and to the imaginary parts."""
    results = []
    for part in range(2):
        parts = [x[part] if isinstance(x, Pair) else x for x in operands]
        made = eqn.primitive.bind(*parts, **_params_of_part(eqn, part))
        results.append(made if eqn.primitive.multiple_results else [made])
    return [Pair(real, imag) for real, imag in zip(*results, strict=True)]


def _params_of_part(eqn: jex_core.JaxprEqn, part: int) -> dict[str, Param]:
    if eqn.primitive is not lax.gather_p:
        return eqn.params
    # By default, gather fills elements out of bounds with NaN, whose imaginary part is 0.
    fill = eqn.params["fill_value"]
    parts = (None, 0.0) if fill is None else (np.real(fill), np.imag(fill))
    return {**eqn.params, "fill_value": parts[part]}


def _on_each(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
    """Applies a primitive that returns its operands to all parts, as separate operands."""
    flat = [part for x in operands for part in (x if isinstance(x, Pair) else (x,))]
    made = iter(eqn.primitive.bind(*flat, **eqn.params))
    return [Pair(next(made), next(made)) if isinstance(x, Pair) else next(made) for x in operands]


def _as_they_are(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
    """Skips a primitive that only annotates or places arrays. It has no effect in a graph."""
    del eqn
    return operands


def _nothing(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
    """Skips a primitive without results. It has no effect in a graph."""
    del eqn, operands
    return []


def _of(function: Callable[..., Value]) -> Rule:
    """Returns the rule of a primitive whose results depend only on its operands."""

    def rule(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
        del eqn
        return [function(*operands)]

    return rule


def _complex(x: Array, y: Array) -> Pair:
    """Joins two parts. JAX's derivative of `real` passes a scalar 0.0 as the other part."""
    shape = np.shape(x) or np.shape(y)
    return Pair(*(jnp.broadcast_to(part, shape) for part in (x, y)))


def _convert(eqn: jex_core.JaxprEqn, x: Value) -> Sequence[Value]:
    dtype = eqn.params["new_dtype"]
    if not isinstance(x, Pair):
        real = lax.convert_element_type(x, pair.real_dtype(dtype))
        return [Pair(real, jnp.zeros_like(real))]
    if jnp.issubdtype(dtype, np.complexfloating):
        return [Pair(*(lax.convert_element_type(part, pair.real_dtype(dtype)) for part in x))]
    return [lax.convert_element_type(x.real, dtype)]


def _conjugate(eqn: jex_core.JaxprEqn, x: Value) -> Sequence[Value]:
    return [pair.conjugate(x) if isinstance(x, Pair) else Pair(x, jnp.zeros_like(x))]


def _power(eqn: jex_core.JaxprEqn, z: Value, w: Value) -> Sequence[Value] | None:
    if not isinstance(z, Pair):
        return None
    if not isinstance(w, Pair):
        real = lax.convert_element_type(w, z.real.dtype)
        w = Pair(real, jnp.zeros_like(real))
    return [pair.power(z, w)]


def _polynomial(eqn: jex_core.JaxprEqn, z: Pair, *coefficients: Pair) -> Sequence[Value]:
    """Evaluates by Horner's rule. The coefficient of the highest power comes last."""
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = pair.add(pair.multiply(result, z), coefficient)
    return [Pair(*(jnp.broadcast_to(part, z.real.shape) for part in result))]


def _bilinear(eqn: jex_core.JaxprEqn, z: Value, w: Value, *sizes: Array) -> Sequence[Value] | None:
    """Lowers matrix products and convolutions; `sizes` are the sizes of groups of rows."""
    preferred = eqn.params["preferred_element_type"]
    params = dict(eqn.params)
    if preferred is not None:
        params["preferred_element_type"] = pair.real_dtype(preferred)

    def product(x: Array, y: Array) -> Array:
        return eqn.primitive.bind(x, y, *sizes, **params)

    if not isinstance(z, Pair) and not isinstance(w, Pair):
        # Only the dtype that the product should have is complex.
        real = product(z, w)
        result = Pair(real, jnp.zeros_like(real))
    elif not isinstance(w, Pair):
        result = Pair(product(z.real, w), product(z.imag, w))
    elif not isinstance(z, Pair):
        result = Pair(product(z, w.real), product(z, w.imag))
    else:
        real = product(z.real, w.real) - product(z.imag, w.imag)
        result = Pair(real, product(z.real, w.imag) + product(z.imag, w.real))
    return [result if pair.is_complex(eqn.outvars[0].aval) else result.real]


def _fft(eqn: jex_core.JaxprEqn, x: Value) -> Sequence[Value] | None:
    lengths = eqn.params["fft_lengths"]
    if not fourier.is_known(lengths):
        return None
    return [fourier.transform(x, lax.FftType(eqn.params["fft_type"]), lengths)]


def _cumulative(function: Callable[[Pair, Pair], Pair], identity: float) -> Rule:
    """Returns the rule of a cumulative reduction by a function of two numbers.

    `_begun` is applied to the first element before the scan. In reverse, it is applied after the
    scan to the result that contains only the last element.
    """

    def combined(z: tuple[Array, Array], w: tuple[Array, Array]) -> tuple[Array, ...]:
        return tuple(function(Pair(*z), Pair(*w)))

    begun = functools.partial(_begun, function, identity)

    def rule(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value] | None:
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        size = z.real.shape[axis]
        if not isinstance(size, int):
            return None
        if not size:
            return [z]
        scanned = functools.partial(lax.associative_scan, combined, axis=axis, reverse=reverse)
        if reverse:
            z = Pair(*scanned(tuple(z)))
            return [
                _joined([_part(z, 0, size - 1, axis), begun(_part(z, size - 1, size, axis))], axis)
            ]
        z = _joined([begun(_part(z, 0, 1, axis)), _part(z, 1, size, axis)], axis)
        return [Pair(*scanned(tuple(z)))]

    return rule


def _begun(function: Callable[[Pair, Pair], Pair], identity: float, z: Pair) -> Pair:
    """Combines numbers with the identity, as XLA does at the start of a reduction.

    This can change complex numbers: (1 + 0j) * (inf + 2j) is partly NaN.
    """
    return function(Pair(jnp.full_like(z.real, identity), jnp.zeros_like(z.imag)), z)


def _part(z: Pair, start: int, stop: int, axis: int) -> Pair:
    return Pair(*(lax.slice_in_dim(x, start, stop, axis=axis) for x in z))


def _joined(parts: Sequence[Pair], axis: int) -> Pair:
    return Pair(*(jnp.concatenate(of_one, axis) for of_one in zip(*parts, strict=True)))


def _product(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value] | None:
    """Reduces one dimension after the other. It multiplies the first half with the second half."""
    axes = sorted(eqn.params["axes"], reverse=True)
    sizes = [z.real.shape[axis] for axis in axes]
    if not all(isinstance(size, int) for size in sizes):
        return None
    if axes and 0 not in sizes:
        first, rest = _part(z, 0, 1, axes[0]), _part(z, 1, sizes[0], axes[0])
        z = _joined([_begun(pair.multiply, 1, first), rest], axes[0])
    for axis in axes:
        z = _product_along(z, axis)
    return [z]


def _product_along(z: Pair, axis: int) -> Pair:
    size = z.real.shape[axis]
    if not size:
        shape = np.delete(z.real.shape, axis)
        return Pair(jnp.ones(shape, z.real.dtype), jnp.zeros(shape, z.real.dtype))
    while size > 1:
        half = size // 2
        halves = pair.multiply(_part(z, 0, half, axis), _part(z, half, 2 * half, axis))
        z = _joined([halves, _part(z, 2 * half, size, axis)], axis)
        size -= half
    return Pair(*(lax.squeeze(x, (axis,)) for x in z))


def _extreme(function: Callable[[Pair, Pair], Pair], identity: float) -> Rule:
    """Returns the rule of an extreme along dimensions; lax.reduce reduces both parts together."""

    def rule(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value]:
        start = Pair(*(np.asarray(x, z.real.dtype) for x in (identity, 0)))
        result: Pair = lax.reduce(z, start, function, eqn.params["axes"])
        return [result]

    return rule


def _over_numbered_axes(rule: Rule) -> Rule:
    """Limits a collective's rule to axes that vmap has numbered; it returns None for mesh axes."""

    def of_numbers(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value] | None:
        groups = eqn.params.get("axis_index_groups")
        if groups is not None or any(isinstance(axis, str) for axis in eqn.params["axes"]):
            return None
        return rule(eqn, z)

    return of_numbers


def _sum(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value]:
    return [Pair(*(jnp.sum(part, tuple(eqn.params["axes"])) for part in z))]


def _sort(eqn: jex_core.JaxprEqn, *operands: Value) -> Sequence[Value]:
    """Sorts by both parts of complex keys, the real part first."""
    num_keys = eqn.params["num_keys"]
    parts = [x if isinstance(x, Pair) else (x,) for x in operands]
    flat = [jnp.asarray(part) for of_one in parts for part in of_one]
    keys = sum(len(of_one) for of_one in parts[:num_keys])
    dimension, is_stable = eqn.params["dimension"], eqn.params["is_stable"]
    made = iter(lax.sort(flat, dimension=dimension, is_stable=is_stable, num_keys=keys))
    return [Pair(next(made), next(made)) if isinstance(x, Pair) else next(made) for x in operands]


def _scatter(function: Callable[..., Array]) -> Rule:
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")

    def rule(
        eqn: jex_core.JaxprEqn, operand: Pair, indices: Array, updates: Pair
    ) -> Sequence[Value] | None:
        if eqn.primitive is lax.scatter_p and eqn.params["update_jaxpr"] is not None:
            # This is `x.at[...].apply(function)`, which has a rule in __init__.py.
            return None
        params = {name: eqn.params[name] for name in names}
        # The primitive is not bound again: its update_jaxpr is traced for complex numbers.
        return [
            Pair(
                *(function(x, indices, u, **params) for x, u in zip(operand, updates, strict=True))
            )
        ]

    return rule


def _integer_power(eqn: jex_core.JaxprEqn, z: Pair) -> Sequence[Value]:
    return [pair.integer_power(z, eqn.params["y"])]


def _empty(eqn: jex_core.JaxprEqn) -> Sequence[Value]:
    """Makes pairs with unspecified values, as the primitive does."""
    dtype = pair.real_dtype(eqn.params["dtype"])
    return [Pair(*(eqn.primitive.bind(**{**eqn.params, "dtype": dtype}) for _ in range(2)))]


def _bitcast(eqn: jex_core.JaxprEqn, z: Value) -> Sequence[Value] | None:
    """Returns the operand. JAX bitcasts complex numbers only to their own dtype."""
    is_same = eqn.params["new_dtype"] == aval_of(eqn.invars[0]).dtype
    return [z] if is_same else None


def _iota(eqn: jex_core.JaxprEqn) -> Sequence[Value]:
    dtype = pair.real_dtype(eqn.params["dtype"])
    real = eqn.primitive.bind(**{**eqn.params, "dtype": dtype})
    return [Pair(real, jnp.zeros_like(real))]


# These primitives treat both parts alike and separately, as primitives that move elements do.
_PART_BY_PART = (
    "add",
    "add_any",
    "cumsum",
    "neg",
    "reduce_sum",
    "reduce_window_sum",
    "select_n",
    "sub",
)
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": pair.absolute,
    "acos": inverse_functions.acos,
    "acosh": inverse_functions.acosh,
    "asin": inverse_functions.asin,
    "asinh": inverse_functions.asinh,
    "atan": inverse_functions.atan,
    "atan2": inverse_functions.atan2,
    "atanh": inverse_functions.atanh,
    "clamp": pair.clamp,
    "complex": _complex,
    "cos": pair.cos,
    "cosh": pair.cosh,
    "div": pair.divide,
    "eq": pair.equal,
    # JAX has no total order of complex numbers, so eq_to compares them as eq does.
    "eq_to": pair.equal,
    "exp": pair.exp,
    "exp2": pair.exp2,
    "expm1": pair.expm1,
    "imag": lambda z: z.imag,
    "log": pair.log,
    "log1p": pair.log1p,
    "log2": pair.log2,
    "logistic": pair.logistic,
    "max": pair.maximum,
    "min": pair.minimum,
    "mul": pair.multiply,
    "one_minus_square": pair.one_minus_square,
    "ne": lambda z, w: (z.real != w.real) | (z.imag != w.imag),
    "real": lambda z: z.real,
    "rsqrt": pair.rsqrt,
    "sign": pair.sign,
    "sin": pair.sin,
    "sinh": pair.sinh,
    "sqrt": pair.sqrt,
    "square": pair.square,
    "tan": pair.tan,
    "tanh": pair.tanh,
}
_OTHERS: dict[str, Rule] = {
    "bitcast_convert_type": _bitcast,
    "conj": _conjugate,
    "conv_general_dilated": _bilinear,
    "convert_element_type": _convert,
    "cumlogsumexp": _cumulative(pair.logaddexp, -math.inf),
    "cummax": _cumulative(pair.maximum, -math.inf),
    "cummin": _cumulative(pair.minimum, math.inf),
    "cumprod": _cumulative(pair.multiply, 1),
    "dce_sink": _nothing,
    "device_put": _as_they_are,
    "dot_general": _bilinear,
    "empty": _empty,
    "empty2": _empty,
    "fft": _fft,
    "inspect_sharding": _nothing,
    "integer_pow": _integer_power,
    "iota": _iota,
    "layout_constraint": _as_they_are,
    "optimization_barrier": _on_each,
    "pmax": _over_numbered_axes(_extreme(pair.maximum, -math.inf)),
    "pmin": _over_numbered_axes(_extreme(pair.minimum, math.inf)),
    "polynomial": _polynomial,
    "pow": _power,
    "psum": _over_numbered_axes(_sum),
    "ragged_dot_general": _bilinear,
    "reduce_max": _extreme(pair.maximum, -math.inf),
    "reduce_min": _extreme(pair.minimum, math.inf),
    "reduce_prod": _product,
    "scatter": _scatter(lax.scatter),
    "scatter-add": _scatter(lax.scatter_add),
    "scatter-max": scatters.rule_of(pair.maximum),
    "scatter-min": scatters.rule_of(pair.minimum),
    "scatter-mul": scatters.rule_of(pair.multiply),
    "scatter-sub": _scatter(lax.scatter_sub),
    "sort": _sort,
    "xla_metadata_value": _as_they_are,
}


@cached
def _rules() -> dict[jex_core.Primitive, Rule]:
    by_name: dict[str, Rule] = {
        **dict.fromkeys(_PART_BY_PART, _part_by_part),
        **{name: _of(function) for name, function in _FUNCTIONS.items()},
        **_OTHERS,
    }
    moves = dict.fromkeys(traits.MOVES, _part_by_part)
    return moves | {p: rule for name, rule in by_name.items() for p in named(name)}
