"""Tells signals that end a run from exceptions of the same kind that an implementation raises."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

# What an implementation may raise: the last three end a process that does not catch them.
RAISED = (Exception, GeneratorExit, KeyboardInterrupt, SystemExit)

# Ctrl-C, and what a scheduler sends.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_arrived = False


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """Records Ctrl-C and SIGTERM while the block runs, and calls the handlers that were there.

    Only the main thread runs handlers. A process in the background may ignore Ctrl-C, and SIGTERM
    may end the process at once; then nothing is recorded.
    """
    global _arrived
    _arrived = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, _recording(handler))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)


def _recording(
    handler: Callable[[int, FrameType | None], object],
) -> Callable[[int, FrameType | None], object]:
    def record(number: int, frame: FrameType | None) -> object:
        global _arrived
        _arrived = True
        return handler(number, frame)

    return record


def is_of_the_user(error: BaseException) -> bool:
    """Whether a signal ended the run, as opposed to the implementation raising the exception."""
    return _arrived and isinstance(error, KeyboardInterrupt | SystemExit)
