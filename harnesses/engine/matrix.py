"""A run of the matrix: its cells, the rows that came of them, and the proof of the ledger.

Every process of a run has a `Matrix`: workers run cells, the controller gathers their rows.
"""

import collections
import contextlib
import functools
import tempfile
from pathlib import Path
from typing import Any

from harnesses.engine import consumers, results, retirement
from harnesses.engine.adapter import DEFAULT_LOWERINGS, check_exists
from harnesses.engine.cells import CONSUMER_MODES, JAX_SIDE, TRANSFORMED_MODES, Cell
from harnesses.engine.judge import INAPPLICABLE, Judge
from harnesses.engine.options import selection
from harnesses.engine.results import Row
from harnesses.engine.retirement import Retirement
from harnesses.engine.watchdog import Watchdog
from harnesses.harness import CALL_TF, Harness, all_harnesses
from limitations import ledger
from limitations.check import CELL_KINDS, Finding, LedgerIndex, check, check_cell


class Matrix:
    """The run that `options` ask for, seen from the process named `worker`."""

    def __init__(self, options: Any, worker: str, scratch: str | None):
        self.selection = selection(options)
        self.impl = None if options.side == JAX_SIDE else options.impl
        if self.impl is not None:
            check_exists(self.impl)
        consumers.check(self.selection)
        self.rows: list[Row] = []
        self.findings: list[Finding] = []
        self.seconds = 0.0  # of processor time, in all processes
        self._scratch = scratch
        self._worker = worker
        self._closing = contextlib.ExitStack()
        self._timeout = options.cell_timeout
        self._memory = options.worker_memory
        self._results = None if options.results is None else Path(options.results)
        direction = self.selection.direction
        self._limitations = ledger.load(options.ledger and Path(options.ledger), direction)
        self._uncovered = ledger.load_uncovered(options.ledger and Path(options.ledger))
        self._index = LedgerIndex(self._limitations)
        self._transforming: dict[type[Judge], Judge] = {}

    @functools.cached_property
    def cells(self) -> dict[str, Cell]:
        """The cells of the selection by name."""
        return {str(cell): cell for cell in self.selection.cells()}

    def run(self, cell: Cell) -> tuple[Row, str | None]:
        """Runs a cell under the watchdog; returns its row, and what is wrong if it is red."""
        self._retirement.consider()
        judge = self._judge_of(cell.mode)  # imports TensorFlow, on the watch of no cell
        with self._watchdog.watching():
            return self._judged(cell, judge.run(cell))

    def retired(self, worker: str) -> bool:
        """Whether a worker that ended only made place for a new one; takes note of its time."""
        seconds = retirement.seconds_of(self.scratch / worker)
        self.seconds += seconds or 0.0
        return seconds is not None

    def lost(self, cell: Cell, worker: str) -> tuple[Row, str | None]:
        """As `run`, for a cell whose worker died over it."""
        if _holds_text(self.scratch / worker):
            ended = {"outcome": "timeout", "message": f"ended after {self._timeout:g} s"}
        else:
            ended = {"outcome": "crash", "message": "the process died"}
        return self._judged(cell, ended)

    def finish(self) -> list[Finding]:
        """Writes all rows and checks them against the ledger; returns the findings."""
        results.write(self._results or self._default_results(), self.rows)
        self.findings = check(self.rows, self._limitations, self._database, self._uncovered)
        return self.findings

    def findings_beyond_cells(self) -> list[Finding]:
        """Findings that no failing cell has told already."""
        return [finding for finding in self.findings if finding.kind not in CELL_KINDS]

    def summary(self) -> str:
        """One line: outcomes, declared cells, findings, and what a cell cost."""
        outcomes = collections.Counter(row["outcome"] for row in self.rows)
        declared = sum(row["limitation"] is not None for row in self.rows)
        red = sum(row["verdict"] == "red" for row in self.rows)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        count = max(1, len(self.rows))
        return (
            f"{len(self.rows)} cells ({counts}); {declared} declared ({declared / count:.1%}), "
            f"{red} red, {len(self.findings)} findings; {self.seconds:.1f} s of processor time, "
            f"{self.seconds / count:.4f} s a cell"
        )

    @functools.cached_property
    def scratch(self) -> Path:
        """The folder in which the processes of the run leave notes; the controller removes it."""
        if self._scratch is not None:
            return Path(self._scratch)
        return Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="matrix-")))

    def close(self) -> None:
        """Lets go of files."""
        self._closing.close()

    @property
    def _database(self) -> list[Harness]:
        return all_harnesses(direction=self.selection.direction)

    def _judge_of(self, mode: str) -> Judge:
        if mode in TRANSFORMED_MODES:
            from harnesses.engine.transformed import JUDGES  # imports TensorFlow

            # Modes that share a judge share JAX's result.
            kind = JUDGES[mode]
            if kind not in self._transforming:
                self._transforming[kind] = kind(self.impl)
            return self._transforming[kind]
        if mode in CONSUMER_MODES:
            from harnesses.engine.consumers.judge import ConsumerJudge  # imports TensorFlow

            return ConsumerJudge(self.impl, mode)
        return self._judge

    @functools.cached_property
    def _judge(self) -> Judge:
        if self.selection.direction == CALL_TF:
            from harnesses.engine.call_tf import CallTfJudge  # imports TensorFlow

            return CallTfJudge(self.impl)
        return Judge(self.impl)

    @functools.cached_property
    def _versions(self) -> Row:
        return results.versions(self.impl)

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
        row = results.row_of(cell, self._versions, **observed)
        matching = self._index.matching(row)
        problem = check_cell(row, matching)
        row["verdict"] = "ok" if problem is None else "red"
        if matching and problem is None and row["outcome"] != INAPPLICABLE:
            row["limitation"] = matching[0].where
        return row, None if problem is None else problem.message

    def _default_results(self) -> Path:
        name = self.selection.device[0] + ("-jax" if self.impl is None else "")
        if self.selection.direction == CALL_TF:
            name += f"-{CALL_TF}"
        if set(self.selection.lowering) - set(DEFAULT_LOWERINGS):
            name = "-".join((name, *self.selection.lowering))
        # A part of the matrix does not replace the rows of the whole.
        whole = self.selection.is_full and len(self.rows) == len(self.cells)
        folder = results.FOLDER if whole else results.FOLDER / "parts"
        return folder / f"{name}.jsonl"


def _holds_text(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
