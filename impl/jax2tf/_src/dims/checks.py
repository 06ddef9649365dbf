"""Checks of what a trace assumed of dimension variables.

Sizes that are known when the function is converted are checked then. For other sizes the graph gets
two ops: an Assert, which says what is wrong, and a guard, whose operands have one shape only if the
assumption holds. XLA compiles an Assert to nothing, but it refuses operands of different shapes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jax2tf._src import compat
from jax2tf._src.dims.expressions import Size, Values, evaluate, evaluate_expression, parse
from jax2tf._src.dims.solving import Solution
from jax2tf._src.dims.specs import Assumptions, split_constraint
from jax2tf._src.util.lazy_imports import tf


class _Comparison(NamedTuple):
    """A comparison of ints and of tensors.

    `nearest` of both sides equals the right side if, and only if, the comparison holds.
    """

    of_ints: Callable[[int, int], bool]
    of_tensors: Callable[[Size, Size], tf.Tensor]
    nearest: Callable[[Size, Size], Size]


_COMPARISONS = {
    "==": _Comparison(operator.eq, lambda a, b: tf.equal(a, b), lambda left, right: left),
    ">=": _Comparison(
        operator.ge, lambda a, b: tf.greater_equal(a, b), lambda a, b: tf.minimum(a, b)
    ),
    "<=": _Comparison(operator.le, lambda a, b: tf.less_equal(a, b), lambda a, b: tf.maximum(a, b)),
}


@dataclass(frozen=True)
class _Assumption:
    """`left comparison right`, its words, and whether both sides are sizes and not negative."""

    left: Size
    comparison: str
    right: Size
    words: str
    is_of_sizes: bool = True

    @property
    def is_trivial(self) -> bool:
        """Whether both sides are the same tensor."""
        return self.left is self.right and not isinstance(self.left, int)


def check(
    solution: Solution,
    assumptions: Assumptions,
    function: str = "jax2tf.convert",
    *,
    at_run_time: bool = True,
) -> list[tf.Operation]:
    """Checks what the trace assumed; returns the checks that have to wait for the run.

    Args:
      solution: the dimension variables.
      assumptions: the constraints of the caller.
      function: the public function, for messages.
      at_run_time: False leaves out the checks that have to wait for the run.

    Raises:
      ValueError: known sizes contradict an assumption.
    """
    values = dict(solution.values)
    for name, dim in assumptions.definitions.items():
        if name not in values:
            values[name] = _defined(name, dim, solution.values, function)
    sources = {name: quotient.where for name, quotient in solution.quotients.items()}
    operations = []
    for assumption in _assumptions(solution, assumptions, values):
        if isinstance(assumption.left, int) and isinstance(assumption.right, int):
            _require(assumption, values, sources, function)
        elif at_run_time and not assumption.is_trivial:
            operations += _operations(assumption, values, sources, function)
    return operations


def _assumptions(
    solution: Solution, assumptions: Assumptions, values: Values
) -> Iterator[_Assumption]:
    for equation in solution.equations:
        dimension = evaluate_expression(parse(equation.dimension), values)
        words = f"{equation.where} should be {equation.dimension}"
        yield _Assumption(equation.size, "==", dimension, words)
    for name, quotient in solution.quotients.items():
        if not isinstance(quotient.denominator, int) or quotient.denominator != 1:
            words = f"dimension variable {name} should be whole, as solved from {quotient.where}"
            yield _Assumption(quotient.numerator % quotient.denominator, "==", 0, words)
    for name, value in values.items():
        yield _Assumption(value, ">=", 1, f"dimension variable {name} should be at least 1")
    for constraint in assumptions.constraints:
        left, comparison, right = split_constraint(constraint)
        words = f"constraint {constraint} does not hold"
        sides = (evaluate_expression(parse(side), values) for side in (left, right))
        yield _Assumption(next(sides), comparison, next(sides), words, is_of_sizes=False)


def _defined(name: str, dim: object, values: Values, function: str) -> Size:
    try:
        return evaluate(dim, values)
    except KeyError:
        raise ValueError(
            f"{function}: polymorphic_constraints speak of dimension variable {name}, which the "
            "shape of no argument has; name it in polymorphic_shapes"
        ) from None


def _require(
    assumption: _Assumption, values: Values, sources: dict[str, str], function: str
) -> None:
    left, comparison, right = assumption.left, assumption.comparison, assumption.right
    if not _COMPARISONS[comparison].of_ints(left, right):
        shown = [" ".join(map(str, parts)) for parts in _shown(values, sources)]
        raise ValueError(
            f"{function}: {assumption.words}: {left} {comparison} {right} is false"
            + (f", with {', '.join(shown)}" if shown else "")
        )


def _operations(
    assumption: _Assumption, values: Values, sources: dict[str, str], function: str
) -> list[tf.Operation]:
    left, comparison, right = assumption.left, assumption.comparison, assumption.right
    holds = _COMPARISONS[comparison].of_tensors(left, right)
    words = f"{function}: {assumption.words}"
    shown = [part for parts in _shown(values, sources) for part in parts]
    data = [f"{words}:", left, comparison, right, "is false, with", *shown]
    asserted = tf.debugging.Assert(holds, data)
    with tf.control_dependencies([asserted]):
        return [asserted, _guard(assumption, words)]


def _guard(assumption: _Assumption, words: str) -> tf.Operation:
    """A stack of two arrays, whose shapes are equal only if the assumption holds.

    XLA's error names the op and both shapes, so the op's name holds the words of the assumption.
    """
    left, right = assumption.left, assumption.right
    if not assumption.is_of_sizes:
        left, right = left - right, 0
    with tf.name_scope(_op_name(words)):
        nearest = _COMPARISONS[assumption.comparison].nearest(left, right)
        guard = tf.stack([tf.fill([nearest], False), tf.fill([right], False)]).op
    # In a compiled graph a control dependency of a result on the guard does not keep it.
    compat.graphs.keep(guard)
    return guard


def _op_name(words: str) -> str:
    for sign, word in (("==", "is"), (">=", "at_least"), ("<=", "at_most"), ("*", "times")):
        words = words.replace(sign, word)
    return re.sub(r"[^A-Za-z0-9.]+", "_", words).strip("_")


def _shown(values: Values, sources: dict[str, str]) -> Iterator[list[Size]]:
    for name, value in values.items():
        yield [f"{name} =", value, *([f"({sources[name]})"] if name in sources else [])]
