"""`python -m reports diff OLD NEW`: what changed from one run to another.

Cells are compared by harness, device, lowering and mode, so two runs can stand for two
implementations, two versions of JAX, or before and after a change. Beside outcomes and errors it
tells whose graphs grew. Exits with 1 if a cell that passed fails now, like a test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from reports import results
from reports.results import Cell, Row

SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, help="a results file")
    parser.add_argument("new", type=Path, help="a results file")
    parser.add_argument("--all", action="store_true", help=f"list more than {SHOWN} of a kind")


def main(options: argparse.Namespace, console: Console) -> int:
    changes = compare(results.read(options.old), results.read(options.new))
    for title, lines in changes.sections().items():
        console.print(f"{title}: {len(lines)}", style="bold" if lines else "dim", highlight=False)
        shown = lines if options.all else lines[:SHOWN]
        for line in shown:
            console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)
        if len(shown) < len(lines):
            console.print(f"  ... and {len(lines) - len(shown)} more (--all lists them)")
    return 1 if changes.newly_failing else 0


@dataclass(frozen=True)
class Changes:
    """The cells that differ, as (cell, row before, row after); new and gone ones as cells."""

    newly_failing: list[tuple[Cell, Row, Row]]
    newly_passing: list[tuple[Cell, Row, Row]]
    failing_otherwise: list[tuple[Cell, Row, Row]]
    ulps: list[tuple[Cell, Row, Row]]
    nodes: list[tuple[Cell, Row, Row]]
    new: list[tuple[Cell, Row]]
    gone: list[tuple[Cell, Row]]

    def sections(self) -> dict[str, list[str]]:
        """The lines to print under each title; the largest growth comes first."""
        return {
            "newly failing": [f"{c}: {describe(new)}" for c, _, new in self.newly_failing],
            "newly passing": [f"{c}: was {describe(old)}" for c, old, _ in self.newly_passing],
            "failing otherwise": [
                f"{c}: {describe(old)} -> {describe(new)}" for c, old, new in self.failing_otherwise
            ],
            "other ULPs": [
                f"{c}: {_ulps(old)} -> {_ulps(new)}"
                for c, old, new in sorted(self.ulps, key=_growth("ulps"), reverse=True)
            ],
            "other numbers of nodes": [
                f"{c}: {old['nodes']} -> {new['nodes']} nodes"
                for c, old, new in sorted(self.nodes, key=_growth("nodes"), reverse=True)
            ],
            "new cells": [f"{c}: {describe(row)}" for c, row in self.new],
            "gone cells": [f"{c}: was {describe(row)}" for c, row in self.gone],
        }


def compare(old: dict[Cell, Row], new: dict[Cell, Row]) -> Changes:
    """The differences between two runs, in the order of the cells of each."""
    changes = Changes([], [], [], [], [], [], [])
    for cell, before in old.items():
        if cell not in new:
            changes.gone.append((cell, before))
            continue
        after = new[cell]
        passed, passes = (row["outcome"] == "pass" for row in (before, after))
        if passed and not passes:
            changes.newly_failing.append((cell, before, after))
        elif passes and not passed:
            changes.newly_passing.append((cell, before, after))
        elif _kind(before) != _kind(after):
            changes.failing_otherwise.append((cell, before, after))
        elif before["ulps"] != after["ulps"]:
            changes.ulps.append((cell, before, after))
        if _nodes_differ(before, after):
            changes.nodes.append((cell, before, after))
    changes.new.extend((cell, row) for cell, row in new.items() if cell not in old)
    return changes


def describe(row: Row) -> str:
    """An outcome in a few words: `error in run (InvalidArgumentError): Could not find ...`."""
    words = row["outcome"]
    if row["phase"]:
        words += f" in {row['phase']}"
    if row["exception"]:
        words += f" ({row['exception']})"
    if row["message"]:
        first_line = row["message"].strip().split("\n")[0]
        words += f": {first_line[:160]}"
    return words


def _kind(row: Row) -> tuple:
    return row["outcome"], row["phase"], row["exception"]


def _ulps(row: Row) -> str:
    return "not measured" if row["ulps"] is None else f"{row['ulps']:g} ULPs"


def _nodes_differ(before: Row, after: Row) -> bool:
    """Whether both cells have a graph (rows of older runs tell of none), and not the same size."""
    sizes = [row.get("nodes") for row in (before, after)]
    # A compiled cell has the graph of one that is not: one line is enough.
    return None not in sizes and sizes[0] != sizes[1] and not before["mode"].endswith("compiled")


def _growth(field: str) -> Callable[[tuple[Cell, Row, Row]], float]:
    def growth(change: tuple[Cell, Row, Row]) -> float:
        _, old, new = change
        return float(new[field] or 0) - float(old[field] or 0)

    return growth
