"""The search: runs both sides, finds the equation, asks who is wrong, and writes the answer."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import purity
from jax2tf._src.export.tolerances import Precision, deviation, tolerance_of
from jax2tf._src.export.verification import dtypes_of
from jax2tf._src.locate import bits, finding, loops, parties, prefixes, texts
from jax2tf._src.locate.answer import Line, Located, Party
from jax2tf._src.locate.bits import Layer
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.files import Outputs
from jax2tf._src.locate.finding import Comparison, Suspect
from jax2tf._src.locate.graphs import Graph
from jax2tf._src.locate.parties import Case, Verdict
from jax2tf._src.locate.program import Program, Values, as_numpy
from jax2tf._src.locate.sides import File
from jax2tf._src.util.typing import PyTree


def in_graph(mode: str, sides: Iterable[Graph]) -> Located:
    """The answer on a graph of TensorFlow, for the first inputs on which it differs."""
    tried = [(side, side.outputs()) for side in sides]
    wrong = (each for each in tried if not _agrees(each[0].program, each[1], Precision.FULL))
    side, outputs = next(wrong, tried[0])
    _refuse_impure(side.program, outputs, Precision.FULL)
    values = side.values()
    found = finding.compare(side.program, values)
    answer = _Answer(mode, mode, side.program, outputs, values, found, Precision.FULL)
    suspect = finding.culprit(side.program, found, outputs)
    if suspect is None:
        return answer.nothing()
    case = Case.of(side.program.equations, suspect)
    within = loops.inside(case, loops.in_graphs(side))
    inner = case if within is None else Case.of(within.program.equations, within.suspect)
    return answer.of(suspect, parties.of_graph(inner, mode, side.options), within)


def in_file(name: str, sides: Iterable[File]) -> Located:
    """The answer on a file, for the first inputs on which it differs.

    Inputs behind these are neither made nor run.
    """
    side, of_file = _first_wrong_side(name, sides)
    maker = side.files
    precision = maker.format.engine.precision(maker.options)
    _refuse_impure(side.program, of_file, precision)
    is_changed = side.is_changed(of_file)
    if _has_other_names(side, of_file) or side.is_of_another(of_file):
        return _of_another(name, side, of_file, precision)
    if bits.are_fewer(maker.options):
        return _with_fewer_bits(name, side, of_file, precision, is_changed)
    values = side.own_values()
    suspect = None
    if values:
        found = finding.compare(side.program, values)
        suspect = finding.culprit(side.program, found, of_file, _changed(side, side.differences))
    if suspect is None and not is_changed and not _agrees(side.program, of_file, precision):
        values = side.values()
        found = finding.compare(side.program, values)
        suspect = finding.culprit(side.program, found, of_file) or prefixes.suspect(side)
    elif not values:
        found = finding.Comparison((), ())
    tensors = {v: place.name for v, place in side.places.items() if v in values}
    answer = _Answer(
        name, maker.format.name, side.program, of_file, values, found, precision, tensors
    )
    if is_changed:
        answer.changed = frozenset(_changed(side, side.differences))
        return answer.of_changed(side, suspect)
    if suspect is None:
        return answer.nothing()
    case = Case.of(side.program.equations, suspect)
    within = loops.inside(case, loops.in_files(maker))
    inner = case if within is None else Case.of(within.program.equations, within.suspect)
    return answer.of(suspect, parties.of_file(inner, maker), within)


def _of_another(name: str, side: File, outputs: Outputs, precision: Precision) -> Located:
    """The answer on a file that has nothing of the function inside.

    Raises:
      ValueError: its outputs are others, too.
    """
    if not side.has_outputs_in(outputs):
        wanted = side.program.outputs(side.program.reference)
        raise ValueError(
            f"jax2tf.locate: the file {name!r} does not hold this function: {_said(outputs)}, and "
            f"the function's are {texts.arrays(wanted)}. What to do: give the function and the "
            "specs that the file was exported with"
        )
    nothing = finding.Comparison((), ())
    how = side.files.format.name
    answer = _Answer(name, how, side.program, outputs, {}, nothing, precision)
    return answer.of_another()


def _has_other_names(side: File, outputs: Outputs) -> bool:
    """Whether a file that runs has no output of the name of one of the function's."""
    return bool(outputs) and not outputs.keys() >= set(side.program.names)


def _said(outputs: Outputs) -> str:
    return f"its outputs are {texts.arrays(outputs)}" if outputs else "it has no outputs that run"


def _with_fewer_bits(
    name: str, side: File, of_file: Outputs, precision: Precision, is_changed: bool
) -> Located:
    """The answer on a file with fewer bits: what each layer loses."""
    if not side.exact.fresh_is_right:
        # The same program is wrong with all bits, too.
        return in_file(f"{name} (written with all bits)", [side.exact])
    values = side.own_values()
    found = finding.compare(side.program, values)
    tensors = {v: place.name for v, place in side.places.items() if v in values}
    answer = _Answer(
        *(name, side.files.format.name, side.program, of_file, values, found, precision, tensors),
        bits.layers(side.program, values, side.ends()),
    )
    if is_changed:
        return answer.of_changed(side, None)
    return answer.of_bits()


def _first_wrong_side(name: str, sides: Iterable[File]) -> tuple[File, Outputs]:
    """The first inputs with a wrong output; the first of all if there are none."""
    found = []
    for side in sides:
        outputs = _run(name, side)
        precision = side.files.format.engine.precision(side.files.options)
        if not _agrees(side.program, outputs, precision):
            return side, outputs
        found.append((side, outputs))
    return found[0]


def _run(name: str, side: File) -> Outputs:
    try:
        return side.outputs()
    except ExportError:
        raise
    # Each engine has errors of its own.
    except Exception as error:
        if side.differences:
            # The differences tell where the file is wrong.
            return {}
        raise ExportError(
            f"jax2tf.locate: {name!r} does not run: {type(error).__name__}: {error}. What to do: "
            "export it again, and give the inputs that it was exported for"
        ) from error


def _agrees(program: Program, outputs: Outputs, precision: Precision) -> bool:
    reference = program.outputs(program.reference)
    every = dtypes_of([*program.leaves, *reference.values()])
    far = finding.deviations(outputs, reference, precision)
    return all(
        far[name] <= tolerance_of(precision, every, expected.dtype)
        for name, expected in reference.items()
    )


def _refuse_impure(program: Program, outputs: Outputs, precision: Precision) -> None:
    """Traces a function once more whose results differ from those of the other side.

    Raises:
      ValueError: the two traces give different results.
    """
    if program.again is None or _agrees(program, outputs, precision):
        return
    again = program.again()
    first, second = (p.outputs(p.reference) for p in (program, again))
    name = purity.differing_output(first, second, functools.partial(_is_near, precision, program))
    if name is not None:
        raise ValueError(f"jax2tf.locate: {purity.said(f'output {name!r}', '')}")


def _is_near(
    precision: Precision, program: Program, actual: np.ndarray, expected: np.ndarray
) -> bool:
    every = dtypes_of([*program.leaves, expected])
    return deviation(actual, expected, precision) <= tolerance_of(precision, every, expected.dtype)


def _index_of(side: File, differences: Sequence[Difference], suspect: Suspect | None) -> int | None:
    """The number of the equation that a changed file has otherwise.

    The first wrong result is that of the equation, or of a later one if the file lacks the result.
    """
    changed = _changed(side, differences)
    if suspect is None:
        return min(changed, default=None)
    near = {suspect.index, *suspect.among}
    return next((index for index in changed if index in near), suspect.index)


def _changed(side: File, differences: Sequence[Difference]) -> list[int]:
    """The numbers of the equations that a file has otherwise than jax2tf writes them today."""
    equations = side.program.equations
    # Equations that the file computes with one op have one tensor: the first of them is named.
    of_tensors = {place.name: v for v, place in reversed(side.places.items())}
    made_by = {v: i for i, eqn in enumerate(equations) for v in eqn.outvars}
    return [
        made_by[of_tensors[name]]
        for each in differences
        for name in each.tensors
        if name in of_tensors
    ]


class _Answer:
    """What both kinds of answers have."""

    def __init__(
        self,
        target: str,
        how: str,
        program: Program,
        outputs: Outputs,
        values: Values,
        found: Comparison,
        precision: Precision,
        tensors: Mapping[jex_core.Var, str] = MappingProxyType({}),
        layers: tuple[Layer, ...] = (),
    ) -> None:
        self._layers = layers
        self._target = target
        self._tensors = tensors
        self._how = how
        self._program = program
        self._names = texts.Names(program)
        self._far = finding.deviations(outputs, program.outputs(program.reference), precision)
        self._agrees = _agrees(program, outputs, precision)
        self._lines = self._with_values(values, found)
        self._found = found
        # The equations that a file has otherwise than jax2tf writes them.
        self.changed: frozenset[int] = frozenset()

    def nothing(self) -> Located:
        """The answer if no equation is wrong."""
        read = sum(line.difference is not None for line in self._lines)
        reason = f"{read} of {len(self._lines)} equations were read"
        if not self._agrees:
            reason += (
                "; each is as near to JAX as its operands explain, so that the difference of the "
                "outputs grows from rounding: the function is sensitive there, or the tolerance is "
                "too small for it"
            )
        return self._located(reason=reason)

    def of_another(self) -> Located:
        """The answer on a file that has nothing of the function inside."""
        reason = (
            "most results of the function's equations are missing in the file, so that they cannot "
            "be compared: it looks like the file of another function, or of another converter"
        )
        if self._agrees:
            return self._located(reason=reason)
        remedy = "give the function that the file was exported from, or export this one"
        return self._located(party=Party.FILE, reason=reason, remedy=remedy)

    def of_bits(self) -> Located:
        """The answer on a file with fewer bits that is as jax2tf writes it."""
        worst = bits.worst(self._layers)
        if self._agrees or not worst:
            read = sum(line.difference is not None for line in self._lines)
            return self._located(
                reason=f"{read} of {len(self._lines)} equations were read; they differ as the "
                "smaller number of bits makes them"
            )
        layer = worst[0]
        lines = self._lines[layer.first : layer.last + 1]
        eqn = self._program.equations[layer.first]
        return self._judged(
            parties.of_bits(layer),
            **_about(eqn, self._lines[layer.first]),
            dtype=as_numpy(self._program.reference[eqn.outvars[0]]).dtype.name,
            difference=max(line.difference or 0.0 for line in lines),
            error=max(line.error or 0.0 for line in lines),
        )

    def _located(self, **fields: PyTree) -> Located:
        line: Line | None = fields.get("equation")
        among = [other.index for other in fields.get("among", ())]
        layer = "" if line is None else bits.layer_of(self._program, line.index, among)
        return Located(
            *(self._target, self._agrees, self._far, self._lines),
            layers=self._layers,
            layer=layer,
            **fields,
        )

    def _judged(self, verdict: Verdict, **fields: PyTree) -> Located:
        """An answer with what a verdict says."""
        return self._located(
            party=verdict.party, reason=verdict.reason, remedy=verdict.remedy, **fields
        )

    def of(self, suspect: Suspect, verdict: Verdict, within: loops.Inside | None = None) -> Located:
        """The answer on an equation, or on one within it."""
        if within is not None:
            return self._within(suspect, verdict, within)
        eqn = self._program.equations[suspect.index]
        at = texts.worst(suspect.actual, suspect.expected)
        return self._judged(
            verdict,
            **_about(eqn, self._lines[suspect.index]),
            **_error_of(suspect),
            among=tuple(self._lines[i] for i in suspect.among),
            also=self._also(suspect),
            program=texts.program(eqn, suspect.operands, at, self._how),
        )

    def _also(self, suspect: Suspect) -> tuple[Line, ...]:
        """The later equations that are wrong, too."""
        return tuple(
            dataclasses.replace(
                self._lines[other.index],
                layer=bits.layer_of(self._program, other.index, other.among),
            )
            for other in finding.others(self._found, suspect, self.changed)
        )

    def _within(self, suspect: Suspect, verdict: Verdict, within: loops.Inside) -> Located:
        """The answer on an equation within a loop or a branch."""
        inner = within.suspect
        eqn = within.program.equations[inner.index]
        outer = self.of(suspect, verdict)
        line = Line(
            inner.index,
            texts.equation(eqn, texts.Names(within.program)),
            compat.jaxprs.user_source(eqn) or outer.source,
            compat.jaxprs.name_stack(eqn) or outer.scope,
            callers=compat.jaxprs.callers(eqn),
        )
        at = texts.worst(inner.actual, inner.expected)
        return dataclasses.replace(
            outer,
            **_about(eqn, line),
            **_error_of(inner),
            among=(),
            step=(f"equation {suspect.index}", *within.steps),
            program=texts.program(eqn, inner.operands, at, self._how),
        )

    def of_changed(self, side: File, suspect: Suspect | None) -> Located:
        """The answer on a file that jax2tf would write otherwise."""
        differences = side.differences
        index = _index_of(side, differences, suspect)
        verdict = parties.of_changed_file(
            [each.text for each in sorted(differences, key=lambda each: each.is_of_sizes)]
        )
        if suspect is not None and index == suspect.index:
            return dataclasses.replace(self.of(suspect, verdict), program="")
        if index is None:
            return self._judged(verdict)
        eqn = self._program.equations[index]
        reference = as_numpy(self._program.reference[eqn.outvars[0]])
        error = {} if suspect is None else {**_error_of(suspect), "also": self._also(suspect)}
        fields = {**error, **_about(eqn, self._lines[index]), "dtype": reference.dtype.name}
        return self._judged(verdict, **fields)

    def _with_values(self, values: Values, found: Comparison) -> tuple[Line, ...]:
        rows: dict[int, finding.Row] = {}
        for row in found.rows:
            before = rows.get(row.index)
            if before is None or row.local > before.local:
                rows[row.index] = row
        return tuple(
            self._line(index, rows.get(index), values)
            for index in range(len(self._program.equations))
        )

    def _line(self, index: int, row: finding.Row | None, values: Values) -> Line:
        eqn = self._program.equations[index]
        line = Line(
            index,
            texts.equation(eqn, self._names),
            compat.jaxprs.user_source(eqn),
            compat.jaxprs.name_stack(eqn),
            callers=compat.jaxprs.callers(eqn),
        )
        if row is None:
            return line
        v = next(v for v in eqn.outvars if v in values)
        shown = (texts.first_values(self._program.reference[v]), texts.first_values(values[v]))
        return dataclasses.replace(
            line,
            difference=row.difference,
            error=row.local,
            values=shown,
            tensor=self._tensors.get(v, ""),
        )


def _about(eqn: jex_core.JaxprEqn, line: Line) -> dict[str, PyTree]:
    """What an answer says of an equation."""
    return {
        "equation": line,
        "primitive": eqn.primitive.name,
        "shapes": texts.shapes(eqn),
        "source": line.source,
        "scope": line.scope,
    }


def _error_of(suspect: Suspect) -> dict[str, PyTree]:
    """What an answer says of a wrong result."""
    return {
        "dtype": suspect.expected.dtype.name,
        "difference": suspect.difference,
        "error": suspect.ratio,
    }
