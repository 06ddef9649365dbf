"""Finds a pattern, which is a traced JAX function, among the equations of a jaxpr."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.idioms.view import Frame, Path, Value, find
from jax2tf._src.lowering.registry import IGNORED_PARAMS
from jax2tf._src.tracing import traits
from jax2tf._src.util.typing import Atom, Aval, Dim, Param, aval_of


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A JAX function, traced for arrays of certain shapes, to be found in a jaxpr.

    Attributes:
      frame: the jaxpr of the function.
      operands: the variables of its arrays.
      numbers: the variables of its scalars, with their names. A match has literals in their places.
      is_exact: whether shapes, params and literals must be equal too, not only the primitives.
    """

    frame: Frame
    operands: tuple[jex_core.Var, ...]
    numbers: Mapping[jex_core.Var, str]
    is_exact: bool

    @property
    def root(self) -> Value:
        """The value of the pattern's result."""
        return find(self.frame.jaxpr.outvars[0], self.frame).value


@dataclasses.dataclass(frozen=True)
class Match:
    """A pattern that was found, or a part of one.

    Attributes:
      values: the value of the jaxpr for each value of the pattern.
      operands: the atoms of the outermost jaxpr for the arrays of the pattern.
      numbers: the values of the pattern's scalars by name.
      covered: the equations of the outermost jaxpr that the match covers.
    """

    values: Mapping[Value, Value] = dataclasses.field(default_factory=dict)
    operands: Mapping[jex_core.Var, Atom] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    covered: frozenset[jex_core.JaxprEqn] = frozenset()

    def params(self, primitive: jex_core.Primitive) -> dict[str, Param]:
        """Returns the params of the last matched equation of `primitive`."""
        return self._last(primitive).params

    def shape(self, primitive: jex_core.Primitive) -> tuple[Dim, ...]:
        """Returns the shape of the result of the last matched equation of `primitive`."""
        aval = aval_of(self._last(primitive).outvars[0])
        return tuple(aval.shape)

    def _last(self, primitive: jex_core.Primitive) -> jex_core.JaxprEqn:
        # Matching starts at the result, so the first value found is the last one computed.
        found = (value.eqn for value in self.values.values() if value.eqn is not None)
        return next(eqn for eqn in found if eqn.primitive is primitive)


def trace(
    function: Callable[..., jax.Array],
    specs: Sequence[jax.ShapeDtypeStruct],
    numbers: Sequence[str],
    *,
    is_exact: bool,
) -> Pattern:
    """Traces the pattern of `function(*arrays, **numbers)` for arrays of `specs`."""
    names = sorted(numbers)
    given = {name: jax.ShapeDtypeStruct((), specs[0].dtype) for name in names}
    jaxpr = jax.jit(function, keep_unused=True).trace(*specs, **given).jaxpr.jaxpr
    # JAX puts keyword arguments after the positional ones, in the order of their names.
    variables = jaxpr.invars
    scalars = dict(zip(variables[len(specs) :], names, strict=True))
    return Pattern(Frame(jaxpr, None, None), tuple(variables[: len(specs)]), scalars, is_exact)


def match(pattern: Pattern, found: Path) -> Match | None:
    """Matches the pattern's result with the value of `found`; None if they do not match."""
    made = _matched(pattern, pattern.root, found, Match())
    return made if made and made.operands.keys() == set(pattern.operands) else None


def _matched(pattern: Pattern, sought: Value, found: Path, known: Match) -> Match | None:
    """Extends `known` by the match of `found` with the pattern's `sought`; None if they differ."""
    value = found.value
    if sought.literal is not None:
        if pattern.is_exact:
            return known if _same_number(sought.literal, value.literal) else None
        # A size is a literal in the example, but is computed in a jaxpr with unknown shapes.
        return known if value.aval.shape == () else None
    if sought in known.values:
        return known if known.values[sought] == value else None
    filler = _filler(sought)
    if filler is not None and pattern.is_exact and value.eqn is not None:
        is_same = _same_number(filler, _filler(value)) and _same_aval(sought.aval, value.aval)
        covered = known.covered.union(found.passed)
        return dataclasses.replace(known, covered=covered) if is_same else None
    with_value = dataclasses.replace(known, values={**known.values, sought: value})
    if filler is not None and _filler(value) is not None:
        return with_value
    if sought.eqn is None:
        assert isinstance(sought.atom, jex_core.Var)
        return _bound(pattern, sought.atom, found, with_value)
    if value.eqn is None or not _same_equation(sought, value, pattern.is_exact):
        return None
    covered = known.covered.union(found.passed)
    return _with_operands(pattern, sought, value, dataclasses.replace(with_value, covered=covered))


def _filler(value: Value) -> np.ndarray | None:
    """The number that all elements of a broadcast are, which jax.vmap makes in several steps."""
    while value.eqn is not None and value.eqn.primitive is lax.broadcast_in_dim_p:
        value = find(value.eqn.invars[0], value.frame).value
    is_number = value.literal is not None and not value.literal.shape
    return value.literal if is_number else None


def _bound(pattern: Pattern, var: jex_core.Var, found: Path, known: Match) -> Match | None:
    if var in pattern.numbers:
        number = found.value.literal
        if number is None or number.shape:
            return None
        numbers = {**known.numbers, pattern.numbers[var]: number}
        return dataclasses.replace(known, numbers=numbers)
    carrier = found.carrier
    if carrier is None:
        return None
    if pattern.is_exact and not _same_aval(aval_of(var), aval_of(carrier)):
        return None
    return dataclasses.replace(known, operands={**known.operands, var: carrier})


def _with_operands(pattern: Pattern, sought: Value, value: Value, known: Match) -> Match | None:
    assert sought.eqn is not None
    assert value.eqn is not None
    orders = [value.eqn.invars]
    if sought.eqn.primitive in traits.COMMUTES:
        orders.append(value.eqn.invars[::-1])
    for operands in orders:
        made: Match | None = known
        for atom, operand in zip(sought.eqn.invars, operands, strict=True):
            if made is None:
                break
            inner = find(atom, sought.frame).value
            made = _matched(pattern, inner, find(operand, value.frame), made)
        if made is not None:
            return made
    return None


def _same_equation(sought: Value, value: Value, is_exact: bool) -> bool:
    eqn, other = sought.eqn, value.eqn
    assert eqn is not None
    assert other is not None
    same = eqn.primitive is other.primitive and sought.index == value.index
    if not same or len(eqn.invars) != len(other.invars) or other.effects:
        return False
    return not is_exact or (
        _same_aval(sought.aval, value.aval) and _compared(eqn) == _compared(other)
    )


def _compared(eqn: jex_core.JaxprEqn) -> dict[str, Param]:
    return {name: value for name, value in eqn.params.items() if name not in IGNORED_PARAMS}


def _same_aval(aval: Aval, other: Aval) -> bool:
    return bool(aval.shape == other.shape and aval.dtype == other.dtype)


def _same_number(number: np.ndarray, other: np.ndarray | None) -> bool:
    return other is not None and (number.dtype, number.tobytes()) == (other.dtype, other.tobytes())
