"""Wraps 16-bit integers around, for targets whose Cast to them does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import traits
from jax2tf._src.util.typing import aval_of

# Gets the equation and the operands; returns the results as int32.
Function = Callable[..., Sequence[jax.Array]]

# A conversion to one of these dtypes returns int32, and a Cast makes it the dtype.
CARRIERS = {"int16": "int32", "uint16": "int32"}
# All numbers of these dtypes are in the range of the 16-bit dtype.
_IN_RANGE = {
    "int16": frozenset({"bool", "int8", "uint8", "int16"}),
    "uint16": frozenset({"bool", "uint8", "uint16"}),
}


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a conversion of integers that may leave the new range, or None."""
    if not target.has(Quirk.KEEPS_WHAT_16_BITS_LOSE):
        return None
    if eqn.primitive is not lax.convert_element_type_p:
        return None
    old, new = (aval_of(v).dtype for v in (eqn.invars[0], eqn.outvars[0]))
    if not jnp.issubdtype(old, jnp.integer) or str(new) not in CARRIERS:
        return None
    return None if str(old) in _IN_RANGE[str(new)] else _converted


def _converted(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    return [in_range(lax.convert_element_type(x, np.int32), aval_of(eqn.outvars[0]).dtype)]


def may_leave_the_range(eqn: jex_core.JaxprEqn, target: Target) -> bool:
    """Whether a result of the equation, computed in int32, may need more than 16 bits."""
    stays = eqn.primitive in traits.MOVES or eqn.primitive in traits.KEEPS_RANGE
    return target.has(Quirk.KEEPS_WHAT_16_BITS_LOSE) and not stays


def in_range(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Wraps int32 numbers around to the range of `dtype`, if it is a 16-bit integer."""
    if str(dtype) not in CARRIERS or x.dtype != np.int32:
        return x
    if dtype == np.uint16:
        return x & np.int32(0xFFFF)
    return lax.shift_right_arithmetic(x * np.int32(1 << 16), np.int32(16))
