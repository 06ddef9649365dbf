"""Commands whose output goes into a pipe that its reader has closed, as `head` does.

`exit_with` is the way out of every command. Reports in colours print on a `CommandConsole`, a run
prints on a `RunConsole`.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TextIO

from rich.console import Console

# What a shell reports of a program that the signal of a closed pipe ended.
CLOSED = 128 + signal.SIGPIPE


def exit_with(command: Callable[[], int]) -> NoReturn:
    """Ends the process with the status of a command; with CLOSED where nobody reads its output.

    Raises:
      BrokenPipeError: the command raised it about another pipe.
    """
    try:
        try:
            status = command()
        finally:  # argparse leaves by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed(sys.stdout):
            raise
        _write_nowhere()
        status = CLOSED
    sys.exit(status)


class CommandConsole(Console):
    """A console that leaves a closed pipe to `exit_with`; rich would end with the status 1."""

    def on_broken_pipe(self) -> None:
        """Raises what rich has caught."""
        raise BrokenPipeError("nobody reads the output")


class RunConsole(Console):
    """A console for a run, which ends as with Ctrl-C where nobody reads: its rows are on disk."""

    def on_broken_pipe(self) -> None:
        """Ends the run; rich would raise in whichever hook or thread printed."""
        self.quiet = True
        if threading.current_thread() is threading.main_thread():
            # A process that a shell put in the background ignores SIGINT.
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def _is_closed(stream: TextIO) -> bool:
    """Whether the other end of a pipe has been closed."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _write_nowhere() -> None:
    """What is left in the buffer would raise when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
