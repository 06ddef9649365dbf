"""Computes bools in int32, for targets whose ops do not take bools."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.legalize import emulated_dtypes
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import jaxprs
from jax2tf._src.util.typing import Atom, aval_of

# The op of each primitive. `xor` of bools is NotEqual.
_OPS = {
    lax.eq_p: "Equal",
    lax.ne_p: "NotEqual",
    lax.xor_p: "NotEqual",
    lax.gather_p: "GatherV2",
    lax.sort_p: "GatherV2",
}


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> emulated_dtypes.Function | None:
    """Returns the function for bools that the target's op does not take, or None."""
    if eqn.primitive not in _OPS or not any(_is_bool(v) for v in eqn.invars):
        return None
    return _in_int32 if not target.takes(_OPS[eqn.primitive], "bool") else None


def _in_int32(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    numbers = [lax.convert_element_type(x, np.int32) if x.dtype == bool else x for x in operands]
    if eqn.primitive is lax.xor_p:
        return [lax.ne(*numbers)]
    results = zip(eqn.outvars, jaxprs.bind(eqn.primitive, numbers, eqn.params), strict=True)
    return [x != 0 if _is_bool(v) and x.dtype != np.bool_ else x for v, x in results]


def _is_bool(atom: Atom) -> bool:
    return bool(aval_of(atom).dtype == np.bool_)
