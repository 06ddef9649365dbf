"""The engine: pytest hooks that run cells as test items.

`tests/conftest.py` takes these hooks, so `pytest harnesses/engine/test_matrix.py` and `python -m
harnesses run` (which calls pytest) are the same run. Each process puts the row of a cell into the
run's file as soon as it has it. With `-n` pytest-xdist spreads the cells over worker processes; a
worker that dies, or that the watchdog ends, costs the one cell that it was running, and one that
has grown too large is replaced at the cost of none.
"""

import textwrap
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from harnesses.cell.cells import Cell
from harnesses.cell.journal import ResultsError
from harnesses.cell.names import DTENSOR
from harnesses.cell.rows import Row
from harnesses.engine import devices
from harnesses.engine.adapter import ImplementationError
from harnesses.engine.consumers import EngineError
from harnesses.engine.converters import ConverterError
from harnesses.engine.matrix import Matrix
from harnesses.engine.options import TargetError, add_options, selection
from limitations.ledger import LedgerError

MATRIX = pytest.StashKey[Matrix]()
_ROW = "row"
# Of messages that TensorFlow fills with stacks and graphs; the row holds more.
_SHOWN = 400
_TEST = "test_matrix.py::test_cell["
# Of a run that cannot be begun as it was asked for.
REFUSALS = (
    LedgerError,
    ImplementationError,
    ConverterError,
    EngineError,
    TargetError,
    ResultsError,
    devices.DeviceError,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("matrix", "the matrix of cells").addoption)


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    place = (worker["workerid"], worker["scratch"], worker["file"]) if worker else ("main",)
    try:
        chosen = selection(config.option)
        devices.prepare(
            chosen.device, on_mesh=DTENSOR in chosen.mode, compiled=config.option.compile_cache
        )
        config.stash[MATRIX] = Matrix(config.option, *place)
    except REFUSALS as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(Gatherer(config.stash[MATRIX]))
    _choose_distribution(config.option)


def _choose_distribution(options: Any) -> None:
    """Settings of xdist that a matrix needs, where the command line leaves them at their defaults.

    Stealing keeps the cells of a harness on one worker, where JAX's result is computed once, and
    a run goes on however many of its workers die.
    """
    if getattr(options, "dist", "no") == "load":
        options.dist = "worksteal"
    if getattr(options, "maxworkerrestart", "") is None:
        options.maxworkerrestart = "1000000"


def pytest_unconfigure(config: pytest.Config) -> None:
    matrix = config.stash.get(MATRIX, None)
    if matrix is not None:
        matrix.close()


def run_cell(config: pytest.Config, cell: Cell, record: Callable[[str, Row], None]) -> None:
    """The body of a test item: runs the cell, records its row, and fails if it is red."""
    matrix = config.stash[MATRIX]
    row, problem = matrix.run(cell)
    record(_ROW, row)
    if problem is not None:
        pytest.fail(describe(cell, problem, matrix.command(cell)), pytrace=False)


def describe(cell: Cell, problem: str, command: str) -> str:
    """Why a cell is red, and the line that repeats it."""
    shown = textwrap.shorten(problem, _SHOWN, placeholder=" ...")
    return f"{cell}: {shown}\n    {command}"


def rows_of(report: pytest.TestReport) -> list[Row]:
    """The rows that a report carries: one if it is of a cell that ran (or died)."""
    if report.when != "call" and not report.failed:
        return []
    properties: list[tuple[str, Any]] = report.user_properties
    return [row for key, row in properties if key == _ROW]


class Gatherer:
    """Begins the run when its cells are collected, and finishes it when they have ended."""

    def __init__(self, matrix: Matrix):
        self.matrix = matrix
        self.asked = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not (session.config.option.collectonly or hasattr(session.config, "workerinput")):
            self._begin(item.nodeid for item in session.items)

    # Last: the workers have ended by then, also where the run was interrupted.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker_output = getattr(session.config, "workeroutput", None)
        if worker_output is not None:
            worker_output["seconds"] = time.process_time()
        elif self.asked:
            self.matrix.seconds += time.process_time()
            findings = self.matrix.finish()
            if session.exitstatus == pytest.ExitCode.OK and (findings or self.matrix.missing):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _begin(self, ids: Iterable[str]) -> None:
        """Begins the run if some of the collected items are cells."""
        names = [_cell_name(nodeid) for nodeid in ids if _TEST in nodeid]
        if names:
            self.asked = True
            self.matrix.begin(sum(name in self.matrix.cells for name in names))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.asked:
            terminalreporter.section("matrix")
            for finding in self.matrix.findings:
                terminalreporter.line(str(finding), red=True)
            for line in self.matrix.remarks():
                terminalreporter.line(line)
            terminalreporter.line(self.matrix.summary())

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist, before a worker starts."""
        node.workerinput["scratch"] = str(self.matrix.scratch)
        node.workerinput["file"] = str(self.matrix.file)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """xdist, when a worker has collected; the controller itself collects nothing."""
        self._begin(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """xdist, when a worker died while it ran `crashitem`; the other items go on elsewhere."""
        if self.matrix.retired(report.node.gateway.id):
            report.outcome = "rerun"
            sched.mark_test_pending(crashitem)
            return
        cell = self.matrix.cells.get(_cell_name(crashitem))
        if cell is None:
            return
        timed_out = self.matrix.hung(report.node.gateway.id)
        row, problem = self.matrix.lost(cell, timed_out=timed_out)
        report.user_properties.append((_ROW, row))
        if problem is None:
            report.outcome, report.when = "passed", "call"
        else:
            # In a worker of its own: it would take the controller along.
            report.longrepr = describe(cell, problem, self.matrix.command(cell, workers=1))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """xdist, when a worker ends; one that died tells no time."""
        self.matrix.seconds += getattr(node, "workeroutput", {}).get("seconds", 0.0)


def _cell_name(nodeid: str) -> str:
    """The name of the cell that a test item runs."""
    return nodeid.partition(_TEST)[2].removesuffix("]")
