"""Jaxprs: the jaxprs that equations call, evaluation, and the replacement of inner jaxprs.

The params that hold the jaxprs and the counts of operands differ between primitives and between
versions of JAX. These read them: `Scan.of(eqn)`, `While.of(eqn)`, `branches_of(eqn)`.
"""

from __future__ import annotations

import collections
import dataclasses
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Array, Atom, Dim, Param, PyTree, aval_of

V = TypeVar("V")

AnyJaxpr: TypeAlias = jex_core.Jaxpr | jex_core.ClosedJaxpr


@dataclasses.dataclass(frozen=True)
class Scan:
    """The params of a scan.

    Attributes:
      body: one step; maps the constants, the carry and a row of each of the xs to the carry and a
        row of each of the ys.
      n_consts: the number of operands that are constants; they come first.
      n_carry: the number of operands that are the carry; they come second.
      length: the number of steps.
      reverse: whether the first step takes the last row.
      unroll: the number of steps that JAX compiles as one.
    """

    body: jex_core.ClosedJaxpr
    n_consts: int
    n_carry: int
    length: Dim
    reverse: bool
    unroll: int

    @classmethod
    def of(cls, eqn: jex_core.JaxprEqn) -> Scan:
        params = eqn.params
        arity = compat.jaxprs.scan_arity(params)
        return cls(params["jaxpr"], *arity, params["length"], params["reverse"], params["unroll"])

    def split(self, operands: Sequence[V]) -> tuple[Sequence[V], Sequence[V], Sequence[V]]:
        """The constants, the first carry and the xs."""
        return _in_three(operands, self.n_consts, self.n_carry)

    def run(
        self, step: Callable[..., list[PyTree]], carry: Sequence[PyTree], xs: Sequence[PyTree]
    ) -> list[PyTree]:
        """The results of a scan with the same params, whose steps are `step(*carry, *rows)`."""

        def body(carry: PyTree, rows: PyTree) -> tuple[PyTree, PyTree]:
            results = step(*carry, *rows)
            return results[: self.n_carry], results[self.n_carry :]

        # JAX only infers a symbolic length from the xs.
        length = None if xs else self.length
        carry, ys = lax.scan(
            body, list(carry), list(xs), length, reverse=self.reverse, unroll=self.unroll
        )
        return [*carry, *ys]


@dataclasses.dataclass(frozen=True)
class While:
    """The params of a while loop.

    Attributes:
      condition: maps its constants and the carry to whether there is another step.
      body: one step; maps its constants and the carry to the carry.
      n_condition: the number of operands that are constants of the condition; they come first.
      n_body: the number of operands that are constants of the body; they come second.
    """

    condition: jex_core.ClosedJaxpr
    body: jex_core.ClosedJaxpr
    n_condition: int
    n_body: int

    @classmethod
    def of(cls, eqn: jex_core.JaxprEqn) -> While:
        names = ("cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts")
        return cls(*(eqn.params[name] for name in names))

    def split(self, operands: Sequence[V]) -> tuple[Sequence[V], Sequence[V], Sequence[V]]:
        """The constants of the condition, the constants of the body, and the first carry."""
        return _in_three(operands, self.n_condition, self.n_body)

    def params(
        self, condition: jex_core.ClosedJaxpr, body: jex_core.ClosedJaxpr
    ) -> dict[str, Param]:
        """The params of the loop with another condition and another body."""
        counts = {"cond_nconsts": self.n_condition, "body_nconsts": self.n_body}
        return {"cond_jaxpr": condition, "body_jaxpr": body, **counts}


def _in_three(
    values: Sequence[V], n_first: int, n_second: int
) -> tuple[Sequence[V], Sequence[V], Sequence[V]]:
    n = n_first + n_second
    return values[:n_first], values[n_first:n], values[n:]


def branches_of(eqn: jex_core.JaxprEqn) -> Sequence[jex_core.ClosedJaxpr]:
    """The branches of a cond, each of which takes all operands except the index."""
    return cast(Sequence[jex_core.ClosedJaxpr], eqn.params["branches"])


# The names of the param in different primitives and versions of JAX.
_CALLED = ("call_jaxpr", "jaxpr", "call")


def called(eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """The jaxpr that an equation with the trait `CALLS` calls."""
    return closed(next(eqn.params[name] for name in _CALLED if name in eqn.params))


def is_jaxpr(param: object) -> bool:
    """Whether a param of an equation is a jaxpr, open or closed."""
    return isinstance(param, jex_core.ClosedJaxpr | jex_core.Jaxpr)


def opened(jaxpr: AnyJaxpr) -> jex_core.Jaxpr:
    """The jaxpr without its constants."""
    return jaxpr.jaxpr if isinstance(jaxpr, jex_core.ClosedJaxpr) else jaxpr


def closed(jaxpr: AnyJaxpr) -> jex_core.ClosedJaxpr:
    """The jaxpr with its constants; an open one has none."""
    return jaxpr if isinstance(jaxpr, jex_core.ClosedJaxpr) else jex_core.ClosedJaxpr(jaxpr, ())


def inner_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[jex_core.Jaxpr]:
    """The jaxprs among the params of an equation; closed ones without their constants."""
    return jaxprs_in(eqn.params.values())


# Nearly all params have these types, which contain no jaxprs.
_PLAIN = frozenset({type(None), bool, int, float, str})


def jaxprs_in(params: Iterable[Param]) -> Iterator[jex_core.Jaxpr]:
    """Yields the jaxprs among params; closed ones without their constants."""
    for param in params:
        if type(param) in _PLAIN:
            continue
        if is_jaxpr(param):
            yield opened(param)
        elif isinstance(param, tuple | list):
            yield from jaxprs_in(param)
        elif isinstance(param, dict):
            yield from jaxprs_in(param.values())


def map_inner(params: dict[str, Param], change: Callable[[Any], Param]) -> dict[str, Param]:
    """Replaces each jaxpr by `change(jaxpr)`; returns `params` itself if nothing changes."""
    changed = {name: _map_jaxprs(param, change) for name, param in params.items()}
    is_same = all(changed[name] is param for name, param in params.items())
    return params if is_same else changed


def _map_jaxprs(param: Param, change: Callable[[Any], Param]) -> Param:
    if is_jaxpr(param):
        return change(param)
    if not isinstance(param, tuple | list):
        return param
    changed = [_map_jaxprs(one, change) for one in param]
    if all(map(operator.is_, changed, param)):
        return param
    return type(param)(*changed) if hasattr(param, "_fields") else type(param)(changed)


def rewriting(
    rewrite: Callable[[jex_core.Jaxpr], jex_core.Jaxpr],
) -> Callable[[AnyJaxpr], AnyJaxpr]:
    """Extends `rewrite` to open and closed jaxprs, and calls it once for each jaxpr.

    If `rewrite` returns its argument, the jaxpr stays the same object.
    """
    done: dict[Identity, AnyJaxpr] = {}

    def rewritten(jaxpr: AnyJaxpr) -> AnyJaxpr:
        key = Identity(jaxpr)
        if key not in done:
            before = opened(jaxpr)
            after = rewrite(before)
            if after is before:
                done[key] = jaxpr
            elif isinstance(jaxpr, jex_core.ClosedJaxpr):
                done[key] = jex_core.ClosedJaxpr(after, jaxpr.consts)
            else:
                done[key] = after
        return done[key]

    return rewritten


def traced(
    function: Callable[..., PyTree], specs: Sequence[jax.ShapeDtypeStruct]
) -> jex_core.ClosedJaxpr:
    """Traces a function of arrays with these shapes and dtypes to a jaxpr."""
    return cast(jex_core.ClosedJaxpr, jax.jit(function).trace(*specs).jaxpr)


def evaluate(
    jaxpr: jex_core.Jaxpr,
    consts: Sequence[V],
    args: Sequence[V],
    rule: Callable[[jex_core.JaxprEqn, list[V]], Sequence[V]],
    literal: Callable[[jex_core.Literal], V] | None = None,
) -> list[V]:
    """The results of a jaxpr.

    Args:
      jaxpr: the jaxpr.
      consts: the values of its constants.
      args: the values of its arguments.
      rule: maps an equation and its operands to the results.
      literal: returns the value of a literal; if None, an array of its dtype.
    """
    value_of: Callable[[jex_core.Literal], Any] = literal or array_of
    values: dict[Atom, V] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Atom) -> V:
        return value_of(atom) if isinstance(atom, jex_core.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        results = rule(eqn, [read(atom) for atom in eqn.invars])
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def array_of(literal: jex_core.Literal) -> np.ndarray:
    """The value of a literal, in its dtype."""
    aval = aval_of(literal)
    return np.asarray(literal.val, aval.dtype)


def bind(
    primitive: jex_core.Primitive, operands: Sequence[PyTree], params: Mapping[str, Param]
) -> Sequence[PyTree]:
    """The list of results of a primitive, bound with the params of an equation."""
    results = primitive.bind(*operands, **primitive.get_bind_params(params))
    return results if primitive.multiple_results else [results]


def results_of(eqn: jex_core.JaxprEqn, operands: Sequence[PyTree]) -> Sequence[Array]:
    """The results of an equation, computed by JAX; literal operands are not read."""
    pairs = zip(eqn.invars, operands, strict=True)
    values = {v: x for v, x in pairs if isinstance(v, jex_core.Var)}
    alone = jex_core.Jaxpr(
        [], list(values), eqn.outvars, [eqn], eqn.effects, debug_info=_OF_ONE_EQUATION
    )
    function = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(alone, []))
    return function(*values.values())


# The name of the jaxpr in JAX's messages.
_OF_ONE_EQUATION = jex_core.DebugInfo("jax2tf", "an equation", None, None)


def variables(atoms: Iterable[Atom]) -> Iterator[jex_core.Var]:
    """The atoms that are not literals."""
    return (atom for atom in atoms if isinstance(atom, jex_core.Var))


def equations(
    jaxpr: jex_core.Jaxpr,
    without_inner: Collection[jex_core.Primitive] = (),
    seen: set[Identity] | None = None,
) -> Iterator[jex_core.JaxprEqn]:
    """Yields all equations; those of an inner jaxpr once, even if several equations call it.

    Args:
      jaxpr: the jaxpr.
      without_inner: primitives whose inner jaxprs are left out.
      seen: inner jaxprs that are left out because their equations are known.
    """
    seen = set() if seen is None else seen
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in () if eqn.primitive in without_inner else inner_jaxprs(eqn):
            if Identity(inner) not in seen:
                seen.add(Identity(inner))
                yield from equations(inner, without_inner, seen)


def count_equations(jaxpr: jex_core.Jaxpr, enough: int) -> int:
    """The number of equations, where each call counts as the equations of the inner jaxpr.

    Counting ends at `enough`: a number that is at least `enough` may be too small.
    """
    count = 0
    for eqn in jaxpr.eqns:
        inner = list(inner_jaxprs(eqn))
        count += sum(count_equations(j, enough) for j in inner) if inner else 1
        if count >= enough:
            break
    return count


def count_uses(jaxpr: jex_core.Jaxpr) -> collections.Counter[Identity]:
    """The number of equations that call each inner jaxpr, by the jaxpr's identity."""
    return collections.Counter(
        Identity(inner) for eqn in equations(jaxpr) for inner in inner_jaxprs(eqn)
    )
