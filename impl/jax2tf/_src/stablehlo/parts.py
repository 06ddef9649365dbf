"""Looks for the ops that compute a value from a few arrays.

JAX writes the ops of a function one after the other, after the ops of its operands. So the ops that
a value depends on are followed back, the latest one first, until they read a few arrays only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src.stablehlo.program import Op, TensorType, Type, numbers_of

_MOST_OPS = 800
_FEWEST_CARRIED = 4
_CONSTANT, _SIZE = "stablehlo.constant", "stablehlo.get_dimension_size"
_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
# Their elements differ, and are not those of an operand.
_SOURCES = ("stablehlo.iota", "stablehlo.dynamic_iota")


def is_special_loop(op: Op) -> bool:
    """Whether a loop carries what those of special functions do: some floats of one dtype, truth
    values, and at most a counter besides.
    """
    if op.name != "stablehlo.while" or not all(isinstance(t, TensorType) for t in op.types):
        return False
    dtypes = [t.dtype for t in op.types if isinstance(t, TensorType)]
    floats = [dtype for dtype in dtypes if _is_float(dtype)]
    others = [dtype.kind for dtype in dtypes if dtype.kind in "iuc"]
    are_floats = len(floats) >= _FEWEST_CARRIED and len({*floats}) == 1
    return are_floats and np.dtype(bool) in dtypes and others in ([], ["i"])


def constant(definitions: Mapping[int, Op], number: int) -> np.ndarray | None:
    """The elements of a constant, or of one that a value repeats; None for another value."""
    op = definitions.get(number)
    if op is not None and op.name in _BROADCASTS:
        op = definitions.get(op.operands[0])
    return op.attributes["value"] if op is not None and op.name == _CONSTANT else None


@dataclasses.dataclass(frozen=True)
class Part:
    """Ops that compute a value.

    Attributes:
      ops: in their order, after the constants that they read; the last one gives the value.
      sizes, arrays: the numbers of the integers and of the arrays that they read.
    """

    ops: Sequence[Op]
    sizes: Sequence[int]
    arrays: Sequence[int]

    @property
    def inputs(self) -> Sequence[int]:
        return (*self.sizes, *self.arrays)


@dataclasses.dataclass(frozen=True)
class Frontier:
    """The places of ops that are followed, and the numbers of the arrays that these read."""

    inside: frozenset[int]
    arrays: frozenset[int]


class Search:
    """Looks for parts of the ops of one region.

    Args:
      ops: the ops.
      definitions: the op of each value of the program.
      readers: the ops that read each value; None stands for a region that returns it.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        definitions: Mapping[int, Op],
        readers: Mapping[int, Sequence[Op | None]],
    ) -> None:
        self.ops = ops
        self._definitions, self._readers = definitions, readers
        self._places = {number: i for i, op in enumerate(ops) for number in op.results}
        self._types = dict(_types_of(ops))
        self.loops = frozenset(i for i, op in enumerate(ops) if is_special_loop(op))
        self._arrays: set[int] = set()
        for op in ops:
            if self._depends_on_arrays(op):
                self._arrays.update(op.results)

    def start(self, place: int) -> Frontier:
        """The frontier of one op."""
        return self._followed(Frontier(frozenset(), frozenset()), place)

    def follow(self, frontier: Frontier) -> Frontier | None:
        """Follows the op of the latest array; None if there is none, or if there were too many."""
        places = [place for place in map(self._place, frontier.arrays) if place is not None]
        if not places or len(frontier.inside) > _MOST_OPS:
            return None
        return self._followed(frontier, max(places))

    def has_loop(self, frontier: Frontier) -> bool:
        """Whether a special loop gives an array of the frontier."""
        return not self.loops.isdisjoint(map(self._place, frontier.arrays))

    def before(self, frontier: Frontier, name: str, dtype: np.dtype) -> Frontier | None:
        """The frontier before the ops that give its arrays; None if one has another name, or does
        not read that dtype.
        """
        places = [*map(self._place, frontier.arrays)]
        for place in places:
            if place is None or self.ops[place].name != name:
                return None
            if self._dtype(self.ops[place].operands[0]) != dtype:
                return None
        for place in {place for place in places if place is not None}:
            frontier = self._followed(frontier, place)
        return frontier

    def fewest(self, frontier: Frontier) -> Frontier:
        """The frontier without the arrays that are computed from its others."""
        while (before := self.follow(frontier)) is not None and before.arrays < frontier.arrays:
            frontier = before
        return frontier

    def converted(self, place: int) -> int | None:
        """The place of a conversion that is the only op to read a result; None without one."""
        readers = self._readers.get(self.ops[place].results[0], ())
        only = readers[0] if len(readers) == 1 else None
        if only is None or only.name != "stablehlo.convert":
            return None
        return self._places.get(only.results[0])

    def part(self, frontier: Frontier, last: int) -> Part:
        """The ops from a frontier to one of them."""
        places, numbers = {*frontier.inside}, dict[int, None]()
        constants, sizes = dict[int, Op](), dict[int, None]()
        pending = [number for place in places for number in self.ops[place].reads]
        while pending:
            number = pending.pop()
            op = self._definitions.get(number)
            place = self._places.get(number)
            if number in frontier.arrays or number in numbers:
                continue
            numbers[number] = None
            if op is not None and op.name == _CONSTANT:
                constants[number] = op
            elif place is None or op is None or op.name == _SIZE:
                sizes[number] = None
            elif place not in places:
                places.add(place)
                pending += op.reads
        ops = [self.ops[place] for place in sorted(places - {last})]
        ops = [op for op in ops if op.name != _CONSTANT]
        return Part([*constants.values(), *ops, self.ops[last]], [*sizes], sorted(frontier.arrays))

    def read_by_no_other(self, part: Part) -> set[int]:
        """The places of the ops of a part that only the others read, and that of its last op."""
        places = {self._places[op.results[0]] for op in part.ops if op.name != _CONSTANT}
        last = self._places[part.ops[-1].results[0]]
        gone, numbers = {last}, self._made_by(last)
        for place in sorted(places - {last}, reverse=True):
            readers = (r for n in self.ops[place].results for r in self._readers.get(n, ()))
            if all(reader is not None and reader.results[0] in numbers for reader in readers):
                gone.add(place)
                numbers |= self._made_by(place)
        return gone

    def computed(self, part: Part) -> list[int]:
        """The values of the result's dtype that a part computes from constants only."""
        numbers = (op.results[0] for op in part.ops if op.name != _CONSTANT)
        dtype = self._dtype(part.ops[-1].results[0])
        return [n for n in numbers if not self._is_array(n) and self._dtype(n) == dtype]

    def are_of(self, numbers: Iterable[int], dtype: np.dtype) -> bool:
        """Whether values have a dtype."""
        return all(self._dtype(number) == dtype for number in numbers)

    def type_of(self, number: int) -> Type:
        return self._types[number]

    def _made_by(self, place: int) -> set[int]:
        """The values that an op and those of its regions make."""
        op = self.ops[place]
        return {*op.results, *(n for region in op.regions for n in numbers_of(region))}

    def _dtype(self, number: int) -> np.dtype | None:
        kind = self._types[number]
        return kind.dtype if isinstance(kind, TensorType) else None

    def _place(self, number: int) -> int | None:
        """The place of the op that computes a value; None for an argument, and for constants."""
        place = self._places.get(number)
        is_given = place is None or self.ops[place].name in (_CONSTANT, *_SOURCES)
        return None if is_given else place

    def _followed(self, frontier: Frontier, place: int) -> Frontier:
        op = self.ops[place]
        arrays = {number for number in op.reads if self._is_array(number)}
        left = frontier.arrays | arrays - {*op.results}
        return Frontier(frontier.inside | {place}, frozenset(left - {*op.results}))

    def _is_array(self, number: int) -> bool:
        """Whether a value depends on arrays, and not only on constants and sizes."""
        if number in self._places:
            return number in self._arrays
        op = self._definitions.get(number)
        if op is not None and op.name == _CONSTANT:
            return _differs(op)
        dtype = self._dtype(number)
        return dtype is None or dtype.kind not in "iu"

    def _depends_on_arrays(self, op: Op) -> bool:
        if op.name == _CONSTANT:
            return _differs(op)
        if op.name == _SIZE:
            return False
        if op.name in _SOURCES or not (op.operands or op.regions):
            return True
        return any(map(self._is_array, op.reads)) or self._makes_floats_of_integers(op)

    def _makes_floats_of_integers(self, op: Op) -> bool:
        """Whether an op makes floats of integers that are no constants, such as of an argument."""
        kind = op.types[0] if op.types else None
        if not isinstance(kind, TensorType) or not _is_float(kind.dtype):
            return False
        dtypes = [self._dtype(number) for number in op.operands]
        given = [
            number
            for number, dtype in zip(op.operands, dtypes, strict=True)
            if dtype is not None and dtype.kind in "iu" and not self._is_constant(number)
        ]
        return bool(given) and op.name not in _BROADCASTS and op.name != "stablehlo.dynamic_reshape"

    def _is_constant(self, number: int) -> bool:
        return constant(self._definitions, number) is not None


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind not in "biuc"


def _differs(op: Op) -> bool:
    """Whether a constant has different elements."""
    value = op.attributes["value"]
    return value.size > 1 and any(value.strides) and bool((value != value.flat[0]).any())


def _types_of(ops: Collection[Op]) -> Iterator[tuple[int, Type]]:
    for op in ops:
        yield from zip(op.operands, op.operand_types, strict=True)
        yield from zip(op.results, op.types, strict=True)
