"""Moves the ops of special functions that no location names into functions of the module.

JAX writes igamma as two loops and some hundred ops, each under the name of its own primitive. A
selection of NaN is their last. What such a function is, is asked where its derivative is taken.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from jax2tf._src.stablehlo.parts import Frontier, Part, Search, constant, is_special_loop
from jax2tf._src.stablehlo.program import (
    Function,
    Op,
    Program,
    Region,
    TensorType,
    called_computations,
    captures_of,
    numbers_of,
    readers_of,
    renumbered,
)

# The name of the functions with loops. The function of a name and TRIED gives the value, the arrays
# and the floats that are computed from constants, from as few arrays as it takes.
WITH_LOOPS, TRIED = "special_function_with_loops", ".tried"
_BESSEL, _LIMIT_OF_BESSEL = "bessel_i0e", 8.0
_CONTROL_FLOW = ("stablehlo.case", "stablehlo.if", "stablehlo.while")


def with_unnamed_functions(program: Program) -> Program:
    """The program with calls in place of the ops of such functions."""
    # The constants of bessel_i0e have its name.
    has_bessel = any(op.primitive == _BESSEL for op in program.ops())
    if not has_bessel and not any(map(is_special_loop, program.ops())):
        return program
    pass_ = _Pass(program, has_bessel=has_bessel)
    computations = called_computations(program)
    functions = {
        name: dataclasses.replace(function, body=pass_.region(function.body))
        for name, function in program.functions.items()
        if name not in computations
    }
    return Program.of({**program.functions, **functions, **pass_.made})


@dataclasses.dataclass(frozen=True)
class _Found:
    """A part of a region, the ops that it replaces by their places, and its last op."""

    frontier: Frontier
    part: Part
    gone: set[int]
    last: int


class _Pass:
    def __init__(self, program: Program, *, has_bessel: bool) -> None:
        self._readers, self._definitions = readers_of(program), program.definitions
        self._functions, self._has_bessel = program.functions, has_bessel
        numbers = (n for f in program.functions.values() for n in numbers_of(f.body))
        self._next = itertools.count(1 + max(numbers, default=0))
        self._names = itertools.count()
        self.made: dict[str, Function] = {}

    def region(self, region: Region) -> Region:
        """The region with calls in it, and in those of its ops."""
        ops = list(map(self._with_inner, region.ops))
        last = [op.results[0] for op in ops if self._may_be_last(op)]
        search = self._search(ops if last else [])
        for number in last:
            place = next(i for i, op in enumerate(ops) if number in op.results)
            is_bessel = self._ends_bessel(ops[place])
            found = self._found(search, place, is_bessel=is_bessel)
            if found is not None:
                call = self._call(search, found, is_bessel=is_bessel)
                ops = [
                    call if i == found.last else op
                    for i, op in enumerate(ops)
                    if i == found.last or i not in found.gone
                ]
                search = self._search(ops)
        captures = captures_of(region.arguments, ops, region.results)
        return dataclasses.replace(region, ops=tuple(ops), captures=captures)

    def _search(self, ops: Sequence[Op]) -> Search:
        return Search(ops, self._definitions, self._readers)

    def _with_inner(self, op: Op) -> Op:
        if op.name not in _CONTROL_FLOW:
            return op
        return dataclasses.replace(op, regions=tuple(map(self.region, op.regions)))

    def _may_be_last(self, op: Op) -> bool:
        if op.name != "stablehlo.select" or op.is_quantized:
            return False
        return self._ends_bessel(op) or self._selects_nan(op)

    def _selects_nan(self, op: Op) -> bool:
        value = constant(self._definitions, op.operands[1])
        if value is None or value.dtype.kind in "biu" or not value.size:
            return False
        return bool(np.all(value != value))

    def _ends_bessel(self, op: Op) -> bool:
        """Whether an op selects one of two series by `x <= 8`."""
        test = self._definitions.get(op.operands[0])
        if not self._has_bessel or test is None or test.name != "stablehlo.compare":
            return False
        limit = constant(self._definitions, test.operands[1])
        is_limit = limit is not None and limit.size > 0 and np.all(limit == _LIMIT_OF_BESSEL)
        return bool(is_limit) and test.attributes["comparison_direction"] == "LE"

    def _found(self, search: Search, place: int, *, is_bessel: bool) -> _Found | None:
        """The part that a selection ends; None if it is no function with loops, nor bessel_i0e."""
        if not is_bessel and min(search.loops, default=place) >= place:
            return None
        frontier: Frontier | None = search.start(place)
        kind = search.ops[place].types[0]
        assert isinstance(kind, TensorType)
        while frontier is not None and not (
            search.are_of(frontier.arrays, kind.dtype)
            and _is_done(search, frontier, is_bessel=is_bessel)
        ):
            frontier = search.follow(frontier)
        if frontier is None or not frontier.arrays:
            return None
        if is_bessel:
            frontier = search.before(frontier, "stablehlo.abs", kind.dtype)
            if frontier is None:
                return None
        frontier, last = _with_conversions(search, frontier, place)
        part = search.part(frontier, last)
        gone = search.read_by_no_other(part)
        kind = search.ops[last].types[0]
        assert isinstance(kind, TensorType)
        is_whole = search.loops.intersection(frontier.inside) <= gone
        fits = is_whole and search.are_of(part.arrays, kind.dtype)
        return _Found(frontier, part, gone, last) if fits else None

    def _call(self, search: Search, found: _Found, *, is_bessel: bool) -> Op:
        part = found.part
        (result,) = part.ops[-1].results
        name = self._name(_BESSEL if is_bessel else WITH_LOOPS)
        self.made[name] = self._function(search, name, part, [result])
        if not is_bessel:
            tried = search.part(search.fewest(found.frontier), found.last)
            given = [result, *part.arrays, *search.computed(part)]
            self.made[name + TRIED] = self._function(search, name + TRIED, tried, given)
        return dataclasses.replace(
            part.ops[-1],
            name="func.call",
            operands=tuple(part.inputs),
            operand_types=tuple(map(search.type_of, part.inputs)),
            attributes={"callee": name},
        )

    def _function(self, search: Search, name: str, part: Part, results: Sequence[int]) -> Function:
        new = {number: next(self._next) for number in part.inputs}
        arguments = tuple(new.values())
        ops = tuple(renumbered(part.ops, new, self._next))
        types = tuple(map(search.type_of, part.inputs))
        body = Region(arguments, types, ops, tuple(new[number] for number in results), ())
        return Function(name, body, tuple(map(search.type_of, results)))

    def _name(self, base: str) -> str:
        names = (f"{base}_{number}" for number in self._names)
        return next(name for name in names if name not in self._functions)


def _is_done(search: Search, frontier: Frontier, *, is_bessel: bool) -> bool:
    """Whether the arrays may be the operands: betainc, of one loop, has three, and others two."""
    if is_bessel:
        return len(frontier.arrays) < 2
    loops = search.loops.intersection(frontier.inside)
    most = 3 if len(loops) == 1 else 2
    return bool(loops) and len(frontier.arrays) <= most and not search.has_loop(frontier)


def _with_conversions(search: Search, frontier: Frontier, last: int) -> tuple[Frontier, int]:
    """A part with the conversions around it, where JAX computes in float32 for a smaller dtype."""
    place = search.converted(last)
    if place is None:
        return frontier, last
    kind = search.ops[place].types[0]
    assert isinstance(kind, TensorType)
    before = search.before(frontier, "stablehlo.convert", kind.dtype)
    if before is None:
        return frontier, last
    return dataclasses.replace(before, inside=before.inside | {place}), place
