"""Computes uint32 on the bits of int32, for primitives that would see the sign of int32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src.tracing import jaxprs
from jax2tf._src.tracing.primitives import by_primitive
from jax2tf._src.util.typing import Atom, aval_of

# Gets the equation and the operands as int32; returns the results as int32.
Function = Callable[..., Sequence[jax.Array]]

_LEAST, _LARGEST = np.int32(-(2**31)), np.int32(2**31 - 1)


def position(x: jax.Array) -> jax.Array:
    """Converts an index to int32. Larger indices become the largest int32, also out of bounds."""
    return jnp.where(x < 0, _LARGEST, x)


def flipped(x: jax.Array) -> jax.Array:
    """Flips the highest bit. The int32 results have the order of the uint32 numbers.

    Flipping the bit twice gives the number back.
    """
    return x + _LEAST


def _is_of_uint32(atom: Atom) -> bool:
    return getattr(atom.aval, "dtype", None) == np.uint32


def _by_order(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Applies the same primitive to `flipped` bits, as int32."""
    given = zip(eqn.invars, operands, strict=True)
    ordered = [flipped(x) if _is_of_uint32(v) else x for v, x in given]
    params = eqn.params
    if "index_dtype" in params:
        # The result is an index. It may have the dtype uint32 too, and it is never negative.
        params = {**params, "index_dtype": np.dtype(np.int32)}
        return [eqn.primitive.bind(*ordered, **params)]
    of = zip(eqn.outvars, jaxprs.bind(eqn.primitive, ordered, params), strict=True)
    return [flipped(x) if _is_of_uint32(v) else x for v, x in of]


def _extreme(is_first: Callable[[jax.Array, jax.Array], jax.Array]) -> Function:
    def function(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
        return [jnp.where(is_first(flipped(x), flipped(y)), x, y)]

    return function


def _quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    """Divides half of x first, which fits into int32. The rest gives the lowest bit of x // y."""
    half = lax.shift_right_logical(x, np.int32(1))
    quotient = lax.div(*_of_one_shape(half, y)) * np.int32(2)
    rest = x - quotient * y
    quotient += lax.convert_element_type(flipped(rest) >= flipped(y), np.int32)
    by_large = lax.convert_element_type(flipped(x) >= flipped(y), np.int32)
    return jnp.where(y == 0, np.int32(-1), jnp.where(y < 0, by_large, quotient))


def _of_one_shape(*operands: ArrayLike) -> list[jax.Array]:
    shape = max((np.shape(x) for x in operands), key=len)
    return [jnp.broadcast_to(x, shape) for x in operands]


def _div(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    return [_quotient(x, y)]


def _rem(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    if isinstance(y, np.ndarray) and (y > 0).all() and not (y & (y - 1)).any():
        return [x & (y - np.int32(1))]
    return [x - _quotient(x, y) * y]


def _sign(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    return [lax.convert_element_type(x != 0, np.int32)]


def _converted(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Lowers convert_element_type to or from uint32."""
    avals = [aval_of(v) for v in (*eqn.invars, *eqn.outvars)]
    old, new = (aval.dtype for aval in avals)
    if old == new:
        return [x]
    if old == np.uint32:
        return [_from_bits(x, new)]
    if jnp.issubdtype(old, jnp.floating):
        return [_bits_of_float(x)]
    return [lax.convert_element_type(x, np.int32)]


def _bitcast(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Lowers bitcast_convert_type to or from uint32; int32 holds the same bits."""
    new = aval_of(eqn.outvars[0]).dtype
    return [lax.bitcast_convert_type(x, np.int32 if new == np.uint32 else new)]


def _from_bits(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if dtype == np.bool_:
        return x != 0
    if jnp.issubdtype(dtype, jnp.floating):
        # Both halves are exact, so that only the sum rounds.
        wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        low = lax.convert_element_type(x & np.int32(0xFFFF), wide)
        high = lax.convert_element_type(lax.shift_right_logical(x, np.int32(16)), wide)
        return lax.convert_element_type(high * wide.type(2**16) + low, dtype)
    converted = lax.convert_element_type(x, dtype)
    if dtype.itemsize < 8:
        return converted
    return jnp.where(x < 0, converted + np.asarray(2**32, dtype), converted)


def _bits_of_float(x: jax.Array) -> jax.Array:
    """Converts floats to uint32: rounded towards zero, clipped to its range, and 0 for NaN."""
    x = lax.convert_element_type(x, np.float32) if x.dtype.itemsize < 4 else x
    half = np.asarray(2**31, x.dtype)
    low = lax.convert_element_type(jnp.where(x > 0, jnp.where(x < half, x, 0), 0), np.int32)
    above = jnp.where(x >= half, x - half, np.asarray(0, x.dtype))
    high = lax.convert_element_type(above, np.int32) + _LEAST
    return jnp.where(x >= 2 * half, np.int32(-1), jnp.where(x >= half, high, low))


def _iota(eqn: jex_core.JaxprEqn, *sizes: jax.Array) -> Sequence[jax.Array]:
    return [eqn.primitive.bind(*sizes, **{**eqn.params, "dtype": np.dtype(np.int32)})]


def exact_product(eqn: jex_core.JaxprEqn, *factors: jax.Array) -> Sequence[jax.Array]:
    """Multiplies or squares by halves: targets that multiply in float64 do this exactly."""
    (x_high, x_low), (y_high, y_low) = _halves(factors[0], factors[-1])
    return [(x_high * y_low + x_low * y_high) * np.int32(2**16) + x_low * y_low]


def product_high(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    """Returns the upper half of the bits of the product of unsigned numbers."""
    return [upper_product(*_halves(x, y))]


def _halves(*factors: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """Returns the upper and the lower 16 bits of each factor, all in one shape."""
    half, low_half = np.int32(16), np.int32(0xFFFF)
    return [(lax.shift_right_logical(x, half), x & low_half) for x in _of_one_shape(*factors)]


def upper_product(x: tuple[jax.Array, jax.Array], y: tuple[ArrayLike, ArrayLike]) -> jax.Array:
    """Returns the upper 32 of the 64 bits of a product.

    Args:
      x: the upper and the lower 16 bits of a factor, as uint32 or as the bits of int32.
      y: the upper and the lower 16 bits of the other factor.
    """
    (x_high, x_low), (y_high, y_low) = x, y
    right = functools.partial(lax.shift_right_logical, y=np.asarray(16, x_low.dtype))
    middle = x_high * y_low + right(x_low * y_low)
    other = x_low * y_high + (middle & np.asarray(0xFFFF, x_low.dtype))
    return x_high * y_high + right(middle) + right(other)


# J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3
# (SC 2011): the rotations of Threefry-2x32 in turns of four rounds, and the key schedule's parity.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.int32(0x1BD11BDA)


def _threefry2x32(
    eqn: jex_core.JaxprEqn, key0: jax.Array, key1: jax.Array, count0: jax.Array, count1: jax.Array
) -> Sequence[jax.Array]:
    schedule = (key0, key1, key0 ^ key1 ^ _PARITY)
    x0, x1 = count0 + key0, count1 + key1
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            x0 = x0 + x1
            x1 = x0 ^ _rotated_left(x1, rotation)
        x0 = x0 + schedule[(turn + 1) % 3]
        x1 = x1 + schedule[(turn + 2) % 3] + np.int32(turn + 1)
    return [x0, x1]


def _rotated_left(x: jax.Array, bits: int) -> jax.Array:
    # The product wraps around. The two halves share no bit, so that a sum joins them.
    left = x * np.int32(2**bits)
    return left + lax.shift_right_logical(x, np.int32(32 - bits))


_BY_NAMES: Mapping[tuple[str, ...], Function] = {
    ("argmax", "argmin", "clamp", "cummax", "cummin", "ge", "gt", "le", "lt"): _by_order,
    ("le_to", "lt_to", "reduce_max", "reduce_min", "sort", "top_k"): _by_order,
    ("bitcast_convert_type",): _bitcast,
    ("convert_element_type",): _converted,
    ("div",): _div,
    ("iota",): _iota,
    ("max",): _extreme(lax.ge),
    ("min",): _extreme(lax.le),
    ("mulhi",): product_high,
    ("rem",): _rem,
    ("sign",): _sign,
    ("threefry2x32",): _threefry2x32,
}
FUNCTIONS = by_primitive(_BY_NAMES)
