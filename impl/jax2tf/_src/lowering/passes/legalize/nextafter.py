"""Computes nextafter from the bits of floats, for targets that lack TensorFlow's NextAfter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]

# The integers with the same number of bits. The rule of narrower floats does not use the op.
_BITS: dict[str, type[np.integer]] = {"float32": np.int32, "float64": np.int64}


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a nextafter whose op the target lacks; None for other equations."""
    if eqn.primitive is not lax.nextafter_p:
        return None
    aval = aval_of(eqn.outvars[0])
    dtype = str(aval.dtype)
    return _nextafter if dtype in _BITS and not target.takes("NextAfter", dtype) else None


def _nextafter(eqn: jex_core.JaxprEqn, x: jax.Array, y: jax.Array) -> Sequence[jax.Array]:
    aval = aval_of(eqn.outvars[0])
    # A literal operand is a scalar, even if the other operand is an array.
    x, y = jnp.broadcast_to(x, aval.shape), jnp.broadcast_to(y, aval.shape)
    integer: type[np.integer] = _BITS[str(aval.dtype)]
    least = integer(np.iinfo(integer).min)
    bits, bits_of_y = lax.bitcast_convert_type(x, integer), lax.bitcast_convert_type(y, integer)
    # The places have the order of the numbers; both zeros have the place 0.
    place = jnp.where(bits < 0, least - bits, bits)
    place_of_y = jnp.where(bits_of_y < 0, least - bits_of_y, bits_of_y)
    # Both numbers and places are compared: engines may compare subnormal numbers as zeros, and
    # large integers as floats.
    is_there = (x == y) & (place == place_of_y)
    is_zero = (x == 0) & (place == 0)
    upwards = (y > x) | (place_of_y > place)
    # The bits below the sign have the order of the magnitudes.
    stepped = bits + jnp.where(upwards == (place > 0), integer(1), integer(-1))
    smallest = jnp.where(place_of_y > 0, integer(1), least + integer(1))
    found = lax.bitcast_convert_type(jnp.where(is_zero, smallest, stepped), aval.dtype)
    is_number = (x == x) & (y == y)
    return [jnp.where(is_number, jnp.where(is_there, y, found), x + y)]
