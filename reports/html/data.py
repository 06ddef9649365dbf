"""The rows of runs as columns of small numbers and letters, which a page reads fast.

{"harnesses": {"name": [...], "family": [0, 0, 1, ...], "primitive": [...], "dtype": [...]},
 "words": {"family": ["arrays", ...], "primitive": [...], "dtype": [...], "text": [...]},
 "limitations": [{"id": "special#3", "reason": "..."}],
 "runs": [{"title": "...", "columns": [{"title": "cpu xla eager", "outcomes": "pp m", ...}]}]}

A column of a run has a letter for each harness, in the order of the harnesses: see LETTERS; a space
where there is no such cell. Capital letters are red: the ledger says otherwise.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harnesses.cell import journal, outcomes
from harnesses.cell.cells import Cell
from harnesses.engine.options import cell_command, defaults
from limitations.ledger import Limitation
from reports import results
from reports.results import OUTCOMES, Row

LETTERS = {outcome: outcome[0] for outcome in OUTCOMES}
ABSENT = " "
# Stands for the name of the harness in the command that repeats a cell.
NAME = "HARNESS"
# Letters of the longest message that is shown whole.
_LONGEST = 2000


def page_data(files: Sequence[Path], limitations: Mapping[str, Limitation]) -> dict[str, Any]:
    """What the page shows of the runs.

    Args:
      files: results files, the latest run last.
      limitations: the ledger's entries by id, for their reasons.

    Raises:
      ResultsError: a file is not there, or holds no row.
    """
    runs = [list(results.read(file).values()) for file in files]
    words = Words()
    harnesses = {row["harness"]: row for rows in runs for row in rows}
    ordered = sorted(harnesses.values(), key=lambda r: (r["family"], r["primitive"], r["harness"]))
    places = {row["harness"]: place for place, row in enumerate(ordered)}
    told: dict[str, int] = {}
    data = {
        "harnesses": {
            "name": [row["harness"] for row in ordered],
            "params": [words.number("text", row["params"]) for row in ordered],
            **{
                field: [words.number(field, row[field]) for row in ordered]
                for field in ("family", "primitive", "dtype")
            },
        },
        "runs": [
            _run(file, rows, places, words, told) for file, rows in zip(files, runs, strict=True)
        ],
    }
    return data | {
        "words": words.lists,
        "limitations": [
            {"id": name, "reason": limitations[name].reason if name in limitations else ""}
            for name in told
        ],
    }


def encoded(data: Mapping[str, Any]) -> str:
    """The data as gzipped JSON in base64, which a browser unpacks by itself."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def decoded(text: str) -> dict[str, Any]:
    """What `encoded` was given."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


class Words:
    """Texts that many cells share, by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def number(self, kind: str, text: str) -> int:
        """The place of the text in the list of its kind."""
        of_kind = self._numbers.setdefault(kind, {})
        return of_kind.setdefault(text, len(of_kind))

    @property
    def lists(self) -> dict[str, list[str]]:
        """The texts of each kind, in the order of their numbers."""
        return {kind: list(numbers) for kind, numbers in self._numbers.items()}


def _run(
    file: Path, rows: Sequence[Row], places: Mapping[str, int], words: Words, told: dict[str, int]
) -> dict[str, Any]:
    """A run: what it ran on, and its columns."""
    columns: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        columns.setdefault((row["device"], row["lowering"], row["mode"]), []).append(row)
    first = rows[0]
    versions = [f"JAX {first['jax']}", f"TensorFlow {first['tensorflow']}", first["impl"]]
    request = journal.request_of(file) or {}
    return {
        "title": f"{file.stem}: {', '.join(filter(None, versions))}",
        "asked": request.get("cells", len(rows)),
        "columns": [
            {
                "title": " ".join(key),
                "command": _command(key, first, request),
                **_column(members, places, words, told),
            }
            for key, members in columns.items()
        ],
    }


def _column(
    rows: Sequence[Row], places: Mapping[str, int], words: Words, told: dict[str, int]
) -> dict[str, Any]:
    letters = [ABSENT] * len(places)
    sizes: dict[int, list[float | str | None]] = {}
    notes: dict[int, list[int | None]] = {}
    for row in rows:
        place = places[row["harness"]]
        letter = LETTERS[row["outcome"]]
        letters[place] = letter.upper() if row["verdict"] == "red" else letter
        sizes[place] = [_finite(row[f]) for f in ("ulps", "tolerance", "nodes", "seconds")]
        if row["outcome"] != "pass" or row["verdict"] == "red" or row["culprit"]:
            limitation = row["limitation"]
            notes[place] = [
                words.number("text", _message(row)),
                None if limitation is None else told.setdefault(limitation, len(told)),
            ]
    return {"outcomes": "".join(letters), "sizes": sizes, "notes": notes}


def _message(row: Row) -> str:
    """What is told of a cell that did not pass, in one text."""
    where = " ".join(filter(None, (row["phase"], row["exception"])))
    said = f"{where}: {row['message'] or ''}"[:_LONGEST] if where else (row["message"] or "")
    return "\n".join(filter(None, (said, outcomes.in_words(row))))


def _finite(number: float | None) -> float | str | None:
    """JSON has no infinity: it becomes the word."""
    return str(number) if number in (float("inf"), float("-inf")) else number


def _command(key: tuple[str, str, str], row: Row, request: Mapping[str, Any]) -> str:
    """The line that repeats a cell of the column, with NAME in the place of the harness's name."""
    device, lowering, mode = key
    asked = {**defaults(), "impl": row["impl"], "environment": {}} | request.get("asked", {})
    harness = SimpleNamespace(name=NAME)
    cell = SimpleNamespace(harness=harness, device=device, lowering=lowering, mode=mode)
    options = SimpleNamespace(**{name: asked[name] for name in defaults()})
    return cell_command(cast(Cell, cell), options, variables=asked["environment"])
