"""Runs functions in eager mode as one cached graph, where the user sees no difference.

Op by op, eager mode spends about 50 microseconds on each equation, mostly in Python; calling a
graph costs as much as two or three equations. A large function is a graph from the first call on,
and TensorFlow optimizes it. A small function runs op by op until a graph pays; this graph is not
optimized, so the results keep their bits.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jax2tf._src import compat, ops
from jax2tf._src.lowering import pipeline
from jax2tf._src.lowering.context import LoweringInterface
from jax2tf._src.lowering.emit.compiled_calls import COMPILED_CONTROL_FLOW_DTYPES
from jax2tf._src.lowering.plan import as_numpy
from jax2tf._src.ops import surroundings
from jax2tf._src.ops.written_functions import EagerFunction
from jax2tf._src.tracing.jaxprs import count_equations
from jax2tf._src.tracing.large_constants import LIMIT, SMALL_CONSTANT_SIZE
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.tracing.traits import CALLBACKS, DRAWS
from jax2tf._src.util.tensors import Spec, Tensor, Variable

# A function with this many equations is a graph from the first call on.
FEWEST_EQUATIONS = 50

# A function with this many equations becomes a graph after `CALLS_OP_BY_OP` calls: making a graph
# and calling it once takes about as long as ten calls op by op, whatever its size.
FEWEST_EQUATIONS_OF_MANY_CALLS = 4
CALLS_OP_BY_OP = 8


def run_as_graph(lowering: LoweringInterface, args: Sequence[Tensor]) -> list[Tensor] | None:
    """Runs a lowering's trace in eager mode as one graph; None if it has to run op by op.

    Functions with side effects, with calls into Python or TensorFlow, or with polymorphic shapes
    (each size would need its own graph) always run op by op.
    """
    trace = lowering.trace
    if ops.functions_run_eagerly() or compat.graphs.are_ops_observed():
        return None
    if not trace.cached("is pure", lambda: _is_pure(trace)):
        return None
    size = trace.cached("size", lambda: count_equations(trace.jaxpr.jaxpr, FEWEST_EQUATIONS))
    is_large = size >= FEWEST_EQUATIONS
    if not is_large and not (size >= FEWEST_EQUATIONS_OF_MANY_CALLS and _is_graph_now(lowering)):
        return None
    # A function that was made for one device runs its ops there, wherever it is called.
    graph = trace.cached(
        "eager graph",
        lambda: EagerGraph.of(lowering, args, is_large),
        lowering.target,
        compat.functions.eager_device(),
    )
    return None if graph is None else graph(args)


def run_compiled(
    trace: Trace, body: Callable[..., Sequence[Tensor]], args: Sequence[Tensor]
) -> list[Tensor] | None:
    """Runs `body` in eager mode, compiled by XLA; None if only a tf.function can run it.

    Args:
      trace: the trace that the body lowers.
      body: gets tensors in place of `args`.
      args: the arguments of the trace.
    """
    if ops.functions_run_eagerly() or trace.is_polymorphic:
        return None

    def make() -> EagerFunction | None:
        return EagerFunction.of(body, _specs(args), "compiled", jit_compile=True)

    function = trace.cached("compiled eagerly", make, body, compat.functions.eager_device())
    return None if function is None else function(*args)


@dataclasses.dataclass(frozen=True)
class EagerGraph:
    """A graph whose arguments are the trace's large constants, followed by its arguments.

    Attributes:
      function: called with tensors.
      captured: large constants, or the variables that hold them. Each call reads the variables.
    """

    function: Callable[..., Sequence[Tensor]]
    captured: Sequence[Tensor | Variable]

    @classmethod
    def of(
        cls, lowering: LoweringInterface, args: Sequence[Tensor], is_large: bool
    ) -> EagerGraph | None:
        """Makes the graph of a trace; None for a small graph that only TensorFlow can make."""
        trace = lowering.trace
        jaxpr = pipeline.for_graph(trace, lowering.target) if is_large else trace.jaxpr
        is_captured = [np.size(c) > SMALL_CONSTANT_SIZE for c in jaxpr.consts]
        captured = [
            _held(trace, as_numpy(c)) for c in itertools.compress(jaxpr.consts, is_captured)
        ]

        def body(*inner: Tensor) -> list[Tensor]:
            inside = (
                lowering.with_sizes({}) if is_large else lowering.with_sizes({}, by_kernels=True)
            )
            given = iter(inner[: len(captured)])
            consts = [
                next(given) if of_arguments else inside.constant(c)
                for c, of_arguments in zip(jaxpr.consts, is_captured, strict=True)
            ]
            with surroundings.called_from_here():
                return inside.run_open(jaxpr.jaxpr, consts, inner[len(captured) :])

        specs = _specs((*captured, *args))
        function = EagerFunction.of(body, specs, "eager_graph", is_optimized=is_large)
        if function is not None:
            return cls(function, captured)
        if not is_large:
            return None
        made = ops.function(body, autograph=False).get_concrete_function(*specs)
        return cls(made, captured)

    def __call__(self, args: Sequence[Tensor]) -> list[Tensor]:
        return list(self.function(*map(ops.convert_to_tensor, self.captured), *args))


def _specs(tensors: Sequence[Tensor | Variable]) -> list[Spec]:
    return [ops.TensorSpec(x.shape, x.dtype) for x in tensors]


def _held(trace: Trace, value: np.ndarray) -> Tensor | Variable:
    variable = trace.large_constants.held(value)
    return ops.constant(value) if variable is None else variable


def _is_graph_now(lowering: LoweringInterface) -> bool:
    """Whether a small trace was called often enough for a graph; counts the calls."""
    trace = lowering.trace
    # A graph with ops that the target lacks is refused, while eager mode runs these ops. XLA
    # compiles a random draw to other bits if it sees that an operand is a constant.
    if not lowering.target.takes_all or not DRAWS.isdisjoint(trace.primitives):
        return False
    return next(trace.cached("calls", itertools.count)) >= CALLS_OP_BY_OP


def _is_pure(trace: Trace) -> bool:
    return not (
        trace.is_polymorphic
        or trace.jaxpr.effects
        or not trace.jaxpr.out_avals
        or trace.calls_tensorflow
        or CALLBACKS & trace.primitives
        or sum(getattr(c, "nbytes", 0) for c in trace.inner_constants()) > LIMIT
        # Graphs cannot have arguments, branches or loops of these dtypes.
        or not COMPILED_CONTROL_FLOW_DTYPES.isdisjoint(_dtypes(trace))
    )


def _dtypes(trace: Trace) -> Iterator[str]:
    avals = [*trace.jaxpr.in_avals, *(v.aval for e in trace.equations() for v in e.outvars)]
    return (str(getattr(aval, "dtype", "")) for aval in avals)
