"""What a run shows: a progress bar, each failure with the line that repeats it, and the summary."""

import collections
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harnesses.cell.rows import Row
from harnesses.engine.matrix import Matrix
from harnesses.engine.plugin import MATRIX, rows_of


class Display:
    """The bar of a run and the lines around it."""

    def __init__(self, console: Console, matrix: Matrix):
        self.console = console
        self.matrix = matrix
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
        self._task = self._bar.add_task("cells", total=len(matrix.cells), counts="")
        self._bar.start()

    def count(self, row: Row) -> None:
        """A cell has ended."""
        self._counts[row["outcome"]] += 1
        counts = " ".join(f"{outcome} {n}" for outcome, n in self._counts.most_common())
        self._bar.update(self._task, advance=1, counts=counts)
        self._print_milestone(counts)

    def red(self, text: str) -> None:
        """Something is wrong."""
        print_red(self.console, text)

    def finish(self) -> None:
        """The run has ended: its findings and its counts."""
        self._bar.stop()
        for finding in self.matrix.findings_beyond_cells():
            self.red(str(finding))
        for line in (*self.matrix.remarks(), self.matrix.summary()):
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _print_milestone(self, counts: str) -> None:
        """A line at each tenth of the run, where a bar that moves would not be seen."""
        done, total = self._counts.total(), len(self.matrix.cells)
        if not self.console.is_terminal and done < total and done * 10 // total > self._tenths:
            self._tenths = done * 10 // total
            self.console.print(f"{done}/{total} cells: {counts}", highlight=False)


class ProgressBar:
    """A pytest plugin in place of the terminal reporter."""

    def __init__(self, console: Console):
        self.console = console
        self._display: Display | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._display = Display(self.console, session.config.stash[MATRIX])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        assert self._display is not None
        if report.failed:
            # Not longreprtext: xdist puts a line about the worker before it.
            self._display.red(str(report.longrepr))
        for row in rows_of(report):
            self._display.count(row)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            print_red(self.console, report.longreprtext)

    def pytest_internalerror(self, excrepr: Any) -> None:
        print_red(self.console, str(excrepr))

    # A wrapper: the run is finished by the last of what it is around.
    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        yield
        if self._display is not None:
            self._display.finish()


def print_red(console: Console, text: str) -> None:
    """Prints what is wrong as it is, on lines that a narrow terminal may wrap."""
    console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
