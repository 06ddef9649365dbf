"""A run: chooses mutants, tries each, writes rows and at the end the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.engine import results as engine_results
from harnesses.engine.adapter import DEFAULT_IMPLEMENTATION
from reports import rendering
from reports.mutation import items, mutants, rows, table, trial
from reports.mutation.items import Item, Reach
from reports.mutation.mutants import Mutant
from reports.mutation.rows import Row
from reports.results import RESULTS

FOLDER = RESULTS / "mutation"
# Cells that one process records: TensorFlow keeps what it compiles.
_RECORDED_AT_ONCE = 400
# Harnesses that run in other modes too, and harnesses that were not recorded, against a survivor.
_OTHERS, _WIDER = 6, 24
# Seconds of processor time for a mutant that may hang, several times what its items take.
_LIMIT = 120.0
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
        for stage, attempt in enumerate(attempts.stages()):
            missing = [mutant for mutant in chosen if _stages(known.get(mutant.name)) == stage]
            for number, mutant in enumerate(missing, start=1):
                before = known.get(mutant.name, _described(mutant))
                known[mutant.name] = row = _both(before, attempt(mutant)) | {"stages": stage + 1}
                rows.append(path, row)
                console.print(f"{number}/{len(missing)} {_shown(row)}", **_PLAIN)
        red = attempts.red_of({known[mutant.name].get("by", "") for mutant in chosen})
        if not red:
            break
        known = {name: row for name, row in known.items() if row.get("by") not in red}
    versions = engine_results.versions(DEFAULT_IMPLEMENTATION)
    data = table.data_of([known[mutant.name] for mutant in chosen], options.seed, versions)
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


def _stages(row: Row | None) -> int | None:
    """How many stages a mutant has survived; None if it is caught."""
    if row is None:
        return 0
    return None if row["outcome"] in rows.CAUGHT else row["stages"]


def _both(before: Row, after: Row) -> Row:
    """The row of a later stage, whose counts are those of both."""
    counts = {key: before.get(key, 0) + after[key] for key in ("tried", "seconds", "processor")}
    return before | after | counts


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

    def stages(self) -> Sequence[Callable[[Mutant], Row]]:
        """What a mutant is tried against, one after the other while it survives."""
        return self._against_cells, self._against_other_cells, self._against_tests

    def _against_cells(self, mutant: Mutant) -> Row:
        """What comes of a mutant in the recorded cells that reach it."""
        reaching = self._reach.reaching(mutant, near=True)
        cells = _within([item for item in reaching if item.file is None], items.CELL_SECONDS)
        return self._judge(mutant, [cell.name for cell in cells], [])

    def _against_other_cells(self, mutant: Mutant) -> Row:
        """The same in other modes, and in harnesses of those primitives that were not recorded."""
        if mutant.module.startswith("call_tf/"):
            return self._judge(mutant, items.call_tf_cells(), [])
        cells = [item for item in self._reach.reaching(mutant) if item.file is None]
        others, wider = items.other_cells(cells[:_OTHERS]), items.wider_cells(cells)[:_WIDER]
        return self._judge(mutant, [*others, *wider], [])

    def _against_tests(self, mutant: Mutant) -> Row:
        """The same in the tests that reach it."""
        for file in items.test_files(mutant.module):
            if not self._reach.has(file):
                self._console.print(f"recording {file}")
                self._record(partial(trial.record_tests, file))
        reaching = self._reach.reaching(mutant)
        tests = _within([item for item in reaching if item.file is not None], items.TEST_SECONDS)
        return self._judge(mutant, [], [test.name for test in tests])

    def _judge(self, mutant: Mutant, cells: Sequence[str], tests: Sequence[str]) -> Row:
        green = [cell for cell in cells if cell not in self._red]
        if not (green or tests):
            return {"outcome": "survived", "tried": 0, "seconds": 0.0, "processor": 0.0}
        with trial.package_with(mutant) as folder:
            row = trial.in_child(folder, partial(trial.judge, green, tests), _LIMIT)
        return row | {"tried": len(green) + len(tests)}

    def red_of(self, names: Iterable[str]) -> set[str]:
        """Those of the cells that fail on the code as it is: what they caught counts for nothing.

        Tests that fail there are not recorded in the first place.
        """
        new = sorted({name for name in names if name.startswith("cell ")} - self._green)
        with trial.package_with(None) as folder:
            row = trial.in_child(folder, partial(trial.red_ones, new), _LONG)
        if "red" not in row:
            raise RuntimeError(f"the cells do not run on the code as it is: {row}")
        self._red |= set(row["red"])
        self._green |= set(new) - self._red
        return set(row["red"])

    def _record_cells(self) -> None:
        names = [name for name in items.cells_to_record() if not self._reach.has(name)]
        for start in range(0, len(names), _RECORDED_AT_ONCE):
            self._console.print(f"recording cells: {len(names) - start} to go")
            self._record(partial(trial.record_cells, names[start : start + _RECORDED_AT_ONCE]))

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


def _within(found: Sequence[Item], seconds: float) -> list[Item]:
    """The first of the items, whose times together are below."""
    return list(_taken(found, seconds))


def _taken(found: Sequence[Item], seconds: float) -> Iterator[Item]:
    for item in found:
        seconds -= item.cost
        if seconds < 0:
            return
        yield item


def _shown(row: Row) -> str:
    said = f"{row['outcome']:8s} {row['seconds']:5.1f} s {row['mutant']}"
    if row["outcome"] in rows.CAUGHT:
        return f"{said} {row.get('by', '')}"
    where = f"impl/jax2tf/{row['module']}:{row['line']} in {row['function'] or 'the module'}"
    again = f"python -m reports mutation --mutant {row['mutant']}"
    return "\n".join([said, f"  {where}", *(f"    {line}" for line in row["diff"]), f"  {again}"])
