"""Walks a jaxpr and calls the rule of each equation.

The walk is the same in eager and in graph mode. A `Plan` holds the decisions that need no tensors
(the rule, its params, the last use of each value). A second call of the same jaxpr reuses them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from jax.extend import core as jex_core
from jax.typing import ArrayLike

import jax2tf._src.lowering.rules  # noqa: F401  registers the rules
from jax2tf._src import compat, dims, ops
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import eager, pipeline
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import carries, compiled_calls
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, carrier_of
from jax2tf._src.lowering.emit.constants import as_result
from jax2tf._src.lowering.emit.loops import writes_lists
from jax2tf._src.lowering.emit.truth_values import is_truth_value
from jax2tf._src.lowering.passes.legalize.boundaries import has_uint32
from jax2tf._src.lowering.plan import Constant, Step, as_numpy, no_rule, plan_of
from jax2tf._src.lowering.shared_functions import SHARED_FUNCTION_MIN_EQUATIONS, shared_function
from jax2tf._src.lowering.supported import (
    NewOps,
    Observer,
    depends_on_an_argument,
    require_arrays,
    require_taken,
)
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import count_equations
from jax2tf._src.tracing.large_constants import SMALL_CONSTANT_SIZE
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity, SameElements
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Graph, Operation, Tensor, Variable
from jax2tf._src.util.typing import Aval, Dim, Shape, aval_of


class Lowering:
    """Runs a trace's jaxpr on tensors once; holds the target, shared functions and constants."""

    def __init__(
        self,
        trace: Trace,
        target: Target,
        dim_values: dims.Values | None = None,
        observer: Observer | None = None,
        by_kernels: bool = False,
    ):
        self.trace = trace
        self._by_kernels = by_kernels
        self._observer = observer
        self.target = target
        self.dim_values = dim_values or {}
        self._new_ops = NewOps()
        self._constant_bytes = 0
        self._root_graph = None if ops.executing_eagerly() else ops.get_default_graph()
        self._graph_constants: weakref.WeakKeyDictionary[Graph, dict[Hashable, Tensor]] = (
            weakref.WeakKeyDictionary()
        )

    def run_trace(self, args: Sequence[Tensor], eager_graphs: bool = False) -> list[Tensor]:
        """Returns the results of the trace on `args`; `jax2tf.convert` explains `eager_graphs`."""
        if not ops.executing_eagerly():
            jaxpr = pipeline.for_graph(self.trace, self.target)
            require_arrays(self.trace, jaxpr, args, self.target)
            with surroundings.called_from_here():
                results = self.run(jaxpr, args)
            if self.target.has(Quirk.DROPS_CONSTANT_RESULTS):
                return [as_result(result) for result in results]
            return results
        of_graph = eager.run_as_graph(self, args) if eager_graphs else None
        return self.run(self.trace.jaxpr, args) if of_graph is None else of_graph

    def run(self, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor]) -> list[Tensor]:
        """Lowers the equations of `jaxpr` in place and returns its results on `args`."""
        return self.run_open(jaxpr.jaxpr, [self.constant(c) for c in jaxpr.consts], args)

    def run_open(
        self, jaxpr: jex_core.Jaxpr, consts: Sequence[Tensor], args: Sequence[Tensor]
    ) -> list[Tensor]:
        """Does the same as `run`, for a jaxpr whose constants are already tensors."""
        plan = plan_of(jaxpr, self.target)
        if plan.refused is not None and self._observer is None:
            raise no_rule(plan.refused, self.target)
        slots: list[Any] = [None] * plan.size
        slots[: plan.n_inputs] = [*consts, *args]
        if ops.executing_eagerly():
            for step in plan.steps:
                self._step(step, slots)
        else:
            graph = ops.get_default_graph()
            base = ops.get_current_name_scope()
            for step in plan.steps:
                with surroundings.named_in(graph, f"{base}/{step.scope}" if base else step.scope):
                    self._step(step, slots)
        return [self._read(slots, ref) for ref in plan.outputs]

    def with_sizes(self, sizes: dims.Values, *, by_kernels: bool = False) -> Lowering:
        """Returns a lowering for a jaxpr that has its own dimension variables.

        Args:
          sizes: the values of these variables. A computation inside an XLA op sees none of them.
          by_kernels: whether the lowering makes a graph that eager mode runs without optimizing it.
        """
        return Lowering(self.trace, self.target, sizes, self._observer, by_kernels)

    @property
    def is_by_kernels(self) -> bool:
        """Whether TensorFlow's kernels run each op unchanged, and XLA compiles none of them."""
        if ops.executing_eagerly():
            return True
        return self._by_kernels and not surroundings.in_compiled_function()

    def call(self, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor], name: str) -> list[Tensor]:
        """Returns the results of `jaxpr`, by a shared TensorFlow function if that is cheaper.

        In a graph, a jaxpr that several equations call becomes one function. Eager mode inlines the
        jaxpr, and so do the graphs that eager mode makes of small functions (see eager.py).
        """
        if self.is_by_kernels or not self._worth_sharing(jaxpr.jaxpr):
            return self.run(jaxpr, args)
        if self.target.has(Quirk.MOVES_CASTS):
            # Inside the function it is not visible that these operands are never negative.
            args = [carries.by_an_op(x) if is_truth_value(x) else x for x in args]
        consts = [self.constant(c) for c in jaxpr.consts]

        def body(lowering: Lowering, *inner: Tensor) -> list[Tensor]:
            return lowering.run_open(jaxpr.jaxpr, inner[: len(consts)], inner[len(consts) :])

        return self.call_function(Identity(jaxpr.jaxpr), body, [*consts, *args], name)

    def call_function(
        self,
        key: Hashable,
        body: Callable[..., Sequence[Tensor]],
        args: Sequence[Tensor],
        name: str,
        *,
        any_shape: bool = False,
        jit_compile: bool | None = None,
    ) -> list[Tensor]:
        """Calls `body(lowering, *args)` as one TensorFlow function, made once for each key.

        A graph without functions gets the ops of the body in place.

        Args:
          key: names the body within this trace; shapes and dtypes of `args` are added to the key.
          body: gets the lowering to use inside the function, and tensors in place of `args`.
          args: every tensor that the body reads.
          name: the function's name in graphs.
          any_shape: whether one function serves arguments of all shapes.
          jit_compile: True if XLA must compile the function, even if its caller is not compiled.
        """
        is_inlined = self._are_constant(args) or self._are_of_no_array(args)
        if is_inlined or not surroundings.has_functions():
            return list(body(self, *args))
        shapes = [None if any_shape else tuple(a.shape.as_list()) for a in args]
        signature = tuple((a.dtype, shape) for a, shape in zip(args, shapes, strict=True))
        sizes = {d: v for d, v in self.dim_values.items() if isinstance(v, int)}
        # A function sees no tensor of its caller's graph, so unknown sizes are arguments too.
        unknown = [d for d in self.dim_values if d not in sizes]
        args = [*args, *(self.dim_values[d] for d in unknown)]

        def with_dims(*inner: Tensor) -> Sequence[Tensor]:
            n = len(inner) - len(unknown)
            values = {**sizes, **dict(zip(unknown, inner[n:], strict=True))}
            return body(self.with_sizes(values), *inner[:n])

        is_written = surroundings.writes_functions()
        # A function that was made for one device runs its ops there, wherever it is called.
        device = compat.functions.eager_device() if ops.executing_eagerly() else None
        function = self.trace.cached(
            "function",
            lambda: shared_function(with_dims, args, shapes, name, jit_compile, is_written),
            key,
            self.target,
            signature,
            tuple(sizes.items()),
            tuple(unknown),
            surroundings.in_compiled_function(),
            is_written,
            device,
        )
        return list(function(*args))

    def _are_constant(self, args: Sequence[Tensor]) -> bool:
        """Whether all arguments are constants and the target lacks ops.

        If the body is inlined, its ops are seen to be ops of constants, which the target takes.
        """
        if ops.executing_eagerly() or not self.target.lacks:
            return False
        return not depends_on_an_argument(*(arg.op for arg in args))

    def _are_of_no_array(self, args: Sequence[Tensor]) -> bool:
        """Whether an argument has a dtype of which the target has no arrays."""
        if self.target.takes_arrays("uint32"):
            return False
        return any(x.dtype == dtypes.uint32 for x in args)

    def constant(self, value: ArrayLike) -> Tensor:
        """Returns a constant of the jaxpr as a tensor; a graph holds each constant only once.

        A large constant is made in the graph where the lowering began. The branches and bodies of
        control flow capture it and hold no copies. A small constant is made in the graph that uses
        it, because TensorFlow needs the values of shapes and axes there.
        """
        value = as_numpy(value)
        variable = self.trace.large_constants.held(value)
        if ops.executing_eagerly():
            return ops.convert_to_tensor(variable) if variable is not None else ops.constant(value)
        large = value.size > SMALL_CONSTANT_SIZE
        key: Hashable = (
            SameElements.of(value) if large else (value.dtype, value.shape, value.tobytes())
        )

        def make() -> Tensor:
            if variable is None:
                self._constant_bytes += value.nbytes
                self.trace.large_constants.require_room(value, self._constant_bytes)
            return _constant_tensor(value, variable)

        return self._pooled(key, make, "constants/", in_root=large)

    def dim(self, dim: Dim) -> dims.Size:
        """Returns a dimension as an int, or as a tensor (one in each graph) if it is unknown."""
        if isinstance(dim, int):
            return dim
        if not self._has_unknown_dims():
            return dims.evaluate(dim, self.dim_values)
        make = functools.partial(dims.evaluate, dim, self.dim_values)
        return self._pooled(("dim", str(dim)), make, "dims/", in_root=True)

    def shape(self, shape: Shape) -> tuple[int, ...] | Tensor:
        """Returns a shape as a tuple of ints, or as an int32 vector if a size is unknown."""
        sizes = [self.dim(d) for d in shape]
        if all(isinstance(size, int) for size in sizes):
            return tuple(sizes)
        make = functools.partial(ops.stack, sizes)
        return self._pooled(("shape", *map(str, shape)), make, "dims/", in_root=True)

    def vector(self, dims: Shape) -> Tensor:
        """Returns sizes, axes, or pairs of them as the int32 operand of an op, made only once."""
        if any(isinstance(d, tuple) for d in dims):
            sizes: Dim = [self.shape(pair) for pair in dims]
            if not all(isinstance(size, tuple) for size in sizes):
                return ops.stack(sizes)
        else:
            sizes = self.shape(dims)
            if not isinstance(sizes, tuple):
                return sizes
        if ops.executing_eagerly():
            return _eager_vector(tuple(sizes))
        return self.constant(_vector(tuple(sizes)))

    def number(self, value: int) -> Tensor:
        """Returns an axis or a size as the int32 operand of an op, made only once."""
        if ops.executing_eagerly():
            return _eager_number(value)
        return self.constant(np.int32(value))

    def static_shape(self, shape: Shape) -> list[int | None]:
        """Returns a shape with None for each size that is unknown before the run."""
        if self._has_unknown_dims():
            return [d if isinstance(d, int) else None for d in shape]
        return [self.dim(d) for d in shape]

    def _has_unknown_dims(self) -> bool:
        return not all(isinstance(v, int) for v in self.dim_values.values())

    def _pooled(
        self, key: Hashable, make: Callable[[], Tensor], scope: str, in_root: bool
    ) -> Tensor:
        graph: Graph = self._root_graph if in_root else ops.get_default_graph()
        pool = self._graph_constants.setdefault(graph, {})
        if key not in pool:
            with graph.as_default(), ops.name_scope(scope):
                pool[key] = make()
        return pool[key]

    def _worth_sharing(self, jaxpr: jex_core.Jaxpr) -> bool:
        if not self.trace.shares or not surroundings.has_functions():
            return False
        # The target cannot have arrays of uint32 as arguments or results of a function.
        boundary = (*jaxpr.invars, *jaxpr.outvars)
        if not self.target.takes_arrays("uint32") and has_uint32(boundary):
            return False
        if pipeline.use_counts(self.trace, self.target)[Identity(jaxpr)] < 2:
            return False
        enough = SHARED_FUNCTION_MIN_EQUATIONS
        if count_equations(jaxpr, enough) < enough:
            return False
        return not self.target.has(Quirk.NO_LISTS_IN_FUNCTIONS) or not writes_lists(jaxpr)

    def _step(self, step: Step, slots: list[Any]) -> None:
        operands = [self._read(slots, ref) for ref in step.inputs]
        if self.target.has(Quirk.PARTS_MOVE_AT_IDENTITY):
            operands = [ops.identity(x) if x.shape.rank else x for x in operands]
        for slot in step.last_uses:
            slots[slot] = None
        try:
            results = self._observed(step, operands)
            for slot, out, result in zip(step.outputs, step.eqn.outvars, results, strict=True):
                slots[slot] = self._checked(result, aval_of(out))
        except Exception as error:
            # Every error names the line of the user's program.
            source = compat.jaxprs.user_source(step.eqn)
            if isinstance(error, UnsupportedPrimitiveError):
                error.locate(source)
            if not getattr(error, "__notes__", None):
                note = f"jax2tf.convert: while lowering primitive '{step.eqn.primitive.name}'"
                error.add_note(f"{note} from {source}" if source else note)
            raise

    def _observed(self, step: Step, operands: list[Tensor]) -> Sequence[Tensor]:
        """Returns the results of a step; in a graph, checks that the target takes its ops."""
        if ops.executing_eagerly():
            return self._results(step, operands)
        if self._observer is None:
            results = self._results(step, operands)
            if not self.target.takes_all:
                self._require_taken(step, self._new_ops.behind(operands, results))
            return results
        with self._observer.within(step.eqn, step.lowered_by):
            try:
                results = self._results(step, operands)
                made = self._new_ops.behind(operands, results)
                self._require_taken(step, made)
            except UnsupportedPrimitiveError as error:
                self._observer.refused(step.eqn, error)
                return [self.zeros(aval_of(v)) for v in step.eqn.outvars]
            self._observer.made(step.eqn, made)
        return results

    def _require_taken(self, step: Step, made: Sequence[Operation]) -> None:
        # An engine with an op for an idiom need not take the TensorFlow ops that spell the idiom.
        if not step.is_idiom or self.target.ops is not None:
            require_taken(step.eqn, made, self.target)

    def zeros(self, aval: Aval) -> Tensor:
        # The data of PRNG keys have more dimensions, which follow the dimensions of the keys.
        shape, dtype = self.shape(dtypes.physical_shape(aval)), dtypes.to_tf(aval.dtype)
        # TensorFlow's Fill does not support narrow dtypes.
        return cast(ops.zeros(shape, carrier_of(HOLDS_NARROW, dtype)), dtype)

    def _results(self, step: Step, operands: list[Tensor]) -> Sequence[Tensor]:
        if not (ops.executing_eagerly() or step.is_idiom):
            constants = pipeline.on_tensors(step.eqn, operands, self.target)
            if constants is not None:
                return [self.constant(value) for value in constants]
        if step.compiled:
            return self._compiled_step(step, operands)
        results = step.rule(Context(self, step.eqn), *operands, **step.params)
        return results if step.multiple_results else [results]

    def _compiled_step(self, step: Step, operands: list[Tensor]) -> list[Tensor]:
        given = [x.dtype for x in operands]

        def body(lowering: Lowering, *inner: Tensor) -> list[Tensor]:
            operands = compiled_calls.in_dtypes(inner, given)
            results = step.rule(Context(lowering, step.eqn), *operands, **step.params)
            return compiled_calls.unpacked(results if step.multiple_results else [results])

        name = step.eqn.primitive.name
        crossing = compiled_calls.unpacked(operands)
        key = (Identity(step.eqn), *given)
        results = self.call_function(key, body, crossing, name, jit_compile=True)
        avals = [aval_of(v) for v in step.eqn.outvars]
        return compiled_calls.in_dtypes(results, [dtypes.to_tf(aval.dtype) for aval in avals])

    def _checked(self, result: Tensor, aval: Aval) -> Tensor:
        """Checks that the result of a rule has JAX's dtype, and gives it JAX's shape."""
        if not hasattr(aval, "dtype"):
            return result
        expected = dtypes.to_tf(aval.dtype)
        if result.dtype != expected:
            raise AssertionError(
                f"a rule gave dtype {result.dtype.name}, but should {expected.name}"
            )
        if not ops.executing_eagerly():
            shape = self.static_shape(dtypes.physical_shape(aval))
            known = result.shape
            # Reading a shape takes a fifth of the time of setting it, and rules read it again.
            if known.rank is None or known.as_list() != shape:
                result.set_shape(shape)
        return result

    def _read(self, slots: list[Any], ref: int | Constant) -> Tensor:
        if isinstance(ref, int):
            return slots[ref]
        if ops.executing_eagerly():
            if ref.tensor is None:
                ref.tensor = ops.constant(ref.value)
            return ref.tensor
        return self.constant(ref.value)


@cached
def _vector(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(sizes, np.int32)


@cached
def _eager_vector(sizes: tuple[int, ...]) -> Tensor:
    return ops.constant(_vector(sizes))


@cached
def _eager_number(value: int) -> Tensor:
    return ops.constant(value, dtypes.int32)


def _constant_tensor(value: np.ndarray, variable: Variable | None) -> Tensor:
    return (
        compiled_calls.constant_of_any_dtype(value)
        if variable is None
        else ops.convert_to_tensor(variable)
    )
