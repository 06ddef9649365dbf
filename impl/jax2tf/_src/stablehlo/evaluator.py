"""Evaluates a program with jax.lax: each op by its rule, each function once for each signature.

A value is a jax.Array or tracer, a NumPy array (a constant), `Sizes` (sizes of open dimensions), a
tuple, or `TOKEN`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import numpy as np

from jax2tf._src.stablehlo import quantized, registry
from jax2tf._src.stablehlo.broadcasts import used_in, without_broadcasts
from jax2tf._src.stablehlo.errors import refused
from jax2tf._src.stablehlo.jax_functions import FunctionsOfJax
from jax2tf._src.stablehlo.known import Sizes, as_sizes, fold, fold_call, is_known
from jax2tf._src.stablehlo.program import (
    Op,
    Program,
    Region,
    TensorType,
    TokenType,
    needed,
    ops_of,
    readers_of,
    regions_of,
)
from jax2tf._src.stablehlo.special_functions import with_special_functions
from jax2tf._src.stablehlo.unnamed_functions import with_unnamed_functions
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import HloValue as Value
from jax2tf._src.util.typing import PyTree

TOKEN = object()
_FUNCTIONS_KEPT = 512


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Words:
    """Numbers of 64 bits while JAX has none: the low and the high word along the last dimension."""

    halves: Value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.halves.shape[:-1])


@dataclasses.dataclass(frozen=True)
class _Frozen:
    """A known operand as a key of a dictionary."""

    value: Value
    key: tuple[PyTree, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_traced(value: Value) -> bool:
    is_constant = isinstance(value, np.ndarray) and is_known(value)
    return isinstance(value, (jax.Array, np.ndarray, Words)) and not is_constant


def _frozen(value: Value) -> _Frozen:
    if isinstance(value, (Sizes, np.ndarray)):
        return _Frozen(value, (value.shape, str(value.dtype), as_sizes(value)))
    if isinstance(value, tuple):
        return _Frozen(value, tuple(_frozen(item) for item in value))
    assert value is TOKEN, value
    return _Frozen(value, ("token",))


def _functions_that_compute_shapes(program: Program) -> set[str]:
    """The functions with ops whose shapes depend on an operand, or that call such a function."""
    called = {
        name: {
            op.attributes.get("callee") or op.attributes.get("decomposition")
            for op in ops_of(function.body)
        }
        for name, function in program.functions.items()
    }
    found = {
        name
        for name, function in program.functions.items()
        if any(_computes_shapes(op) for op in ops_of(function.body))
    }
    while more := {name for name, others in called.items() if others & found} - found:
        found |= more
    return found


def _slices_of_one(region: Region) -> Iterator[tuple[Op, ...]]:
    """The slices of each value that a region slices, and those of inner regions."""
    for each in regions_of(region):
        by_value: dict[int, list[Op]] = {}
        for op in each.ops:
            if op.name in ("stablehlo.slice", "stablehlo.real_dynamic_slice"):
                by_value.setdefault(op.operands[0], []).append(op)
        yield from map(tuple, by_value.values())


def _computes_shapes(op: Op) -> bool:
    return any(isinstance(t, TensorType) and not t.is_static for t in op.types)


@dataclasses.dataclass(frozen=True)
class Step:
    """What a rule may ask: the op, its types, its regions as functions.

    Attributes:
      op: the op under way.
      evaluator: the evaluation that it belongs to.
      environment: the values of the region that the op stands in, by number.
    """

    op: Op
    evaluator: Evaluator
    environment: dict[int, Value]

    @property
    def result(self) -> TensorType:
        """The type of the first result."""
        return self.types[0]

    @property
    def types(self) -> tuple[TensorType, ...]:
        assert all(isinstance(t, TensorType) for t in self.op.types), self.op
        return self.op.types  # type: ignore[return-value]

    def definition(self, operand: int) -> Op | None:
        """The op that makes an operand; None for an argument."""
        return self.evaluator.program.definitions.get(self.op.operands[operand])

    def chain(self, operand: int, *names: str) -> list[Op] | None:
        """The ops of these names of which one reads the other, the first of which makes an
        operand; None if others make it. Each op but the last may have other operands.
        """
        found: list[Op] = []
        numbers: Sequence[int] = self.op.operands[operand : operand + 1]
        for name in names:
            made_by = map(self.evaluator.program.definitions.get, numbers)
            ops = [op for op in made_by if op is not None and op.name == f"stablehlo.{name}"]
            if len(ops) != 1 or not self.environment.keys() >= set(ops[0].operands):
                return None
            found += ops
            numbers = ops[0].operands
        return found

    def region(self, index: int) -> Callable[..., list[Value]]:
        """A region as a function of arrays: `region(*arguments) -> results`."""
        region = self.op.regions[index]
        captured = {number: self.environment[number] for number in region.captures}
        return lambda *arguments: self.evaluator.run(region, arguments, captured)

    def known(self, number: int) -> Value:
        """A value that is known, computed now if its op comes later; None for another."""
        value = self.environment.get(number)
        op = self.evaluator.program.definitions.get(number)
        if value is not None or op is None:
            return value
        if op.name == "stablehlo.constant":
            return op.attributes["value"]
        operands = [self.known(operand) for operand in op.operands]
        return fold(op, operands) if all(map(is_known, operands)) else None

    def give(self, op: Op, value: Value) -> None:
        """Gives the result of an op that comes later, which is then not evaluated."""
        self.environment[op.results[0]] = value

    def call(self, name: str, *operands: Value) -> list[Value]:
        """The results of a function of the module."""
        return self.evaluator.call(name, operands)

    def apply(
        self, rule: registry.Rule, operands: Sequence[Value], attributes: Mapping[str, PyTree]
    ) -> PyTree:
        """What a rule gives for these operands; attributes that it does not know are refused."""
        try:
            keywords = registry.keywords(rule, attributes)
        except LookupError as error:
            raise self.refused(error.args[0], _REPORT) from error
        arrays = operands if getattr(rule, "takes_sizes", False) else map(as_array, operands)
        return rule(self, *arrays, **keywords)

    def sizes(self, value: Value, what: str) -> tuple[Size, ...]:
        """The elements of a known operand, such as a shape; `what` names it in the refusal."""
        if not is_known(value):
            raise self.refused(
                f"its {what} depends on the values of arrays",
                "JAX's arrays have shapes that follow from the shapes of the arguments; write the "
                "model so that the size is an argument's size",
            )
        return as_sizes(value)

    def refused(self, reason: str, remedy: str) -> Exception:
        """The error for a use of the op that has no counterpart in JAX."""
        return refused(self.op, reason, remedy)


class Evaluator:
    """Evaluates the functions of one program.

    Attributes:
      program: the program.
      outside: the functions that its custom calls of TensorFlow name by index.
      slices: the slices of one value in a region, by the result of each.
      used: the values that an op reads, or a region returns.
    """

    def __init__(
        self, program: Program, outside: Sequence[Callable[..., Sequence[Value]]] = ()
    ) -> None:
        given = program.functions.keys()
        program = with_special_functions(without_broadcasts(program))
        self.program = program = with_unnamed_functions(program)
        self._moved = program.functions.keys() - given
        self.outside = outside
        self.slices = {
            op.results[0]: slices
            for function in program.functions.values()
            for slices in _slices_of_one(function.body)
            for op in slices
        }
        self._computes_shapes = _functions_that_compute_shapes(program)
        self.used = {
            number for function in program.functions.values() for number in used_in(function.body)
        }
        self._compiled: Lru[Callable[..., list[Value]]] = Lru(_FUNCTIONS_KEPT)
        self._of_jax = FunctionsOfJax(program, self.main)

    @functools.cached_property
    def readers(self) -> Mapping[int, list[Op | None]]:
        """The ops that read each value; None stands for a region that returns it."""
        return readers_of(self.program)

    def main(self, name: str, operands: Sequence[Value]) -> list[Value]:
        """The results of a function, evaluated here."""
        return self.run(self.program.functions[name].body, operands, {})

    def call(self, name: str, operands: Sequence[Value]) -> list[Value]:
        """Calls a function as a jitted one, traced once for each signature and for each value of
        its known operands, which it may use as shapes.
        """
        function = self.program.functions[name]
        if all(not _is_traced(x) for x in operands):
            folded = fold_call(function, operands)
            # What the function computes stays known.
            return self.main(name, operands) if folded is None else [folded]
        if (of_jax := self._of_jax.find(name, operands)) is not None:
            return [of_jax(operands)]
        if name in self._moved:
            return self.main(name, operands)
        static = tuple(
            self._frozen(name, place, x)
            for place, x in zip(function.body.arguments, operands, strict=True)
        )
        arrays = [x for x, frozen in zip(operands, static, strict=True) if frozen is None]
        compiled = self._compiled.value((name, static), lambda: self._compile(name, static))
        results = iter(compiled(*arrays))
        return [TOKEN if isinstance(t, TokenType) else next(results) for t in function.types]

    def _frozen(self, name: str, argument: int, operand: Value) -> _Frozen | None:
        """The key of an operand for which a function is traced; None for an array."""
        if argument not in self.used:
            return _Frozen(None, ())
        if not isinstance(operand, (jax.Array, np.ndarray, Words)):
            return _frozen(operand)
        is_static = name in self._computes_shapes and is_known(operand)
        return _frozen(operand) if is_static else None

    def _compile(self, name: str, static: tuple[_Frozen | None, ...]) -> Callable[..., list[Value]]:
        body = self.program.functions[name].body

        def function(*arrays: Value) -> list[Value]:
            rest = iter(arrays)
            operands = [next(rest) if frozen is None else frozen.value for frozen in static]
            return [as_array(x) for x in self.run(body, operands, {}) if x is not TOKEN]

        function.__name__ = function.__qualname__ = name.replace(".", "_")
        return jax.jit(function)

    def run(
        self, region: Region, arguments: Sequence[Value], captured: Mapping[int, Value]
    ) -> list[Value]:
        """The values that a region returns."""
        environment = {**captured, **dict(zip(region.arguments, arguments, strict=True))}
        self._evaluate(region.ops, environment)
        return [environment[number] for number in region.results]

    def values(
        self, region: Region, known: Mapping[int, Value], wanted: Sequence[int]
    ) -> list[Value]:
        """Some values of a region, of which others are known; only the ops that these need run."""
        environment = dict(known)
        self._evaluate(needed(region, environment.keys(), wanted), environment)
        return [environment[number] for number in wanted]

    def _evaluate(self, ops: Sequence[Op], environment: dict[int, Value]) -> None:
        for op in ops:
            if op.results and op.results[0] in environment:
                continue
            operands = tuple(environment[number] for number in op.operands)
            results = self.results(op, operands, environment)
            environment.update(zip(op.results, results, strict=True))

    def results(
        self, op: Op, operands: tuple[Value, ...], environment: dict[int, Value]
    ) -> list[Value]:
        """The results of one op."""
        if op.is_quantized and not quantized.moves_integers(op):
            return self._in_floats(op, operands, environment)
        folded = fold(op, operands)
        if folded is not None:
            return [folded]
        step = Step(op, self, environment)
        if not jax.config.read("jax_enable_x64"):
            _check_that_32_bits_do(step)
        rule = registry.OPS.get(op.name)
        if rule is None:
            raise step.refused("it has no counterpart in jax.lax", "write the model without it")
        return listed(step.apply(rule, operands, op.attributes))

    def _in_floats(
        self, op: Op, operands: tuple[Value, ...], environment: dict[int, Value]
    ) -> list[Value]:
        """The results of an op of quantized tensors, which the specification defines as those of
        floats, quantized.
        """
        floats = tuple(map(quantized.dequantize, map(as_array, operands), op.operand_types))
        results = self.results(quantized.of_floats(op), floats, environment)
        return list(map(quantized.quantize, results, op.types))


def _check_that_32_bits_do(step: Step) -> None:
    """Refuses to compute in 32 bits what the program computes in 64.

    JAX itself writes integers of 64 bits without jax_enable_x64: counters of random bits, sizes.
    """
    for result in step.op.types:
        if not isinstance(result, TensorType) or result.dtype.itemsize < 8:
            continue
        if result.dtype.kind in "iu" and step.op.name != "stablehlo.convert":
            continue
        if result.dtype != np.complex64:
            raise step.refused(
                f"it computes in {result.dtype}, which JAX has only with 64 bits",
                'jax.config.update("jax_enable_x64", True) before the call',
            )


_REPORT = "write the file with another version of its writer, or report the op"


def as_array(value: Value) -> Value:
    """Sizes as an array; other values as they are."""
    return value.as_array() if isinstance(value, Sizes) else value


def takes_sizes(rule: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Marks a rule that reads known operands, such as the shape of a dynamic reshape."""
    rule.takes_sizes = True  # type: ignore[attr-defined]
    return rule


def listed(results: PyTree) -> list[Value]:
    """The results of a rule as a list."""
    return results if isinstance(results, list) else [results]
