"""reports/tables/consumers.md: what each engine that reads TensorFlow graphs takes.

It is made of rows of runs, which engine_rows.json keeps, and says of how many harnesses they are.
The ledger's files of the engines say what fails, and why. `python -m reports consumers FILE...`
takes the rows of results files in, in place of those of the same cells.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from harnesses.cell.cells import Cell
from harnesses.cell.names import CONSUMER_MODES
from harnesses.cell.rows import VERSIONS, row_of
from harnesses.engine.consumers import NO_ARRAYS_OF
from harnesses.harness import Harness, all_harnesses
from limitations.check import LedgerIndex
from limitations.ledger import Limitation, load
from reports import engine_rows, rendering, results
from reports.results import Row

TABLE = "consumers.md"

# What the environments of tox run a sample of, and prove the ledger for.
PROVED_FAMILIES = (
    "elementwise",
    "arrays",
    "reductions",
    "cumulative",
    "contractions",
    "convolution",
    "windows",
    "indexing",
    "scatter",
    "sorting",
    "control_flow",
)
PROVED_DTYPES = ("float32", "int32")
SAMPLE = 250
# What the table speaks of.
FAMILIES = (*PROVED_FAMILIES, "special", "conversions", "calls", "fft", "random", "linalg")
DTYPES = (*PROVED_DTYPES, "bool")
# Those that have a row each below: some engines have arrays of them.
OTHER_DTYPES = ("int8", "uint8", "uint32", "int64", "float16", "bfloat16", "complex64")
# What people call the engine of a mode.
ENGINE_NAMES = {
    "savedmodel": "TensorFlow",
    "litert": "LiteRT",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO",
    "tfjs": "TensorFlow.js",
}
# The environments of tox, and the engines that each has.
ENVIRONMENTS = {
    "consumers": tuple(mode for mode in CONSUMER_MODES if mode != "tfjs"),
    "tfjs": ("tfjs",),
}


def command(environment: str) -> str:
    """The command of an environment of tox."""
    parts = (
        "python -m harnesses run --lowering no_xla",
        *(f"--mode {mode}" for mode in ENVIRONMENTS[environment]),
        *(f"--family {family}" for family in PROVED_FAMILIES),
        *(f"--dtype {dtype}" for dtype in PROVED_DTYPES),
        f"--sample {SAMPLE}",
    )
    return " ".join(parts)


_Member = TypeVar("_Member")
_Key = TypeVar("_Key", bound=Hashable)

_NO_VERSIONS: Row = dict.fromkeys(VERSIONS)


@dataclass(frozen=True)
class Share:
    """How many of the cells that were run pass."""

    passed: int
    cells: int

    def __str__(self) -> str:
        if not self.cells:
            return "not run"
        return f"{self.passed} of {self.cells} ({self.passed / self.cells:.1%})"

    @property
    def word(self) -> str:
        """yes, no, or a count; nothing where nothing was run."""
        if not self.cells:
            return ""
        if self.passed in (0, self.cells):
            return "yes" if self.passed else "no"
        return f"{self.passed} of {self.cells}"


@dataclass(frozen=True)
class PrimitiveRow:
    """A primitive in a dtype, and what each engine makes of it."""

    primitive: str
    dtype: str
    words: Sequence[str]


def is_of_engines(limitation: Limitation) -> bool:
    """Whether the limitation speaks of engines alone."""
    return bool(limitation.modes) and set(limitation.modes) <= set(CONSUMER_MODES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", nargs="+", type=Path, metavar="FILE", help="a results file")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the tables' folder")
    parser.add_argument(
        "--problems", type=int, help="how many contradictions to the ledger are told; default: all"
    )


def main(options: argparse.Namespace, console: Console) -> int:
    harnesses = all_harnesses(jax_version=None)
    kept = rendering.read_data(engine_rows.NAME, options.into)
    for path in options.results:
        rows = results.read(path).values()
        results.refuse_rows_of_others(rows, options.into, rendering.TABLES)
        kept = engine_rows.merged(kept, rows, harnesses)
    listed = [harness for harness in harnesses if _is_asked(harness, (*DTYPES, *OTHER_DTYPES))]
    kept["dtypes"] = engine_rows.dtypes_of(listed, DTYPES)
    ledger = load()
    texts = {f"{engine_rows.NAME}.json": json.dumps(kept, indent=0) + "\n"}
    texts |= consumer_files(harnesses, ledger, kept)
    for path in rendering.write(texts, options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    problems = contradictions(kept, harnesses, ledger)
    for problem in problems[: options.problems]:
        console.print(problem, markup=False, highlight=False, soft_wrap=True)
    return 1 if problems else 0


def consumer_files(
    harnesses: Sequence[Harness], limitations: Sequence[Limitation], kept: Mapping[str, Any]
) -> dict[str, str]:
    """The table and a page for each engine, by name; `kept` is what engine_rows.json holds."""
    asked = [harness for harness in harnesses if _is_asked(harness)]
    families = _grouped(asked, lambda harness: harness.family)
    shares = [(f, len(families[f]), _shares(families[f], kept)) for f in FAMILIES if f in families]
    of_dtypes = _grouped(asked, lambda harness: harness.dtype.name)
    shares += [
        (d, len(of_dtypes[d]), _shares(of_dtypes[d], kept)) for d in DTYPES if d in of_dtypes
    ]
    runs = {mode: _run_of(mode, asked, kept) for mode in CONSUMER_MODES}
    text = rendering.render(
        TABLE,
        engines=CONSUMER_MODES,
        dtypes=DTYPES,
        shares=[*shares, ("all", len(asked), _shares(asked, kept))],
        left_out=_shares(asked, kept, storable=False),
        others=_shares_of_other_dtypes(harnesses, kept),
        whole=_shares(asked, kept, storable=None),
        lacking={mode: sorted(NO_ARRAYS_OF[mode]) for mode in CONSUMER_MODES},
        runs=list(runs.values()),
        rows=_rows(asked, kept),
        commands={name: command(name) for name in ENVIRONMENTS},
    )
    dtypes_of = _dtypes_of(harnesses, kept)
    pages = {
        page_of(mode): rendering.render(
            "consumers_engine.md",
            title=ENGINE_NAMES[mode],
            run=run,
            entries=[(entry, dtypes_of(entry)) for entry in _of_engine(limitations, mode)],
        )
        for mode, run in runs.items()
    }
    return {TABLE: text} | pages


def page_of(engine: str) -> str:
    """The name of the page of what fails in an engine."""
    return f"consumers_{engine}.md"


def contradictions(
    kept: Mapping[str, Any], harnesses: Sequence[Harness], limitations: Sequence[Limitation]
) -> list[str]:
    """A line for each cell of which the ledger says other things than the row that is kept."""
    index = LedgerIndex(limitations)
    versions = kept.get("versions", {})
    lines = []
    for harness in harnesses:
        for mode in CONSUMER_MODES:
            letter = engine_rows.letter(kept, harness.name, mode)
            if letter == engine_rows.NOT_RUN:
                continue
            row = row_of(
                Cell(harness, "cpu", "no_xla", mode), {**_NO_VERSIONS, **versions.get(mode, {})}
            )
            declared = bool(index.matching(row))
            if declared and letter == engine_rows.PASSED:
                lines.append(f"{harness.name} {mode}: it passes, and the ledger declares a failure")
            if not declared and letter != engine_rows.PASSED:
                lines.append(f"{harness.name} {mode}: it fails, and the ledger has no entry")
    return lines


def _is_asked(harness: Harness, dtypes: Sequence[str] = DTYPES) -> bool:
    return harness.family in FAMILIES and harness.dtype.name in dtypes


def _shares_of_other_dtypes(
    harnesses: Sequence[Harness], kept: Mapping[str, Any]
) -> list[tuple[str, int, Sequence[Share]]]:
    """The shares of each of the other dtypes of which an engine ran something."""
    rows = []
    for dtype in OTHER_DTYPES:
        members = [harness for harness in harnesses if _is_asked(harness, (dtype,))]
        shares = _shares(members, kept)
        if any(share.cells for share in shares):
            rows.append((dtype, len(members), shares))
    return rows


def _shares(
    harnesses: Iterable[Harness], kept: Mapping[str, Any], storable: bool | None = True
) -> Sequence[Share]:
    """The share of each engine, of the harnesses of which it has arrays or, if False, has none.

    With None it is that of all.
    """
    names = [harness.name for harness in harnesses]
    shares = []
    for mode in CONSUMER_MODES:
        counted = (
            name
            for name in names
            if storable is None or storable == engine_rows.is_storable(kept, name, mode)
        )
        letters = [engine_rows.letter(kept, name, mode) for name in counted]
        run = [letter for letter in letters if letter != engine_rows.NOT_RUN]
        shares.append(Share(run.count(engine_rows.PASSED), len(run)))
    return shares


def _rows(harnesses: Sequence[Harness], kept: Mapping[str, Any]) -> list[PrimitiveRow]:
    """The primitives that some engine does not take in whole."""
    groups = _grouped(harnesses, lambda harness: (harness.primitive, harness.dtype.name))
    rows = [
        PrimitiveRow(primitive, dtype, [share.word for share in _shares(members, kept, None)])
        for (primitive, dtype), members in sorted(groups.items())
    ]
    return [row for row in rows if not {*row.words} <= {"", "yes"}]


def _run_of(mode: str, harnesses: Sequence[Harness], kept: Mapping[str, Any]) -> dict[str, Any]:
    """On what the newest run of an engine was, and how many of the cells asked for have a row."""
    letters = [engine_rows.letter(kept, harness.name, mode) for harness in harnesses]
    ran = sum(letter != engine_rows.NOT_RUN for letter in letters)
    versions = kept.get("versions", {}).get(mode, {})
    return {**versions, "engine": mode, "cells": ran, "of": len(letters)}


def _dtypes_of(
    harnesses: Iterable[Harness], kept: Mapping[str, Any]
) -> Callable[[Limitation], list[str]]:
    """A function that gives the dtypes of which a limitation was seen, as the rows have it."""
    of_primitives = _grouped(harnesses, lambda harness: harness.primitive)

    def dtypes(limitation: Limitation) -> list[str]:
        everywhere = dataclasses.replace(limitation, jax=None, tensorflow=None, processor=None)
        found = {
            harness.dtype.name
            for primitive in limitation.primitive
            for harness in of_primitives[primitive]
            for mode in limitation.modes
            if engine_rows.letter(kept, harness.name, mode)
            not in (engine_rows.NOT_RUN, engine_rows.PASSED)
            and everywhere.matches(row_of(Cell(harness, "cpu", "no_xla", mode), _NO_VERSIONS))
        }
        return sorted(found)

    return dtypes


def _of_engine(limitations: Iterable[Limitation], engine: str) -> list[Limitation]:
    """What fails in an engine, by reason and then by primitive."""
    members = [entry for entry in limitations if is_of_engines(entry) and engine in entry.modes]
    return sorted(members, key=lambda entry: (entry.reason, entry.primitive))


def _grouped(
    members: Iterable[_Member], key: Callable[[_Member], _Key]
) -> dict[_Key, list[_Member]]:
    groups: dict[_Key, list[_Member]] = collections.defaultdict(list)
    for member in members:
        groups[key(member)].append(member)
    return groups
