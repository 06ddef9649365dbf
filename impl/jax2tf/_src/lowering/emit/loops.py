"""Whether loops and branches write lists, and whether TensorFlow orders their effects."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.lowering.context import Context
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.tracing.jaxprs import Scan, equations
from jax2tf._src.tracing.traits import CALLBACKS

# These run outside of the graph, or run the user's ops.
_OUTSIDE = CALLBACKS | {call_tf_p}


def writes_lists(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether a scan in the jaxpr, or in a nested one, writes results of its steps to a list."""
    scans = (eqn for eqn in equations(jaxpr) if eqn.primitive is lax.scan_p)
    return any(len(eqn.outvars) > Scan.of(eqn).n_carry for eqn in scans)


def order_of_effects(ctx: Context) -> AbstractContextManager[None]:
    """A context in which TensorFlow orders effects in a loop or branches only if needed."""
    orders = ctx.eqn.effects or not ctx.trace.primitives.isdisjoint(_OUTSIDE)
    if orders or not ctx.wants(Optimization.UNORDERED_BODIES):
        return contextlib.nullcontext()
    return surroundings.without_order_of_effects(ops.get_default_graph())
