"""SavedModels: saved here, loaded and run by TensorFlow in a process that has no JAX."""

import atexit
import functools
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph, saved

NOISE = ()
# Whoever imports JAX there, as TensorFlow does where it finds it, is told that there is none. The
# modules beside the program have names that others look for: -P keeps them off the path.
_PROGRAM = f"""
import runpy, sys
sys.modules["jax"] = None
runpy.run_path({str(Path(__file__).with_name("restore.py"))!r}, run_name="__main__")
"""


def convert(graph: Graph) -> Model:
    """The graph as a SavedModel, loaded in the other process."""
    process = _process()
    with saved(graph) as folder:
        process.ask("load", str(folder))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = process.ask("run", dict(zip(graph.inputs, arrays, strict=True)))
        return [results[name] for name in graph.outputs]

    return run


class RestoredError(Exception):
    """What the other process raised, or that it died."""


class _Process:
    """The other process: one for all cells, because TensorFlow takes seconds to import."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self._end)

    def ask(self, what: str, argument: Any) -> Any:
        """The answer to a request; raises RestoredError."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        try:
            pickle.dump((what, argument), self._popen.stdin)
            self._popen.stdin.flush()
            problem, answer = pickle.load(self._popen.stdout)
        except (EOFError, BrokenPipeError) as error:
            _process.cache_clear()
            raise RestoredError("the process that restores SavedModels died") from error
        if problem is not None:
            raise RestoredError(problem)
        return answer

    def _end(self) -> None:
        # It ends when it can read no more.
        self._popen.communicate()


@functools.cache
def _process() -> _Process:
    return _Process()
