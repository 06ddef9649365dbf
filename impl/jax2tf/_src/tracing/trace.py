"""A traced function: its jaxpr, the structure of its results, and caches of derived values."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import jax
from jax.extend import core as jex_core

from jax2tf._src import dims
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.tracing import functions, jaxprs
from jax2tf._src.tracing.large_constants import LargeConstants
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import Array, PyTree

T = TypeVar("T")

# The passes over a jaxpr that JAX traced: takes the jaxpr and whether it will be lowered.
Simplify: TypeAlias = Callable[[jex_core.ClosedJaxpr, bool], jex_core.ClosedJaxpr]


def as_it_is(jaxpr: jex_core.ClosedJaxpr, is_lowered: bool) -> jex_core.ClosedJaxpr:
    """The jaxpr itself: no pass runs."""
    del is_lowered
    return jaxpr


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switches Python's cyclic garbage collector off while JAX traces, in any thread.

    When JAX derives a linear function, it reads its weak reference to a tracer twice. Once in some
    hundred traces the collector ran in between, and the trace ended in an AssertionError.
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


# The kinds of values that a trace keeps. The rest of a key says for what it is: an equation, a
# target, a device, shapes.
Kept: TypeAlias = Literal[
    # Facts about the trace. Facts about its jaxpr are properties.
    "calls",
    "has static results",
    "is partitioned",
    "is pure",
    "native is partitioned",
    "size",
    "use counts",
    "warned of gradients",
    # Other traces and jaxprs of the whole program.
    "after pass",
    "differentiability",
    "split vjp",
    "vjp",
    "with variables",
    # The program as TensorFlow's function, or as JAX's module.
    "compiled",
    "compiled eagerly",
    "eager graph",
    "gradient function",
    "native",
    # Jaxprs and functions that rules make of one equation.
    "associative scan",
    "batched",
    "closed",
    "computation",
    "dot_general",
    "elementwise",
    "foreign",
    "foreign module",
    "function",
    "is a draw",
    "legalized",
    "linalg",
    "on key data",
    "reduce by",
    "shard_map",
    "special",
    "way of a call_tf",
]

# A trace keeps at least this number of values. Where dimensions have names, it makes functions for
# each size that eager mode meets.
FEWEST_KEPT = 256

# A large program keeps this number for each equation, so that none goes while it is lowered.
KEPT_OF_EQUATION = 8

# A graph with at least this number of equations keeps its shared functions.
INLINED_MAX_EQUATIONS = 10_000


@dataclasses.dataclass(eq=False)
class Trace:
    """The result of tracing a function, with caches.

    Attributes:
      jaxpr: the function over flat arguments, ready to be lowered.
      differentiable_jaxpr: the same before JAX lowered its high-level primitives, which carry
        derivative rules of their own (custom_root on JAX 0.12).
      out_tree: the structure of its result.
      paths: the path of each argument, for messages.
      assumptions: the assumptions about dimension variables.
      large_constants: the policy for large arrays that the function captures.
      debug_callbacks: whether jax.debug.callback and jax.debug.print run.
      simplify: the passes over jaxprs that JAX traces later, such as derivatives.
      is_vjp: whether it is a vjp, which tape.jacobian maps over cotangents.
      retrace: traces the function with the variables that its TensorFlow functions capture as
        additional last arguments; None in such a trace, and for a vjp.
      shares: whether an inner jaxpr that several equations call becomes one TensorFlow function.
    """

    jaxpr: jex_core.ClosedJaxpr
    differentiable_jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
    paths: tuple[str, ...] = ()
    assumptions: dims.Assumptions = dataclasses.field(default_factory=dims.Assumptions)
    large_constants: LargeConstants = dataclasses.field(default_factory=LargeConstants)
    debug_callbacks: bool = True
    simplify: Simplify = as_it_is
    is_vjp: bool = False
    retrace: Callable[[], tuple[Sequence[tf.Variable], Trace]] | None = None
    shares: bool = True

    def __post_init__(self) -> None:
        self._kept: Lru[Any] = Lru(max(FEWEST_KEPT, KEPT_OF_EQUATION * self.counts.total()))

    def cached(self, kind: Kept, make: Callable[[], T], *key: Hashable) -> T:
        """The value of a kind under `key`; the first caller makes it."""
        return self._kept.value((kind, *key), make)

    def results(self, leaves: Sequence[PyTree]) -> PyTree:
        """The tree of the function's results, with the given leaves."""
        tree = jax.tree.unflatten(self.out_tree, leaves)
        has_static = self.cached("has static results", lambda: functions.has_static(tree))
        return functions.values(tree) if has_static else tree

    @functools.cached_property
    def is_polymorphic(self) -> bool:
        """Whether the shape of an argument is symbolic."""
        return not all(dims.is_static(aval.shape) for aval in self.jaxpr.in_avals)

    def path(self, i: int) -> str:
        """The path of the i-th argument, for messages; a vjp has cotangents after the paths."""
        n = len(self.paths)
        return f"argument {self.paths[i]}" if i < n else f"cotangent {i - n}"

    def inlined(self) -> Trace:
        """The trace without shared functions, or this one if the graph would be large."""
        if jaxprs.count_equations(self.jaxpr.jaxpr, INLINED_MAX_EQUATIONS) >= INLINED_MAX_EQUATIONS:
            return self
        return dataclasses.replace(self, shares=False)

    @functools.cached_property
    def calls_tensorflow(self) -> bool:
        """Whether there is a call_tf in the jaxpr."""
        return call_tf_p in self.primitives

    def with_variables(self) -> tuple[Sequence[tf.Variable], Trace]:
        """The variables that TensorFlow functions capture, and the trace that takes their values.

        The values are arguments after the trace's own.
        """
        if self.retrace is None or not self.calls_tensorflow:
            return (), self
        return self.cached("with variables", self.retrace)

    @functools.cached_property
    def counts(self) -> collections.Counter[jex_core.Primitive]:
        """The number of equations of each primitive; equations of an inner jaxpr count once."""
        return collections.Counter(e.primitive for e in self.equations())

    @functools.cached_property
    def primitives(self) -> frozenset[jex_core.Primitive]:
        """All primitives in the jaxpr and in inner jaxprs."""
        return frozenset(self.counts)

    def inner_constants(self) -> list[Array]:
        """The arrays that jitted functions inside of the function capture."""
        params = (p for e in self.equations() for p in e.params.values())
        leaves = jax.tree.leaves(list(params), is_leaf=jaxprs.is_jaxpr)
        closed = (leaf for leaf in leaves if isinstance(leaf, jex_core.ClosedJaxpr))
        return [c for jaxpr in closed for c in jaxpr.consts if hasattr(c, "dtype")]

    def find(self, name: str) -> jex_core.JaxprEqn | None:
        """The first equation of any primitive with that name, also in inner jaxprs."""
        return next((e for e in self.equations() if e.primitive.name == name), None)

    def equations(
        self, without_inner: Collection[jex_core.Primitive] = ()
    ) -> Iterator[jex_core.JaxprEqn]:
        """Like `jaxprs.equations`, for the jaxpr of this trace."""
        return jaxprs.equations(self.jaxpr.jaxpr, without_inner)


def trace_of(traced: jax.stages.Traced, simplify: Simplify, **attributes: Any) -> Trace:
    """Makes a Trace of JAX's `traced`.

    Args:
      traced: the result of JAX's trace.
      simplify: the passes over it.
      **attributes: other attributes of the trace.

    Raises:
      jax.errors.UnexpectedTracerError: the function reads a value of another trace of JAX's.
    """
    # JAX passes such values as arguments, before the function's own.
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
    return Trace(jaxpr, differentiable, out_tree, simplify=simplify, **attributes)


def is_sharded(sharding: object) -> bool:
    """Whether a sharding places different parts of an array on different devices."""
    # An unspecified sharding has its own class, without this attribute.
    return not getattr(sharding, "is_fully_replicated", True)


def spans_devices(sharding: object) -> bool:
    """Whether a sharding places an array, whole or in parts, on several devices."""
    return getattr(sharding, "num_devices", 1) > 1
