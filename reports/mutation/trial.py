"""One process a mutant: forked from one that has imported JAX, TensorFlow and the harnesses.

The child puts the mutated package (a copy, with one file replaced) before the others in sys.path
and imports it then. The parent has never imported it, and has started no backend, whose threads a
fork would not bring along.
"""

from __future__ import annotations

import contextlib
import json
import math
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
_PROCESSOR_SECONDS = 60
# How much longer by the clock a child may take, which may wait for ever.
_WAITING = 15
IMPORT = "import jax2tf"


def prepare() -> None:
    """Imports what children share."""
    import hypothesis  # noqa: F401
    import tensorflow  # noqa: F401

    import harnesses.engine.call_tf
    import harnesses.engine.graphs
    import harnesses.engine.modes
    import harnesses.engine.transformed  # noqa: F401
    from harnesses.engine import devices

    devices.prepare(["cpu"])

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
            if time.monotonic() - started > _WAITING * limit and not ended:
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


def red_ones(names: Sequence[str]) -> Row:
    """In a child: runs items of one kind; says which are red."""
    import jax2tf

    if _are_tests(names):
        plugin = _Chosen(names, first_alone=False)
        _pytest(_files_of(names), plugin, Path(jax2tf.__file__).parents[1])
        red = [name for name in names if name in plugin.failed]
    else:
        red = [name for name in names if work.run_cell(name) is not None]
    return {"outcome": "ran", "red": red}


def record_cells(names: Sequence[str], into: Path, seconds: float = math.inf) -> Row:
    """In a child: lowers cells, and writes what each reaches and takes; as many as time allows."""
    import jax2tf

    recorder = Recorder(Path(jax2tf.__file__).parent)
    end = time.process_time() + seconds
    for name in names:
        start = time.process_time()
        if start > end:
            break
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
    _end(into, work.version_of(file))
    return {"outcome": "recorded"}


def judge(names: Sequence[str], seconds: float = math.inf) -> Row:
    """In a child: runs items of one kind until one fails; says which, and why.

    Begins none once they took so many seconds of processor time.
    """
    try:
        import jax2tf
    except BaseException as error:
        return _caught(IMPORT, repr(error))
    end = _processor_time() + seconds
    if _are_tests(names):
        plugin = _Chosen(names, end=end)
        _pytest(_files_of(names), plugin, Path(jax2tf.__file__).parents[1])
        for name, message in plugin.failed.items():
            return _caught(name, message)
    else:
        for name in names:
            if _processor_time() > end:
                break
            problem = work.run_cell(name)
            if problem is not None:
                return _caught(name, problem)
    return {"outcome": "survived"}


def _are_tests(names: Sequence[str]) -> bool:
    """Of one kind: tests tell JAX how many devices to make, which cells have made by then."""
    (are_tests,) = {name.startswith("test ") for name in names}
    return are_tests


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
    status = pytest.main(
        [
            "-q",
            f"--rootdir={work.ROOT}",
            f"-opythonpath={folder} {work.ROOT}",
            "-pno:cacheprovider",
            "-pno:randomly",
            *(str(work.ROOT / argument) for argument in arguments),
        ],
        plugins=[plugin],
    )
    if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        raise RuntimeError(f"pytest did not run: {status!r}")


class _Chosen:
    """Of the tests that were collected those that were chosen, in that order; which failed.

    Stops at the first that does, or once the processor time is used up.
    """

    def __init__(self, tests: Sequence[str], *, first_alone: bool = True, end: float = math.inf):
        self.failed: dict[str, str] = {}
        self._order = {test.removeprefix("test "): place for place, test in enumerate(tests)}
        self._first_alone = first_alone
        self._end = end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.setdefault(f"test {report.nodeid}", str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = report.longrepr if crash is None else crash.message
            self.failed.setdefault(f"test {report.nodeid}", str(message))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if (self._first_alone and self.failed) or _processor_time() > self._end:
            item.session.shouldstop = "enough was seen"
            return True  # this one is not run
        return None


class _Recording:
    """Writes what each test reaches and takes, if it passes.

    A test that takes longer than tests may take against a mutant is stopped, and not written.
    """

    def __init__(self, recorder: Recorder, into: Path):
        self._recorder = recorder
        self._into = into
        self._passed: dict[str, bool] = {}
        signal.signal(signal.SIGPROF, _stop)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = _processor_time()
        with self._recorder.recording() as lines:
            result = yield
        if self._passed.get(item.nodeid, False):
            _write(self._into, f"test {item.nodeid}", _processor_time() - start, lines)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, work.TEST_SECONDS)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

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


def _stop(number: int, frame: object) -> None:
    raise TimeoutError("the test takes too long")


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime


def _files_of(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(test.removeprefix("test ").partition("::")[0] for test in tests))


def _last(log: Path) -> str:
    return log.read_text(errors="replace")[-_MESSAGE_LENGTH:] if log.exists() else ""
