"""Moves the ops of a special function into a function of the module, named as its primitive.

JAX writes a function such as digamma as some eighty ops, and the location of each names the
primitive "digamma". As a function of that name it is tried like those that JAX writes itself: one
that gives the bits of jax.lax.digamma becomes that primitive again, with its derivative, and with
the op that an engine has for it. Others stay the ops that they are.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence

from jax2tf._src.stablehlo.program import (
    Function,
    Op,
    Program,
    Region,
    TensorType,
    Type,
    called_computations,
    captures_of,
    needed,
    numbers_of,
    readers_of,
    renumbered,
)

# Primitives of one array, which gives the shape and the dtype of the result.
PRIMITIVES = frozenset(
    {
        *("acosh", "asinh", "atanh", "bessel_i0e", "bessel_i1e", "cosh", "digamma", "erf"),
        *("erf_inv", "erfc", "lgamma", "log2", "sinh", "tan"),
    }
)
# Those that JAX writes as many ops for complex numbers.
OF_COMPLEX = frozenset(
    {
        *("atan", "cos", "exp", "exp2", "log", "log1p", "log2", "logistic", "sin", "sqrt"),
    }
)
# The ops that they are made of.
ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "atan2", "broadcast_in_dim", "clamp", "compare", "complex"),
        *("constant", "convert", "cosine", "divide", "dynamic_broadcast_in_dim", "exponential"),
        *("exponential_minus_one", "floor", "imag", "is_finite", "log", "log_plus_one", "logistic"),
        *("maximum", "minimum", "multiply", "negate", "not", "or", "power", "real", "remainder"),
        *("rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    )
)
# Those that compute the shapes of their broadcasts.
_OF_SIZES = frozenset(
    f"stablehlo.{name}" for name in ("concatenate", "get_dimension_size", "reshape")
)
_CONSTANT = "stablehlo.constant"
_CONTROL_FLOW = ("stablehlo.case", "stablehlo.if", "stablehlo.while")
# A primitive that is one or two ops is read as these, if they have its derivative.
_FEWEST_OPS = 4
_OF_TWO_OPS = ("log2",)


def with_special_functions(program: Program) -> Program:
    """The program with calls in place of the ops of special functions."""
    if all(op.primitive not in PRIMITIVES | OF_COMPLEX for op in program.ops()):
        return program
    functions = {
        name: dataclasses.replace(function, body=_live(function.body))
        for name, function in program.functions.items()
    }
    pass_ = _Pass(Program(functions, program.definitions))
    computations = called_computations(program)
    functions |= {
        name: dataclasses.replace(function, body=pass_.region(function.body))
        for name, function in functions.items()
        if name not in computations
    }
    return Program.of(functions | pass_.made)


@dataclasses.dataclass(frozen=True)
class _Cone:
    """The ops that compute a value from one array.

    Attributes:
      ops: in their order; the last one gives the value.
      inputs: the numbers of what they read; the array is the last.
    """

    ops: Sequence[Op]
    inputs: Sequence[int]

    @functools.cached_property
    def types(self) -> Mapping[int, Type]:
        """The types of all that the ops read, by number."""
        return {
            number: kind
            for op in self.ops
            for number, kind in zip(op.operands, op.operand_types, strict=True)
        }

    @property
    def moved(self) -> Iterator[Op]:
        """The ops that nothing else reads."""
        return (op for op in self.ops if op.name != _CONSTANT)


class _Pass:
    def __init__(self, program: Program) -> None:
        self._readers = readers_of(program)
        self._functions, self._definitions = program.functions, program.definitions
        numbers = (n for f in program.functions.values() for n in numbers_of(f.body))
        self._next = itertools.count(1 + max(numbers, default=0))
        self._names = itertools.count()
        self.made: dict[str, Function] = {}

    def region(self, region: Region) -> Region:
        """The region with calls in it, and in those of its ops."""
        by_number = {op.results[0]: op for op in region.ops if len(op.results) == 1}
        calls: dict[int, Op] = {}
        gone: set[int] = set()
        for op in region.ops:
            cone = self._cone(op, by_number) if _may_be_last(op) else None
            if cone is not None:
                calls[op.results[0]] = self._call(cone)
                gone |= {each.results[0] for each in cone.moved}
        ops = []
        for op in region.ops:
            first = op.results[0] if op.results else None
            if first in calls:
                ops.append(calls[first])
            elif first not in gone:
                # The other regions combine elements, as `computations` do.
                regions = op.regions if op.name in _CONTROL_FLOW else ()
                inner = tuple(map(self.region, regions))
                ops.append(dataclasses.replace(op, regions=inner) if inner else op)
        captures = captures_of(region.arguments, ops, region.results)
        return dataclasses.replace(region, ops=tuple(ops), captures=captures)

    def _cone(self, last: Op, by_number: Mapping[int, Op]) -> _Cone | None:
        """The cone of a value that another primitive reads; None for another value."""
        if all(self._is_of(reader, last.primitive) for reader in self._readers_of(last)):
            return None
        found, inputs, pending = {last.results[0]: last}, dict[int, None](), [*last.operands]
        # Those of a loop may stand before the loop.
        constants: dict[int, Op] = {}
        while pending:
            number = pending.pop()
            op = self._definitions.get(number)
            if op is not None and op.name == _CONSTANT:
                constants[number] = op
            elif number not in by_number or not self._is_of(op, last.primitive):
                inputs[number] = None
            elif number not in found:
                found[number] = by_number[number]
                pending += by_number[number].operands
        ops = (op for number, op in by_number.items() if number in found)
        return self._checked(_Cone([*constants.values(), *ops], [*inputs]))

    def _checked(self, cone: _Cone) -> _Cone | None:
        last = cone.ops[-1]
        types = cone.types
        arrays = [n for n in cone.inputs if types[n] == last.types[0]]
        others = [n for n in cone.inputs if n not in arrays]
        are_sizes = all(
            isinstance(kind, TensorType) and kind.dtype.kind == "i"
            for kind in map(types.__getitem__, others)
        )
        fewest = 2 if last.primitive in _OF_TWO_OPS else _FEWEST_OPS
        if len(arrays) != 1 or not are_sizes or len([*cone.moved]) < fewest:
            return None
        inside = {op.results[0] for op in cone.ops}
        for op in cone.moved:
            readers = self._readers_of(op) if op is not last else []
            if any(reader is None or reader.results[0] not in inside for reader in readers):
                return None
        return _Cone(cone.ops, [*others, *arrays])

    def _call(self, cone: _Cone) -> Op:
        last = cone.ops[-1]
        name = self._name(last.primitive)
        given = tuple(cone.types[number] for number in cone.inputs)
        new = {number: next(self._next) for number in cone.inputs}
        ops = tuple(renumbered(cone.ops, new, self._next))
        arguments = tuple(new[number] for number in cone.inputs)
        body = Region(arguments, given, ops, (new[last.results[0]],), ())
        self.made[name] = Function(name, body, last.types)
        return dataclasses.replace(
            last,
            name="func.call",
            operands=tuple(cone.inputs),
            operand_types=given,
            attributes={"callee": name},
        )

    def _name(self, primitive: str) -> str:
        names = (f"{primitive}_{number}" for number in self._names)
        return next(name for name in names if name not in self._functions)

    def _readers_of(self, op: Op) -> Sequence[Op | None]:
        return self._readers.get(op.results[0], ())

    @staticmethod
    def _is_of(op: Op | None, primitive: str) -> bool:
        if op is None or op.primitive != primitive:
            return False
        return op.name in ELEMENTWISE or op.name in _OF_SIZES


def _live(region: Region) -> Region:
    """The region without ops that nothing needs, such as the shapes of broadcasts that are gone."""
    ops = (
        dataclasses.replace(op, regions=tuple(map(_live, op.regions))) if op.regions else op
        for op in needed(region, (), region.results)
    )
    return dataclasses.replace(region, ops=tuple(ops))


def _may_be_last(op: Op) -> bool:
    if op.name not in ELEMENTWISE or op.name == _CONSTANT or op.is_quantized:
        return False
    (result,) = op.types
    if not isinstance(result, TensorType):
        return False
    if result.dtype.kind == "c":
        return op.primitive in OF_COMPLEX
    return op.primitive in PRIMITIVES and result.dtype.kind not in "biu"
