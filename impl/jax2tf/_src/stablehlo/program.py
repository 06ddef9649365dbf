"""A StableHLO module as plain data: what the rules read, without MLIR's objects.

MLIR's objects belong to a context that one thread may use. A program is read once, and evaluated
at each trace, in any thread.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src.util.typing import PyTree


@dataclasses.dataclass(frozen=True)
class Quantization:
    """How integers stand for floats: `(integer - zero_point) * scale`.

    Attributes:
      expressed: the dtype of the floats.
      scales, zero_points: one for all elements, or one for each index along an axis.
      axis: that axis; None for one scale.
      lowest, highest: the integers that are used.
    """

    expressed: np.dtype
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    lowest: int
    highest: int

    def is_same(self, other: Quantization) -> bool:
        """Whether an integer stands for the same float, along whatever axis."""
        return dataclasses.replace(self, axis=None) == dataclasses.replace(other, axis=None)


@dataclasses.dataclass(frozen=True)
class TensorType:
    """A tensor's shape and dtype. A size that is not known when the file is written is None.

    A quantized tensor has the dtype of its integers.
    """

    shape: tuple[int | None, ...]
    dtype: np.dtype
    quantization: Quantization | None = None

    @property
    def is_static(self) -> bool:
        return None not in self.shape

    def __str__(self) -> str:
        sizes = "".join(f"{'?' if size is None else size}x" for size in self.shape)
        return f"tensor<{sizes}{self.dtype}>"


@dataclasses.dataclass(frozen=True)
class TokenType:
    """The type of a value that only orders effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclasses.dataclass(frozen=True)
class TupleType:
    """The type of a tuple of values."""

    types: tuple[Type, ...]


Type = TensorType | TokenType | TupleType


@dataclasses.dataclass(frozen=True)
class Region:
    """Ops in order. Values have numbers, which are unique in a module.

    Attributes:
      arguments, types: the numbers of the arguments, and their types.
      results: the numbers of the values that the region returns.
      captures: the values of enclosing regions that its ops use.
    """

    arguments: tuple[int, ...]
    types: tuple[Type, ...]
    ops: tuple[Op, ...]
    results: tuple[int, ...]
    captures: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Op:
    """One op.

    Attributes:
      name: as in "stablehlo.add".
      operands, results: numbers of values.
      operand_types, types: the types of the operands and of the results.
      attributes: Python values by name.
      regions: the ops that it calls.
      location: the file and the line that the module names for it; "" without one.
      primitive: the last part of the scope that the module names for it, as in "jit(f)/lgamma":
        of JAX's modules, the primitive that it was made for. "" without one.
    """

    name: str
    operands: tuple[int, ...]
    operand_types: tuple[Type, ...]
    results: tuple[int, ...]
    types: tuple[Type, ...]
    attributes: Mapping[str, PyTree]
    regions: tuple[Region, ...]
    location: str = ""
    primitive: str = ""

    @property
    def captures(self) -> Iterator[int]:
        """The values from around its regions that these read."""
        return (number for region in self.regions for number in region.captures)

    @property
    def is_quantized(self) -> bool:
        """Whether an operand or a result is quantized."""
        return any(getattr(t, "quantization", None) for t in (*self.operand_types, *self.types))

    @property
    def reads(self) -> Iterator[int]:
        """Its operands, and what its regions capture."""
        return itertools.chain(self.operands, self.captures)


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of a module: its body, and the types of its results."""

    name: str
    body: Region
    types: tuple[Type, ...]


@dataclasses.dataclass(frozen=True)
class Program:
    """A module: its functions by name, and which op makes each value."""

    functions: Mapping[str, Function]
    definitions: Mapping[int, Op]

    @classmethod
    def of(cls, functions: Mapping[str, Function]) -> Program:
        """The module of these functions."""
        bodies = (function.body for function in functions.values())
        ops = itertools.chain.from_iterable(map(ops_of, bodies))
        return cls(functions, {number: op for op in ops for number in op.results})

    def ops(self) -> Iterator[Op]:
        """Every op, those of inner regions too."""
        for function in self.functions.values():
            yield from ops_of(function.body)


def captures_of(
    arguments: Sequence[int], ops: Sequence[Op], results: Sequence[int]
) -> tuple[int, ...]:
    """The values from around a region that its ops read, or that it returns, in their order."""
    inside = {*arguments, *(number for op in ops for number in op.results)}
    used = (*(number for op in ops for number in op.reads), *results)
    return tuple(dict.fromkeys(number for number in used if number not in inside))


def regions_of(region: Region) -> Iterator[Region]:
    """A region, and those of its ops and of the ops within."""
    yield region
    for op in region.ops:
        for inner in op.regions:
            yield from regions_of(inner)


def ops_of(region: Region) -> Iterator[Op]:
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from ops_of(inner)


def numbers_of(region: Region) -> Iterator[int]:
    """The values that a region and those within take and make."""
    for each in regions_of(region):
        yield from each.arguments
        for op in each.ops:
            yield from op.results


def readers_of(program: Program) -> Mapping[int, list[Op | None]]:
    """The ops that read each value, in regions too; None stands for a region that returns it."""
    readers: dict[int, list[Op | None]] = {}
    for function in program.functions.values():
        for region in regions_of(function.body):
            for number in region.results:
                readers.setdefault(number, []).append(None)
            for op in region.ops:
                for number in dict.fromkeys(op.operands):
                    readers.setdefault(number, []).append(op)
    return readers


def called_computations(program: Program) -> set[str]:
    """The functions that combine the elements of an array, into which rules look."""
    return {name for op in program.ops() for name in op.attributes.get("called_computations", ())}


def renumbered(ops: Sequence[Op], new: dict[int, int], numbers: Iterator[int]) -> Iterator[Op]:
    """The ops with other numbers: `new` has those of what they read, and gets those of what they
    make.
    """
    for op in ops:
        operands = tuple(new[number] for number in op.operands)
        regions = tuple(_renumbered(region, new, numbers) for region in op.regions)
        new.update((number, next(numbers)) for number in op.results)
        results = tuple(new[number] for number in op.results)
        yield dataclasses.replace(op, operands=operands, results=results, regions=regions)


def _renumbered(region: Region, new: dict[int, int], numbers: Iterator[int]) -> Region:
    new.update((number, next(numbers)) for number in region.arguments)
    ops = tuple(renumbered(region.ops, new, numbers))
    arguments, results, captures = (
        tuple(new[number] for number in each)
        for each in (region.arguments, region.results, region.captures)
    )
    return Region(arguments, region.types, ops, results, captures)


# Ops that have effects, or call what may have some.
_MAY_HAVE_EFFECTS = ("func.call", "stablehlo.call", "stablehlo.custom_call", "stablehlo.composite")


def needed(region: Region, known: Collection[int], wanted: Sequence[int]) -> list[Op]:
    """The ops that some values of a region need, where others are known, and those with effects."""
    missing = {number for number in wanted if number not in known}
    ops = []
    for op in reversed(region.ops):
        if op.results and all(number in known for number in op.results):
            continue
        has_effects = bool(op.regions) or not op.results or op.name in _MAY_HAVE_EFFECTS
        if has_effects or not missing.isdisjoint(op.results):
            ops.append(op)
            missing.update(number for number in op.reads if number not in known)
    return ops[::-1]
