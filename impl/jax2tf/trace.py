"""JAX function + argument specs -> closed jaxpr and output tree, cached.

A trace is made once per argument tree, dtypes, shapes and JAX configuration; each later call of the
converted function finds it by key and costs its TensorFlow ops alone.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax
from jax.extend import core as jex_core

from jax2tf import compat


@dataclasses.dataclass(eq=False)
class Trace:
    """What tracing a function gave, and what is worth keeping beside it.

    Attributes:
      jaxpr: the function over flat arguments, ready to be lowered.
      differentiable_jaxpr: the same before JAX lowered its high-level primitives, which carry
        derivative rules of their own (custom_root on JAX 0.12).
      out_tree: the structure of its result.
      cache: things built from this trace (compiled functions, shared functions, its vjp), by key.
    """

    jaxpr: jex_core.ClosedJaxpr
    differentiable_jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
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

    def use_counts(self) -> collections.Counter[int]:
        """How many equations call each inner jaxpr, by the jaxpr's id.

        JAX gives the same object for each call of the same jitted function on the same avals.
        """
        return self.cached("use_counts", lambda: _count_uses(self.jaxpr.jaxpr))

    def primitives(self) -> frozenset[str]:
        """The names of all primitives in the jaxpr, inner ones too."""
        return self.cached("primitives", lambda: frozenset(_primitives(self.jaxpr.jaxpr, set())))


class Tracer:
    """A JAX function and its traces so far."""

    def __init__(self, fun: Callable[..., Any]):
        self.is_jitted = isinstance(fun, jax.stages.Wrapped)
        self._jitted: Any = fun if self.is_jitted else jax.jit(fun)
        self._traces: dict[Hashable, Trace] = {}
        self._lock = threading.RLock()

    def trace(self, in_tree: jax.tree_util.PyTreeDef, specs: tuple[Any, ...]) -> Trace:
        """The trace for arguments `(args, kwargs)` of structure `in_tree` and leaves `specs`."""
        signature = tuple((s.shape, s.dtype, s.weak_type) for s in specs)
        key = (in_tree, signature, compat.trace_context())
        try:
            return self._traces[key]
        except KeyError:
            with self._lock:
                if key not in self._traces:
                    self._traces[key] = self._trace(in_tree, specs)
                return self._traces[key]

    def _trace(self, in_tree: jax.tree_util.PyTreeDef, specs: tuple[Any, ...]) -> Trace:
        args, kwargs = jax.tree.unflatten(in_tree, specs)
        return trace_of(self._jitted.trace(*args, **kwargs))


def trace_of(traced: jax.stages.Traced) -> Trace:
    """The trace that JAX's own `traced` stands for."""
    jaxpr = compat.without_references(traced.lojax.jaxpr)
    return Trace(jaxpr, traced.jaxpr, jax.tree.structure(traced.out_info))


def inner_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[jex_core.Jaxpr]:
    """The jaxprs among the params of an equation, closed ones opened."""
    for param in jax.tree.leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
        if isinstance(param, jex_core.ClosedJaxpr):
            yield param.jaxpr
        elif isinstance(param, jex_core.Jaxpr):
            yield param


def _is_jaxpr(param: Any) -> bool:
    return isinstance(param, jex_core.ClosedJaxpr | jex_core.Jaxpr)


def _primitives(jaxpr: jex_core.Jaxpr, seen: set[int]) -> set[str]:
    names = set()
    for eqn in jaxpr.eqns:
        names.add(eqn.primitive.name)
        for inner in inner_jaxprs(eqn):
            if id(inner) not in seen:
                seen.add(id(inner))
                names |= _primitives(inner, seen)
    return names


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
