"""Faults to plant: one dtype, one value of a param, one axis, one edge of one operand each.

A fault is a claim that the matrix would notice an implementation which is right but for it. Dtypes
and values of params are those that harnesses ask about: `python -m harnesses gaps` says that JAX
accepts no others. Edges are those of every operand's dtype, whatever the harnesses feed it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.extend import core

from harnesses.engine import gaps
from harnesses.harness import Harness, is_complex, is_float, is_integer
from reports.planted.table import AXIS, DTYPE, EDGE, KINDS, PARAM

Values = Any  # an array of JAX's, traced


@dataclass(frozen=True)
class Fault:
    """What is wrong: the results of a primitive where `what` holds.

    Attributes:
      primitive: its name.
      kind: one of `table.KINDS`.
      what: "dtype=int8", "reverse=True", "axis=last" or "operand 1 has nan".
    """

    primitive: str
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.primitive}: {self.what}"

    def may_hit(self, eqn: core.JaxprEqn) -> bool:
        """Whether the fault can show in the results of an equation."""
        if eqn.primitive.name != self.primitive or not _has_numbers(eqn):
            return False
        if self.kind == DTYPE:
            return self.what in _dtypes(eqn)
        if self.kind == EDGE:
            return self.what in edges(eqn)
        return self.what in gaps.labels(eqn, eqn.params)

    def wrong(self, operands: Sequence[Values], result: Values) -> Values:
        """What the fault makes of the first result of an equation that it may hit."""
        if not result.size:
            return result
        if self.kind != EDGE:
            return jnp.where(_last(result.shape), _other(result), result)
        place, edge = _parsed(self.what)
        operand = operands[place]
        hit = EDGES[edge].holds(operand)
        if operand.shape != result.shape:
            hit = jnp.any(hit) & _last(result.shape)
        return jnp.where(hit, _other(result), result)


@dataclass(frozen=True)
class Edge:
    """A kind of value at which semantics differ: of which dtypes, and which elements are one."""

    of: Callable[[np.dtype], bool]
    holds: Callable[[Values], Values]


def _is_signed(dtype: np.dtype) -> bool:
    return is_integer(dtype) and int(ml_dtypes.iinfo(dtype).min) < 0


def _is_inexact(dtype: np.dtype) -> bool:
    return is_float(dtype) or is_complex(dtype)


def _end(which: str) -> Callable[[Values], Values]:
    return lambda x: x == np.array(getattr(ml_dtypes.iinfo(x.dtype), which), x.dtype)


# Of a primitive that takes any number of operands the others are like the last of these.
_OPERANDS = 4
# Harnesses that tell whether there is such a primitive.
_ASKED = 3

EDGES: Mapping[str, Edge] = {
    "nan": Edge(_is_inexact, jnp.isnan),
    "infinity": Edge(is_float, lambda x: x == np.array(np.inf, x.dtype)),
    "-infinity": Edge(is_float, lambda x: x == np.array(-np.inf, x.dtype)),
    "a part that is infinite": Edge(is_complex, jnp.isinf),
    "zero": Edge(lambda dtype: dtype.kind != "b", lambda x: x == 0),
    "a negative number": Edge(lambda dtype: is_float(dtype) or _is_signed(dtype), lambda x: x < 0),
    "the least integer": Edge(is_integer, _end("min")),
    "the greatest integer": Edge(is_integer, _end("max")),
    "true": Edge(lambda dtype: dtype.kind == "b", lambda x: x),
    "false": Edge(lambda dtype: dtype.kind == "b", jnp.logical_not),
}


def edges(eqn: core.JaxprEqn) -> list[str]:
    """The edges of an equation's first operands; none of one that stands in the program.

    An equation that calls something has none: what it calls has them.
    """
    if any(map(_is_called, jax.tree.leaves(eqn.params, is_leaf=_is_called))):
        return []
    found = []
    for place, operand in enumerate(eqn.invars[:_OPERANDS]):
        dtype = _dtype(operand)
        if dtype is None or isinstance(operand, core.Literal):
            continue
        found += [f"operand {place} has {name}" for name, edge in EDGES.items() if edge.of(dtype)]
    return found


def of_primitive(primitive: str, harnesses: Sequence[Harness]) -> list[Fault]:
    """The faults that can be planted in a primitive, which the harnesses are of."""
    if not any(map(gaps.uses_of, harnesses[:_ASKED])):
        return []  # a public function, whose harnesses are of many primitives
    uses = [eqn for harness in harnesses for eqn in gaps.uses_of(harness) if _has_numbers(eqn)]
    dtypes = {label for eqn in uses for label in _dtypes(eqn)}
    values = {label for eqn in uses for label in gaps.labels(eqn, eqn.params)}
    found = [
        *((DTYPE, what) for what in dtypes),
        *((_kind_of(what), what) for what in values),
        *((EDGE, what) for what in {what for eqn in uses for what in edges(eqn)}),
    ]
    return [Fault(primitive, kind, what) for kind, what in sorted(set(found))]


def sample(faults: Iterable[Fault], count: int, seed: int) -> list[Fault]:
    """`count` of the faults, of each kind a fourth; which ones depends on the seed and on names."""

    def rank(fault: Fault) -> str:
        return hashlib.sha256(f"{seed}:{fault}".encode()).hexdigest()

    of_kind: dict[str, list[Fault]] = {kind: [] for kind in KINDS}
    for fault in sorted(faults, key=rank):
        of_kind[fault.kind].append(fault)
    chosen: list[Fault] = []
    for left, kind in enumerate(sorted(KINDS, key=lambda kind: len(of_kind[kind]))):
        share = (count - len(chosen)) // (len(KINDS) - left)
        chosen += of_kind[kind][:share]
    return sorted(chosen, key=rank)


def _dtypes(eqn: core.JaxprEqn) -> set[str]:
    dtypes = map(_dtype, eqn.invars)
    return {f"dtype={dtype}" for dtype in dtypes if dtype is not None}


def _dtype(atom: Any) -> np.dtype | None:
    """The dtype of an array; None for a reference and for keys, whose dtype NumPy does not know."""
    is_array = isinstance(atom.aval, jax.core.ShapedArray)
    return atom.aval.dtype if is_array and isinstance(atom.aval.dtype, np.dtype) else None


def _kind_of(what: str) -> str:
    return AXIS if what.partition("=")[0] in gaps.AXES else PARAM


def _parsed(what: str) -> tuple[int, str]:
    place, _, edge = what.removeprefix("operand ").partition(" has ")
    return int(place), edge


def _is_called(param: Any) -> bool:
    return callable(param) or isinstance(param, core.Jaxpr | core.ClosedJaxpr)


def _has_numbers(eqn: core.JaxprEqn) -> bool:
    """Whether the first result of an equation is an array that can be wrong."""
    return bool(eqn.outvars) and _dtype(eqn.outvars[0]) is not None


def _last(shape: Sequence[int]) -> Values:
    """True at the last element of an array, and nowhere else."""
    size = int(np.prod(shape))
    return (jnp.arange(size) == size - 1).reshape(shape)


def _other(x: Values) -> Values:
    """Something else than each element, by more than rounding."""
    if x.dtype.kind == "b":
        return ~x
    if is_integer(x.dtype):
        return x ^ jnp.ones((), x.dtype)
    larger = (jnp.abs(x) * 2 + 1).astype(x.dtype)
    # A narrow dtype has no larger number than its greatest.
    return jnp.where(jnp.isfinite(x) & (larger != x), larger, jnp.zeros((), x.dtype))
