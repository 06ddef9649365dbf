"""`python -m reports support`: each primitive and function, by target and dtype.

support/FAMILY.md has a row for each; the package carries the same counts as data, for
`python -m jax2tf supports`. The counts of engines are those of the rows that are kept. The others
are the ledger's, which whole runs proved: what they proved, and when, stands above each page.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from harnesses.cell.cells import Cell
from harnesses.cell.names import GRADIENT_MODES, JAX_SIDE, MODE_NAMES, POLY, SAVEDMODEL, STABLEHLO
from harnesses.cell.rows import VERSIONS, Row, row_of
from harnesses.engine.consumers import NO_ARRAYS_OF
from harnesses.harness import COMPLEX, FLOATS, Harness, all_harnesses
from limitations.check import LedgerIndex
from limitations.ledger import Limitation, load
from reports import engine_rows, proofs, rendering
from reports.consumers import ENGINE_NAMES
from reports.dtype_names import dtypes_text

FOLDER = Path(__file__).parents[1] / "support"
DATA = "support.json"

# How a cell of the data is said where it is no count: nothing ran; the engine stores no such array;
# JAX itself cannot; there is no derivative of that dtype.
NOT_RUN, NOT_STORED, NOT_IN_JAX, NO_GRADIENT = ".", "x", "j", "-"


@dataclasses.dataclass(frozen=True)
class Column:
    """A way in which a converted function is run.

    Attributes:
      title: of the column of a page.
      lowering, modes: of its cells, all of which have to pass.
      proof: the name of its runs in proved.json; None for an engine, whose rows are kept.
    """

    title: str
    lowering: str
    modes: tuple[str, ...]
    proof: str | None

    @property
    def engine(self) -> str | None:
        """The engine whose rows the column shows."""
        return None if self.proof else self.modes[0]


COLUMNS: Mapping[str, Column] = {
    "eager": Column("eager", "xla", ("eager",), "runs"),
    "graph": Column("graph", "xla", ("graph",), "runs"),
    "compiled": Column("compiled", "xla", ("compiled",), "runs"),
    "savedmodel": Column("saved", "no_xla", (SAVEDMODEL,), None),
    "gradient": Column("gradient", "xla", GRADIENT_MODES, "gradients"),
    "poly": Column("open batch", "xla", (POLY,), "shape_polymorphism"),
    "tensorflow": Column("standard ops", "no_xla", MODE_NAMES, "runs"),
    **{
        mode: Column(ENGINE_NAMES[mode], "no_xla", (mode,), None)
        for mode in ("litert", "onnx", "openvino", "tfjs")
    },
    "stablehlo": Column("StableHLO loaded", "xla", (STABLEHLO,), None),
}

# The runs of which is known how many harnesses of each family ran.
_OF_FAMILIES = ("gradients", "shape_polymorphism")
_WITH_GRADIENTS = frozenset(dtype.name for dtype in (*FLOATS, *COMPLEX))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="say whether the pages are current")
    parser.add_argument("--into", type=Path, default=FOLDER, help="the pages' folder")


def main(options: argparse.Namespace, console: Console) -> int:
    texts = pages(gathered())
    return rendering.write_or_check(texts, options, console, "python -m reports support")


def files() -> dict[str, str]:
    """The pages, by name, of the data of this checkout."""
    return pages(gathered())


def carried(data: Mapping[str, Any]) -> dict[str, str]:
    """What the package carries, by name, of what `gather` gave."""
    return {DATA: text_of(data)}


def gathered(folder: Path = rendering.TABLES) -> dict[str, Any]:
    """The data of this checkout: its harnesses, its ledger, and the figures of a folder."""
    harnesses = all_harnesses(jax_version=None)
    proved = rendering.read_data("proved", folder)
    return gather(harnesses, load(), proved, rendering.read_data(engine_rows.NAME, folder))


def gather(
    harnesses: Sequence[Harness],
    ledger: Sequence[Limitation],
    proved: Mapping[str, Any],
    kept: Mapping[str, Any],
) -> dict[str, Any]:
    """What passes of each primitive and dtype in each column, and where that was seen.

    `proved` is what proved.json holds, `kept` what engine_rows.json does.
    """
    runs = {name: _run_of(column, proved, kept) for name, column in COLUMNS.items()}
    sizes = collections.Counter(harness.family for harness in harnesses)
    asked = {name: _Asked(COLUMNS[name], runs[name], ledger, kept, sizes) for name in COLUMNS}
    of_uses: dict[str, dict[str, list[Harness]]] = collections.defaultdict(dict)
    families: dict[str, list[str]] = collections.defaultdict(list)
    for harness in harnesses:
        of_uses[harness.primitive].setdefault(harness.dtype.name, []).append(harness)
        if harness.primitive not in families[harness.family]:
            families[harness.family].append(harness.primitive)
    return {
        "seen": {name: _seen(runs[name], harnesses) for name in COLUMNS},
        "families": {family: sorted(names) for family, names in sorted(families.items())},
        "uses": {
            primitive: {
                dtype: " ".join(asked[name].word(members, dtype) for name in COLUMNS)
                for dtype, members in sorted(of_dtypes.items())
            }
            for primitive, of_dtypes in sorted(of_uses.items())
        },
    }


def _run_of(column: Column, proved: Mapping[str, Any], kept: Mapping[str, Any]) -> Row:
    """The run that a column speaks of: the largest on a CPU, of the newest JAX; {} if none is."""
    if column.engine:
        return dict(kept.get("versions", {}).get(column.engine, {}))
    runs = [
        run
        for run in proved.get(column.proof or "", [])
        if run["device"] == "cpu" and run["lowering"] == column.lowering
    ]
    return max(runs, key=lambda run: (run["harnesses"], run["jax"]), default={})


def _seen(run: Row, harnesses: Sequence[Harness]) -> Row:
    if not run:
        return {}
    words = {key: run[key] for key in ("jax", "tensorflow", "python")} | origin.of(run)
    if "harnesses" in run:
        words |= {"harnesses": run["harnesses"], "since": proofs.added_since(run, harnesses)}
    return words


class _Asked:
    """What is known of a column's cells."""

    def __init__(
        self,
        column: Column,
        run: Row,
        ledger: Sequence[Limitation],
        kept: Mapping[str, Any],
        sizes: Mapping[str, int],
    ):
        self._column, self._run, self._kept, self._sizes = column, run, kept, sizes
        # A limitation of one kind of processor is one.
        self._index = LedgerIndex([dataclasses.replace(e, processor=None) for e in ledger])
        self._limited = {name for entry in ledger for name in entry.primitive}
        self._versions = dict.fromkeys(VERSIONS) | {key: run.get(key) for key in VERSIONS}

    def word(self, harnesses: Sequence[Harness], dtype: str) -> str:
        """How many of the harnesses pass: `4`, `3/4`, or `3/4/6` where 4 of 6 were run."""
        if self._column.engine:
            return self._in_engine(self._column.engine, harnesses, dtype)
        if self._column.proof == "gradients" and dtype not in _WITH_GRADIENTS:
            return NO_GRADIENT
        if not self._run or not self._ran(harnesses[0].family):
            return NOT_RUN
        runnable = [h for h in harnesses if h.runs_on(self._run["jax"])]
        sides = [self._sides(harness) for harness in runnable]
        applicable = [side for side in sides if JAX_SIDE not in side]
        if not applicable:
            return NOT_IN_JAX
        return _count(sum(not side for side in applicable), len(applicable), len(applicable))

    def _ran(self, family: str) -> bool:
        """Whether the run had at least half of a family: it does not say which harnesses it had."""
        if self._column.proof not in _OF_FAMILIES:
            return True
        ran = self._run["families"].get(family, {}).get("harnesses", 0)
        return 2 * ran >= self._sizes[family]

    def _sides(self, harness: Harness) -> set[str]:
        """The sides of the limitations that speak of the harness's cells."""
        if harness.primitive not in self._limited:
            return set()
        cells = [Cell(harness, "cpu", self._column.lowering, mode) for mode in self._column.modes]
        rows = [row_of(cell, self._versions) for cell in cells]
        return {entry.side for row in rows for entry in self._index.matching(row)}

    def _in_engine(self, engine: str, harnesses: Sequence[Harness], dtype: str) -> str:
        letters = [engine_rows.letter(self._kept, harness.name, engine) for harness in harnesses]
        ran = [letter for letter in letters if letter != engine_rows.NOT_RUN]
        if not ran:
            return NOT_STORED if dtype in NO_ARRAYS_OF.get(engine, ()) else NOT_RUN
        return _count(ran.count(engine_rows.PASSED), len(ran), len(letters))


def _count(passed: int, ran: int, asked: int) -> str:
    if ran < asked:
        return f"{passed}/{ran}/{asked}"
    return str(passed) if passed == ran else f"{passed}/{ran}"


def text_of(data: Mapping[str, Any]) -> str:
    """The data as JSON, with a line for each primitive."""
    head = {key: data[key] for key in ("seen", "families")}
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    parts.append(f'"columns": {json.dumps(list(COLUMNS))}')
    uses = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in data["uses"].items()]
    parts.append('"uses": {\n' + ",\n".join(uses) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


# --- Pages ----------------------------------------------------------------------------------


def pages(data: Mapping[str, Any]) -> dict[str, str]:
    """A page for each family, and one that lists them, by name."""
    families = data["families"]
    texts = {
        f"{family}.md": rendering.render(
            "support.md",
            family=family,
            columns=COLUMNS,
            seen=data["seen"],
            rows=[(name, _cells(data["uses"][name])) for name in names],
        )
        for family, names in families.items()
    }
    return texts | {"README.md": rendering.render("support_index.md", families=families)}


def _cells(of_dtypes: Mapping[str, str]) -> list[str]:
    """What each column says of a primitive."""
    words = {dtype: row.split() for dtype, row in of_dtypes.items()}
    return [_cell({dtype: row[i] for dtype, row in words.items()}) for i in range(len(COLUMNS))]


def _cell(words: Mapping[str, str]) -> str:
    """Dtypes that pass whole first, then those in part, with counts, and those that do not."""
    by_kind: dict[str, list[str]] = collections.defaultdict(list)
    parts: list[str] = []
    for dtype, word in words.items():
        kind = _kind(word)
        if kind == "in part":
            passed, ran, asked = _counts(word)
            left = f" and {asked - ran} not run" if ran < asked else ""
            parts.append(f"{dtype} {passed} of {ran}{left}")
        by_kind[kind].append(dtype)
    said = [
        dtypes_text(by_kind["whole"]),
        f"in part: {', '.join(parts)}" if parts else "",
        *(
            f"{kind}: {dtypes_text(by_kind[kind])}" if by_kind[kind] else ""
            for kind in ("no", "not stored", "not in JAX")
        ),
    ]
    return "; ".join(filter(None, said)) or "not run"


def _kind(word: str) -> str:
    """What a word of the data says: whole, in part, no, and so on."""
    if word in _WORDS:
        return _WORDS[word]
    passed, _, asked = _counts(word)
    if passed == asked:
        return "whole"
    return "in part" if passed else "no"


_WORDS = {
    NOT_RUN: "not run",
    NOT_STORED: "not stored",
    NOT_IN_JAX: "not in JAX",
    NO_GRADIENT: "no gradient",
}


def _counts(word: str) -> tuple[int, int, int]:
    """How many harnesses pass, of how many that ran, of how many that there are."""
    numbers = [int(number) for number in word.split("/")]
    return numbers[0], numbers[min(1, len(numbers) - 1)], numbers[-1]
