"""`python -m reports located`: whether `locate` finds faults that are planted into files and rules.

Each fault is planted into a right file of ONNX, LiteRT or OpenVINO (a constant, an attribute, a
dropped op, an exchanged op, a rounding, a NaN), or a rule of the lowering makes another op. A fault
counts if an output then deviates from JAX's by more than a thousandth. The answer is right if it
names the equation whose result the changed op makes, or the op that computes it among others, and
the party that is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import jax2tf
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from reports import rendering
from reports.benchmarks import located_memory, located_timing
from reports.benchmarks.files import located_files
from reports.benchmarks.located_faults import PLANTERS, Fault
from reports.benchmarks.located_models import MODELS, Model, wrong_rules
from reports.benchmarks.located_timing import Seconds, timed
from reports.benchmarks.timing import circumstances

# Where a table is read, nobody knows the folders of the machine that made it.
CHECKOUT = Path(__file__).parents[2]
# Outputs that deviate by less do not show a fault.
_VISIBLE = 1e-3
_GRAPHS = ("graph", "compiled")


def _first_line(found: object) -> str:
    """The first line of an answer, without the folder of this machine."""
    return str(found).splitlines()[0].partition(": ")[2].replace(f"{CHECKOUT}/", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="one fault of each kind and model")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument(
        "--rows", type=Path, help="a file for rows; a run that was stopped takes its rows from it"
    )
    parser.add_argument("--engines", nargs="*", default=list(PLANTERS), choices=list(PLANTERS))


def main(options: argparse.Namespace, console: Console) -> int:
    rows = []
    most = 1 if options.quick else 6
    kept = _Kept(options.rows)
    for name, model in MODELS.items():
        for engine in model.engines:
            if engine in options.engines:
                console.print(f"planting into {name}, {engine}", soft_wrap=True)
                rows += kept.rows(f"{name}, {engine}", _in_files(name, model, engine, most))
        console.print(f"planting into {name}, rules", soft_wrap=True)
        rows += kept.rows(f"{name}, rules", _in_rules(name, model, min(most, 4)))
        # A run that is stopped leaves the programs that are done.
        data = circumstances(DEFAULT_IMPLEMENTATION)
        data |= kept.seen(data)
        data |= {"quick": options.quick, "memory": {}, "rows": rows}
        _write(data, options.into, console)
    for engine in options.engines:
        console.print(f"memory, {engine}", soft_wrap=True)
        data["memory"][engine] = located_memory.peaks(engine, PLANTERS[engine].suffix)
    _write(data, options.into, console)
    return 0


def _write(data: dict[str, Any], into: Path, console: Console) -> None:
    for path in rendering.write(located_files(data), into):
        console.print(f"wrote {path}", soft_wrap=True)


class _Kept:
    """Rows in a file, so that a run that was stopped continues where it was.

    Each part stands there with the commit and the load under which it was made.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._parts: dict[str, dict[str, Any]] = dict(map(json.loads, lines))

    def rows(self, part: str, made: Iterator[Row]) -> list[dict[str, Any]]:
        """The rows of a part of the run: those of the file, or those that are made now."""
        if part not in self._parts:
            rows = [dataclasses.asdict(row) for row in made]
            now = circumstances(DEFAULT_IMPLEMENTATION)
            self._parts[part] = {"commit": now["commit"], "load": now["load"], "rows": rows}
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps([part, self._parts[part]]) + "\n")
        rows_of_part: list[dict[str, Any]] = self._parts[part]["rows"]
        return rows_of_part

    def seen(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """The commit of all parts, and the largest load; several commits stand by name."""
        every = [now, *self._parts.values()]
        commits = dict.fromkeys(each["commit"] for each in every)
        return {"commit": " and ".join(commits), "load": max(each["load"] for each in every)}


@dataclasses.dataclass(frozen=True)
class Row:
    """What came of one fault.

    Attributes:
      model: the program.
      engine: where it was planted.
      kind: what was planted.
      fault: where.
      equation: whether the right equation was named.
      party: whether the right party was named.
      seconds: how long the search took.
      ratio: the same in units of a verification, which runs before and after; None for rules.
      of_processor: the same in the time of processors.
      of_export: the same in units of an export with verification; None for rules.
      said: the first line of the answer.
    """

    model: str
    engine: str
    kind: str
    fault: str
    equation: bool
    party: bool
    seconds: float
    ratio: float | None
    of_processor: float | None
    of_export: float | None
    said: str


def _in_files(name: str, model: Model, engine: str, most: int) -> Iterator[Row]:
    planter = PLANTERS[engine]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        right = folder / f"right{planter.suffix}"
        whole = statistics.median(_export(model, right).passed for _ in range(_EXPORTS))
        found = jax2tf.locate(model.function, model.params, model.specs, right)
        lines = {line.tensor: line.index for line in reversed(found.lines) if line.tensor}
        verify = functools.partial(located_timing.verify, model, right, folder)
        before = [timed(verify)[1] for _ in range(_EXPORTS)][-1]
        for i, fault in enumerate(planter.faults(right, most)):
            path = folder / f"faulty{i}{planter.suffix}"
            planter.write(right, fault, path)
            locate = functools.partial(_located, model, path)
            found, seconds = timed(locate)
            after = timed(verify)[1]
            if max(found.deviations.values()) > _VISIBLE:
                times = _Times(seconds, before.middle(after), whole)
                yield _row(name, engine, fault, found, lines, times)
            before = after


# The first of so many traces the program, and compiles it.
_EXPORTS = 3


def _export(model: Model, path: Path) -> Seconds:
    return timed(
        lambda: jax2tf.export(
            *(model.function, model.params, model.specs, path), overwrite=True, progress=False
        )
    )[1]


def _located(model: Model, path_or_target: Path | str) -> Any:
    return jax2tf.locate(model.function, model.params, model.specs, path_or_target)


@dataclasses.dataclass(frozen=True)
class _Times:
    """How long a search took, verifications before and after it, and an export with one."""

    search: Seconds
    verification: Seconds
    export: float


def _row(
    name: str, engine: str, fault: Fault, found: Any, lines: dict[str, int], times: _Times
) -> Row:
    truth = next((lines[tensor] for tensor in fault.tensors if tensor in lines), None)
    named = [] if found.equation is None else [found.equation, *found.among]
    return Row(
        *(name, engine, fault.kind, fault.where),
        equation=truth is not None and truth in [line.index for line in named],
        party=found.party.value == "the file",
        seconds=round(times.search.passed, 3),
        ratio=round(times.search.passed / times.verification.passed, 2),
        of_processor=round(times.search.processor / times.verification.processor, 2),
        of_export=round(times.search.passed / times.export, 2),
        said=_first_line(found),
    )


def _in_rules(name: str, model: Model, most: int) -> Iterator[Row]:
    for primitive, planted in wrong_rules(model, most):
        for engine in _GRAPHS:
            with planted():
                function = _anew(model.function)
                anew = dataclasses.replace(model, function=function)
                found, seconds = timed(functools.partial(_located, anew, engine))
            if max(found.deviations.values()) <= _VISIBLE:
                continue
            yield Row(
                *(name, engine, "another rule", primitive),
                equation=found.primitive == primitive,
                party=found.party.value == "the lowering of jax2tf",
                seconds=round(seconds.passed, 3),
                ratio=None,
                of_processor=None,
                of_export=None,
                said=_first_line(found),
            )


def _anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as another object, of which nothing is kept from before."""

    def anew(params: Any, *inputs: Any) -> Any:
        return function(params, *(x + np.zeros((), x.dtype) for x in inputs))

    return anew
