"""What a run found, as reports/tables/planted.json, and as the table that is made of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limitations.ledger import matches_glob
from reports import rendering
from reports.results import Row

NAME = "planted"
REASONS = Path(__file__).with_name("reasons.toml")
DTYPE, AXIS, PARAM, EDGE = KINDS = ("dtype", "axis", "param", "edge")


@dataclass(frozen=True)
class Reason:
    """Why no harness can notice some faults: those that match a glob of each."""

    primitives: Sequence[str]
    faults: Sequence[str]
    reason: str

    def explains(self, row: Mapping[str, Any]) -> bool:
        """Whether it speaks of the fault of a row."""
        primitive, what = row["primitive"], row["what"]
        return matches_glob(primitive, self.primitives) and matches_glob(what, self.faults)


def reasons(path: Path = REASONS) -> list[Reason]:
    """The reasons that are written down. One that says nothing is refused."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("planted", [])
    found = [Reason(**entry) for entry in entries]
    for entry in found:
        if not entry.reason.strip():
            raise ValueError(f"{path}: {entry.primitives} {entry.faults} has no reason")
    return found


def data_of(rows: Sequence[Row], seed: int, of: int, versions: Row) -> dict[str, Any]:
    """What is kept of a run: how many faults of each kind, and those that were not caught."""
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    return {
        **versions,
        "seed": seed,
        "of": of,
        "kinds": {
            kind: [len(found), sum(row["caught_by"] is None for row in found)]
            for kind, found in kinds.items()
        },
        "survivors": [
            {key: row[key] for key in ("primitive", "kind", "what", "tried")}
            for row in rows
            if row["caught_by"] is None
        ],
    }


def files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its data, by file name."""
    known = reasons()
    explained = {id(row): reason_of(row, known) for row in data["survivors"]}
    rows = []
    for kind in KINDS:
        tried, missed = data["kinds"][kind]
        with_reason = sum(
            row["kind"] == kind and explained[id(row)] is not None for row in data["survivors"]
        )
        rows.append((kind, tried, tried - missed, with_reason, missed - with_reason))
    text = rendering.render(
        f"{NAME}.md",
        data=data,
        rows=rows,
        totals=tuple(sum(row[i] for row in rows) for i in range(1, 5)),
        score=score(data),
        survivors=[row for row in data["survivors"] if explained[id(row)] is None],
        explained=[(row, explained[id(row)]) for row in data["survivors"] if explained[id(row)]],
    )
    return {f"{NAME}.md": text, f"{NAME}.json": rendering.figures(data)}


def score(data: Mapping[str, Any]) -> float:
    """The share that was caught of the faults that no reason explains."""
    known = reasons()
    tried = sum(tried for tried, _ in data["kinds"].values())
    with_reason = sum(reason_of(row, known) is not None for row in data["survivors"])
    return (tried - len(data["survivors"])) / max(1, tried - with_reason)


def reason_of(row: Mapping[str, Any], known: Sequence[Reason]) -> str | None:
    """Why no harness can notice the fault of a row; None if nothing says so."""
    return next((entry.reason for entry in known if entry.explains(row)), None)
