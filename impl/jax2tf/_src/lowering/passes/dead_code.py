"""Removes equations that no result needs and that have no side effect."""

from __future__ import annotations

from jax.extend import core as jex_core
from jax.interpreters import partial_eval


def without_dead_code(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Removes the equations that no result needs and that have no side effect.

    Inner jaxprs are cleaned too. All arguments stay.
    """
    is_kept = [False] * len(jaxpr.consts) + [True] * len(jaxpr.in_avals)
    is_used = [True] * len(jaxpr.out_avals)
    live, uses_const, _ = partial_eval.dce_jaxpr_consts(jaxpr.jaxpr, is_used, is_kept)
    consts = [c for c, used in zip(jaxpr.consts, uses_const, strict=True) if used]
    return jex_core.ClosedJaxpr(live, consts)
