"""Reports slow steps of an export on stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from jax2tf._src.export import packages

# Steps that take longer are reported.
_SECONDS = 2.0

Step = Callable[[str], contextlib.AbstractContextManager[None]]


def steps(title: str, shown: bool) -> Step:
    """Returns a function that makes a context for each step.

    If stderr is a terminal and rich is installed, each step shows a line until it ends. Otherwise
    each step that takes longer than two seconds prints a line.
    """
    if not shown:
        return lambda step: contextlib.nullcontext()
    if sys.stderr.isatty() and packages.is_installed("rich"):
        return lambda step: _in_terminal(f"{title}: {step}")
    return lambda step: _as_lines(f"{title}: {step} ...")


@contextlib.contextmanager
def _in_terminal(text: str) -> Iterator[None]:
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def _as_lines(text: str) -> Iterator[None]:
    timer = threading.Timer(_SECONDS, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
