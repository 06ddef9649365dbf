"""A run: chooses mutants, tries each, writes rows and at the end the table."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine.versions import versions as engine_versions
from reports import rendering
from reports.mutation import items, mutants, rows, table, trial
from reports.mutation.items import Reach
from reports.mutation.mutants import Mutant
from reports.mutation.rows import Row
from reports.results import RESULTS

FOLDER = RESULTS / "mutation"
# Cells that one process records: TensorFlow keeps what it compiles.
_RECORDED_AT_ONCE = 400
# How many cells are tried at first; how many of them in other modes too, and how many more cells,
# against what survives those and the tests.
_RECORDED, _OTHERS, _MORE = 20, 6, 60
# Seconds of processor time for a mutant that may hang, several times what its items take.
_LIMIT = 60.0
_LONG = 3600.0  # seconds of processor time for what is recorded
_PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def main(options: argparse.Namespace, console: Console) -> int:
    """Tries the mutants that the options choose; returns 1 if one survived without explanation."""
    path = FOLDER / "rows.jsonl"
    if options.fresh:
        path.unlink(missing_ok=True)
    chosen = _chosen(options)
    known = _known(path, options)
    trial.prepare()
    attempts = Attempts(FOLDER, console)
    while True:
        for first in (True, False):
            missing = [mutant for mutant in chosen if _is_missing(known.get(mutant.name), first)]
            for number, mutant in enumerate(missing, start=1):
                before = known.get(mutant.name) or _described(mutant)
                row = attempts.against_first(mutant) if first else attempts.against_rest(mutant)
                row = _both(before, row)
                ended = not first or row["outcome"] in rows.CAUGHT or table.is_explained(row)
                known[mutant.name] = row = row | {"ended": ended}
                rows.append(path, row)
                console.print(f"{number}/{len(missing)} {_shown(row)}", **_PLAIN)
        red = attempts.red_of({known[mutant.name].get("by", "") for mutant in chosen})
        if not red:
            break
        known = {name: row for name, row in known.items() if row.get("by") not in red}
    versions = engine_versions(DEFAULT_IMPLEMENTATION) | origin.now()
    data = table.data_of(
        [known[mutant.name] for mutant in chosen], options.seed, options.sample, versions
    )
    if not (options.module or options.mutant):
        for written in rendering.write(table.files(data), options.into):
            console.print(f"wrote {written}", soft_wrap=True)
    unexplained = table.unexplained(data)
    console.print(
        f"{len(chosen)} mutants, {len(data['survivors'])} not caught, {len(unexplained)} of those "
        f"not explained: {table.score(data):.1%}; {data['seconds']} s of processor time each"
    )
    gone = [entry for entry in table.equivalents() if not entry.still_there]
    for entry in gone:
        console.print(f"{table.EQUIVALENTS}: {entry.before!r} is not in {entry.module}", **_PLAIN)
    return 1 if unexplained or gone else 0


def _known(path: Path, options: argparse.Namespace) -> dict[str, Row]:
    """The rows of earlier runs that stand."""
    known = rows.read(path)
    if options.mutant:
        return {}
    if options.again:
        return {name: row for name, row in known.items() if row["outcome"] in rows.CAUGHT}
    return known


def _described(mutant: Mutant) -> Row:
    return {
        "mutant": mutant.name,
        "module": mutant.module,
        "function": mutant.function,
        "operator": mutant.operator,
        "line": mutant.line,
        "diff": mutants.diff(mutant, mutants.mutate(mutant)),
    }


class Attempts:
    """Tries mutants, with what was recorded about the code as it is."""

    def __init__(self, folder: Path, console: Console):
        folder.mkdir(parents=True, exist_ok=True)
        self._console = console
        self._reach = Reach(folder / "reach.jsonl")
        self._scratch = folder / "recorded.jsonl"
        self._green: set[str] = set()
        self._red: set[str] = set()
        self._record_cells()

    def against_first(self, mutant: Mutant) -> Row:
        """What comes of a mutant in the recorded cells that reach it.

        All are tried so, also those that are explained as equivalent: that such a one is caught
        would be news.
        """
        near = self._reach.reaching(mutant, file=None, near=True)[:_RECORDED]
        return self._judged(mutant, [cell.name for cell in near], items.CELL_SECONDS)

    def against_rest(self, mutant: Mutant) -> Row:
        """What comes of it in the tests of each file that reach it, and then in other cells."""
        row = _SURVIVED
        for names, seconds in self._parts(mutant):
            row = _both(row, self._judged(mutant, names, seconds))
            if row["outcome"] in rows.CAUGHT:
                break
        return row

    def _parts(self, mutant: Mutant) -> Iterator[tuple[list[str], float]]:
        files = items.test_files(mutant.module)
        for file in files:
            self._record_tests(file)
            tests = self._reach.reaching(mutant, file=file)
            yield [test.name for test in tests], items.TEST_SECONDS / len(files)
        if mutant.module.startswith("call_tf/"):
            yield items.call_tf_cells(), items.OTHER_SECONDS
        else:
            yield self._other_cells(mutant), items.OTHER_SECONDS

    def _other_cells(self, mutant: Mutant) -> list[str]:
        near = self._reach.reaching(mutant, file=None)
        self._record_more(items.wider_cells(near, self._reach.of_module(mutant)))
        tried = {cell.name for cell in near[:_RECORDED]}
        reaching = self._reach.reaching(mutant, file=None)
        more = [cell.name for cell in reaching if cell.name not in tried]
        pairs = itertools.zip_longest(more, items.other_cells(near[:_OTHERS]))
        return [cell for pair in pairs for cell in pair if cell][:_MORE]

    def _judged(self, mutant: Mutant, names: Sequence[str], seconds: float) -> Row:
        chosen = [name for name in names if name not in self._red]
        tried = {"tried": len(chosen)}
        if not chosen:
            return _SURVIVED
        row = self._judge(mutant, chosen, seconds)
        if row["outcome"] in ("timeout", "crash"):
            # No item is named that could be tried on the code as it is: all of them are, at once.
            same = self._judge(None, chosen, seconds)
            if same["outcome"] != "survived":
                self._console.print(f"on the code as it is: {same}", **_PLAIN)
                return same | tried | {"outcome": "survived"}
        return row | tried

    def _judge(self, mutant: Mutant | None, names: Sequence[str], seconds: float) -> Row:
        with trial.package_with(mutant) as folder:
            return trial.in_child(folder, partial(trial.judge, names, seconds), _LIMIT)

    def red_of(self, names: Iterable[str]) -> set[str]:
        """The items that fail on the code as it is: what they caught counts for nothing."""
        red: set[str] = set()
        for kind in ("cell ", "test "):
            new = sorted({name for name in names if name.startswith(kind)} - self._green)
            if not new:
                continue
            with trial.package_with(None) as folder:
                row = trial.in_child(folder, partial(trial.red_ones, new), _LONG)
            if "red" not in row:
                raise RuntimeError(f"the items do not run on the code as it is: {row}")
            red |= set(row["red"])
            self._green |= set(new) - red
        self._red |= red
        return red

    def _record_tests(self, file: str) -> None:
        if not self._reach.has(items.version_of(file)):
            self._console.print(f"recording {file}")
            self._record(partial(trial.record_tests, file))

    def _record_cells(self) -> None:
        names = [name for name in items.cells_to_record() if not self._reach.has(name)]
        for start in range(0, len(names), _RECORDED_AT_ONCE):
            self._console.print(f"recording cells: {len(names) - start} to go")
            self._record(partial(trial.record_cells, names[start : start + _RECORDED_AT_ONCE]))

    def _record_more(self, names: Sequence[str]) -> None:
        new = [name for name in names if not self._reach.has(name)]
        if new:
            self._record(partial(trial.record_cells, new, seconds=items.RECORDING_SECONDS))

    def _record(self, record: Callable[[Path], Row]) -> None:
        self._scratch.unlink(missing_ok=True)
        with trial.package_with(None) as folder:
            row = trial.in_child(folder, partial(record, self._scratch), _LONG)
        if row["outcome"] != "recorded":
            self._console.print(str(row), markup=False)
        if self._scratch.exists():
            self._reach.add_file(self._scratch)


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    only = options.module or [name.rpartition(":")[0] for name in options.mutant or ()]
    by_module = {module: mutants.mutants(module) for module in only or mutants.modules()}
    if options.mutant:
        every = [mutant for found in by_module.values() for mutant in found]
        return [mutant for mutant in every if mutant.name in options.mutant]
    return mutants.sample(by_module, options.sample, options.seed)[: options.first]


_SURVIVED: Row = {"outcome": "survived", "tried": 0, "seconds": 0.0, "processor": 0.0}


def _is_missing(row: Row | None, first: bool) -> bool:
    """Whether a mutant is still to be tried against the first part, or against the rest."""
    return row is None if first else row is not None and not row["ended"]


def _both(before: Row, after: Row) -> Row:
    """The row of a later part, whose counts are those of both."""
    counts = {key: before.get(key, 0) + after[key] for key in ("tried", "seconds", "processor")}
    return before | after | counts


def _shown(row: Row) -> str:
    said = f"{row['outcome']:8s} {row['seconds']:5.1f} s {row['mutant']}"
    if row["outcome"] in rows.CAUGHT:
        return f"{said} {row.get('by', '')}"
    where = f"impl/jax2tf/{row['module']}:{row['line']} in {row['function'] or 'the module'}"
    again = f"python -m reports mutation --mutant {row['mutant']}"
    return "\n".join([said, f"  {where}", *(f"    {line}" for line in row["diff"]), f"  {again}"])
