"""Computes a dtype that the target lacks in another dtype, its carrier.

uint32 is computed on the bits of int32, int8 in int32. The same primitive is used if its result is
correct when cast back: it moves elements, or wraps around alike at every width. uint32.py has the
other primitives of uint32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.legalize import int16, uint32
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Atom, aval_of

# Gets the equation and the operands in their carrier dtypes; returns the results in theirs.
Function = Callable[..., Sequence[jax.Array]]

# Every target moves int8, uint8 and bool, except by ops that the target lacks.
_BYTES = frozenset({"int8", "uint8", "bool"})
_OPS_OF_MOVES = {
    lax.rev_p: ("ReverseV2",),
    lax.pad_p: ("Pad", "PadV2"),
    **dict.fromkeys(named("tile"), ("Tile",)),
}
# Scatters, with functions that bind them again: the param update_jaxpr is traced for one dtype.
_UPDATES: dict[jex_core.Primitive, Callable[..., jax.Array]] = {
    lax.scatter_p: lax.scatter,
    lax.scatter_add_p: lax.scatter_add,
    lax.scatter_max_p: lax.scatter_max,
    lax.scatter_min_p: lax.scatter_min,
    lax.scatter_mul_p: lax.scatter_mul,
    lax.scatter_sub_p: lax.scatter_sub,
}
# Some engines compute in float16, but lack these functions in float16 or compute them wrongly.
OF_FEW_ENGINES = (
    traits.WINDOWS
    | (frozenset(_UPDATES) - {lax.scatter_mul_p})
    | frozenset(
        named(
            "approx_top_k",
            "atan2",
            "cbrt",
            "cumlogsumexp",
            "cummax",
            "cummin",
            "eq_to",
            "erf",
            "expm1",
            "integer_pow",
            "is_finite",
            "le_to",
            "log1p",
            "lt_to",
            "pad",
            "rem",
            "sign",
            "top_k",
        )
    )
)
_UPDATES_IN_ORDER = (lax.scatter_max_p, lax.scatter_min_p)
# These round more than once, or have their own function.
_ROUNDING = frozenset(named("cumprod", "cumsum", "integer_pow"))
_OF_FLOATS = (
    traits.MOVES | traits.WRAPS | traits.WIDENS | traits.FLOATS | traits.WINDOWS
) - _ROUNDING
_OF_UINT32 = traits.MOVES | traits.WRAPS | traits.READS_BITS
_OF_INT32 = traits.MOVES | traits.WRAPS | traits.WIDENS
_EXTREMES = (lax.reduce_max_p, lax.reduce_min_p)


def function_of(
    eqn: jex_core.JaxprEqn, carriers: Mapping[str, str], target: Target
) -> Function | None:
    """Returns the function for an equation, or None; `carriers` maps dtypes to their carriers."""
    held = {name for name, carrier in carriers.items() if name != carrier}
    primitive = eqn.primitive
    if held == {"uint32"}:
        if primitive in traits.MULTIPLIES and not target.takes_arrays("uint32"):
            is_of_two = primitive in (lax.mul_p, lax.square_p)
            return uint32.exact_product if is_of_two else None
        of_bits = uint32.FUNCTIONS.get(primitive)
        if of_bits is not None:
            return of_bits
        if _is_update(eqn):
            return _updated_in_order if primitive in _UPDATES_IN_ORDER else _updated
        return _same if primitive in _OF_UINT32 else None
    if "uint32" in held or _is_moved_as_it_is(primitive, held, target):
        return None
    if all(carriers[name].startswith("float") for name in held):
        if primitive is lax.integer_pow_p:
            return _power_of_float
        if primitive in (lax.conv_general_dilated_p, lax.dot_general_p):
            return _product
        if _is_update(eqn):
            return _updated
        if primitive is lax.convert_element_type_p:
            return _is_not_zero if _is_lacking_to_bool(eqn, target) else None
        return _same if primitive in _OF_FLOATS else None
    if all(carriers[name] == "int32" for name in held):
        if _is_update(eqn):
            return _updated
        if primitive in traits.READS_BITS:
            return _of_bits_in_int32
        if primitive is lax.convert_element_type_p:
            return _is_not_zero if _is_lacking_to_bool(eqn, target) else None
        if primitive in _EXTREMES:
            return _extreme_in_int32
        return _same if primitive in _OF_INT32 else None
    return None


def with_results_in_range(
    function: Function, eqn: jex_core.JaxprEqn, *operands: jax.Array
) -> Sequence[jax.Array]:
    """Calls the function and brings its 16-bit results into the range of their dtypes."""
    results = zip(eqn.outvars, function(eqn, *operands), strict=True)
    return [int16.in_range(x, aval_of(v).dtype) for v, x in results]


def _is_moved_as_it_is(primitive: jex_core.Primitive, held: set[str], target: Target) -> bool:
    moves = _OPS_OF_MOVES.get(primitive, ())
    is_lacking = any(not target.takes(op, name) for op in moves for name in held)
    return primitive in traits.MOVES and held <= _BYTES and not is_lacking


def _extreme_in_int32(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Reduces in int32. Without elements, the result is the end of the narrow dtype's range."""
    (result,) = _same(eqn, *operands)
    aval, ends = aval_of(eqn.invars[0]), np.iinfo(aval_of(eqn.outvars[0]).dtype)
    sizes = [aval.shape[axis] for axis in eqn.params["axes"]]
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return [result]
    limit, end = (lax.max, ends.min) if eqn.primitive is lax.reduce_max_p else (lax.min, ends.max)
    return [limit(result, lax.full_like(result, end))]


def _of_bits_in_int32(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Computes a function of the bits of a narrow dtype in int32, without the bits above.

    An arithmetic right shift gets signed numbers, every other function gets unsigned numbers.
    """
    x, *others = operands
    dtype = aval_of(eqn.invars[0]).dtype
    bits = 8 * dtype.itemsize
    keeps_sign = eqn.primitive is lax.shift_right_arithmetic_p
    if keeps_sign and dtype.kind == "u":
        x = lax.select(x >= 2 ** (bits - 1), x - 2**bits, x)
    elif not keeps_sign and dtype.kind == "i":
        x = lax.bitwise_and(x, np.int32(2**bits - 1))
    result = eqn.primitive.bind(x, *others, **eqn.params)
    return [result - (32 - bits) if eqn.primitive is lax.clz_p else result]


def _same(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Applies the same primitive to the operands in their carrier dtypes."""
    first = traits.POSITIONS.get(eqn.primitive, len(operands))
    operands = tuple(
        uint32.position(x) if i >= first and _is_uint32(eqn.invars[i]) else x
        for i, x in enumerate(operands)
    )
    params = dict(eqn.params)
    if "index_dtype" in params:
        params["index_dtype"] = np.dtype(np.int32)
    if params.get("out_dtype") is not None:
        return [lax.mul(*operands)]
    return jaxprs.bind(eqn.primitive, operands, params)


def _is_update(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the equation is in `_UPDATES`, and is not `x.at[...].apply(function)`."""
    applies = eqn.primitive is lax.scatter_p and eqn.params["update_jaxpr"] is not None
    return eqn.primitive in _UPDATES and not applies


def _updated(
    eqn: jex_core.JaxprEqn, x: jax.Array, indices: jax.Array, updates: jax.Array
) -> Sequence[jax.Array]:
    """Scatters the operands in their carrier dtypes."""
    if _is_uint32(eqn.invars[1]):
        indices = uint32.position(indices)
    params = {name: eqn.params[name] for name in _PARAMS_OF_UPDATES}
    return [_UPDATES[eqn.primitive](x, indices, updates, **params)]


def _updated_in_order(
    eqn: jex_core.JaxprEqn, x: jax.Array, indices: jax.Array, updates: jax.Array
) -> Sequence[jax.Array]:
    """Computes scatter_max and scatter_min of uint32 as int32 numbers of the same order."""
    (result,) = _updated(eqn, uint32.flipped(x), indices, uint32.flipped(updates))
    return [uint32.flipped(result)]


_PARAMS_OF_UPDATES = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")


def _product(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Computes a product or convolution in the carrier dtype of the operands."""
    params = {**eqn.params, "preferred_element_type": operands[0].dtype}
    return [eqn.primitive.bind(*operands, **params)]


def _is_lacking_to_bool(eqn: jex_core.JaxprEqn, target: Target) -> bool:
    """Whether the equation casts to bool from a dtype that the target does not compare."""
    old, new = (aval_of(v).dtype for v in (eqn.invars[0], eqn.outvars[0]))
    return bool(new == np.bool_) and not target.takes("NotEqual", str(old))


def _is_not_zero(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    return [x != 0]


def _power_of_float(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Squares and multiplies. It rounds each product to the narrow dtype, which may overflow."""
    aval = aval_of(eqn.outvars[0])

    def rounded(product: jax.Array) -> jax.Array:
        return lax.convert_element_type(lax.convert_element_type(product, aval.dtype), x.dtype)

    result, exponent = jax.numpy.ones_like(x), abs(eqn.params["y"])
    while exponent:
        if exponent & 1:
            result = rounded(result * x)
        exponent >>= 1
        if exponent:
            x = rounded(x * x)
    return [result if eqn.params["y"] >= 0 else 1 / result]


def _is_uint32(atom: Atom) -> bool:
    return bool(aval_of(atom).dtype == np.uint32)
