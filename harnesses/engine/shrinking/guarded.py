"""Makes a program smaller in another process, which begins again without one that hangs or dies.

The same arguments give the same tries in the same order. The process writes down what it is told of
each; where it hung or died, the next one reads that in place of asking, and takes the program that
was being tried for one of another kind: stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from harnesses.engine.shrinking.searching import Judge
from harnesses.harness import place

STOPPED = "stopped"
_BEGUN = "begun"
# Between two looks at whether a program still runs.
_LOOK = 0.2


def asking(judge: Judge, path: Path) -> Judge:
    """The judge, whose answers are kept in a file; those that are there are not asked for again."""
    known = iter(_answers(path))

    def fault(fun: Callable[..., Any], args: Sequence[np.ndarray]) -> Hashable | None:
        try:
            return next(known)
        except StopIteration:
            pass
        _add(path, _BEGUN)
        found = judge(fun, args)
        _add(path, json.dumps(found))
        return found

    return fault


def run(options: argparse.Namespace, out: IO[str]) -> int:
    """Runs the command with these options in other processes; returns the last exit status."""
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        journal, printed = Path(folder) / "answers", Path(folder) / "printed"
        journal.touch()
        while True:
            left = max(0.0, end - time.monotonic())
            command = [*_command(options), "--seconds", str(left), "--answers", str(journal)]
            with printed.open("w", encoding="utf-8") as file:
                process = subprocess.Popen(command, stdout=file)
                hung = _hangs(process, journal, options.limit)
            if not hung and not _is_open(journal):
                out.write(printed.read_text(encoding="utf-8"))
                return process.returncode
            why = f"took more than {options.limit:g} s" if hung else "ended its process"
            print(f"a program {why}; the search goes on without it", file=sys.stderr, flush=True)
            _add(journal, json.dumps(STOPPED))


def _hangs(process: subprocess.Popen[bytes], journal: Path, limit: float) -> bool:
    """Waits for a process; ends it, and returns True, if it tries a program for too long."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        now = journal.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > limit and _is_open(journal):
            process.kill()
            process.wait()
            return True
        time.sleep(_LOOK)
    return False


def _command(options: argparse.Namespace) -> list[str]:
    words = [sys.executable, "-m", f"{place.PREFIX}harnesses", "shrink", options.what]
    words += ["--impl", options.impl, "--mode", options.mode, "--lowering", options.lowering]
    words += [word for given in options.inputs for word in ("--input", given)]
    words += ["--values", options.values] if options.values else []
    words += ["--into", options.into] if options.into else []
    return [*words, "--x64"] if options.x64 else words


def _answers(path: Path) -> list[Hashable | None]:
    lines = path.read_text(encoding="utf-8").splitlines()
    answers = (json.loads(line) for line in lines if line != _BEGUN)
    return [tuple(answer) if isinstance(answer, list) else answer for answer in answers]


def _is_open(path: Path) -> bool:
    """Whether the last program has no answer."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return bool(lines) and lines[-1] == _BEGUN


def _add(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
