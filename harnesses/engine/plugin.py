"""The engine: pytest hooks that run cells as test items and gather their rows.

`tests/conftest.py` takes these hooks, so `pytest tests/test_matrix.py` and `python -m harnesses
run` (which calls pytest) are the same run. With `-n` pytest-xdist spreads the cells over worker
processes; a worker that dies, or that the watchdog ends, costs the one cell that it was running.
"""

import faulthandler
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from harnesses.engine import results
from harnesses.engine.adapter import DEFAULT_IMPLEMENTATION, LOWERINGS
from harnesses.engine.cells import DEVICES, JAX_SIDE, MODE_NAMES, Cell, Selection
from harnesses.engine.judge import Judge
from harnesses.engine.results import Row

_ROW = "row"


def add_options(add: Any) -> None:
    """Declares the options of a run through `add`, of argparse or of a pytest option group."""
    add("--family", action="append", default=[], help="family (may be repeated, as all filters)")
    add("--primitive", action="append", default=[], help="primitive")
    add("--dtype", action="append", default=[], help="dtype, for example bfloat16")
    add("--name", action="append", default=[], help="name of a harness, or a glob of names")
    add("--device", action="append", default=[], choices=DEVICES, help="device (default: cpu)")
    add("--lowering", action="append", default=[], choices=tuple(LOWERINGS), help="lowering")
    add("--mode", action="append", default=[], choices=MODE_NAMES, help="execution mode")
    add("--side", default="tensorflow", choices=("tensorflow", JAX_SIDE), help="jax: JAX alone")
    add("--sample", type=int, metavar="N", help="N harnesses, the same ones every time")
    add("--shard", metavar="I/N", help="the I-th of N parts of the harnesses, counted from 1")
    add(
        "--impl", default=DEFAULT_IMPLEMENTATION, help="module with convert, the one that is judged"
    )
    add(
        "--results",
        metavar="FILE",
        help="where the rows go (default: reports/results/DEVICE.jsonl)",
    )
    add("--cell-timeout", type=float, default=120, metavar="SECONDS", help="ends a cell that hangs")


def selection(options: Any) -> Selection:
    """The selection that the options ask for."""
    return Selection(
        family=tuple(options.family),
        primitive=tuple(options.primitive),
        dtype=tuple(options.dtype),
        name=tuple(options.name),
        device=tuple(options.device) or ("cpu",),
        lowering=tuple(options.lowering),
        mode=tuple(options.mode),
        side=options.side,
        sample=options.sample,
        shard=options.shard,
    )


class Matrix:
    """The run of a selection: its cells, its rows, and what is needed to make the one of the other.

    Every process of a run has one: workers run cells, the controller gathers rows.
    """

    def __init__(self, config: pytest.Config):
        options = config.option
        self.selection = selection(options)
        self.cells = {str(cell): cell for cell in self.selection.cells()}
        self.rows: list[Row] = []
        self.seconds = 0.0
        self.timeout = options.cell_timeout
        self.impl = None if options.side == JAX_SIDE else options.impl
        self.results = Path(options.results or results.FOLDER / f"{self.selection.device[0]}.jsonl")
        worker = getattr(config, "workerinput", None)
        self.scratch = Path(worker["scratch"] if worker else tempfile.mkdtemp())
        self.worker = worker["workerid"] if worker else "main"
        self._versions = results.versions(self.impl)
        self._judge: Judge | None = None
        self._watchdog = None

    def run(self, cell: Cell) -> Row:
        """Runs a cell under the watchdog and returns its row."""
        if self._judge is None:
            self._judge = Judge(self.impl)
            self._watchdog = self.watchdog_note(self.worker).open("w")
        # faulthandler's watchdog is a C thread: it ends a process that never lets go of the GIL.
        faulthandler.dump_traceback_later(self.timeout, exit=True, file=self._watchdog)
        try:
            return self.judged(cell, self._judge.run(cell))
        finally:
            faulthandler.cancel_dump_traceback_later()

    def lost(self, cell: Cell, worker: str) -> Row:
        """The row of a cell whose worker died."""
        note = self.watchdog_note(worker)
        if note.exists() and note.stat().st_size:
            message = f"ended after {self.timeout:g} s"
            return self.judged(cell, {"outcome": "timeout", "message": message})
        return self.judged(cell, {"outcome": "crash", "message": "the process died"})

    def judged(self, cell: Cell, observed: Row) -> Row:
        """The row of a cell with its verdict."""
        row = results.row_of(cell, self._versions, **observed)
        row["verdict"] = "ok" if row["outcome"] == "pass" else "red"
        return row

    def watchdog_note(self, worker: str) -> Path:
        """The file in which a worker's watchdog leaves its traceback: empty as long as none hung."""
        return self.scratch / worker


MATRIX = pytest.StashKey[Matrix]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("matrix", "the matrix of cells").addoption)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MATRIX] = Matrix(config)


def pytest_configure_node(node: Any) -> None:
    """xdist, before a worker starts."""
    node.workerinput["scratch"] = str(node.config.stash[MATRIX].scratch)


def run_cell(config: pytest.Config, cell: Cell, record: Any) -> None:
    """The body of a test item: runs the cell, records its row, and fails if it is red."""
    row = config.stash[MATRIX].run(cell)
    record(_ROW, row)
    if row["verdict"] == "red":
        pytest.fail(describe(cell, row), pytrace=False)


def describe(cell: Cell, row: Row) -> str:
    """Why a cell is red, and the line that repeats it."""
    phase = f" in phase {row['phase']}: {row['exception']}" if row["phase"] else ""
    return f"{cell}: {row['outcome']}{phase}: {row['message']}\n    {cell.command}"


def pytest_handlecrashitem(crashitem: str, report: Any, sched: Any) -> None:
    """xdist, when a worker died while it ran `crashitem`; `sched` has dropped that item."""
    matrix = report.node.config.stash[MATRIX]
    cell = matrix.cells.get(crashitem.rpartition("[")[2].rstrip("]"))
    if cell is not None:
        row = matrix.lost(cell, report.node.gateway.id)
        report.user_properties.append((_ROW, row))
        report.longrepr = describe(cell, row)
        if row["verdict"] == "ok":
            report.outcome = "passed"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(Gatherer(session.config.stash[MATRIX]))


class Gatherer:
    """Collects the rows out of the reports; in the controller, the reports of all workers."""

    def __init__(self, matrix: Matrix):
        self.matrix = matrix

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.matrix.rows += [row for key, row in report.user_properties if key == _ROW]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.matrix.seconds += time.process_time()
        worker_output = getattr(session.config, "workeroutput", None)
        if worker_output is not None:
            worker_output["seconds"] = time.process_time()
        elif self.matrix.rows:
            results.write(self.matrix.results, self.matrix.rows)

    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """xdist, when a worker ends; one that crashed tells no time."""
        self.matrix.seconds += getattr(node, "workeroutput", {}).get("seconds", 0.0)
