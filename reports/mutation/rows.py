"""Rows of a mutation run: one a mutant, written as they come, so that a run can go on later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]

CAUGHT = ("caught", "timeout", "crash")


def read(path: Path) -> dict[str, Row]:
    """The rows by the mutant's name; of one that was tried twice, the later row."""
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["mutant"]: row for row in rows}


def append(path: Path, row: Row) -> None:
    """Adds a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
