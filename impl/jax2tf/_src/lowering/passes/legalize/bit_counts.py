"""Counts the bits of other integers as those of int32, for targets without PopulationCount."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]

_BITS = 32


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a count of bits or leading zeros that the target lacks, or None."""
    if eqn.primitive not in _FUNCTIONS:
        return None
    dtype = np.dtype(aval_of(eqn.invars[0]).dtype)
    if dtype.kind not in "iu" or dtype == np.int32:
        return None
    unsigned = f"uint{8 * dtype.itemsize}"
    # Without shifts of uint64 (LiteRT), its halves cannot be taken.
    has_words = dtype != np.uint64 or target.takes("RightShift", unsigned)
    is_lacking = not target.takes("PopulationCount", unsigned)
    return _FUNCTIONS[eqn.primitive] if is_lacking and has_words else None


def _population_count(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    del eqn
    count = functools.reduce(lax.add, map(lax.population_count, _words(x)))
    return [count.astype(x.dtype)]


def _count_leading_zeros(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    del eqn
    *lower, highest = _words(x)
    count = lax.clz(highest)
    for word in lower:
        count = jnp.where(highest == 0, _BITS + lax.clz(word), count)
    unused = max(0, _BITS - 8 * x.dtype.itemsize)
    return [(count - unused).astype(x.dtype)]


def _words(x: jax.Array) -> Sequence[jax.Array]:
    """The bits of x in arrays of int32, the lowest first. Fewer than 32 bits come after zeros."""
    size = x.dtype.itemsize
    if size < 4:
        return [lax.bitcast_convert_type(x, np.dtype(f"uint{8 * size}")).astype(np.int32)]
    words = lax.bitcast_convert_type(x, np.int32)
    return [words] if size == 4 else [words[..., 0], words[..., 1]]


_FUNCTIONS = {
    lax.population_count_p: _population_count,
    lax.clz_p: _count_leading_zeros,
}
