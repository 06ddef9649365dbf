"""ops.md: what engines take of TensorFlow's ops, from the tables of the implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harnesses.probes import table as tables
from harnesses.probes.names import ENGINES
from harnesses.probes.table import Table, Uses
from harnesses.probes.trial import TAKES
from reports import rendering

# TensorFlow itself is the measure: its kernels are what is tried.
_MEASURE = "tensorflow"


def op_table_files(dtypes_text: Callable[[Iterable[str]], str]) -> dict[str, str]:
    """The Markdown of the tables that are there; `dtypes_text` gives the words of dtypes."""
    known = {
        target: tables.read(tables.FOLDER / f"{target}.json")
        for target in ENGINES
        if target != _MEASURE
    }
    own = tables.read(tables.FOLDER / f"{_MEASURE}.json")
    rows = [
        (
            use,
            dtypes_text(own.uses[use]),
            [_taken(t.uses.get(use, {}), dtypes_text) for t in known.values()],
        )
        for use in own.uses
    ]
    return {
        "ops.md": rendering.render(
            "ops.md",
            targets=list(known),
            versions={target: t.versions for target, t in {_MEASURE: own, **known}.items()},
            seen={target: t.seen for target, t in {_MEASURE: own, **known}.items()},
            counts={target: _counts(t) for target, t in known.items()},
            rows=[row for row in rows if set(row[2]) - {""} != {"yes"}],
            whole=[use for use, _, cells in rows if set(cells) - {""} == {"yes"}],
            edges={target: _edges(t.uses, dtypes_text) for target, t in known.items()},
        )
    }


def _taken(outcomes: Mapping[str, str], dtypes_text: Callable[[Iterable[str]], str]) -> str:
    taken = [dtype for dtype, outcome in outcomes.items() if outcome.startswith(TAKES)]
    if not outcomes:
        return ""
    if len(taken) == len(outcomes):
        return "yes"
    return dtypes_text(taken) if taken else "no"


def _counts(table: Table) -> str:
    outcomes = [outcome for use in table.uses.values() for outcome in use.values()]
    taken = sum(outcome.startswith(TAKES) for outcome in outcomes)
    return f"{taken} of {len(outcomes)}"


def _edges(uses: Uses, dtypes_text: Callable[[Iterable[str]], str]) -> list[Any]:
    """(use, dtypes, what it differs at) of what is taken and differs at special numbers."""
    found: dict[tuple[str, str], list[str]] = {}
    for use, outcomes in uses.items():
        for dtype, outcome in outcomes.items():
            where = outcome.partition("; differs at ")[2]
            if where:
                found.setdefault((use, where), []).append(dtype)
    return [(use, dtypes_text(dtypes), where) for (use, where), dtypes in found.items()]
