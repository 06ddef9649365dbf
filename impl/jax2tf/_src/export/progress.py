"""What is under way, on stderr, where it takes long."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from jax2tf._src.export import packages

# A step that takes longer is told of.
_SECONDS = 2.0

Step = Callable[[str], contextlib.AbstractContextManager[None]]


def steps(title: str, shown: bool) -> Step:
    """Gives contexts for the steps of something long.

    Where stderr is a terminal and rich is installed, a step is a line that goes when it ends. Else
    it is a line of text, of those steps that take longer than two seconds.
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
