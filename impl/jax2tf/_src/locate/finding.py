"""The first equation whose result is off by more than its operands and its primitive explain."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.export.tolerances import Precision, deviation
from jax2tf._src.locate import exactness
from jax2tf._src.locate.program import Program, Values, as_numpy, operands_of
from jax2tf._src.util.typing import Array

# So many suspects are tried as the cause of what the outputs show.
_TRIED = 12
# The cause explains at least this share of the deviation of an output.
_EXPLAINS = 0.3
# An error of so many times what is allowed is no engine's rounding. In a file that has the equation
# otherwise than jax2tf writes it, a smaller one is enough.
_CERTAIN, _CERTAIN_IF_CHANGED = 100.0, 10.0
# A certain error counts if it alone makes at least this share of the deviation of an output.
_SHOWS = 0.01


@dataclasses.dataclass(frozen=True)
class Row:
    """One result of an equation on both sides.

    Attributes:
      index: the number of the equation.
      difference: the largest difference to JAX's own value; infinite for another NaN or infinity.
      local: the error that the equation itself makes, in units of what is allowed; above 1 it is
        not explained.
    """

    index: int
    difference: float
    local: float


@dataclasses.dataclass(frozen=True)
class Suspect:
    """An equation whose result is not explained by its operands.

    Attributes:
      index: its number.
      variable: the result that is wrong.
      operands: its operands on the other side.
      expected: JAX's result on these operands.
      actual: the result of the other side.
      ratio: the error in units of what is allowed.
      among: the equations before it whose results cannot be read, and that may be the cause.
    """

    index: int
    variable: jex_core.Var
    operands: Sequence[Array]
    expected: np.ndarray
    actual: np.ndarray
    ratio: float
    among: tuple[int, ...]

    @property
    def difference(self) -> float:
        """The largest difference to JAX's result on the same operands."""
        return float(np.max(exactness.error(self.actual, self.expected), initial=0.0))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The values of both sides.

    Attributes:
      rows: one for each result that was read.
      suspects: the equations with an error of their own, in order.
    """

    rows: tuple[Row, ...]
    suspects: tuple[Suspect, ...]


def compare(program: Program, other: Values) -> Comparison:
    """Compares each result that was read with what JAX makes of the other side's operands.

    A result that cannot be read is computed by JAX from those that can.
    """
    state = program.given()
    spreads = exactness.Spreads(program, state, other)
    rows: list[Row] = []
    suspects: list[Suspect] = []
    for index, eqn in enumerate(program.equations):
        operands = operands_of(eqn, state)
        results = program.results_of(index, operands)
        state.update(zip(eqn.outvars, results, strict=True))
        read = [v for v in eqn.outvars if v in other]
        if not read:
            continue
        expected = {v: as_numpy(state[v]) for v in read}
        ratios = {v: _quick(eqn, other[v], expected[v]) for v in read}
        if max(ratios.values()) > 1:
            ratios = _full(eqn, operands, state, other, spreads)
        for v in read:
            actual = as_numpy(other[v])
            reference = as_numpy(program.reference[v])
            difference = float(np.max(exactness.error(actual, reference), initial=0.0))
            rows.append(Row(index, difference, ratios[v]))
            if ratios[v] > 1:
                among = tuple(sorted(spreads.unread_before(eqn)))
                suspects.append(Suspect(index, v, operands, expected[v], actual, ratios[v], among))
            state[v] = actual
    return Comparison(tuple(rows), tuple(suspects))


def _quick(eqn: jex_core.JaxprEqn, actual: Array, expected: np.ndarray) -> float:
    tolerance = exactness.allowed(eqn.primitive, expected)
    return exactness.ratio(as_numpy(actual), expected, tolerance)


def _full(
    eqn: jex_core.JaxprEqn,
    operands: Sequence[Array],
    state: Values,
    other: Values,
    spreads: exactness.Spreads,
) -> dict[jex_core.Var, float]:
    """The errors in units of what the operands' last bits allow, too."""
    expected = [as_numpy(state[v]) for v in eqn.outvars]
    changes = exactness.conditioning(eqn, operands, expected, spreads.of_operands(eqn))
    return {
        v: exactness.ratio(
            as_numpy(other[v]),
            e,
            exactness.allowed(eqn.primitive, e) + exactness.TIMES * change,
        )
        for v, e, change in zip(eqn.outvars, expected, changes, strict=True)
        if v in other
    }


def culprit(
    program: Program,
    found: Comparison,
    outputs: Mapping[str, np.ndarray],
    changed: Container[int] = (),
) -> Suspect | None:
    """The first suspect that is certain, or explains the outputs of the other side.

    None if there is no suspect.

    Args:
      program: the program.
      found: the values of both sides.
      outputs: the outputs of the other side.
      changed: the equations that a file has otherwise than jax2tf writes them.
    """
    if not found.suspects:
        return None
    reference = program.outputs(program.reference)
    observed = deviations(outputs, reference)
    wrong = {name for name, d in observed.items() if d > 0}
    tried = list(found.suspects[:_TRIED])
    if len(found.suspects) > 1 and wrong:
        for suspect in tried:
            if _is_changed(suspect, changed):
                return suspect
            shifted: Values = {suspect.variable: _shifted(program, suspect)}
            alone = deviations(program.outputs_with(shifted, suspect.index + 1), reference)
            share = _SHOWS if suspect.ratio >= _CERTAIN else _EXPLAINS
            if any(_explains(alone[name], observed[name], share) for name in wrong):
                return suspect
    return tried[0] if not wrong else max(tried, key=lambda s: (s.ratio, -s.index))


def others(
    found: Comparison, suspect: Suspect, changed: Container[int] = ()
) -> tuple[Suspect, ...]:
    """The suspects after one that are certain, too: one for each equation."""
    certain = {
        other.index: other
        for other in reversed(found.suspects)
        if other.index > suspect.index
        and (_is_changed(other, changed) or (not changed and other.ratio >= _CERTAIN))
    }
    return tuple(certain[index] for index in sorted(certain))


def _is_changed(suspect: Suspect, changed: Container[int]) -> bool:
    """Whether a wrong result is one that the file computes otherwise."""
    near = (suspect.index, *suspect.among)
    return suspect.ratio >= _CERTAIN_IF_CHANGED and any(index in changed for index in near)


def _explains(alone: float, observed: float, share: float) -> bool:
    return alone == observed or alone >= share * observed


def _shifted(program: Program, suspect: Suspect) -> np.ndarray:
    """JAX's result with the error that the equation makes by itself."""
    reference = as_numpy(program.reference[suspect.variable])
    if not exactness.is_inexact(reference.dtype):
        return np.where(suspect.actual != suspect.expected, suspect.actual, reference)
    a, e = exactness.wide(suspect.actual), exactness.wide(suspect.expected)
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = (exactness.wide(reference) + (a - e)).astype(reference.dtype)
    return np.where(np.isfinite(a) & np.isfinite(e), shifted, suspect.actual)


def deviations(
    actual: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    precision: Precision = Precision.FULL,
) -> dict[str, float]:
    """The deviation of each output in the measure of `export`; infinite for another shape."""
    return {
        name: deviation(actual[name], e, precision)
        if name in actual and actual[name].shape == e.shape
        else float("inf")
        for name, e in expected.items()
    }
