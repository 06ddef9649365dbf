"""What a run shows: a progress bar, each failure with the line that repeats it, and the summary."""

import collections
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harnesses.engine.matrix import Matrix
from harnesses.engine.plugin import MATRIX, rows_of


class ProgressBar:
    """A pytest plugin in place of the terminal reporter."""

    def __init__(self, console: Console):
        self.console = console
        self.matrix: Matrix | None = None
        self._counts: collections.Counter[str] = collections.Counter()
        self._tenths = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            refresh_per_second=2,
        )

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.matrix = session.config.stash[MATRIX]
        self._task = self._bar.add_task("cells", total=len(self.matrix.cells), counts="")
        self._bar.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # Not longreprtext: xdist puts a line about the worker before it.
            self._print_red(str(report.longrepr))
        for row in rows_of(report):
            self._counts[row["outcome"]] += 1
            counts = " ".join(f"{outcome} {n}" for outcome, n in self._counts.most_common())
            self._bar.update(self._task, advance=1, counts=counts)
            self._print_milestone(counts)

    def _print_milestone(self, counts: str) -> None:
        """A line at each tenth of the run, where a bar that moves would not be seen."""
        assert self.matrix is not None
        done, total = self._counts.total(), len(self.matrix.cells)
        if not self.console.is_terminal and done < total and done * 10 // total > self._tenths:
            self._tenths = done * 10 // total
            self.console.print(f"{done}/{total} cells: {counts}", highlight=False)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._print_red(report.longreprtext)

    def pytest_internalerror(self, excrepr: Any) -> None:
        self._print_red(str(excrepr))

    # A wrapper: the run is finished by the last of what it is around.
    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        yield
        self._bar.stop()
        if self.matrix is not None:
            for finding in self.matrix.findings_beyond_cells():
                self._print_red(str(finding))
            for line in (*self.matrix.remarks(), self.matrix.summary()):
                self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _print_red(self, text: str) -> None:
        self.console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
