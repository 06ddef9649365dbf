"""Moves arrays that inner jitted functions capture to the constants of the outer function.

Inside an inner function's jaxpr, nobody could turn them into arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.extend import core as jex_core

from jax2tf._src.tracing import jaxprs
from jax2tf._src.tracing.large_constants import LIMIT
from jax2tf._src.tracing.primitives import jit_p
from jax2tf._src.util.typing import Array


def with_captures_inlined(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Inlines the inner jitted functions that capture large arrays.

    Functions inside of loops and branches stay.
    """
    if not any(map(_captures, jaxpr.jaxpr.eqns)):
        return jaxpr
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]

    def opened(*args: jax.Array) -> list[Array]:
        return _evaluate(jaxpr, args)

    return jaxprs.traced(opened, specs)


def _captures(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the equation calls a jitted function that captures a large array, at any depth."""
    if eqn.primitive is not jit_p:
        return False
    inner = eqn.params["jaxpr"]
    large = (getattr(value, "nbytes", 0) > LIMIT for value in inner.consts)
    return any(large) or any(map(_captures, inner.jaxpr.eqns))


def _rule(eqn: jex_core.JaxprEqn, operands: list[Array]) -> Sequence[Array]:
    if _captures(eqn):
        return _evaluate(eqn.params["jaxpr"], operands)
    return jaxprs.bind(eqn.primitive, operands, eqn.params)


def _evaluate(jaxpr: jex_core.ClosedJaxpr, args: Sequence[Array]) -> list[Array]:
    return jaxprs.evaluate(jaxpr.jaxpr, jaxpr.consts, args, _rule)
