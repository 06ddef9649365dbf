"""`python -m reports diff OLD NEW`: what changed from one run to another.

Cells are compared by harness, device, lowering and mode, so two runs can stand for two
implementations, two versions of JAX, or before and after a change. Changes are listed by kind and
counted by family and by cause. A cell of an engine has the engine's ops for nodes. Exits with 1 if
a cell that passed fails now, or for what `--fail-on` names besides.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from reports import rendering, results
from reports.causes import cause_of
from reports.results import Cell, Row

SHOWN = 20
TEMPLATE = "diff.md"
# Seconds that a family has to take for its time to be told: less is noise.
_TOLD_SECONDS = 1.0


@dataclass(frozen=True)
class Change:
    """What changed about a cell: its rows before and after, None where a run did not have it."""

    cell: Cell
    before: Row | None
    after: Row | None

    @property
    def family(self) -> str:
        """The family of the cell's harness."""
        return str((self.after or self.before or {})["family"])

    @property
    def cause(self) -> str | None:
        """Why it fails, or failed if it passes now; None where nothing failed."""
        failing = [row for row in (self.after, self.before) if row and row["outcome"] != "pass"]
        return cause_of(failing[0]) if failing else None

    def growth(self, field: str) -> float:
        """By how much a number grew."""
        after, before = (float((row or {}).get(field) or 0) for row in (self.after, self.before))
        return after - before


@dataclass(frozen=True)
class Kind:
    """A kind of change: its title, what is said of a cell, and what an order goes by."""

    title: str
    words: Callable[[Any, Any], str]
    ordered_by: str | None = None


KINDS = {
    "broken": Kind("newly failing", lambda before, after: describe(after)),
    "mended": Kind("newly passing", lambda before, after: f"was {describe(before)}"),
    "otherwise": Kind(
        "failing otherwise", lambda before, after: f"{describe(before)} -> {describe(after)}"
    ),
    "ulps": Kind(
        "other ULPs", lambda before, after: f"{_ulps(before)} -> {_ulps(after)}", ordered_by="ulps"
    ),
    "nodes": Kind(
        "other numbers of nodes",
        lambda before, after: f"{before['nodes']} -> {after['nodes']} nodes",
        ordered_by="nodes",
    ),
    "new": Kind("new cells", lambda before, after: describe(after)),
    "gone": Kind("gone cells", lambda before, after: f"was {describe(before)}"),
}
# What the exit status can tell, and of which changes.
_FAILS_ON: dict[str, Callable[[Change], bool]] = {
    "broken": lambda change: True,
    "otherwise": lambda change: True,
    "ulps": lambda change: change.growth("ulps") > 0,
    "nodes": lambda change: change.growth("nodes") > 0,
    "gone": lambda change: True,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, help="a results file")
    parser.add_argument("new", type=Path, help="a results file")
    parser.add_argument("--all", action="store_true", help=f"list more than {SHOWN} of a kind")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--into", type=Path, metavar="FILE", help="default: print it")
    parser.add_argument(
        "--fail-on",
        action="append",
        choices=sorted(_FAILS_ON),
        default=[],
        help="exit with 1 for these too: errors that grew, graphs that grew, cells that are gone",
    )


def main(options: argparse.Namespace, console: Console) -> int:
    old, new = results.read(options.old), results.read(options.new)
    if options.into is not None:
        results.refuse_inputs(options.into, (options.old, options.new))
    changes = compare(old, new)
    most = None if options.all else SHOWN
    text = FORMATS[options.format](changes, times(old, new), most)
    if options.into is None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        rendering.write({options.into.name: f"{text}\n"}, options.into.parent)
        console.print(f"wrote {options.into}", soft_wrap=True)
    told = {"broken", *options.fail_on}
    return int(any(_FAILS_ON[kind](change) for kind in told for change in changes[kind]))


Changes = dict[str, list[Change]]


def compare(old: Mapping[Cell, Row], new: Mapping[Cell, Row]) -> Changes:
    """The differences between two runs, by kind; what grew most comes first."""
    changes: Changes = {kind: [] for kind in KINDS}
    for cell in [*old, *(cell for cell in new if cell not in old)]:
        before, after = old.get(cell), new.get(cell)
        for kind in _kinds_of(before, after):
            changes[kind].append(Change(cell, before, after))
    for name in KINDS:
        field = KINDS[name].ordered_by
        if field is not None:
            changes[name].sort(key=lambda change: change.growth(field), reverse=True)
    return changes


def times(old: Mapping[Cell, Row], new: Mapping[Cell, Row]) -> dict[str, tuple[float, float]]:
    """The seconds of each family before and after, of the cells that both runs have."""
    seconds: dict[str, tuple[float, float]] = {}
    for cell in old.keys() & new.keys():
        before, after = seconds.get(old[cell]["family"], (0.0, 0.0))
        took = (old[cell]["seconds"] or 0.0, new[cell]["seconds"] or 0.0)
        seconds[old[cell]["family"]] = (before + took[0], after + took[1])
    return {family: both for family, both in sorted(seconds.items()) if max(both) >= _TOLD_SECONDS}


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


def _kinds_of(before: Row | None, after: Row | None) -> list[str]:
    if before is None or after is None:
        return ["new" if before is None else "gone"]
    kinds = []
    passed, passes = (row["outcome"] == "pass" for row in (before, after))
    if passed != passes:
        kinds.append("mended" if passes else "broken")
    elif _failure(before) != _failure(after):
        kinds.append("otherwise")
    elif before["ulps"] != after["ulps"]:
        kinds.append("ulps")
    return [*kinds, "nodes"] if _nodes_differ(before, after) else kinds


def _failure(row: Row) -> tuple[Any, ...]:
    return row["outcome"], row["phase"], row["exception"]


def _ulps(row: Row) -> str:
    return "not measured" if row["ulps"] is None else f"{row['ulps']:g} ULPs"


def _nodes_differ(before: Row, after: Row) -> bool:
    """Whether both cells have a graph (rows of older runs tell of none), and not the same size."""
    sizes = [row["nodes"] for row in (before, after)]
    # A compiled cell has the graph of one that is not: one line is enough.
    return None not in sizes and sizes[0] != sizes[1] and not before["mode"].endswith("compiled")


# --- What is written ------------------------------------------------------------------------

Times = Mapping[str, tuple[float, float]]


def _words(kind: str, change: Change) -> str:
    return KINDS[kind].words(change.before, change.after)


def _counted(texts: Sequence[str | None]) -> list[tuple[str, int]]:
    """Texts with their counts, the most frequent first."""
    counts = collections.Counter(text for text in texts if text is not None)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _text(changes: Changes, times: Times, most: int | None) -> str:
    lines = []
    for kind, of_kind in changes.items():
        lines.append(f"{KINDS[kind].title}: {len(of_kind)}")
        for what, texts in (
            ("family", [change.family for change in of_kind]),
            ("cause", [change.cause for change in of_kind]),
        ):
            counts = _counted(texts)
            if len(of_kind) > 1 and counts:
                counted = "; ".join(f"{count} {text}" for text, count in counts[:most])
                lines.append(f"  by {what}: {counted}")
        lines += [f"  {change.cell}: {_words(kind, change)}" for change in of_kind[:most]]
        left = len(of_kind[most:]) if most is not None else 0
        if left:
            lines.append(f"  ... and {left} more (--all lists them)")
    for family, (before, after) in times.items():
        lines.append(f"time of {family}: {before:.1f} s -> {after:.1f} s")
    return "\n".join(lines)


def _markdown(changes: Changes, times: Times, most: int | None) -> str:
    sections = [
        {
            "title": KINDS[kind].title,
            "families": _counted([change.family for change in of_kind]),
            "causes": _counted([change.cause for change in of_kind])[:most],
            "rows": [(str(change.cell), _words(kind, change)) for change in of_kind[:most]],
            "count": len(of_kind),
        }
        for kind, of_kind in changes.items()
    ]
    return rendering.render(TEMPLATE, sections=sections, times=times).strip()


def _json(changes: Changes, times: Times, most: int | None) -> str:
    del most  # who reads it with a program wants all of it
    told = ("outcome", "phase", "exception", "message", "ulps", "nodes", "seconds")

    def side(row: Row | None) -> dict[str, Any] | None:
        return None if row is None else {field: row.get(field) for field in told}

    data: dict[str, Any] = {
        kind: [
            change.cell._asdict()
            | {"family": change.family, "cause": change.cause}
            | {"before": side(change.before), "after": side(change.after)}
            for change in of_kind
        ]
        for kind, of_kind in changes.items()
    }
    return json.dumps(data | {"seconds": times}, indent=1)


FORMATS: dict[str, Callable[[Changes, Times, int | None], str]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
