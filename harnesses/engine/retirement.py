"""Ends a worker that has grown large, so that a new one goes on in its place.

TensorFlow keeps every program that it compiled for as long as the process lives: thousands of
cells are many gigabytes, and no call gives them back.
"""

import os
import resource
import sys
import time
from pathlib import Path

LIMIT = int(1.3 * 2**30)

_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


class Retirement:
    """Ends this process between two cells once it has held more than `limit` GiB.

    The processor time that it took stands in a file beside `note` then. A process that nobody
    replaces (no `note`) stays.
    """

    def __init__(self, note: Path | None, limit: float):
        self._note = note
        self._limit = limit
        self._ran = False

    def consider(self) -> None:
        """Called before each cell; returns, or ends the process."""
        if self._note is not None and self._ran and _largest_size() > self._limit * 2**30:
            _file(self._note).write_text(str(time.process_time()))
            os._exit(0)
        self._ran = True  # one that retired at its first cell would be replaced for ever


def seconds_of(note: Path) -> float | None:
    """The processor time of the process of that note, if it retired."""
    file = _file(note)
    return float(file.read_text()) if file.exists() else None


def _file(note: Path) -> Path:
    return note.with_suffix(".retired")


def _largest_size() -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
