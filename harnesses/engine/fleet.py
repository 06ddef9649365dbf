"""A run on the machines of a Ray cluster: `python -m harnesses run --ray ADDRESS`.

This process hands out batches of cells and writes the rows as they come, so that nothing is lost
when a worker or its machine dies. The cell that such a worker was on runs once more, alone: if that
worker dies too, the cell is a crash, or a timeout. Every machine has the same code at the same
place; rows of other versions are refused.
"""

from __future__ import annotations

import argparse
import collections
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell.journal import Request, ResultsError
from harnesses.cell.names import DTENSOR
from harnesses.cell.rows import Row
from harnesses.engine import devices, request
from harnesses.engine.matrix import Matrix
from harnesses.engine.options import environment, selection
from harnesses.engine.plugin import describe
from harnesses.engine.progress import Display

LOCAL = "local"
# Cells for one process: starting it takes some seconds, and TensorFlow keeps what it compiles.
_BATCH = 300
# Seconds within which a cluster answers.
_PATIENCE = 10
# What a worker needs besides, to find the code and to be quiet.
_PASSED = ("PYTHONPATH", "TF_CPP_MIN_LOG_LEVEL")


class FleetError(Exception):
    """A cluster cannot be used; the message says why and what to do."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Runs the chosen cells on the cluster `options.ray`; 0 if all ran and nothing is red.

    Raises:
      FleetError: Ray is not installed, or there is no cluster at the address.
      ResultsError: a worker has other code, other versions or another environment than this
        process.
    """
    ray = _ray()
    shipped = _without_functions(options)
    matrix = Matrix(options, "main")
    try:
        matrix.begin(len(matrix.cells))
        display = Display(console, matrix)
        with _connected(ray, options):
            workers = int(options.n or ray.cluster_resources().get("CPU", 1))
            fleet = _Fleet(ray, shipped, matrix, display, workers)
            try:
                fleet.run()
            except KeyboardInterrupt:
                display.red("interrupted")
        findings = matrix.finish()
        display.finish()
        red = any(row["verdict"] == "red" for row in matrix.rows)
        return int(bool(findings or matrix.missing or red or not matrix.rows))
    finally:
        matrix.close()


@dataclass
class _Batch:
    """Cells for one worker, by name; those that have no row yet are left."""

    left: list[str]
    alone: bool = False  # one cell, over which a worker died before
    heard: float = field(default_factory=time.monotonic)  # when the worker last said something


class _Fleet:
    """The batches of a run, and the workers that they are with."""

    def __init__(
        self,
        ray: Any,
        options: argparse.Namespace,
        matrix: Matrix,
        display: Display,
        workers: int,
    ):
        self._ray = ray
        self._options = options
        self._matrix = matrix
        self._display = display
        self._workers = workers
        self._request = request.request(options, len(matrix.cells))
        # A process for each batch; a generator, so that each row comes when its cell has ended.
        self._task = ray.remote(num_returns="streaming", max_retries=0, max_calls=1)(_batch_rows)
        self._waiting = collections.deque(_batches(list(matrix.cells), workers))
        self._running: dict[Any, _Batch] = {}

    def run(self) -> None:
        """Runs all batches; returns when every cell has a row."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._workers:
                batch = self._waiting.popleft()
                self._running[self._task.remote(self._options, tuple(batch.left))] = batch
            (ready,), _ = self._ray.wait(list(self._running), num_returns=1)
            self._hear(ready)

    def _hear(self, stream: Any) -> None:
        """Takes the next thing that a worker says."""
        batch = self._running[stream]
        try:
            said = self._ray.get(next(stream))
        except StopIteration:
            del self._running[stream]
        except self._ray.exceptions.RayTaskError:
            raise  # not the worker's death, but an error of this module
        except self._ray.exceptions.RayError:
            del self._running[stream]
            self._died(batch)
        else:
            batch.heard = time.monotonic()
            self._take(batch, said)

    def _take(self, batch: _Batch, said: Mapping[str, Any]) -> None:
        if "request" in said:
            _check_same(self._request, said["request"], said["machine"])
        elif "seconds" in said:
            self._matrix.seconds += said["seconds"]
        else:
            self._matrix.take(said["row"])
            self._tell(batch.left.pop(0), said["row"], said["problem"])

    def _died(self, batch: _Batch) -> None:
        if not batch.left:
            return
        name = batch.left[0]
        if not batch.alone:
            self._waiting.append(_Batch([name], alone=True))
            if batch.left[1:]:
                self._waiting.append(_Batch(batch.left[1:]))
            return
        silent = time.monotonic() - batch.heard
        timed_out = silent >= self._options.cell_timeout
        row, problem = self._matrix.lost(self._matrix.cells[name], timed_out=timed_out)
        self._tell(name, row, problem)

    def _tell(self, name: str, row: Row, problem: str | None) -> None:
        self._display.count(row)
        if problem is not None:
            cell = self._matrix.cells[name]
            lost = int(row["outcome"] in ("crash", "timeout"))
            self._display.red(describe(cell, problem, self._matrix.command(cell, workers=lost)))


def _batch_rows(options: argparse.Namespace, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a worker says: what it is, the row of each cell, the processor time that it took."""
    chosen = selection(options)
    devices.prepare(chosen.device, on_mesh=DTENSOR in chosen.mode, compiled=options.compile_cache)
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        matrix = Matrix(options, "worker", file=str(Path(folder) / "rows.jsonl"))
        try:
            cells = {str(cell): cell for cell in chosen.cells()}
            yield {"request": request.request(options, len(cells)), "machine": os.uname().nodename}
            for name in names:
                row, problem = matrix.run(cells[name])
                yield {"row": row, "problem": problem}
        finally:
            matrix.close()
    yield {"seconds": time.process_time()}


def _batches(names: Sequence[str], workers: int) -> Iterator[_Batch]:
    """The cells in batches, in their order: those of a harness share JAX's result."""
    size = max(1, min(_BATCH, -(-len(names) // workers)))
    for start in range(0, len(names), size):
        yield _Batch(list(names[start : start + size]))


def _check_same(here: Request, there: Request, machine: str) -> None:
    """Raises ResultsError if a worker's rows do not belong into this run's file."""
    differing = request.differences(here, there, ("asked", "versions", "code"))
    if differing:
        raise ResultsError(
            f"--ray: the worker on {machine} is not like this process: {'; '.join(differing)}. "
            "What to do: give every machine the same code and the same environment"
        )


def _without_functions(options: argparse.Namespace) -> argparse.Namespace:
    """The options as they can be sent to another process, which begins no run of its own."""
    kept = {name: value for name, value in vars(options).items() if not callable(value)}
    return argparse.Namespace(**kept | {"resume": False})


class _connected:
    """A context in which Ray is connected to the cluster of the options."""

    def __init__(self, ray: Any, options: argparse.Namespace):
        self._ray = ray
        self._options = options

    def __enter__(self) -> None:
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        common = {
            "runtime_env": {"env_vars": environment() | passed},
            "log_to_driver": False,
            "logging_level": "ERROR",
        }
        if self._options.ray == LOCAL:
            workers = int(self._options.n or os.cpu_count() or 1)
            self._ray.init(num_cpus=workers, include_dashboard=False, **common)
            return
        _check_listens(self._options.ray)
        self._ray.init(address=self._options.ray, **common)

    def __exit__(self, *exception: Any) -> None:
        self._ray.shutdown()


def _check_listens(address: str) -> None:
    """Raises FleetError if nothing answers: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if not port.isdecimal():
            raise ValueError("it is not HOST:PORT")
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        raise FleetError(
            f"--ray: there is no Ray cluster at {address!r}: {error}. What to do: begin one with "
            f"`ray start --head`, or give --ray {LOCAL}"
        ) from error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise FleetError(
            "--ray needs Ray, which is not installed. What to do: pip install -e '.[fleet]'"
        ) from error
    return ray
