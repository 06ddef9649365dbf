"""One process a mutant: forked from one that has imported JAX, TensorFlow and the harnesses.

The child puts the mutated package (a copy, with one file replaced) before the others in sys.path
and imports it then. The parent has never imported it, and has started no backend, whose threads a
fork would not bring along.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.mutation import items as work
from reports.mutation.mutants import PACKAGE, Mutant, mutate
from reports.mutation.reach import Line, Recorder

Row = dict[str, Any]
_MESSAGE_LENGTH = 300
# Of address space, which TensorFlow takes freely; a size gone wrong takes more.
_MEMORY = 40 * 2**30
_PROCESSOR_SECONDS = 120
_SECONDS = 1800
IMPORT = "import jax2tf"


def prepare() -> None:
    """Imports what children share."""
    import hypothesis  # noqa: F401
    import tensorflow  # noqa: F401

    import harnesses.engine.call_tf
    import harnesses.engine.graphs
    import harnesses.engine.modes
    import harnesses.engine.transformed  # noqa: F401

    work.matrix_of("convert")
    work.matrix_of("call_tf")
    if "jax2tf" in sys.modules:
        raise RuntimeError("something that is imported before the fork imports jax2tf")


@contextlib.contextmanager
def package_with(mutant: Mutant | None) -> Iterator[Path]:
    """A folder to import the package from; of a mutant it is a copy with the fault in it."""
    if mutant is None:
        yield PACKAGE.parent
        return
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copied = Path(folder) / PACKAGE.name
        shutil.copytree(PACKAGE, copied)
        (copied / mutant.module).write_text(mutate(mutant), encoding="utf-8")
        yield Path(folder)


def in_child(folder: Path, call: Callable[[], Row], limit: float = _PROCESSOR_SECONDS) -> Row:
    """What a call returns in a child that imports the package from a folder, and what it took.

    A child that dies gives the outcome "crash", one that takes too long the outcome "timeout".
    """
    with tempfile.TemporaryDirectory(prefix="trial-") as scratch:
        result, log = Path(scratch) / "result", Path(scratch) / "log"
        sys.stdout.flush()
        with warnings.catch_warnings():
            # Of the fork: both warn of threads, and none of theirs has started.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            _be_child(folder, call, limit, result, log)
        started, ended = time.monotonic(), False
        while not (done := os.wait4(pid, os.WNOHANG))[0]:
            if time.monotonic() - started > _SECONDS and not ended:
                os.killpg(pid, signal.SIGKILL)
                ended = True
            time.sleep(0.02)
        _, status, usage = done
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what a test started and left behind
        if result.exists():
            row = json.loads(result.read_text())
        else:
            killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            slow = killed in (signal.SIGXCPU, signal.SIGKILL)
            row = {"outcome": "timeout" if slow else "crash", "message": _last(log)}
        return row | {
            "processor": round(usage.ru_utime + usage.ru_stime, 2),
            "seconds": round(time.monotonic() - started, 2),
        }


def red_ones(cells: Sequence[str]) -> Row:
    """In a child: runs cells; says which are red."""
    return {"outcome": "ran", "red": [name for name in cells if work.run_cell(name) is not None]}


def record_cells(names: Sequence[str], into: Path) -> Row:
    """In a child: lowers cells, and writes what each reaches and takes."""
    import jax2tf

    recorder = Recorder(Path(jax2tf.__file__).parent)
    for name in names:
        start = time.process_time()
        with recorder.recording() as lines, contextlib.suppress(Exception):  # it may be declared
            work.lower_cell(name)
        _write(into, name, time.process_time() - start, lines)
        _end(into, name)
    return {"outcome": "recorded"}


def record_tests(file: str, into: Path) -> Row:
    """In a child: the same for the tests of a file."""
    import jax2tf

    plugin = _Recording(Recorder(Path(jax2tf.__file__).parent), into)
    _pytest([file], plugin, Path(jax2tf.__file__).parents[1])
    _end(into, file)
    return {"outcome": "recorded"}


def judge(cells: Sequence[str], tests: Sequence[str]) -> Row:
    """In a child: runs items until one fails; says which, and why."""
    try:
        import jax2tf
    except BaseException as error:
        return _caught(IMPORT, repr(error))
    for name in cells:
        problem = work.run_cell(name)
        if problem is not None:
            return _caught(name, problem)
    if tests:
        names = [test.removeprefix("test ") for test in tests]
        plugin = _Chosen(names)
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        _pytest(files, plugin, Path(jax2tf.__file__).parents[1])
        if plugin.failed is not None:
            return _caught(*plugin.failed)
    return {"outcome": "survived"}


def _caught(item: str, message: str) -> Row:
    return {"outcome": "caught", "by": item, "message": message.strip()[:_MESSAGE_LENGTH]}


def _be_child(folder: Path, call: Callable[[], Row], limit: float, result: Path, log: Path) -> None:
    """Never returns."""
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
        path = [str(folder), str(work.ROOT)]
        sys.path[:0] = path
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
        os.chdir(work.ROOT)
        row = call()
        result.with_name("done").write_text(json.dumps(row))
        result.with_name("done").replace(result)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _pytest(arguments: Sequence[str], plugin: object, folder: Path) -> None:
    pytest.main(
        [
            "-q",
            "-x" if isinstance(plugin, _Chosen) else "-q",
            f"--rootdir={work.ROOT}",
            f"-opythonpath={folder} {work.ROOT}",
            "-pno:cacheprovider",
            "-pno:randomly",
            *(str(work.ROOT / argument) for argument in arguments),
        ],
        plugins=[plugin],
    )


class _Chosen:
    """Of the tests that were collected those that were chosen, in that order; the first failure."""

    def __init__(self, names: Sequence[str]):
        self.failed: tuple[str, str] | None = None
        self._order = {name: place for place, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fail(f"test {report.nodeid}", str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = report.longrepr if crash is None else crash.message
            self._fail(f"test {report.nodeid}", str(message))

    def _fail(self, name: str, message: str) -> None:
        self.failed = self.failed or (name, message)


class _Recording:
    """Writes what each test reaches and takes, if it passes."""

    def __init__(self, recorder: Recorder, into: Path):
        self._recorder = recorder
        self._into = into
        self._passed: dict[str, bool] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = time.process_time()
        children = _children()
        with self._recorder.recording() as lines:
            result = yield
        if self._passed.get(item.nodeid, False):
            seconds = time.process_time() - start + _children() - children
            _write(self._into, f"test {item.nodeid}", seconds, lines)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ok = report.passed and self._passed.get(report.nodeid, True)
        self._passed[report.nodeid] = ok


def _write(into: Path, item: str, seconds: float, lines: set[Line]) -> None:
    _append(into, {"item": item, "seconds": round(seconds, 3), "lines": sorted(lines)})


def _end(into: Path, part: str) -> None:
    _append(into, {"part": part})


def _append(into: Path, row: Row) -> None:
    with into.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _last(log: Path) -> str:
    return log.read_text(errors="replace")[-_MESSAGE_LENGTH:] if log.exists() else ""
