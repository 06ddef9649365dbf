"""Tells Ctrl-C from a KeyboardInterrupt that a judged implementation raises."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# What an implementation may raise: the last three end a process that does not catch them.
RAISED = (Exception, GeneratorExit, KeyboardInterrupt, SystemExit)

_arrived = False


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """Takes note of Ctrl-C while the block runs; the handler that was there is called as before.

    Python runs handlers in the main thread, and a process in the background may ignore Ctrl-C:
    there is nothing to watch elsewhere.
    """
    global _arrived
    _arrived = False
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        global _arrived
        _arrived = True
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def is_of_the_user(error: BaseException) -> bool:
    """Whether an exception is Ctrl-C, which ends the run, and not of the implementation."""
    return isinstance(error, KeyboardInterrupt) and _arrived
