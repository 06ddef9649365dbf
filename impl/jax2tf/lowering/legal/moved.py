"""Moves of floats of 16 bits as moves of their bits, where a converter moves casts behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf.primitives import named
from jax2tf.targets import Target
from jax2tf.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]

_MOVES = frozenset(named("broadcast_in_dim", "dynamic_slice", "gather"))
_FLOATS = frozenset({"bfloat16", "float16"})


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """The function for a move of floats that are held in another dtype; None for any other."""
    if eqn.primitive not in _MOVES or "moves_casts" not in target.quirks:
        return None
    dtype = str(aval_of(eqn.outvars[0]).dtype)
    return _as_bits if dtype in _FLOATS and dtype in target.computes_in else None


def _as_bits(eqn: jex_core.JaxprEqn, x: jax.Array, *others: jax.Array) -> Sequence[jax.Array]:
    dtype = aval_of(eqn.outvars[0]).dtype
    params = dict(eqn.params)
    if eqn.primitive in named("gather"):
        fill = np.nan if params["fill_value"] is None else params["fill_value"]
        params["fill_value"] = int(np.asarray(fill, dtype).view(np.int16))
    bits = lax.bitcast_convert_type(x, np.int16)
    return [lax.bitcast_convert_type(eqn.primitive.bind(bits, *others, **params), dtype)]
