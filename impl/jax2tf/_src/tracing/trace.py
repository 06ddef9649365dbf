"""JAX function + argument specs -> closed jaxpr and output tree, cached.

A trace is made once per argument tree, dtypes, shapes and JAX configuration; each later call of the
converted function finds it by key and costs its TensorFlow ops alone.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import jax
import numpy as np
import tensorflow as tf
from jax import export
from jax.extend import core as jex_core

from jax2tf._src import compat, dims
from jax2tf._src.call_tf import variables
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.tracing import arguments, functions
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.large_constants import LargeConstants
from jax2tf._src.tracing.primitives import jit_p
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lru import Recent
from jax2tf._src.util.typing import Array, Dim, Param, PyTree

T = TypeVar("T")

# The passes over a jaxpr that JAX traced: of the jaxpr, and whether ops are made of it.
Simplify: TypeAlias = Callable[[jex_core.ClosedJaxpr, bool], jex_core.ClosedJaxpr]


def _as_it_is(jaxpr: jex_core.ClosedJaxpr, is_lowered: bool) -> jex_core.ClosedJaxpr:
    del is_lowered
    return jaxpr


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """While JAX traces, in whatever thread, cycles of objects are not collected.

    Where JAX derives a linear function, it looks at its weak reference to a tracer twice. Once in
    some hundred times the collector came between, and the trace ended in an AssertionError.
    """
    _uncollected.enter()
    try:
        yield
    finally:
        _uncollected.leave()


class _Uncollected:
    """Switches the collector off for the first of several traces, and on again after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_on = False

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._was_on:
                gc.enable()


_uncollected = _Uncollected()


class Leaf(Protocol):
    """What a trace needs to know of one leaf of the arguments; see arguments.Argument."""

    dtype: np.dtype
    shape: tf.TensorShape
    weak_type: bool

    @property
    def path(self) -> str: ...

    @property
    def where(self) -> str: ...


# In the place of a value that a cache has not.
_ABSENT = object()

# From so many equations on, a graph keeps its shared functions.
INLINED_MAX_EQUATIONS = 10_000

# How many traces of one function are kept. One takes from 50 kB to some megabytes, and a process
# that meets a new shape with every call would keep all of them.
KEPT_TRACES = 256

LeafOrArgument = TypeVar("LeafOrArgument", bound=Leaf)


@dataclasses.dataclass(eq=False)
class Trace:
    """What tracing a function gave, and what is worth keeping beside it.

    Attributes:
      jaxpr: the function over flat arguments, ready to be lowered.
      differentiable_jaxpr: the same before JAX lowered its high-level primitives, which carry
        derivative rules of their own (custom_root on JAX 0.12).
      out_tree: the structure of its result.
      paths: where each argument stands, for messages.
      assumptions: what was assumed of dimension variables.
      large_constants: what becomes of large arrays that the function captures.
      debug_callbacks: whether jax.debug.callback and jax.debug.print run.
      simplify: makes the jaxprs of what JAX traces later, as derivatives.
      is_vjp: whether it is a vjp, which tape.jacobian maps over cotangents.
      retrace: traces the function with the variables that its calls of TensorFlow capture as
        arguments behind its own; None where that is done, and for a vjp.
      shares: whether an inner jaxpr that several equations call becomes one TensorFlow function.
      cache: what was built from this trace, by key: compiled and shared functions, its vjp. What
        is known of the jaxpr alone is a property each.
    """

    jaxpr: jex_core.ClosedJaxpr
    differentiable_jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
    paths: tuple[str, ...] = ()
    assumptions: dims.Assumptions = dataclasses.field(default_factory=dims.Assumptions)
    large_constants: LargeConstants = dataclasses.field(default_factory=LargeConstants)
    debug_callbacks: bool = True
    simplify: Simplify = _as_it_is
    is_vjp: bool = False
    retrace: Callable[[], tuple[Sequence[tf.Variable], Trace]] | None = None
    shares: bool = True
    cache: dict[Hashable, Any] = dataclasses.field(default_factory=dict)
    lock: contextlib.AbstractContextManager[bool] = dataclasses.field(
        default_factory=threading.RLock
    )

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under `key`, made by the first caller."""
        # Not by a KeyError, which Python would print above each error of `make`.
        known: T = self.cache.get(key, _ABSENT)
        if known is not _ABSENT:
            return known
        with self.lock:
            if key not in self.cache:
                self.cache[key] = make()
            made: T = self.cache[key]
            return made

    def results(self, leaves: Sequence[PyTree]) -> PyTree:
        """The tree of the function's results, with these leaves."""
        tree = jax.tree.unflatten(self.out_tree, leaves)
        has_static = self.cached("has_static_results", lambda: functions.has_static(tree))
        return functions.values(tree) if has_static else tree

    @functools.cached_property
    def is_polymorphic(self) -> bool:
        """Whether the shape of an argument is symbolic."""
        return not all(dims.is_static(aval.shape) for aval in self.jaxpr.in_avals)

    def path(self, i: int) -> str:
        """Where the i-th argument stands, for messages; those of a vjp are followed by others."""
        n = len(self.paths)
        return f"argument {self.paths[i]}" if i < n else f"cotangent {i - n}"

    def inlined(self) -> Trace:
        """The trace that shares no function, or this one where the graph would be large."""
        if count_equations(self.jaxpr.jaxpr, INLINED_MAX_EQUATIONS) >= INLINED_MAX_EQUATIONS:
            return self
        return dataclasses.replace(self, shares=False, cache={}, lock=threading.RLock())

    @functools.cached_property
    def calls_tensorflow(self) -> bool:
        """Whether there is a call_tf in the jaxpr."""
        return call_tf_p in self.primitives

    def with_variables(self) -> tuple[Sequence[tf.Variable], Trace]:
        """The variables that calls of TensorFlow capture, and the trace in which their values are
        arguments, behind its own.
        """
        if self.retrace is None or not self.calls_tensorflow:
            return (), self
        return self.cached("with_variables", self.retrace)

    @functools.cached_property
    def counts(self) -> collections.Counter[jex_core.Primitive]:
        """How many equations are of each primitive, those of an inner jaxpr once."""
        return collections.Counter(e.primitive for e in self.equations())

    @functools.cached_property
    def primitives(self) -> frozenset[jex_core.Primitive]:
        """All primitives in the jaxpr, inner ones too."""
        return frozenset(self.counts)

    def inner_constants(self) -> list[Array]:
        """The arrays that jitted functions inside of the function capture."""
        params = (p for e in self.equations() for p in e.params.values())
        leaves = jax.tree.leaves(list(params), is_leaf=is_jaxpr)
        closed = (leaf for leaf in leaves if isinstance(leaf, jex_core.ClosedJaxpr))
        return [c for jaxpr in closed for c in jaxpr.consts if hasattr(c, "dtype")]

    def find(self, name: str) -> jex_core.JaxprEqn | None:
        """The first equation of a primitive of that name, whoever's, in inner jaxprs too."""
        return next((e for e in self.equations() if e.primitive.name == name), None)

    def equations(self, closed: Collection[jex_core.Primitive] = ()) -> Iterator[jex_core.JaxprEqn]:
        """All equations, those of an inner jaxpr once; none of what is inside of those `closed`."""
        return _equations(self.jaxpr.jaxpr, closed, set())


class Tracer:
    """A function of JAX's and its traces so far.

    Args:
      function: what to trace.
      shapes: the polymorphic shapes that the caller gave.
      constraints: the polymorphic constraints that the caller gave.
      large_constants: what becomes of large arrays that the function captures.
      debug_callbacks: whether jax.debug.callback and jax.debug.print run.
      simplify: the passes over what JAX traces.
    """

    def __init__(
        self,
        function: Function,
        shapes: PyTree = None,
        constraints: Sequence[str] | export.SymbolicScope = (),
        large_constants: LargeConstants | None = None,
        debug_callbacks: bool = True,
        simplify: Simplify = _as_it_is,
    ):
        self._function = function
        self._shapes = shapes
        self._constraints = dims.constraints_of(constraints)
        self._large_constants = large_constants or LargeConstants()
        self._debug_callbacks = debug_callbacks
        self._simplify = simplify
        self._specs: dict[Hashable, list[dims.Spec | None]] = {}
        # By what the arguments are, and by what JAX traces for them.
        self._by_signature: Recent[Trace] = Recent(KEPT_TRACES)
        self._traces: Recent[Trace] = Recent(KEPT_TRACES)
        self._lock = threading.RLock()

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
        specs = self._specs.get(in_tree)
        if specs is None:
            specs = dims.spec_leaves(self._shapes, args, kwargs, self._function)
            self._specs[in_tree] = specs
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
        with self._lock:
            trace = self._by_signature.get(key)
            if trace is None:
                scope = dims.new_scope(self._constraints, specs)
                avals = _avals(leaves, specs, scope)
                # Dimensions of different scopes do not compare: their texts do.
                texts = tuple(tuple(str(d) for d in aval.shape) for aval in avals)
                types = tuple((leaf.dtype, leaf.weak_type) for leaf in leaves)
                assumed = dims.assumptions(self._constraints, scope)
                shared = (in_tree, texts, types, assumed.constraints, context)
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
        """A context that names the constraints with which a trace that fails would not."""
        # A scope is the caller's, and takes no constraints from us.
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
            # An equation that calls the function has its shardings, the function's jaxpr has not.
            traced = jax.jit(self._function.callable()).trace(*args, **kwargs)
        trace = dataclasses.replace(
            trace_of(traced, self._simplify),
            paths=tuple(leaf.path for leaf in leaves),
            assumptions=assumed,
            large_constants=self._large_constants,
            debug_callbacks=self._debug_callbacks,
        )
        return dataclasses.replace(
            trace, retrace=lambda: self._trace_with_variables(trace, args, kwargs)
        )

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
            cache={},
        )

    @uncollected()
    def _traced_passing(
        self, found: Sequence[tf.Variable], args: PyTree, kwargs: PyTree
    ) -> tuple[jax.stages.Traced, list[tf.Variable]]:
        """The function traced with the values of these variables, and those that it misses."""
        missing: list[tf.Variable] = []

        def fun(args: PyTree, kwargs: PyTree, values: Sequence[jax.Array]) -> PyTree:
            with variables.passing(found, values) as passed:
                results = self._function.callable()(*args, **kwargs)
            missing.extend(passed.missing)
            return results

        values = [jax.ShapeDtypeStruct(v.shape, dtypes.jax_dtype(v)) for v in found]
        return jax.jit(fun).trace(args, kwargs, values), missing


def _avals(
    leaves: Sequence[Leaf], specs: Sequence[dims.Spec | None], scope: export.SymbolicScope
) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(_shape(leaf, spec, scope), leaf.dtype, weak_type=leaf.weak_type)
        for leaf, spec in zip(leaves, specs, strict=True)
    ]


def _shape(leaf: Leaf, spec: dims.Spec | None, scope: export.SymbolicScope) -> tuple[Dim, ...]:
    # Most need no message, for which the place of the argument would be put into words.
    if spec is None and leaf.shape.is_fully_defined():
        return tuple(leaf.shape.as_list())
    return dims.symbolic_shape(spec, leaf.shape, scope, leaf.where)


# What a size is taken to be that nobody knows: it has many divisors.
_A_SIZE = 24


def _with_known_sizes(
    leaves: Sequence[Leaf], avals: Sequence[jax.ShapeDtypeStruct]
) -> list[jax.ShapeDtypeStruct]:
    """The avals with the sizes of the arguments, or with numbers of their own where unknown."""
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


def trace_of(traced: jax.stages.Traced, simplify: Simplify) -> Trace:
    """The trace that JAX's own `traced` stands for.

    Args:
      traced: what JAX traced.
      simplify: the passes over it.

    Raises:
      jax.errors.UnexpectedTracerError: the function reads a value of another trace of JAX's.
    """
    # JAX makes arguments of such values, before the function's own.
    foreign = traced.jaxpr.in_avals[: -len(jax.tree.leaves(traced.in_avals)) or None]
    if foreign:
        raise jax.errors.UnexpectedTracerError(
            f"jax2tf.convert({traced.fun_name}): the function reads a value of another trace of "
            f"JAX's ({', '.join(map(str, foreign))}): one that an earlier call left behind, or one "
            "of the jax.jit around the conversion. Return what a call computes, and take what the "
            "function reads as an argument."
        )
    jaxpr = simplify(traced.lojax.jaxpr, True)
    differentiable = simplify(traced.jaxpr, False)
    out_tree = jax.tree.structure(traced.out_info)
    return Trace(jaxpr, differentiable, out_tree, simplify=simplify)


def is_call_of_jitted(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the equation calls an inner jitted function."""
    return eqn.primitive is jit_p


def is_sharded(sharding: object) -> bool:
    """Whether a sharding that JAX keeps puts parts of an array on different devices."""
    # What was not asked for is a value of a class of its own.
    return not getattr(sharding, "is_fully_replicated", True)


def spans_devices(sharding: object) -> bool:
    """Whether a sharding that JAX keeps puts an array, whole or in parts, on several devices."""
    return getattr(sharding, "num_devices", 1) > 1


def results_of(eqn: jex_core.JaxprEqn, operands: Sequence[PyTree]) -> Sequence[Array]:
    """What JAX makes of an equation; `operands` are those of `variables_of(eqn)`."""
    alone = jex_core.Jaxpr(
        [], variables_of(eqn), eqn.outvars, [eqn], eqn.effects, debug_info=_OF_ONE_EQUATION
    )
    results: Sequence[Array] = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(alone, []))(*operands)
    return results


# What JAX calls it in its messages.
_OF_ONE_EQUATION = jex_core.DebugInfo("jax2tf", "an equation", None, None)


def variables_of(eqn: jex_core.JaxprEqn) -> list[jex_core.Var]:
    """The variables that an equation reads, each once."""
    return list(dict.fromkeys(v for v in eqn.invars if isinstance(v, jex_core.Var)))


def inner_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[jex_core.Jaxpr]:
    """The jaxprs among the params of an equation, closed ones opened."""
    return _jaxprs_in(eqn.params.values())


# What nearly all params are, which are looked at many times: no jaxprs.
_PLAIN = frozenset({type(None), bool, int, float, str})


def _jaxprs_in(params: Iterable[Param]) -> Iterator[jex_core.Jaxpr]:
    for param in params:
        if type(param) in _PLAIN:
            continue
        if isinstance(param, jex_core.ClosedJaxpr):
            yield param.jaxpr
        elif isinstance(param, jex_core.Jaxpr):
            yield param
        elif isinstance(param, tuple | list):
            yield from _jaxprs_in(param)
        elif isinstance(param, dict):
            yield from _jaxprs_in(param.values())


def is_jaxpr(param: object) -> bool:
    """Whether a param of an equation is a jaxpr, open or closed."""
    return isinstance(param, jex_core.ClosedJaxpr | jex_core.Jaxpr)


def _equations(
    jaxpr: jex_core.Jaxpr, closed: Collection[jex_core.Primitive], seen: set[Identity]
) -> Iterator[jex_core.JaxprEqn]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in () if eqn.primitive in closed else inner_jaxprs(eqn):
            if Identity(inner) not in seen:
                seen.add(Identity(inner))
                yield from _equations(inner, closed, seen)


def count_equations(jaxpr: jex_core.Jaxpr, enough: int) -> int:
    """How many equations there are with those of inner jaxprs in place of their calls.

    A number that is at least `enough` is no more than that: counting ends there.
    """
    count = 0
    for eqn in jaxpr.eqns:
        inner = list(inner_jaxprs(eqn))
        count += sum(count_equations(j, enough) for j in inner) if inner else 1
        if count >= enough:
            break
    return count
