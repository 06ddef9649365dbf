"""Ends a process over a cell that hangs, so that the run can go on with the other cells."""

import faulthandler
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK = 0.5
# How much longer than a cell's timeout nobody may hear from the thread.
_SILENCE = 10.0


class Watchdog:
    """Watches what runs under `watching`; after `timeout` seconds of it the process ends.

    It leaves the stacks of all threads in the file `note`. One thread does the watching, because
    starting one for each cell would cost more than the cell. It cannot run while a hanging call
    holds the GIL; faulthandler's C thread, which it puts off at each tick, then does it instead.
    """

    def __init__(self, timeout: float, note: Path):
        self._timeout = timeout
        self._note = note.open("w")
        self._deadline: float | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context for one cell."""
        self._deadline = time.monotonic() + self._timeout
        try:
            yield
        finally:
            self._deadline = None

    def close(self) -> None:
        """Stops watching."""
        self._closed.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        self._note.close()

    def _watch(self) -> None:
        silence = self._timeout + _SILENCE
        faulthandler.dump_traceback_later(silence, exit=True, file=self._note)
        while not self._closed.wait(_TICK):
            faulthandler.dump_traceback_later(silence, exit=True, file=self._note)
            deadline = self._deadline
            if deadline is not None and time.monotonic() > deadline:
                faulthandler.dump_traceback(self._note)
                os._exit(1)
