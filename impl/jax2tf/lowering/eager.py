"""Large functions in eager mode: one cached graph, where nothing shows the difference."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from jax2tf.large_constants import LIMIT
from jax2tf.lowering.compiled import COMPILED_CONTROL_FLOW_DTYPES
from jax2tf.primitives import CALLBACKS
from jax2tf.trace import Trace, count_equations

# The call of a graph costs as much as some ten ops, and a graph takes time to make.
FEWEST_EQUATIONS = 50


def is_one_graph(trace: Trace) -> bool:
    """Whether eager mode runs the trace as one graph that is made at the first call.

    It does not run what has side effects or calls Python or TensorFlow, nor what is there for
    every size, of which each would have a graph of its own.
    """
    if tf.config.functions_run_eagerly():
        return False
    return trace.cached("is_one_graph", lambda: _is_large(trace) and _is_pure(trace))


def _is_large(trace: Trace) -> bool:
    enough = FEWEST_EQUATIONS
    return count_equations(trace.jaxpr.jaxpr, enough) >= enough


def _is_pure(trace: Trace) -> bool:
    return not (
        trace.is_polymorphic
        or trace.jaxpr.effects
        or trace.calls_tensorflow
        or CALLBACKS & trace.primitives
        or sum(getattr(c, "nbytes", 0) for c in trace.inner_constants()) > LIMIT
        # A graph has no arguments of these dtypes, or no branches and loops.
        or not COMPILED_CONTROL_FLOW_DTYPES.isdisjoint(_dtypes(trace))
    )


def _dtypes(trace: Trace) -> Iterator[str]:
    avals = [*trace.jaxpr.in_avals, *(v.aval for e in trace.equations() for v in e.outvars)]
    return (str(getattr(aval, "dtype", "")) for aval in avals)
