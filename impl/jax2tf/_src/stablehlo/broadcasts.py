"""Takes out the broadcasts that JAX wrote for operands of different shapes.

JAX's primitives broadcast scalars and dimensions of size one. StableHLO's ops do not, so JAX writes
`broadcast_in_dim` before them. Without these, a loaded function has the equations of its source, in
which passes look for layer norms, softmaxes and other functions that engines have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src.stablehlo.program import (
    Function,
    Op,
    Program,
    Region,
    TensorType,
    Type,
    captures_of,
    numbers_of,
    regions_of,
)
from jax2tf._src.util.typing import PyTree

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
# Ops whose operands JAX broadcasts.
_OF_ELEMENTS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("add", "and", "atan2", "compare", "divide", "maximum", "minimum", "multiply", "or"),
        *("power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
        *("subtract", "xor"),
    )
)


def without_broadcasts(program: Program) -> Program:
    """The program with operands that JAX broadcasts, and without the broadcasts of them."""
    pass_ = _Pass(program)
    functions = {
        name: dataclasses.replace(function, body=pass_.region(function.body, {}))
        for name, function in program.functions.items()
    }
    used = {number for function in functions.values() for number in used_in(function.body)}
    functions = {name: _without_unused(function, used) for name, function in functions.items()}
    return Program.of(functions)


def used_in(region: Region) -> Iterator[int]:
    """The values that a region or an inner one reads or returns."""
    for each in regions_of(region):
        yield from each.results
        for op in each.ops:
            yield from op.operands


@dataclasses.dataclass(frozen=True)
class _Before:
    """A value before its broadcast."""

    number: int
    type: TensorType


class _Pass:
    def __init__(self, program: Program) -> None:
        self._next = 1 + max(
            (number for f in program.functions.values() for number in numbers_of(f.body)), default=0
        )

    def region(self, region: Region, around: Mapping[int, _Before]) -> Region:
        """The region; `around` has the broadcast values of the regions around it."""
        before = dict(around)
        ops: list[Op] = []
        for op in region.ops:
            inner = tuple(self.region(r, before) for r in op.regions)
            op = dataclasses.replace(op, regions=inner) if inner else op
            ops.append(_compact(op, before) if op.name in _OF_ELEMENTS else op)
            ops += self._scalars(op, before)
        captures = captures_of(region.arguments, ops, region.results)
        return dataclasses.replace(region, ops=tuple(ops), captures=captures)

    def _scalars(self, op: Op, before: dict[int, _Before]) -> list[Op]:
        """Notes what an op broadcasts; returns the constant that one of equal elements repeats."""
        if op.is_quantized:
            return []
        if op.name in _BROADCASTS and (found := _broadcast(op)) is not None:
            before[op.results[0]] = found
        if op.name != "stablehlo.constant" or not _repeats(op.attributes["value"]):
            return []
        (kind,) = op.types
        assert isinstance(kind, TensorType)
        scalar = TensorType((), kind.dtype)
        value = {"value": op.attributes["value"][(0,) * len(kind.shape)].reshape(())}
        number, self._next = self._next, self._next + 1
        before[op.results[0]] = _Before(number, scalar)
        return [dataclasses.replace(op, results=(number,), types=(scalar,), attributes=value)]


def _repeats(value: PyTree) -> bool:
    """Whether a constant is one element, repeated: so are those that `attributes` makes."""
    return value.size > 1 and not any(value.strides)


def _broadcast(op: Op) -> _Before | None:
    """The operand of a broadcast that repeats a scalar, or that keeps the rank."""
    kind, (result,) = op.operand_types[0], op.types
    assert isinstance(kind, TensorType)
    assert isinstance(result, TensorType)
    keeps_rank = tuple(op.attributes["broadcast_dimensions"]) == tuple(range(len(result.shape)))
    return _Before(op.operands[0], kind) if not kind.shape or keeps_rank else None


def _compact(op: Op, before: Mapping[int, _Before]) -> Op:
    """The op with operands before their broadcasts, as long as these give the result's shape."""
    places = [i for i, number in enumerate(op.operands) if number in before]
    for chosen in (places, *([i] for i in places)):
        operands, types = list(op.operands), list(op.operand_types)
        for i in chosen:
            operands[i], types[i] = before[op.operands[i]].number, before[op.operands[i]].type
        kept = [i not in chosen for i in range(len(operands))]
        if chosen and _gives(types, kept, op.types[0]):
            return dataclasses.replace(op, operands=tuple(operands), operand_types=tuple(types))
    return op


def _gives(types: Sequence[Type], kept: Sequence[bool], result: Type) -> bool:
    """Whether operands give the shape of a result: one that is not compact does, open or not."""
    assert isinstance(result, TensorType)
    if any(kept):
        return True
    shapes = [
        tuple(n for n in t.shape if n is not None) for t in types if isinstance(t, TensorType)
    ]
    is_static = all(isinstance(t, TensorType) and t.is_static for t in types)
    return is_static and np.broadcast_shapes(*shapes) == result.shape


def _without_unused(function: Function, used: set[int]) -> Function:
    return dataclasses.replace(function, body=_kept(function.body, used))


def _kept(region: Region, used: set[int]) -> Region:
    droppable = (*_BROADCASTS, "stablehlo.constant")
    ops = tuple(
        dataclasses.replace(op, regions=tuple(_kept(inner, used) for inner in op.regions))
        if op.regions
        else op
        for op in region.ops
        if op.name not in droppable or not used.isdisjoint(op.results)
    )
    return dataclasses.replace(region, ops=ops)
