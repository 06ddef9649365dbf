"""What is run against a mutant: cells of the matrix and tests, those that reach its line.

An item is `cell HARNESS LOWERING MODE` or `test NODEID`. Which lines an item reaches, and how long
it takes, is recorded once on the code as it is, in reports/results/mutation/reach.jsonl; a test
that fails there is left out. Cells are a sample of the matrix, and more of it where a mutant
survives; tests are recorded a file at a time, when a mutant first asks for one that parts.toml
names, and anew when the file has changed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from harnesses.cell.cells import Cell, modes_of
from harnesses.engine.matrix import Matrix
from harnesses.engine.options import add_options
from harnesses.harness import CALL_TF, CONVERT, Harness, all_harnesses
from reports.mutation.mutants import PACKAGE, Mutant, source_of
from reports.mutation.reach import Line

ROOT = PACKAGE.parents[1]
PARTS = Path(__file__).with_name("parts.toml")

# What the harnesses of the sample are recorded as.
_LOWERINGS = ("xla", "no_xla")
_RECORDED_MODE = "graph"
# How many of the items that reach a line are chosen for what else they reach.
_VARIED = 20
# Seconds that an item takes beside what was recorded.
_SETUP = 0.1
# What a recorded cell is run as too, against a mutant that it does not catch.
_OTHER_MODES = ("eager", "compiled")
# Which part is taken: of the harnesses of a primitive that has many, of TensorFlow's functions.
_PART_OF_OTHERS = 16
_CALL_TF_STEP = 10
# The processor time after which no more are begun against one mutant: of the cells that reach it,
# of tests, of other cells; and after which no more cells are recorded for it.
CELL_SECONDS, TEST_SECONDS, OTHER_SECONDS, RECORDING_SECONDS = 6.0, 30.0, 15.0, 10.0
# The functions of JAX's public modules are made of the primitives of the other families.
_UNRECORDED = "functions"


@dataclass(frozen=True, eq=False)
class Item:
    """A cell or a test, as it was recorded."""

    name: str
    seconds: float
    lines: frozenset[Line]

    @property
    def file(self) -> str | None:
        """The test file, relative to the root; None of a cell."""
        kind, _, rest = self.name.partition(" ")
        return rest.partition("::")[0] if kind == "test" else None


class Reach:
    """The recorded items, in a file that grows."""

    def __init__(self, path: Path):
        self.path = path
        self._ended: set[str] = set()
        self.items: dict[str, Item] = {}
        self._by_line: dict[Line, list[Item]] = collections.defaultdict(list)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def add_file(self, path: Path) -> None:
        """Takes over what a process recorded in a file of its own."""
        text = path.read_text(encoding="utf-8")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
        for line in text.splitlines():
            self._take(json.loads(line))

    def has(self, part: str) -> bool:
        """Whether a part (a cell, a version of a test file) was recorded, whatever came of it."""
        return part in self._ended

    def reaching(self, mutant: Mutant, *, file: str | None, near: bool = False) -> list[Item]:
        """The items that reach the mutant's line, or, unless only those near, its function, module.

        Of what a module names, where it is used is reached, in any module: no item runs the line
        itself. They are the tests of a file, or cells: the first ones reach most in least time.
        """
        for place in _NEAR if near else _NEAR + _FAR:
            if found := self._at(place, mutant, file):
                return _varied(found, mutant.module)
        return []

    def of_module(self, mutant: Mutant) -> list[Item]:
        """The cells that reach the module at all."""
        return self._at(_in_module, mutant, None)

    def _at(
        self, place: Callable[[Mutant, Line], bool], mutant: Mutant, file: str | None
    ) -> list[Item]:
        lines = [line for line in self._by_line if place(mutant, line)]
        found = {item.name: item for line in lines for item in self._by_line[line]}
        return [item for item in found.values() if item.file == file]

    def _take(self, row: dict[str, Any]) -> None:
        if "part" in row:
            self._ended.add(row["part"])
            return
        item = Item(row["item"], row["seconds"], frozenset(map(tuple, row["lines"])))
        if old := self.items.get(item.name):
            for line in old.lines:
                self._by_line[line].remove(old)
        self.items[item.name] = item
        for line in item.lines:
            self._by_line[line].append(item)


def _at_line(mutant: Mutant, line: Line) -> bool:
    return line == (mutant.module, mutant.function, mutant.before)


def _where_decorated(mutant: Mutant, line: Line) -> bool:
    return mutant.before.startswith("@") and line[:2] == (mutant.module, mutant.function)


def _where_named(mutant: Mutant, line: Line) -> bool:
    pattern = _named(mutant)
    return pattern is not None and bool(pattern.search(line[2]))


def _in_function(mutant: Mutant, line: Line) -> bool:
    return bool(mutant.function) and line[:2] == (mutant.module, mutant.function)


def _in_module(mutant: Mutant, line: Line) -> bool:
    return line[0] == mutant.module


_NEAR = (_at_line, _where_decorated, _where_named)
_FAR = (_in_function, _in_module)


@cache
def _named(mutant: Mutant) -> re.Pattern[str] | None:
    """The names that a statement of the module's level assigns, as words."""
    names = [] if mutant.function else assigned_at(source_of(mutant.module), mutant.line)
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b") if names else None


def assigned_at(source: str, line: int) -> list[str]:
    """The names that the statement around a line of the module's level assigns."""
    for node in ast.parse(source).body:
        assert node.end_lineno is not None
        if node.lineno <= line <= node.end_lineno and isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


def _varied(found: Iterable[Item], module: str) -> list[Item]:
    """First those that, for their time, reach most lines of the module that none before reaches."""
    rest = sorted(found, key=_width)
    lines = {item: {line for line in item.lines if line[0] == module} for item in rest}
    chosen: list[Item] = []
    reached: set[Line] = set()
    while rest and len(chosen) < _VARIED:
        if not any(lines[item] - reached for item in rest):
            reached = set()
        best = max(rest, key=lambda item: len(lines[item] - reached) / (item.seconds + _SETUP))
        reached |= lines[best]
        chosen.append(best)
        rest.remove(best)
    return chosen + rest


def _width(item: Item) -> tuple[int, float]:
    """How much an item does beside what it is for."""
    return len(item.lines), item.seconds


@cache
def test_files(module: str) -> list[str]:
    """The test files that belong to a module, the likeliest first: parts.toml says them."""
    parts = tomllib.loads(PARTS.read_text(encoding="utf-8"))
    return [f"tests/{name}" for name in parts[module]]


def version_of(file: str) -> str:
    """A test file as it stands, which is recorded anew when it changes."""
    return f"{file} {zlib.crc32((ROOT / file).read_bytes()):08x}"


def cells_to_record() -> list[str]:
    """The sample of the matrix: the same for the same harnesses.

    Of each primitive a harness of each kind of dtype, and at least two, in both lowerings; and some
    of its others in one.
    """
    names = []
    for of_one in _by_primitive(all_harnesses()):
        n = max(2, len({harness.dtype.kind for harness in of_one}))
        both, more = of_one[:n], of_one[n : n + len(of_one) // _PART_OF_OTHERS]
        names += [
            f"cell {h.name} {lowering} {_RECORDED_MODE}" for h in both for lowering in _LOWERINGS
        ]
        names += [f"cell {h.name} {_LOWERINGS[i % 2]} {_RECORDED_MODE}" for i, h in enumerate(more)]
    return names


def call_tf_cells() -> list[str]:
    """A sample of the matrix of the other direction: one in some functions, each in one mode."""
    some = [of_one[0] for of_one in _by_primitive(all_harnesses(direction=CALL_TF))][
        ::_CALL_TF_STEP
    ]
    modes = [modes_of(harness, CALL_TF) for harness in some]
    return [
        f"cell {harness.name} {CALL_TF} {of_it[place % len(of_it)]}"
        for place, (harness, of_it) in enumerate(zip(some, modes, strict=True))
    ]


def other_cells(found: Iterable[Item]) -> list[str]:
    """The same harnesses in other modes."""
    cells = [_of_cell(item) for item in found]
    return [f"cell {name} {lowering} {m}" for m in _OTHER_MODES for name, lowering in cells]


def wider_cells(near: Iterable[Item], far: Iterable[Item]) -> list[str]:
    """All harnesses of the primitives of cells, those near before those far.

    First the primitives whose cells reach the fewest lines: they are what the line is for.
    """
    kinds: dict[tuple[str, str], None] = {}
    for cells in (near, far):
        for item in sorted(cells, key=_width):
            name, lowering = _of_cell(item)
            kinds.setdefault((_by_name()[name].primitive, lowering))
    of_primitive = collections.defaultdict(list)
    for harness in sorted(_by_name().values(), key=_number):
        of_primitive[harness.primitive].append(harness.name)
    return [
        f"cell {name} {lowering} {_RECORDED_MODE}"
        for primitive, lowering in kinds
        for name in of_primitive[primitive]
    ]


def _of_cell(item: Item) -> tuple[str, str]:
    _, name, lowering, _ = item.name.split(" ")
    return name, lowering


def lower_cell(name: str) -> None:
    """Builds the graph of a cell, and runs nothing."""
    from harnesses.engine import modes
    from harnesses.engine.adapter import Adapter

    _, harness_name, lowering, mode = name.split(" ")
    harness = _by_name()[harness_name]
    with jax.enable_x64(harness.x64):
        args = tuple(jax.tree.map(modes.constant, harness.make_args()))
        converted = Adapter().convert(harness.fun, lowering, with_gradient=True)
        modes.graph_of(modes.MODES[mode](converted, args), args)


def run_cell(name: str) -> str | None:
    """Runs a cell; returns what is wrong if it is red."""
    _, harness, lowering, mode = name.split(" ")
    cell = Cell(_by_name()[harness], "cpu", lowering, mode)
    return matrix_of(CALL_TF if lowering == CALL_TF else CONVERT).run(cell)[1]


@cache
def _by_name() -> dict[str, Harness]:
    return {
        h.name: h for direction in ("convert", CALL_TF) for h in all_harnesses(direction=direction)
    }


@cache
def matrix_of(direction: str) -> Matrix:
    """The harnesses of a direction, and the ledger by which their cells are judged."""
    _by_name()
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument)
    # A child is ended by the processor time that it takes.
    options = parser.parse_args(["--direction", direction, "--cell-timeout", "1e6"])
    return Matrix(options, "main", file=os.devnull)  # its rows are of no run


def _by_primitive(harnesses: Sequence[Harness]) -> list[list[Harness]]:
    """The harnesses of each primitive, first one of each kind of dtype."""
    by_primitive = collections.defaultdict(list)
    for harness in sorted(harnesses, key=_number):
        if harness.family != _UNRECORDED:
            by_primitive[harness.primitive].append(harness)
    return [_kinds_first(of_one) for of_one in by_primitive.values()]


def _kinds_first(harnesses: Sequence[Harness]) -> list[Harness]:
    first = {harness.dtype.kind: harness for harness in reversed(harnesses)}.values()
    return [*first, *(harness for harness in harnesses if harness not in first)]


def _number(harness: Harness) -> int:
    return zlib.crc32(harness.name.encode())
