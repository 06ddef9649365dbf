"""JAX function + argument specs -> closed jaxpr and output tree, cached.

A trace is made once per argument tree, dtypes, shapes and JAX configuration; each later call of the
converted function finds it by key and costs its TensorFlow ops alone.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol

import jax
import tensorflow as tf
from jax import export
from jax.extend import core as jex_core

from jax2tf import compat, dims, dtypes
from jax2tf.call_tf import variables
from jax2tf.large_constants import LargeConstants


class Leaf(Protocol):
    """What a trace needs to know of one leaf of the arguments; see `jax2tf.arguments.Argument`."""

    dtype: Any
    path: str
    shape: tf.TensorShape
    weak_type: bool
    where: str


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
      retrace: traces the function with the variables that its calls of TensorFlow capture as
        arguments behind its own; None where that is done, and for a vjp.
      cache: things built from this trace (compiled functions, shared functions, its vjp), by key.
    """

    jaxpr: jex_core.ClosedJaxpr
    differentiable_jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
    paths: tuple[str, ...] = ()
    assumptions: dims.Assumptions = dataclasses.field(default_factory=dims.Assumptions)
    large_constants: LargeConstants = dataclasses.field(default_factory=LargeConstants)
    retrace: Callable[[], tuple[Sequence[tf.Variable], Trace]] | None = None
    cache: dict[Hashable, Any] = dataclasses.field(default_factory=dict)
    lock: Any = dataclasses.field(default_factory=threading.RLock)

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value under `key`, made by the first caller."""
        try:
            return self.cache[key]
        except KeyError:
            with self.lock:
                if key not in self.cache:
                    self.cache[key] = make()
                return self.cache[key]

    @property
    def is_polymorphic(self) -> bool:
        """Whether the shape of an argument is symbolic."""
        return self.cached(
            "is_polymorphic",
            lambda: not all(dims.is_static(aval.shape) for aval in self.jaxpr.in_avals),
        )

    def path(self, i: int) -> str:
        """Where the i-th argument stands, for messages; those of a vjp are followed by others."""
        n = len(self.paths)
        return f"argument {self.paths[i]}" if i < n else f"cotangent {i - n}"

    def use_counts(self) -> collections.Counter[int]:
        """How many equations call each inner jaxpr, by the jaxpr's id.

        JAX gives the same object for each call of the same jitted function on the same avals.
        """
        return self.cached("use_counts", lambda: _count_uses(self.jaxpr.jaxpr))

    @property
    def calls_tensorflow(self) -> bool:
        """Whether there is a call_tf in the jaxpr."""
        return "call_tf" in self.primitives()

    def with_variables(self) -> tuple[Sequence[tf.Variable], Trace]:
        """The variables that calls of TensorFlow capture, and the trace in which their values are
        arguments, behind its own.
        """
        if self.retrace is None or not self.calls_tensorflow:
            return (), self
        return self.cached("with_variables", self.retrace)

    def primitives(self) -> frozenset[str]:
        """The names of all primitives in the jaxpr, inner ones too."""
        return self.cached(
            "primitives",
            lambda: frozenset(e.primitive.name for e in self.equations()),
        )

    def inner_constants(self) -> list[Any]:
        """The arrays that jitted functions inside of the function capture."""
        params = (p for e in self.equations() for p in e.params.values())
        leaves = jax.tree.leaves(list(params), is_leaf=_is_jaxpr)
        closed = (leaf for leaf in leaves if isinstance(leaf, jex_core.ClosedJaxpr))
        return [c for jaxpr in closed for c in jaxpr.consts if hasattr(c, "dtype")]

    def find(self, primitive: str) -> jex_core.JaxprEqn | None:
        """The first equation of a primitive of that name, in inner jaxprs too."""
        return next((e for e in self.equations() if e.primitive.name == primitive), None)

    def equations(self) -> Iterator[jex_core.JaxprEqn]:
        """All equations, those of an inner jaxpr once."""
        return _equations(self.jaxpr.jaxpr, set())


class Tracer:
    """A JAX function and its traces so far."""

    def __init__(
        self,
        fun: Callable[..., Any],
        constraints: Sequence[str] | export.SymbolicScope = (),
        large_constants: LargeConstants | None = None,
    ):
        self._fun = fun
        self.is_jitted = isinstance(fun, jax.stages.Wrapped)
        self._jitted: Any = fun if self.is_jitted else jax.jit(fun)
        dims.new_scope(constraints)  # raises where they make no sense
        self._constraints = constraints
        self._large_constants = large_constants or LargeConstants()
        self._traces: dict[Hashable, Trace] = {}
        self._lock = threading.RLock()

    def trace(
        self,
        in_tree: jax.tree_util.PyTreeDef,
        leaves: Sequence[Leaf],
        specs: Sequence[dims.Spec | None],
    ) -> Trace:
        """The trace for arguments `(args, kwargs)` of structure `in_tree`, one spec a leaf.

        Shapes that a spec maps to the same symbolic shape share one trace.
        """
        given = tuple(
            (_known(leaf.shape), spec, leaf.dtype, leaf.weak_type)
            for leaf, spec in zip(leaves, specs, strict=True)
        )
        context = compat.trace_context()
        key = (in_tree, given, context)
        try:
            return self._traces[key]
        except KeyError:
            pass
        with self._lock:
            if key not in self._traces:
                scope = dims.new_scope(self._constraints, specs)
                avals = _avals(leaves, specs, scope)
                # Dimensions of different scopes do not compare: their texts do.
                texts = tuple(tuple(str(d) for d in aval.shape) for aval in avals)
                types = tuple((leaf.dtype, leaf.weak_type) for leaf in leaves)
                assumed = dims.assumptions(self._constraints, scope)
                shared = (in_tree, texts, types, assumed.constraints, context)
                if shared not in self._traces:
                    self._traces[shared] = self._trace(in_tree, leaves, avals, assumed)
                self._traces[key] = self._traces[shared]
            return self._traces[key]

    def _trace(
        self,
        in_tree: jax.tree_util.PyTreeDef,
        leaves: Sequence[Leaf],
        avals: Sequence[jax.ShapeDtypeStruct],
        assumed: dims.Assumptions,
    ) -> Trace:
        args, kwargs = jax.tree.unflatten(in_tree, avals)
        traced = self._jitted.trace(*args, **kwargs)
        if self.is_jitted and any(map(is_sharded, compat.shardings_of(traced))):
            # An equation that calls the function has its shardings, the function's jaxpr has not.
            traced = jax.jit(lambda *a, **k: self._jitted(*a, **k)).trace(*args, **kwargs)
        trace = dataclasses.replace(
            trace_of(traced),
            paths=tuple(leaf.path for leaf in leaves),
            assumptions=assumed,
            large_constants=self._large_constants,
        )
        return dataclasses.replace(
            trace, retrace=lambda: self._trace_with_variables(trace, args, kwargs)
        )

    def _trace_with_variables(
        self, trace: Trace, args: Any, kwargs: Any
    ) -> tuple[Sequence[tf.Variable], Trace]:
        found: list[tf.Variable] = []
        while True:
            traced, missing = self._traced_passing(found, args, kwargs)
            if not missing:
                break
            found += missing
        if not found:
            return (), trace
        again = trace_of(traced)
        return found, dataclasses.replace(
            trace,
            jaxpr=again.jaxpr,
            differentiable_jaxpr=again.differentiable_jaxpr,
            cache={},
        )

    def _traced_passing(
        self, found: Sequence[tf.Variable], args: Any, kwargs: Any
    ) -> tuple[jax.stages.Traced, list[tf.Variable]]:
        """The function traced with the values of these variables, and those that it misses."""
        missing: list[tf.Variable] = []

        def fun(args: Any, kwargs: Any, values: Sequence[jax.Array]) -> Any:
            with variables.passing(found, values) as passed:
                results = self._fun(*args, **kwargs)
            missing.extend(passed.missing)
            return results

        values = [jax.ShapeDtypeStruct(v.shape, dtypes.jax_dtype(v)) for v in found]
        return jax.jit(fun).trace(args, kwargs, values), missing


def _avals(
    leaves: Sequence[Leaf], specs: Sequence[dims.Spec | None], scope: export.SymbolicScope
) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(
            dims.symbolic_shape(spec, leaf.shape, scope, leaf.where),
            leaf.dtype,
            weak_type=leaf.weak_type,
        )
        for leaf, spec in zip(leaves, specs, strict=True)
    ]


def _known(shape: tf.TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


def trace_of(traced: jax.stages.Traced) -> Trace:
    """The trace that JAX's own `traced` stands for."""
    jaxpr = compat.without_references(traced.lojax.jaxpr)
    return Trace(jaxpr, traced.jaxpr, jax.tree.structure(traced.out_info))


def is_call_of_jitted(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the equation calls an inner jitted function; "pjit" is its name before JAX 0.11."""
    return eqn.primitive.name in ("jit", "pjit")


def is_sharded(sharding: Any) -> bool:
    """Whether a sharding that JAX keeps puts parts of an array on different devices."""
    # What was not asked for is a value of a class of its own.
    return not getattr(sharding, "is_fully_replicated", True)


def inner_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[jex_core.Jaxpr]:
    """The jaxprs among the params of an equation, closed ones opened."""
    for param in jax.tree.leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
        if isinstance(param, jex_core.ClosedJaxpr):
            yield param.jaxpr
        elif isinstance(param, jex_core.Jaxpr):
            yield param


def _is_jaxpr(param: Any) -> bool:
    return isinstance(param, jex_core.ClosedJaxpr | jex_core.Jaxpr)


def _equations(jaxpr: jex_core.Jaxpr, seen: set[int]) -> Iterator[jex_core.JaxprEqn]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in inner_jaxprs(eqn):
            if id(inner) not in seen:
                seen.add(id(inner))
                yield from _equations(inner, seen)


def _count_uses(jaxpr: jex_core.Jaxpr) -> collections.Counter[int]:
    counts: collections.Counter[int] = collections.Counter()
    pending = [jaxpr]
    while pending:
        for eqn in pending.pop().eqns:
            for inner in inner_jaxprs(eqn):
                counts[id(inner)] += 1
                if counts[id(inner)] == 1:
                    pending.append(inner)
    return counts
