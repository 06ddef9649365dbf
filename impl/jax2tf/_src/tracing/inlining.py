"""Arrays that inner jitted functions capture, as arrays that the function around them captures.

The jaxpr of an inner function holds them, where nobody outside can make arguments of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.tracing.large_constants import LIMIT
from jax2tf._src.tracing.trace import is_call_of_jitted
from jax2tf._src.util.typing import Array, Atom, aval_of


def with_captures_inlined(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """The jaxpr without inner jitted functions that capture large arrays: their equations instead.

    Those inside of loops and branches stay.
    """
    if not any(map(_captures, jaxpr.jaxpr.eqns)):
        return jaxpr
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]

    def opened(*args: jax.Array) -> list[Array]:
        return _evaluate(jaxpr, args)

    made: jex_core.ClosedJaxpr = jax.jit(opened, keep_unused=True).trace(*specs).jaxpr
    return made


def _captures(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the equation calls a jitted function that captures a large array, further in too."""
    if not is_call_of_jitted(eqn):
        return False
    inner = eqn.params["jaxpr"]
    large = (getattr(value, "nbytes", 0) > LIMIT for value in inner.consts)
    return any(large) or any(map(_captures, inner.jaxpr.eqns))


def _evaluate(jaxpr: jex_core.ClosedJaxpr, args: Sequence[Array]) -> list[Array]:
    variables = (*jaxpr.jaxpr.constvars, *jaxpr.jaxpr.invars)
    values: dict[Atom, Array] = dict(zip(variables, (*jaxpr.consts, *args), strict=True))

    def read(atom: Atom) -> Array:
        if isinstance(atom, jex_core.Literal):
            aval = aval_of(atom)
            return np.asarray(atom.val, aval.dtype)
        return values[atom]

    for eqn in jaxpr.jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if _captures(eqn):
            results = _evaluate(eqn.params["jaxpr"], operands)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            results = eqn.primitive.bind(*operands, **params)
            results = results if eqn.primitive.multiple_results else [results]
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.jaxpr.outvars]
