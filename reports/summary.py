"""`python -m reports summary`: how a run went, in counts.

A cell is limited when the ledger declares it, red when the ledger and what was seen disagree.
"Seconds a cell" is what one core spent on it.
"""

from __future__ import annotations

import argparse
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from harnesses.cell import journal
from reports import results
from reports.results import OUTCOMES, Row

# The lowering of cells of the other direction.
# By the lowerings that only they have; the plain direction is not said.
_DIRECTIONS = {"call_tf": "call_tf", "on_numpy": "substrates", "on_jax": "substrates"}
DEFAULT_GROUPINGS = ("family", "device,lowering,mode")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        help="a results file; default: those of whole runs, or else those of parts",
    )
    parser.add_argument(
        "--by",
        action="append",
        metavar="FIELDS",
        help=f"fields to group by, with commas; default: {' and '.join(DEFAULT_GROUPINGS)}",
    )


def main(options: argparse.Namespace, console: Console) -> int:
    files = options.results or results.latest_files()
    if not files:
        raise results.ResultsError(
            f"there are no results in {results.RESULTS}. Make them with: python -m harnesses run"
        )
    of_files = {file: list(results.read(file).values()) for file in files}
    rows = [row for rows in of_files.values() for row in rows]
    # A line that a narrow terminal wraps can be read, a column that is left out cannot.
    console.width = max(console.width, 120)
    for grouping in options.by or DEFAULT_GROUPINGS:
        console.print(summary_table(rows, grouping.split(",")))
    versions = sorted({version_line(row) for row in rows})
    console.print("\n".join(versions))
    for file, members in of_files.items():
        for line in problems(file, members):
            console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
    return 0


def problems(file: Path, rows: list[Row]) -> list[str]:
    """What is wrong with a run, each with the command that says more or mends it."""
    request = journal.request_of(file) or {"cells": len(rows), "asked": {"ledger": None}}
    lines = []
    red, missing = Tally(rows).red, request["cells"] - len(rows)
    if red:
        words = ["python -m limitations check", "--results", shlex.quote(str(file))]
        if request["asked"]["ledger"]:
            words += ["--ledger", shlex.quote(request["asked"]["ledger"])]
        if direction := _DIRECTIONS.get(rows[0]["lowering"]):
            words += ["--direction", direction]
        lines.append(f"{red} red cells: {' '.join(words)} lists them")
    if missing:
        lines.append(
            f"{missing} of {request['cells']} cells did not run; "
            f"go on with: {request['command']} --resume"
        )
    return lines


@dataclass
class Tally:
    """Counts over rows."""

    rows: Iterable[Row]
    cells: int = 0
    limited: int = 0
    red: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for row in self.rows:
            self.cells += 1
            self.outcomes[row["outcome"]] += 1
            self.limited += row["limitation"] is not None
            self.red += row["verdict"] == "red"
            self.seconds += row["seconds"] or 0.0  # a crash has none

    @property
    def share_limited(self) -> float:
        return self.limited / self.cells

    @property
    def seconds_a_cell(self) -> float:
        return self.seconds / self.cells


def summary_table(rows: list[Row], fields: list[str]) -> Table:
    """A row of counts for each group of cells that agree in `fields`, and one for all.

    Outcomes that no cell had have no column.
    """
    unknown = [field for field in fields if field not in rows[0]]
    if unknown:
        raise results.ResultsError(
            f"cannot group by {', '.join(unknown)}: a row has {', '.join(rows[0])}"
        )
    total = Tally(rows)
    outcomes = [outcome for outcome in OUTCOMES if total.outcomes[outcome]]
    table = Table(title="by " + ", ".join(fields), title_justify="left", box=box.SIMPLE_HEAD)
    for name in fields:
        table.add_column(name, no_wrap=True)
    for name in ("cells", *outcomes, "limited", "red", "s a cell"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(str(row[name]) for name in fields)].append(row)
    for group, members in sorted(groups.items()):
        table.add_row(*group, *_counts(Tally(members), outcomes))
    table.add_section()
    table.add_row("all", *[""] * (len(fields) - 1), *_counts(total, outcomes), style="bold")
    return table


def _counts(tally: Tally, outcomes: list[str]) -> list[str]:
    red = f"[red]{tally.red}[/red]" if tally.red else "0"
    return [
        str(tally.cells),
        *(str(tally.outcomes[outcome]) for outcome in outcomes),
        f"{tally.limited} ({tally.share_limited:.1%})",
        red,
        f"{tally.seconds_a_cell:.4f}",
    ]


def version_line(row: Row) -> str:
    """What a row was seen on, in words."""
    tensorflow = f", TensorFlow {row['tensorflow']}" if row["tensorflow"] else ""
    who = row["impl"] or "JAX itself"
    return f"{who} on {row['device']}: JAX {row['jax']}{tensorflow}, Python {row['python']}"
