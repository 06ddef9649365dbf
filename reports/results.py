"""Results files: JSON lines, one row a cell, as the judge writes them and pandas reads them.

    pandas.read_json("reports/results/cpu.jsonl", lines=True)

A row says which cell it is (harness, family, primitive, dtype, x64, params, device, lowering,
mode), what came of it (outcome, phase, exception, message, ulps, tolerance, nodes, seconds), what
the ledger says about that (limitation, verdict), and on what (jax, tensorflow, python, impl). When
it was seen and on which commit (date, commit) the run's request says; `read` gives it to each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from harnesses.cell import journal, origin
from harnesses.cell.journal import FOLDER as RESULTS
from harnesses.cell.journal import ResultsError
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.cell.rows import Row

__all__ = [
    "RESULTS",
    "Cell",
    "ResultsError",
    "Row",
    "command_of",
    "default_files",
    "latest_files",
    "read",
    "refuse_inputs",
    "refuse_rows_of_others",
]

OUTCOMES = ("pass", "mismatch", "error", "crash", "timeout", "inapplicable")
# JAX's own column has this for a lowering and a mode.
JAX_SIDE = "jax"


class Cell(NamedTuple):
    """What stays the same about a cell from run to run."""

    harness: str
    device: str
    lowering: str
    mode: str

    def __str__(self) -> str:
        return " ".join(self)


def default_files() -> list[Path]:
    """The results files of this checkout, one a device that was run here."""
    return sorted(RESULTS.glob("*.jsonl"))


def latest_files() -> list[Path]:
    """What there is to sum up: the results of whole runs, or else those of parts of the matrix."""
    return default_files() or sorted((RESULTS / "parts").glob("*.jsonl"))


def read(path: Path) -> dict[Cell, Row]:
    """The rows of a results file by cell; of a cell that was run twice, the later row.

    Raises:
      ResultsError: if there is no such file, if it holds no row, or if a line is not a row.
    """
    rows = journal.read(path)
    if not rows:
        raise ResultsError(f"{path} holds no row: the run that wrote it executed no cell")
    seen = origin.of_run(path, journal.request_of(path))
    return {Cell(*(row[field] for field in Cell._fields)): {**row, **seen, **row} for row in rows}


def refuse_rows_of_others(rows: Iterable[Row], into: Path, own: Path) -> None:
    """Refuses to write rows of another converter over what this project keeps of its own.

    Raises:
      ResultsError: `into` is the project's `own` file or folder, and a row is not of jax2tf.
    """
    impls = sorted({str(row["impl"]) for row in rows} - {DEFAULT_IMPLEMENTATION})
    if impls and into.resolve() == own.resolve():
        raise ResultsError(
            f"the rows are of {' and '.join(impls)}, and {into} is this project's own. Name "
            "another place with --into"
        )


def refuse_inputs(into: Path, inputs: Iterable[Path]) -> None:
    """Refuses to write over a file that is read, by whatever name it goes.

    Raises:
      ResultsError: `into` is one of the inputs.
    """
    if any(path.exists() and into.exists() and into.samefile(path) for path in inputs):
        raise ResultsError(f"{into} is one of the files that are read. Name another with --into")


def command_of(path: Path) -> str:
    """The command line of a file's run, without variables and the file; empty if it is unknown."""
    request = journal.request_of(path)
    if request is None:
        return ""
    command = request["command"]
    words = command[command.find("python -m") :].split()
    if "--results" in words:
        at = words.index("--results")
        del words[at : at + 2]
    return " ".join(words)
