"""Jaxprs: what equations call, how jaxprs are evaluated, and how those inside of them are replaced.

The params in which an equation keeps its jaxprs, and the numbers of its operands, differ between
primitives and between versions of JAX. They are read here: `Scan.of(eqn)`, `While.of(eqn)`,
`branches_of(eqn)`.
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
      body: one step, from the constants, the carry and a row of each of the xs to the carry and a
        row of each of the ys.
      n_consts: how many operands are constants; they come first.
      n_carry: how many operands are the carry; they come second.
      length: the number of steps.
      reverse: whether the last row is the first step's.
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
        """The results of a scan of as many steps, each of which is `step(*carry, *rows)`."""

        def body(carry: PyTree, rows: PyTree) -> tuple[PyTree, PyTree]:
            results = step(*carry, *rows)
            return results[: self.n_carry], results[self.n_carry :]

        # JAX takes a symbolic length from the xs only.
        length = None if xs else self.length
        carry, ys = lax.scan(
            body, list(carry), list(xs), length, reverse=self.reverse, unroll=self.unroll
        )
        return [*carry, *ys]


@dataclasses.dataclass(frozen=True)
class While:
    """The params of a while loop.

    Attributes:
      condition: from its constants and the carry to whether there is another step.
      body: one step, from its constants and the carry to the carry.
      n_condition: how many operands are constants of the condition; they come first.
      n_body: how many operands are constants of the body; they come second.
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
        """The constants of the condition, those of the body, and the first carry."""
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
    """The branches of a cond, each of which takes all operands but the index."""
    return cast(Sequence[jex_core.ClosedJaxpr], eqn.params["branches"])


# The names of the param, in different primitives and versions of JAX.
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
    """The jaxprs among the params of an equation, closed ones opened."""
    return jaxprs_in(eqn.params.values())


# Nearly all params are of these types, which hold no jaxprs.
_PLAIN = frozenset({type(None), bool, int, float, str})


def jaxprs_in(params: Iterable[Param]) -> Iterator[jex_core.Jaxpr]:
    """The jaxprs among params, closed ones opened."""
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
    """The params with `change(jaxpr)` in place of each jaxpr; `params` itself if none changes."""
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
    """`rewrite` for open and closed jaxprs, each of which it is called for once.

    A jaxpr that `rewrite` returns as it is stays the same object.
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
    """The jaxpr of a function of arrays of these shapes and dtypes."""
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
      rule: gives the results of an equation, from it and its operands.
      literal: gives the value of a literal; an array of its dtype if None.
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
    """All results of a primitive, a single one too, with the params of an equation."""
    results = primitive.bind(*operands, **primitive.get_bind_params(params))
    return results if primitive.multiple_results else [results]


def results_of(eqn: jex_core.JaxprEqn, operands: Sequence[PyTree]) -> Sequence[Array]:
    """The results of an equation, which JAX computes; operands that are literals are not read."""
    pairs = zip(eqn.invars, operands, strict=True)
    values = {v: x for v, x in pairs if isinstance(v, jex_core.Var)}
    alone = jex_core.Jaxpr(
        [], list(values), eqn.outvars, [eqn], eqn.effects, debug_info=_OF_ONE_EQUATION
    )
    function = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(alone, []))
    results: Sequence[Array] = function(*values.values())
    return results


# The name of a jaxpr in messages of JAX.
_OF_ONE_EQUATION = jex_core.DebugInfo("jax2tf", "an equation", None, None)


def variables(atoms: Iterable[Atom]) -> Iterator[jex_core.Var]:
    """The atoms that are no literals."""
    return (atom for atom in atoms if isinstance(atom, jex_core.Var))


def equations(
    jaxpr: jex_core.Jaxpr,
    without_inner: Collection[jex_core.Primitive] = (),
    seen: set[Identity] | None = None,
) -> Iterator[jex_core.JaxprEqn]:
    """All equations; those of an inner jaxpr once, whoever calls it.

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
    """How many equations call each inner jaxpr, by the jaxpr's identity."""
    return collections.Counter(
        Identity(inner) for eqn in equations(jaxpr) for inner in inner_jaxprs(eqn)
    )
