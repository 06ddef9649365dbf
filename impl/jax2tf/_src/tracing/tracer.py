"""A JAX function and its traces, by the arguments of the call.

Each argument tree, with its dtypes and shapes, and each configuration of JAX has one trace. A later
call of the converted function looks it up and only runs its TensorFlow ops.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import jax
import numpy as np
from jax import export

from jax2tf._src import compat, dims
from jax2tf._src.call_tf import variables
from jax2tf._src.tracing import arguments
from jax2tf._src.tracing.functions import KEPT_TRACES, Function
from jax2tf._src.tracing.large_constants import LargeConstants
from jax2tf._src.tracing.trace import (
    Simplify,
    Trace,
    as_it_is,
    spans_devices,
    trace_of,
    uncollected,
)
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import KeyedLock, Lru
from jax2tf._src.util.typing import Dim, PyTree


class Leaf(Protocol):
    """The attributes of an argument's leaf that a trace needs; see arguments.Argument."""

    dtype: np.dtype
    shape: tf.TensorShape
    weak_type: bool

    @property
    def path(self) -> str: ...

    @property
    def where(self) -> str: ...


LeafOrArgument = TypeVar("LeafOrArgument", bound=Leaf)


class Tracer:
    """A JAX function and its traces so far.

    Args:
      function: the function to trace.
      shapes: the polymorphic shapes that the caller gave.
      constraints: the polymorphic constraints that the caller gave.
      large_constants: the policy for large arrays that the function captures.
      debug_callbacks: whether jax.debug.callback and jax.debug.print run.
      simplify: the passes over the jaxprs that JAX traces.
    """

    def __init__(
        self,
        function: Function,
        shapes: PyTree = None,
        constraints: Sequence[str] | export.SymbolicScope = (),
        large_constants: LargeConstants | None = None,
        debug_callbacks: bool = True,
        simplify: Simplify = as_it_is,
    ):
        self._function = function
        self._shapes = shapes
        self._constraints = dims.constraints_of(constraints)
        self._large_constants = large_constants or LargeConstants()
        self._debug_callbacks = debug_callbacks
        self._simplify = simplify
        # Specs by the structure of the arguments, in which static values are.
        self._specs: Lru[list[dims.Spec | None]] = Lru(KEPT_TRACES)
        # Traces by the arguments, and by the avals that JAX traces for them.
        self._by_signature: Lru[Trace] = Lru(KEPT_TRACES)
        self._traces: Lru[Trace] = Lru(KEPT_TRACES)
        # Not one lock: the function may call another that calls it, in another thread at once.
        self._making = KeyedLock()

    def trace(
        self,
        args: tuple[PyTree, ...],
        kwargs: dict[str, PyTree],
        leaf: Callable[..., LeafOrArgument],
    ) -> tuple[Trace, list[LeafOrArgument]]:
        """The trace for these arguments, and what `leaf(path, value, function)` makes of each leaf.

        Shapes that a spec maps to the same symbolic shape share one trace.
        """
        args, kwargs = arguments.plain(args, kwargs, self._function)
        paths, in_tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
        leaves = [leaf(path, value, self._function) for path, value in paths]
        specs = self._specs.value(
            in_tree, lambda: dims.spec_leaves(self._shapes, args, kwargs, self._function)
        )
        return self._cached(in_tree, leaves, specs), leaves

    def _cached(
        self,
        in_tree: jax.tree_util.PyTreeDef,
        leaves: Sequence[Leaf],
        specs: Sequence[dims.Spec | None],
    ) -> Trace:
        given = tuple(
            (_known(leaf.shape), spec, leaf.dtype, leaf.weak_type)
            for leaf, spec in zip(leaves, specs, strict=True)
        )
        context = compat.jaxprs.trace_context()
        key = (in_tree, given, context)
        known = self._by_signature.get(key)
        if known is not None:
            return known
        scope = dims.new_scope(self._constraints, specs)
        avals = _avals(leaves, specs, scope)
        if not all(dims.is_static(aval.shape) for aval in avals):
            _register_symbolic_derivatives()
        # Dimensions of different scopes cannot be compared, but their texts can.
        texts = tuple(tuple(str(d) for d in aval.shape) for aval in avals)
        types = tuple((leaf.dtype, leaf.weak_type) for leaf in leaves)
        assumed = dims.assumptions(self._constraints, scope)
        shared = (in_tree, texts, types, assumed.constraints, context)
        with self._making(shared):
            trace = self._traces.get(shared)
            if trace is None:
                with self._advising(in_tree, leaves, specs, avals):
                    trace = self._trace(in_tree, leaves, avals, assumed)
            self._traces.add(shared, trace)
            self._by_signature.add(key, trace)
        return trace

    def _advising(
        self,
        in_tree: jax.tree_util.PyTreeDef,
        leaves: Sequence[Leaf],
        specs: Sequence[dims.Spec | None],
        avals: Sequence[jax.ShapeDtypeStruct],
    ) -> contextlib.AbstractContextManager[None]:
        """A context that names constraints with which a failing trace would succeed."""
        # A scope belongs to the caller, so no constraints are added.
        of_scopes = any(spec is not None and spec.scopes for spec in specs)
        given = self._constraints
        if of_scopes or isinstance(given, export.SymbolicScope):
            return contextlib.nullcontext()
        if all(dims.is_static(aval.shape) for aval in avals):
            return contextlib.nullcontext()

        def retrace(constraints: Sequence[str]) -> Exception | None:
            try:
                scope = dims.new_scope([*given, *constraints])
                constrained = _avals(leaves, specs, scope)
            except ValueError as error:  # these constraints contradict the others
                return error
            args, kwargs = jax.tree.unflatten(in_tree, constrained)
            return self._function.failure(args, kwargs)

        def trace_known() -> dict[str, str] | None:
            args, kwargs = jax.tree.unflatten(in_tree, _with_known_sizes(leaves, avals))
            if self._function.failure(args, kwargs) is not None:
                return None
            return {
                leaf.path: f"({', '.join(map(str, aval.shape))})"
                for leaf, aval in zip(leaves, avals, strict=True)
                if not dims.is_static(aval.shape)
            }

        return dims.advising(retrace, trace_known)

    @uncollected()
    def _trace(
        self,
        in_tree: jax.tree_util.PyTreeDef,
        leaves: Sequence[Leaf],
        avals: Sequence[jax.ShapeDtypeStruct],
        assumed: dims.Assumptions,
    ) -> Trace:
        args, kwargs = jax.tree.unflatten(in_tree, avals)
        try:
            traced = self._function.trace(args, kwargs)
        except Exception as error:
            error.add_note(self._function.note(error, args, kwargs))
            raise
        if any(map(spans_devices, compat.jitted.shardings_of(traced))):
            # An equation that calls the function has its shardings; the function's jaxpr does not.
            traced = jax.jit(self._function.callable()).trace(*args, **kwargs)
        trace = trace_of(
            traced,
            self._simplify,
            paths=tuple(leaf.path for leaf in leaves),
            assumptions=assumed,
            large_constants=self._large_constants,
            debug_callbacks=self._debug_callbacks,
        )
        trace.retrace = lambda: self._trace_with_variables(trace, args, kwargs)
        return trace

    def _trace_with_variables(
        self, trace: Trace, args: PyTree, kwargs: PyTree
    ) -> tuple[Sequence[tf.Variable], Trace]:
        found: list[tf.Variable] = []
        while True:
            traced, missing = self._traced_passing(found, args, kwargs)
            if not missing:
                break
            found += missing
        if not found:
            return (), trace
        again = trace_of(traced, self._simplify)
        return found, dataclasses.replace(
            trace,
            jaxpr=again.jaxpr,
            differentiable_jaxpr=again.differentiable_jaxpr,
            retrace=None,
        )

    @uncollected()
    def _traced_passing(
        self, found: Sequence[tf.Variable], args: PyTree, kwargs: PyTree
    ) -> tuple[jax.stages.Traced, list[tf.Variable]]:
        """Traces the function with the values of these variables; returns the missing ones too."""
        missing: list[tf.Variable] = []

        def fun(args: PyTree, kwargs: PyTree, values: Sequence[jax.Array]) -> PyTree:
            with variables.passing(found, values) as passed:
                results = self._function.callable()(*args, **kwargs)
            missing.extend(passed.missing)
            return results

        values = [jax.ShapeDtypeStruct(v.shape, dtypes.jax_dtype(v)) for v in found]
        return jax.jit(fun).trace(args, kwargs, values), missing


def _register_symbolic_derivatives() -> None:
    """Registers our derivative rules over JAX's, which a process without symbolic sizes keeps."""
    import jax2tf._src.gradients.symbolic  # noqa: F401


def _avals(
    leaves: Sequence[Leaf], specs: Sequence[dims.Spec | None], scope: export.SymbolicScope
) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(_shape(leaf, spec, scope), leaf.dtype, weak_type=leaf.weak_type)
        for leaf, spec in zip(leaves, specs, strict=True)
    ]


def _shape(leaf: Leaf, spec: dims.Spec | None, scope: export.SymbolicScope) -> tuple[Dim, ...]:
    # Most arguments need no message, and `leaf.where` would format one.
    if spec is None and leaf.shape.is_fully_defined():
        return tuple(leaf.shape.as_list())
    return dims.symbolic_shape(spec, leaf.shape, scope, leaf.where)


# The value for a size that is not known: it has many divisors.
_A_SIZE = 24


def _with_known_sizes(
    leaves: Sequence[Leaf], avals: Sequence[jax.ShapeDtypeStruct]
) -> list[jax.ShapeDtypeStruct]:
    """The avals with the sizes of the arguments, or with chosen numbers if they are unknown."""
    if all(leaf.shape.is_fully_defined() for leaf in leaves):
        shapes = [tuple(leaf.shape.as_list()) for leaf in leaves]
    else:
        values = dict.fromkeys(dims.variables_of(d for a in avals for d in a.shape), _A_SIZE)
        shapes = [tuple(dims.evaluate(d, values) for d in aval.shape) for aval in avals]
    return [
        jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
        for shape, aval in zip(shapes, avals, strict=True)
    ]


def _known(shape: tf.TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())
