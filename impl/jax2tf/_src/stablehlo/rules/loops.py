"""Loops: lax.scan where they count, with the arrays that a step reads and writes a row of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import TOKEN, Step, as_array, takes_sizes
from jax2tf._src.stablehlo.known import as_sizes, is_known, of_sizes
from jax2tf._src.stablehlo.program import Op, Region, TensorType, needed
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.stablehlo.rows import Row, row_read, row_written
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import PyTree


@reads("stablehlo.while")
@takes_sizes
def _while(step: Step, *carried: PyTree) -> list[PyTree]:
    """A loop that counts is lax.scan, which has gradients in reverse mode."""
    counter = _counter(step, carried)
    if counter is not None:
        return _scan(step, carried, counter)
    condition, body = step.op.regions
    places = _changed(body, carried)
    results = [body.results[i] for i in places]

    def known(region: Region, values: PyTree) -> dict[int, PyTree]:
        given = dict(zip(places, values, strict=True))
        return _known(step, region, {i: given.get(i, x) for i, x in enumerate(carried)})

    def holds(values: PyTree) -> PyTree:
        (result,) = step.evaluator.values(condition, known(condition, values), condition.results)
        return as_array(result)

    def next_step(values: PyTree) -> PyTree:
        return _arrays(step.evaluator.values(body, known(body, values), results))

    final = lax.while_loop(holds, next_step, _arrays(carried[i] for i in places))
    return _replaced(carried, dict(zip(places, final, strict=True)))


def _changed(body: Region, carried: Sequence[PyTree]) -> list[int]:
    """Which arrays a step may change. Others, and tokens, are the same in each step."""
    return [
        i
        for i, value in enumerate(carried)
        if value is not TOKEN and body.results[i] != body.arguments[i]
    ]


def _known(step: Step, region: Region, arguments: PyTree) -> dict[int, PyTree]:
    """The values of a region's arguments, by place, and of what it captures."""
    captured = {number: step.environment[number] for number in region.captures}
    return captured | {region.arguments[i]: value for i, value in arguments.items()}


def _arrays(values: PyTree) -> tuple[PyTree, ...]:
    return tuple(jnp.asarray(as_array(value)) for value in values)


def _replaced(carried: Sequence[PyTree], values: PyTree) -> list[PyTree]:
    return [values.get(i, value) for i, value in enumerate(carried)]


@dataclasses.dataclass(frozen=True)
class _Counter:
    """A loop that counts a carried integer from a known start to a known end.

    Attributes:
      limit: the number of the end.
    """

    place: int
    start: int
    length: Size
    limit: int


def _counter(step: Step, carried: tuple[PyTree, ...]) -> _Counter | None:
    condition, body = step.op.regions
    if len(condition.ops) != 1 or condition.results != condition.ops[0].results:
        return None
    (compare,) = condition.ops
    if compare.name != "stablehlo.compare" or compare.attributes["comparison_direction"] != "LT":
        return None
    counted, end = compare.operands
    if counted not in condition.arguments:
        return None
    place = condition.arguments.index(counted)
    if not _counts_by_one(step, body, place):
        return None
    limit, number = _unchanged(step, condition, body, carried, end)
    start = carried[place]
    if not (is_known(start) and is_known(limit) and start.shape == limit.shape == ()):
        return None
    (first,), (last,) = as_sizes(start), as_sizes(limit)
    if not isinstance(first, int):
        return None
    if isinstance(last, int):
        return _Counter(place, first, max(last - first, 0), number)
    return _Counter(place, 0, last, number) if first == 0 else None


def _unchanged(
    step: Step, condition: Region, body: Region, carried: tuple[PyTree, ...], number: int
) -> tuple[PyTree, int]:
    """The value that a number has in each step, and its number in the body; None if a step may
    change it.
    """
    if number not in condition.arguments:
        return step.environment.get(number), number
    place = condition.arguments.index(number)
    is_same = body.results[place] == body.arguments[place]
    return carried[place] if is_same else None, body.arguments[place]


def _counts_by_one(step: Step, body: Region, place: int) -> bool:
    add = step.evaluator.program.definitions.get(body.results[place])
    if add is None or add.name != "stablehlo.add" or body.arguments[place] not in add.operands:
        return False
    others = [number for number in add.operands if number != body.arguments[place]]
    return len(others) == 1 and _is_one(step, others[0])


def _is_one(step: Step, number: int) -> bool:
    value = step.environment.get(number)
    made_by = step.evaluator.program.definitions.get(number)
    if value is None and made_by is not None and made_by.name == "stablehlo.constant":
        value = made_by.attributes["value"]
    return isinstance(value, np.ndarray) and value.size == 1 and int(value.reshape(())) == 1


class _PartOfRow(Exception):
    """A step writes a part of a row only, which the types of open sizes do not tell."""


def _scan(step: Step, carried: tuple[PyTree, ...], counter: _Counter) -> list[PyTree]:
    try:
        return _scan_of(step, carried, counter, _Rows(step, carried, counter))
    except _PartOfRow:
        return _scan_of(step, carried, counter, _Rows(step, carried, counter, written=False))


def _scan_of(
    step: Step, carried: tuple[PyTree, ...], counter: _Counter, rows: _Rows
) -> list[PyTree]:
    body = step.op.regions[1]
    constants = {i: x for i, x in enumerate(carried) if i not in _changed(body, carried)}
    places = [i for i in _changed(body, carried) if i not in (*rows.written, counter.place)]
    wanted = [body.results[i] for i in places]
    values = [row.value for row in rows.written.values() if row.value is not None]
    known = {**_known(step, body, constants), **rows.placeholders}
    counts = _reads(body, known, [*wanted, *values], body.arguments[counter.place])
    if counts:
        places, wanted = [*places, counter.place], [*wanted, body.results[counter.place]]

    def next_step(carry: PyTree, read: PyTree) -> PyTree:
        given = dict(zip(places, carry, strict=True))
        environment = {**known, **_known(step, body, given), **rows.given(read[: len(rows.arrays)])}
        results = step.evaluator.values(body, environment, [*wanted, *values])
        return _arrays(results[: len(wanted)]), rows.stacked(_arrays(results[len(wanted) :]))

    initial = _arrays(carried[i] for i in places)
    xs = [jnp.asarray(as_array(carried[i])) for i in rows.arrays]
    length = counter.length if isinstance(counter.length, int) else None
    if length is None and not xs:  # lax.scan takes an open length from an array
        xs.append(lax.iota(np.int32, counter.length))
    final, ys = lax.scan(next_step, initial, xs, length=length, reverse=rows.are_reversed)
    counted = of_sizes(counter.start + counter.length, _dtype(step, counter))
    return _replaced(
        carried,
        {
            counter.place: counted,
            **dict(zip(places, final, strict=True)),
            **dict(zip(rows.written, ys, strict=True)),
        },
    )


def _dtype(step: Step, counter: _Counter) -> np.dtype:
    kind = step.op.operand_types[counter.place]
    assert isinstance(kind, TensorType)
    return kind.dtype


def _reads(body: Region, known: dict[int, PyTree], wanted: Sequence[int], number: int) -> bool:
    """Whether the body reads or returns the value `number` to compute the values `wanted`."""
    ops = needed(body, known.keys(), wanted)
    return number in wanted or any(number in op.reads for op in ops)


class _Rows:
    """The arrays of a loop of which each step reads, or writes, the row that it counts.

    Attributes:
      arrays: the places of those that it reads.
      written: the rows that it writes, by the place of the array.
      are_reversed: whether it takes them from the last one to the first.
    """

    def __init__(
        self, step: Step, carried: tuple[PyTree, ...], counter: _Counter, *, written: bool = True
    ) -> None:
        self._step, self._carried, self._counter = step, carried, counter
        self._body = step.op.regions[1]
        self._changed = _changed(self._body, carried)
        self._takes_written = written
        self.arrays: list[int] = []
        self.written: dict[int, Row] = {}
        self._read: dict[int, tuple[int, Row]] = {}
        self.are_reversed = False
        for are_reversed in (False, True):
            self.are_reversed = are_reversed
            for place in range(len(carried)):
                self._classify(place)
            if self.arrays or self.written:
                return
        self.are_reversed = False

    @property
    def placeholders(self) -> dict[int, PyTree]:
        """None for each value that `given` and `stacked` stand for."""
        arrays = [self._body.arguments[i] for i in (*self.arrays, *self.written)]
        written = [self._body.results[i] for i in self.written]
        return dict.fromkeys((*arrays, *written, *self._read))

    def given(self, rows: Sequence[PyTree]) -> dict[int, PyTree]:
        """The values of the ops that read rows."""
        by_place = dict(zip(self.arrays, rows, strict=True))
        return {
            number: by_place[place][None] if row.has_axis else by_place[place]
            for number, (place, row) in self._read.items()
        }

    def stacked(self, values: Sequence[PyTree]) -> list[PyTree]:
        """The rows to write, without the axis that is stacked."""
        rows = self.written.values()
        stacked = [x[0] if row.has_axis else x for x, row in zip(values, rows, strict=True)]
        if [x.shape for x in stacked] != [self._carried[i].shape[1:] for i in self.written]:
            raise _PartOfRow
        return stacked

    def _classify(self, place: int) -> None:
        body, program = self._body, self._step.evaluator.program
        argument, result = body.arguments[place], body.results[place]
        if place == self._counter.place or not self._has_a_row_each(place):
            return
        readers = [op for op in body.ops if argument in op.operands]
        is_captured = any(argument in op.captures for op in body.ops)
        if is_captured or not readers or body.results.count(argument) != (result == argument):
            return
        if result == argument:
            rows = [row_read(program, op) for op in readers]
            if all(row is not None and self._is_counted(row, argument) for row in rows) and all(
                self._is_whole(op, place) for op in readers
            ):
                self.arrays.append(place)
                for op, row in zip(readers, rows, strict=True):
                    assert row is not None
                    self._read[op.results[0]] = place, row
            return
        is_one = self._takes_written and len(readers) == 1
        row = row_written(program, readers[0]) if is_one else None
        if row is None or readers[0].results != (result,) or not self._is_counted(row, argument):
            return
        is_read = any(result in op.reads for op in body.ops)
        if not is_read and body.results.count(result) == 1:
            self.written[place] = row

    def _has_a_row_each(self, place: int) -> bool:
        value = self._carried[place]
        shape: tuple[Size, ...] = getattr(value, "shape", ())
        return bool(shape) and bool(shape[0] == self._counter.length)

    def _is_whole(self, op: Op, place: int) -> bool:
        """Whether the row that an op reads is whole, which the types of open sizes do not tell."""
        types = [t for t in (*op.types, *op.operand_types) if isinstance(t, TensorType)]
        if all(t.is_static for t in types):
            return True
        same = {i: x for i, x in enumerate(self._carried) if i not in self._changed}
        known = _known(self._step, self._body, same)
        for number, kind in zip(op.operands, op.operand_types, strict=True):
            if number not in known:  # the index
                assert isinstance(kind, TensorType)
                known[number] = np.zeros((), kind.dtype)
        array = as_array(self._carried[place])

        def row(array: PyTree) -> PyTree:
            given = {**known, self._body.arguments[place]: array}
            operands = tuple(given[number] for number in op.operands)
            return as_array(self._step.evaluator.results(op, operands, given)[0])

        return jax.eval_shape(row, array).shape in (array.shape[1:], (1, *array.shape[1:]))

    def _is_counted(self, row: Row, argument: int) -> bool:
        """Whether it is the row that a step counts, from the first or from the last one."""
        counted = self._body.arguments[self._counter.place]
        if row.array != argument or row.value == argument or self._counter.start != 0:
            return False
        return self._counts_down(row.index) if self.are_reversed else row.index == counted

    def _counts_down(self, index: int) -> bool:
        """Whether an index is `limit - counted - 1`."""
        definitions = self._step.evaluator.program.definitions
        last, rest = definitions.get(index), None
        if last is not None and last.name == "stablehlo.subtract":
            rest = definitions.get(last.operands[0])
        if last is None or rest is None or rest.name != "stablehlo.subtract":
            return False
        counted = self._body.arguments[self._counter.place]
        limit = self._step.environment.get(rest.operands[0])
        is_limit = rest.operands[0] == self._counter.limit or (
            is_known(limit) and as_sizes(limit) == (self._counter.length,)
        )
        return is_limit and rest.operands[1] == counted and _is_one(self._step, last.operands[1])
