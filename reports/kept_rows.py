"""The rows of whole runs, compressed, as the repository keeps them: what figures come from.

Of a row stay the columns that tables read, of a message the words that causes are told by. The rows
stand column by column, which takes a tenth of the place, and a column of one value once.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesses.cell import origin
from reports import results
from reports.causes import words_of
from reports.results import Row

COLUMNS = (
    "harness",
    "family",
    "primitive",
    "dtype",
    "device",
    "lowering",
    "mode",
    "outcome",
    "phase",
    "exception",
    "message",
    "ulps",
    "jax",
    "tensorflow",
    "python",
    "impl",
    "impl_versions",
    *origin.KEYS,
)


@dataclass(frozen=True)
class Run:
    """The rows of a run, and the command line that made them; empty where it is unknown."""

    command: str
    rows: Sequence[Row]

    @classmethod
    def read(cls, path: Path) -> Run:
        """The run of a results file, as it is kept.

        Raises:
          ResultsError: there is no such file, or it holds no row.
        """
        rows = results.read(path).values()
        return cls(results.command_of(path), [_kept(row) for row in rows])


def write(path: Path, runs: Mapping[str, Run]) -> None:
    """Writes the runs into one file; those of the same harnesses share their names."""
    packed = [
        {"name": name, "command": run.command, "columns": _columns(run.rows)}
        for name, run in runs.items()
    ]
    text = json.dumps(packed, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read(path: Path) -> dict[str, Run]:
    """The runs of a file that `write` wrote, by name; none where there is no file."""
    packed = json.loads(lzma.decompress(path.read_bytes())) if path.exists() else []
    return {run["name"]: Run(run["command"], _rows(run["columns"])) for run in packed}


def _kept(row: Row) -> Row:
    kept = {column: row[column] for column in COLUMNS if column in row}
    kept["message"] = words_of(row) if row["outcome"] == "error" else None
    if row["ulps"] is not None:
        kept["ulps"] = float(f"{row['ulps']:.3g}")
    return kept


def _columns(rows: Sequence[Row]) -> dict[str, Any]:
    """By column: a list of the values, or the value that is the same in all rows."""
    columns = {column: [row.get(column) for row in rows] for column in COLUMNS}
    return {
        column: values if any(value != values[0] for value in values) else {"all": values[0]}
        for column, values in columns.items()
    } | {"count": len(rows)}


def _rows(columns: Mapping[str, Any]) -> list[Row]:
    count = columns["count"]
    full = {
        column: values if isinstance(values, list) else [values["all"]] * count
        for column, values in columns.items()
        if column != "count"
    }
    return [dict(zip(full, values, strict=True)) for values in zip(*full.values(), strict=True)]
