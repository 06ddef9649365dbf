"""Loops whose body does not read what it carries, for a target that loses that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

from jax2tf.targets import Target

Arrays = Sequence[jax.Array]


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Callable[..., Arrays] | None:
    """The function for a loop that carries what its body does not read."""
    if eqn.primitive is not lax.while_p or "drops_unread_carries" not in target.quirks:
        return None
    # A vmap of a loop, which has a condition for each element, reads all that it carries.
    (condition,) = eqn.params["cond_jaxpr"].out_avals
    return _with_read_carries if not condition.shape and _unread(eqn) else None


def _unread(eqn: jex_core.JaxprEqn) -> set[int]:
    """Which of the carries no equation of the body reads, and are not carried as they are."""
    body = eqn.params["body_jaxpr"].jaxpr
    read = {v for e in body.eqns for v in e.invars if isinstance(v, jex_core.Var)}
    carries = body.invars[eqn.params["body_nconsts"] :]
    return {
        i
        for i, (v, out) in enumerate(zip(carries, body.outvars, strict=True))
        if v not in read and v is not out
    }


def _with_read_carries(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Arrays:
    """The loop, whose body chooses between old and new by the condition, which holds there."""
    n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    of_cond, of_body = operands[:n_cond], operands[n_cond : n_cond + n_body]
    condition, body = (
        jex_core.jaxpr_as_fun(eqn.params[name]) for name in ("cond_jaxpr", "body_jaxpr")
    )
    unread = _unread(eqn)

    def goes_on(carry: list[jax.Array]) -> jax.Array:
        (result,) = condition(*of_cond, *carry)
        return jnp.asarray(result)

    def step(carry: list[jax.Array]) -> list[jax.Array]:
        is_in = goes_on(carry)
        results = zip(carry, body(*of_body, *carry), strict=True)
        return [
            jnp.where(is_in, new, old) if i in unread else new
            for i, (old, new) in enumerate(results)
        ]

    return lax.while_loop(goes_on, step, list(operands[n_cond + n_body :]))
