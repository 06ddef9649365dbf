"""The file of a run: a row is on disk when its cell has ended, so that a killed run keeps its rows.

    reports/results/runs/20261123-081030-cpu-7986.jsonl      a row for each cell, as they ended
    reports/results/runs/20261123-081030-cpu-7986.run.json   what was asked for, and of what code

All processes of a run append to its file; no two runs share one, and none is written twice. Of the
latest run, `reports/results/cpu.jsonl` (of the whole matrix) or `reports/results/parts/cpu.jsonl`
is a link to its file.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harnesses.cell.rows import CELL_FIELDS, NEEDED, UNKNOWN, Row
from harnesses.harness import place

# What a run was asked for; see `harnesses.engine.request`.
Request = dict[str, Any]

FOLDER = place.RESULTS
RUNS = "runs"


class ResultsError(Exception):
    """A results file cannot be used; the message says which and why."""


class Journal:
    """The file of one run, which each of its processes appends to."""

    def __init__(self, path: Path):
        self.path = path
        self._descriptor: int | None = None

    def create(self, request: Request) -> None:
        """Makes the file, and beside it one that holds the request.

        Raises:
          ResultsError: if there is such a file already.
        """
        check_free(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.write_request(request)
        self._lock()

    def write_request(self, request: Request) -> None:
        """Writes what the run was asked for beside the file, in the place of what stood there."""
        beside = _request_file(self.path)
        unfinished = beside.with_name(f"{beside.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(request, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(beside)

    def reopen(self) -> list[Row]:
        """The rows that stand in the file; the row that a killed process was writing is dropped.

        Raises:
          ResultsError: if there is no such file, or if its run goes on still.
        """
        if not self.path.exists():
            raise _missing(self.path)
        self._lock()
        lines = self.path.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n") and _parsed(line) is not None]
        if whole != lines:
            beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            beside.write_bytes(b"".join(whole))
            beside.replace(self.path)
            self.close()
            self._lock()
        return read(self.path)

    def append(self, row: Row) -> None:
        """Puts a row onto the file in one write, which other processes cannot cut in two."""
        os.write(self._opened(), f"{json.dumps(row)}\n".encode())

    def close(self) -> None:
        """Lets go of the file, and of the lock on it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        return self._descriptor

    def _lock(self) -> None:
        """Keeps other runs off the file until this process ends, however it ends."""
        try:
            fcntl.flock(self._opened(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"{self.path}: the run that writes it goes on still") from None


def check_free(path: Path) -> None:
    """Raises ResultsError if a run has written the file already."""
    if path.exists():
        raise ResultsError(
            f"{path} holds the rows of an earlier run. Name another file with --results, "
            "delete that one, or add --resume to go on with that run"
        )


def read(path: Path) -> list[Row]:
    """The rows of a results file; of a cell that was run twice, the later row.

    Columns that an earlier judge did not write are null.

    A last line that a killed process could not complete is left out.

    Raises:
      ResultsError: if there is no such file, or if a line is not a row.
    """
    if not path.exists():
        raise _missing(path)
    if path.is_dir():
        raise ResultsError(f"{path} is a folder: give a file of it")
    rows: dict[tuple[str, ...], Row] = {}
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        row = _parsed(line)
        if row is not None:
            lacking = [column for column in NEEDED if column not in row]
            if lacking:
                raise ResultsError(
                    f"{path}:{number} is a row of another version of the judge: it lacks "
                    f"{', '.join(lacking)}. Run the cells again with this version"
                )
            rows[tuple(row[field] for field in CELL_FIELDS)] = UNKNOWN | row
        elif line.endswith(b"\n"):
            raise ResultsError(f"{path}:{number} is not a row of results")
    return list(rows.values())


def request_of(path: Path) -> Request | None:
    """What the run of a results file was asked for; None for a file without its request."""
    beside = _request_file(path.resolve())
    return json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else None


def stopped(folder: Path) -> Iterator[tuple[Path, Request]]:
    """The runs of a folder that have cells left to run, the newest first."""
    for path in sorted(folder.glob("*.jsonl"), reverse=True):
        request = request_of(path)
        if request is not None and len(read(path)) < request["cells"]:
            yield path, request


def point(link: Path, path: Path) -> None:
    """Makes `link` a link to `path`, in the place of what was there."""
    link.parent.mkdir(parents=True, exist_ok=True)
    beside = link.with_name(f"{link.name}.{os.getpid()}")
    beside.symlink_to(os.path.relpath(path, link.parent))
    beside.replace(link)


def _parsed(line: bytes) -> Row | None:
    """The row that a line holds; None if it is not one."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    is_row = isinstance(row, dict) and all(field in row for field in CELL_FIELDS)
    return row if is_row else None


def _request_file(path: Path) -> Path:
    return path.with_suffix(".run.json")


def _missing(path: Path) -> ResultsError:
    return ResultsError(
        f"{path} does not exist. Make it with: python -m harnesses run, "
        "or name another file with --results"
    )
