"""Linear algebra of which an operand is empty."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.emit.linalg.matrices import numbers
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import aval_of


def empty_results(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Returns the results where an operand is empty. OpenVINO ends the process at empty loops."""
    primitive = eqn.primitive
    avals = [aval_of(v) for v in eqn.outvars]
    results = [jnp.zeros(aval.shape, aval.dtype) for aval in avals]
    # Q of an empty matrix is the identity, and so is the product of no reflections.
    if primitive in (lax.linalg.qr_p, lax.linalg.householder_product_p):
        m, n = avals[0].shape[-2:]
        identity = numbers(m)[:, None] == numbers(n)
        results[0] = jnp.broadcast_to(identity.astype(avals[0].dtype), avals[0].shape)
    # No exchange leaves the order as it is.
    if primitive in (lax.linalg.lu_p, lax.linalg.lu_pivots_to_permutation_p):
        results[-1] = jnp.broadcast_to(numbers(avals[-1].shape[-1]), avals[-1].shape)
    if primitive in named("ormqr"):
        results[0] = operands[2]
    # LAPACK leaves the list of fixed columns as it is.
    if primitive in named("geqp3"):
        results[1] = operands[1]
    return results
