"""Bools as int32, for targets whose op takes none."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.legalize import emulated_dtypes
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Atom, aval_of

# The op of each primitive; `xor` of bools says where they differ.
_OPS: dict[jex_core.Primitive, str] = {
    primitive: op
    for name, op in (
        ("eq", "Equal"),
        ("ne", "NotEqual"),
        ("xor", "NotEqual"),
        ("gather", "GatherV2"),
        ("sort", "GatherV2"),
    )
    for primitive in named(name)
}


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> emulated_dtypes.Function | None:
    """The function for bools that the op of a target does not take; None for any other equation."""
    if eqn.primitive not in _OPS or not any(_is_bool(v) for v in eqn.invars):
        return None
    return _in_int32 if not target.takes(_OPS[eqn.primitive], "bool") else None


def _in_int32(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    numbers = [lax.convert_element_type(x, np.int32) if x.dtype == bool else x for x in operands]
    if eqn.primitive is lax.xor_p:
        return [lax.ne(*numbers)]
    results = eqn.primitive.bind(*numbers, **eqn.params)
    if not eqn.primitive.multiple_results:
        return [results != 0 if eqn.primitive is lax.gather_p else results]
    return [x != 0 if _is_bool(v) else x for v, x in zip(eqn.outvars, results, strict=True)]


def _is_bool(atom: Atom) -> bool:
    return bool(aval_of(atom).dtype == np.bool_)
