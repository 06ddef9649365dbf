"""A run of the matrix: its cells, the rows that came of them, and the proof of the ledger.

Every process of a run has a `Matrix`: workers run cells and put their rows into the run's file, the
controller begins and finishes it.
"""

import collections
import contextlib
import functools
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from harnesses.cell import journal
from harnesses.cell.cells import Cell
from harnesses.cell.journal import Journal
from harnesses.cell.modes import MODES
from harnesses.cell.names import (
    DEFAULT_IMPLEMENTATION,
    DEFAULT_LOWERINGS,
    JAX_SIDE,
)
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import Row, row_of
from harnesses.engine import compile_cache, consumers, interrupts, request, retirement
from harnesses.engine.adapter import check_exists
from harnesses.engine.judge import Judge
from harnesses.engine.options import cell_command, run_command, selection
from harnesses.engine.retirement import Retirement
from harnesses.engine.transformations import TransformedJudge
from harnesses.engine.versions import versions
from harnesses.engine.watchdog import Watchdog
from harnesses.harness import (
    CONVERT,
    Harness,
    all_harnesses,
    harnesses_elsewhere,
)
from limitations import ledger, tolerances
from limitations.check import (
    CELL_KINDS,
    Finding,
    LedgerIndex,
    cell_name,
    check,
    check_cell,
)
from limitations.ledger import LedgerError

# In the scratch folder: the names of the cells that an earlier part of the run has done.
_DONE = "done.json"


class Matrix:
    """The run that `options` ask for, seen from the process named `worker`.

    A worker is given the run's `scratch` folder and the path of its `file`.
    """

    def __init__(
        self, options: Any, worker: str, scratch: str | None = None, file: str | None = None
    ):
        self.selection = selection(options)
        self.impl = None if options.side == JAX_SIDE else options.impl
        if self.impl is not None:
            check_exists(self.impl)
        consumers.check(self.selection)
        self.rows: list[Row] = []
        self.findings: list[Finding] = []
        self.seconds = 0.0  # of processor time, in all processes
        self._asked: int | None = None
        self._options = options
        self._scratch = scratch
        self._worker = worker
        self._closing = contextlib.ExitStack()
        self._timeout = options.cell_timeout
        self._memory = options.worker_memory
        direction = self.selection.direction
        folder = ledger.folder_of(self.impl, options.ledger)
        if folder.exists() and not folder.is_dir():
            raise LedgerError(f"--ledger {folder} is a file: give a folder, which may be a new one")
        self._limitations = ledger.load(folder, direction)
        self._tolerances = tolerances.load(folder) if direction == CONVERT else []
        self._uncovered = ledger.load_uncovered(options.ledger and Path(options.ledger))
        self._index = LedgerIndex(self._limitations)
        self._judges: dict[Any, Judge | TransformedJudge] = {}
        self._earlier = 0  # cells that an earlier part of the run has done
        if file is None and options.resume:
            file = str(request.stopped_run(options, journal.FOLDER / journal.RUNS))
            self._journal = Journal(Path(file))
            self._take_up()
        elif file is None:
            self._journal = Journal(self._new_file())
        else:
            self._journal = Journal(Path(file))

    @property
    def file(self) -> Path:
        """The file of the run, which holds the rows of the cells that have ended."""
        return self._journal.path

    @functools.cached_property
    def cells(self) -> dict[str, Cell]:
        """The cells that are left to run, by name: those of the selection, but what is done."""
        note = self.scratch / _DONE
        done = set(json.loads(note.read_text())) if note.exists() else set()
        cells = {str(cell): cell for cell in self.selection.cells()}
        return {name: cell for name, cell in cells.items() if name not in done}

    @property
    def asked(self) -> int:
        """How many cells the run was asked for, in all of its parts."""
        return len(self.cells) if self._asked is None else self._asked

    @property
    def missing(self) -> int:
        """How many cells did not run, once the run is finished."""
        return self.asked - len(self.rows)

    def begin(self, cells: int) -> None:
        """Opens the file of the run, which takes so many cells; called once, by the controller."""
        if self._asked is None:
            self._asked = cells
            self._journal.create(request.request(self._options, cells))

    def command(self, cell: Cell, workers: int = 0) -> str:
        """The command line that repeats a cell of this run."""
        return cell_command(cell, self._options, workers)

    @property
    def resume_command(self) -> str:
        """The command line that goes on with this run."""
        return f"{run_command(self._options)} --resume"

    def run(self, cell: Cell) -> tuple[Row, str | None]:
        """Runs a cell under the watchdog; returns its row, and what is wrong if it is red."""
        self._retirement.consider()
        judge = self._judge_of(cell.mode)  # imports TensorFlow, on the watch of no cell
        if self._options.compile_cache is not None and self.impl is not None:
            compile_cache.name_functions_of(str(cell))
        with self._watchdog.watching(), interrupts.watching():
            return self._judged(cell, judge.run(cell))

    def retired(self, worker: str) -> bool:
        """Whether a worker that ended only made place for a new one; takes note of its time."""
        seconds = retirement.seconds_of(self.scratch / worker)
        self.seconds += seconds or 0.0
        return seconds is not None

    def hung(self, worker: str) -> bool:
        """Whether a worker that died was ended by its watchdog."""
        return _holds_text(self.scratch / worker)

    def lost(self, cell: Cell, *, timed_out: bool) -> tuple[Row, str | None]:
        """As `run`, for a cell whose worker died over it."""
        if timed_out:
            ended = {"outcome": "timeout", "message": f"ended after {self._timeout:g} s"}
        else:
            ended = {"outcome": "crash", "message": "the process died"}
        return self._judged(cell, ended)

    def take(self, row: Row) -> None:
        """Puts the row of a cell that another machine ran into this run's file."""
        self._journal.append(row)

    def finish(self) -> list[Finding]:
        """Checks the rows in the run's file against the ledger; returns the findings."""
        self.rows = journal.read(self.file) if self.file.exists() else []
        if self.rows and self._options.results is None:
            journal.point(self._latest(), self.file)
        self.findings = check(
            self.rows,
            self._limitations,
            self._database,
            self._uncovered,
            self._tolerances,
            harnesses_elsewhere(self.selection.direction),
        )
        return self.findings

    def findings_beyond_cells(self) -> list[Finding]:
        """Findings that no failing cell has told already."""
        return [finding for finding in self.findings if finding.kind not in CELL_KINDS]

    def remarks(self) -> list[str]:
        """Of a run that stopped: where its rows are, and how to go on."""
        if not self.missing:
            return []
        return [f"the rows are in {self.file}; go on with: {self.resume_command}"]

    def summary(self) -> str:
        """One line: cells that ran and did not, outcomes, findings, and what a cell cost."""
        outcomes = collections.Counter(row["outcome"] for row in self.rows)
        declared = sum(row["limitation"] is not None for row in self.rows)
        red = sum(row["verdict"] == "red" for row in self.rows)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        ran = f"{len(self.rows)} ran ({counts})" if counts else "0 ran"
        return (
            f"{self.asked} cells asked for, {ran}, {red} red, {self.missing} did not run; "
            f"{declared} declared ({declared / max(1, len(self.rows)):.1%}), "
            f"{len(self.findings)} findings; {self.seconds:.1f} s of processor time, "
            f"{self.seconds / max(1, len(self.rows) - self._earlier):.4f} s a cell"
        )

    @functools.cached_property
    def scratch(self) -> Path:
        """The folder in which the processes of the run leave notes; the controller removes it."""
        if self._scratch is not None:
            return Path(self._scratch)
        return Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="matrix-")))

    def close(self) -> None:
        """Lets go of files."""
        self._journal.close()
        self._closing.close()

    @property
    def _database(self) -> list[Harness]:
        return all_harnesses(direction=self.selection.direction)

    def _judge_of(self, mode: str) -> Judge | TransformedJudge:
        """The judge of a mode. Modes that share a judge share JAX's results."""
        kind = MODES[self.selection.direction, mode].judge_class()
        if kind not in self._judges:
            self._judges[kind] = kind(self.impl)
        return self._judges[kind]

    @functools.cached_property
    def _versions(self) -> Row:
        return versions(self.impl)

    @functools.cached_property
    def _retirement(self) -> Retirement:
        note = None if self._scratch is None else self.scratch / self._worker
        return Retirement(note, self._memory)

    @functools.cached_property
    def _watchdog(self) -> Watchdog:
        watchdog = Watchdog(self._timeout, self.scratch / self._worker)
        self._closing.callback(watchdog.close)
        return watchdog

    def _judged(self, cell: Cell, observed: Row) -> tuple[Row, str | None]:
        row = row_of(cell, self._versions, **observed)
        matching = self._index.matching(row)
        problem = check_cell(row, matching, self._tolerances)
        row["verdict"] = "ok" if problem is None else "red"
        if matching and problem is None and row["outcome"] != INAPPLICABLE:
            row["limitation"] = matching[0].where
        self._journal.append(row)
        return row, None if problem is None else problem.message

    def _take_up(self) -> None:
        """Goes on with the run of the journal; workers find there what is done already."""
        before = self._journal.reopen()
        asked = journal.request_of(self.file)
        assert asked is not None, "a run without its request is not taken up"
        self._asked, self._earlier = asked["cells"], len(before)
        (self.scratch / _DONE).write_text(json.dumps([cell_name(row) for row in before]))

    def _new_file(self) -> Path:
        """The file of a new run."""
        if self._options.results is not None:
            path = Path(self._options.results)
            journal.check_free(path)
            return path
        started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        name = f"{started}-{self._place()}-{os.getpid()}.jsonl"
        return journal.FOLDER / journal.RUNS / name

    def _latest(self) -> Path:
        """The link to the latest run of this kind; a part does not take the place of a whole."""
        every_cell = self._earlier + len(self.cells) == self.asked == len(self.rows)
        whole = self.selection.is_full and every_cell
        folder = journal.FOLDER if whole else journal.FOLDER / "parts"
        return folder / f"{self._place()}.jsonl"

    def _place(self) -> str:
        """Which results these are: the device, and the side, direction or lowerings if unusual."""
        name = self.selection.device[0] + ("-jax" if self.impl is None else "")
        if self.impl not in (None, DEFAULT_IMPLEMENTATION):
            name += f"-{self.impl}"
        if self.selection.direction != CONVERT:
            name += f"-{self.selection.direction}"
        if set(self.selection.lowering) - set(DEFAULT_LOWERINGS):
            name = "-".join((name, *self.selection.lowering))
        return name


def _holds_text(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
