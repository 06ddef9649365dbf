"""The engine: pytest hooks that run cells as test items and gather their rows.

`tests/conftest.py` takes these hooks, so `pytest tests/test_matrix.py` and `python -m harnesses
run` (which calls pytest) are the same run. With `-n` pytest-xdist spreads the cells over worker
processes; a worker that dies, or that the watchdog ends, costs the one cell that it was running,
and one that has grown too large is replaced at the cost of none.
"""

import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest

from harnesses.engine import devices
from harnesses.engine.adapter import ImplementationError
from harnesses.engine.cells import Cell
from harnesses.engine.consumers import EngineError
from harnesses.engine.matrix import Matrix
from harnesses.engine.options import add_options
from harnesses.engine.results import Row
from limitations.ledger import LedgerError

MATRIX = pytest.StashKey[Matrix]()
_ROW = "row"
# Of messages that TensorFlow fills with stacks and graphs; the row holds more.
_SHOWN = 400
_TEST = "test_matrix.py::test_cell["


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("matrix", "the matrix of cells").addoption)


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    name, scratch = (worker["workerid"], worker["scratch"]) if worker else ("main", None)
    try:
        config.stash[MATRIX] = Matrix(config.option, name, scratch)
        devices.prepare(config.stash[MATRIX].selection.device)
    except (LedgerError, ImplementationError, EngineError, devices.DeviceError) as error:
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
    row, problem = config.stash[MATRIX].run(cell)
    record(_ROW, row)
    if problem is not None:
        pytest.fail(describe(cell, problem), pytrace=False)


def describe(cell: Cell, problem: str) -> str:
    """Why a cell is red, and the line that repeats it."""
    shown = textwrap.shorten(problem, _SHOWN, placeholder=" ...")
    return f"{cell}: {shown}\n    {cell.command}"


def rows_of(report: pytest.TestReport) -> list[Row]:
    """The rows that a report carries: one if it is of a cell that ran (or died)."""
    if report.when != "call" and not report.failed:
        return []
    properties: list[tuple[str, Any]] = report.user_properties
    return [row for key, row in properties if key == _ROW]


class Gatherer:
    """Collects rows out of reports: in the controller of a run with workers, those of all of them.

    When all have come it writes and checks them.
    """

    def __init__(self, matrix: Matrix):
        self.matrix = matrix
        self.asked = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.asked = any(_TEST in item.nodeid for item in session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.matrix.rows += rows_of(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker_output = getattr(session.config, "workeroutput", None)
        if worker_output is not None:
            worker_output["seconds"] = time.process_time()
        elif self.asked:
            self.matrix.seconds += time.process_time()
            if self.matrix.finish():
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.asked:
            terminalreporter.section("matrix")
            for finding in self.matrix.findings:
                terminalreporter.line(str(finding), red=True)
            terminalreporter.line(self.matrix.summary())

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist, before a worker starts."""
        node.workerinput["scratch"] = str(self.matrix.scratch)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """xdist, when a worker has collected; the controller itself collects nothing."""
        self.asked = any(_TEST in nodeid for nodeid in ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """xdist, when a worker died while it ran `crashitem`; the other items go on elsewhere."""
        if self.matrix.retired(report.node.gateway.id):
            report.outcome = "rerun"
            sched.mark_test_pending(crashitem)
            return
        cell = self.matrix.cells.get(crashitem.partition(_TEST)[2].removesuffix("]"))
        if cell is None:
            return
        row, problem = self.matrix.lost(cell, report.node.gateway.id)
        report.user_properties.append((_ROW, row))
        if problem is None:
            report.outcome, report.when = "passed", "call"
        else:
            report.longrepr = describe(cell, problem)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """xdist, when a worker ends; one that died tells no time."""
        self.matrix.seconds += getattr(node, "workeroutput", {}).get("seconds", 0.0)
