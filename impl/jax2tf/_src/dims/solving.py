"""Dimension variables, solved from the shapes of the arguments.

They solve a system of linear equations. Its coefficients are known when the function is converted;
its right sides may be known only when the function runs.
"""

from __future__ import annotations

import fractions
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from jax2tf._src import ops
from jax2tf._src.dims.expressions import (
    Call,
    Expression,
    Size,
    evaluate_expression,
    parse,
    variables,
)
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim


@dataclass(frozen=True)
class Equation:
    """`dimension == size`, where `where` names the argument and the axis."""

    dimension: str
    size: Size
    where: str


@dataclass(frozen=True)
class Quotient:
    """The solution of one variable, from the equations that `where` names."""

    numerator: Size
    denominator: Size
    where: str


@dataclass(frozen=True)
class Solution:
    """The dimension variables, and the equations for them.

    Attributes:
      values: the value of each variable.
      quotients: the solution of each variable, before the division.
      equations: one for each dimension of each argument.
    """

    values: Mapping[str, Size]
    quotients: Mapping[str, Quotient]
    equations: Sequence[Equation]


def solve(
    shapes: Sequence[tuple[Dim, ...]],
    tensors: Sequence[Tensor],
    names: Callable[[int], str] = str,
    function: str = "jax2tf.convert",
) -> Solution:
    """The dimension variables of symbolic `shapes`, solved from the shapes of `tensors`.

    Args:
      shapes: for each tensor the symbolic shape that was traced.
      tensors: the arguments.
      names: gives the name of the i-th argument, for messages.
      function: the public function, for messages.

    Raises:
      ValueError: a variable cannot be solved.
    """
    equations = [
        Equation(str(dim), _actual_size(tensor, axis), f"{names(i)}.shape[{axis}]")
        for i, (shape, tensor) in enumerate(zip(shapes, tensors, strict=True))
        for axis, dim in enumerate(shape)
    ]
    pending = [e for e in equations if variables(parse(e.dimension))]
    unknowns = sorted({v for e in pending for v in variables(parse(e.dimension))})
    values: dict[str, Size] = {}
    quotients: dict[str, Quotient] = {}
    while missing := [v for v in unknowns if v not in values]:
        rows = [
            _Row(linear, e)
            for e in pending
            if (linear := _linear(parse(e.dimension), values)) is not None
        ]
        solved = _eliminate(rows, missing) or _divide(rows)
        if not solved:
            raise ValueError(
                f"{function}: cannot solve dimension variable {', '.join(missing)} from "
                + "; ".join(f"{e.where} == {e.dimension}" for e in pending)
                + ". Name it alone, or in a linear expression, as a dimension of an argument"
            )
        for name, quotient in solved.items():
            if _is_int(quotient.denominator) and not quotient.denominator:
                raise ValueError(
                    f"{function}: dimension variable {name} may have any value: its factor in "
                    f"{quotient.where} is 0, with {quotient.numerator} left on the other side"
                )
            values[name] = _quotient(quotient)
            quotients[name] = quotient
    return Solution(values, quotients, equations)


@dataclass(frozen=True)
class _Linear:
    """A linear form in variables without a value yet: their coefficients, and a known rest."""

    coefficients: Mapping[str, Size]
    rest: Size

    def times(self, factor: Size) -> _Linear:
        scaled = {v: _times(c, factor) for v, c in self.coefficients.items()}
        return _Linear(scaled, _times(self.rest, factor))

    def plus(self, other: _Linear) -> _Linear:
        a, b = self.coefficients, other.coefficients
        sums = {v: _plus(a.get(v, 0), b.get(v, 0)) for v in sorted({*a, *b})}
        nonzero = {v: c for v, c in sums.items() if not _is_int(c) or c}
        return _Linear(nonzero, _plus(self.rest, other.rest))


@dataclass(frozen=True)
class _Row:
    """An equation with its dimension as a linear form."""

    linear: _Linear
    equation: Equation


def _linear(expression: Expression, values: Mapping[str, Size]) -> _Linear | None:
    """`expression` as a linear form in the variables without a value, or None if it is not one."""
    if all(v in values for v in variables(expression)):
        return _Linear({}, evaluate_expression(expression, values))
    match expression:
        case str(name):
            return _Linear({name: 1}, 0)
        case Call("+" | "-" as sign, (left, right)):
            a, b = _linear(left, values), _linear(right, values)
            return a and b and a.plus(b if sign == "+" else b.times(-1))
        case Call("*", (left, right)):
            for factor, other in ((left, right), (right, left)):
                if all(v in values for v in variables(factor)):
                    form = _linear(other, values)
                    return form and form.times(evaluate_expression(factor, values))
    return None


def _divide(rows: Sequence[_Row]) -> dict[str, Quotient]:
    """The variables in equations of one variable, whose coefficient only the run may know."""
    solved: dict[str, Quotient] = {}
    for row in rows:
        if len(row.linear.coefficients) == 1:
            ((variable, coefficient),) = row.linear.coefficients.items()
            right_side = _plus(row.equation.size, _times(row.linear.rest, -1))
            solved.setdefault(variable, Quotient(right_side, coefficient, row.equation.where))
    return solved


def _eliminate(rows: Sequence[_Row], unknowns: Sequence[str]) -> dict[str, Quotient]:
    """Gauss-Jordan elimination on exact fractions, over the rows with known coefficients.

    Each combination of rows has the weights of the original rows in it.
    """
    matrix: list[_Combination] = [
        (
            {v: fractions.Fraction(c) for v, c in row.linear.coefficients.items()},
            {i: fractions.Fraction(1)},
        )
        for i, row in enumerate(rows)
        if row.linear.coefficients and all(map(_is_int, row.linear.coefficients.values()))
    ]
    pivots: set[int] = set()
    for variable in unknowns:
        candidates = [k for k, row in enumerate(matrix) if k not in pivots and row[0].get(variable)]
        if not candidates:
            continue
        # The simplest equation first: one with a single variable needs no arithmetic.
        k = min(candidates, key=lambda k: (len(matrix[k][0]), len(matrix[k][1])))
        pivots.add(k)
        pivot = matrix[k]
        matrix = [row if j == k else _without(row, pivot, variable) for j, row in enumerate(matrix)]
    solved: dict[str, Quotient] = {}
    for combined, origin in matrix:
        coefficients = {v: c for v, c in combined.items() if c}
        if len(coefficients) == 1:
            ((variable, coefficient),) = coefficients.items()
            weights = {i: w / coefficient for i, w in origin.items() if w}
            solved.setdefault(variable, _weighted(rows, weights))
    return solved


def _weighted(rows: Sequence[_Row], weights: Mapping[int, fractions.Fraction]) -> Quotient:
    denominator = math.lcm(*(w.denominator for w in weights.values()))
    terms = (
        _times(
            _plus(rows[i].equation.size, _times(rows[i].linear.rest, -1)),
            int(w * denominator),
        )
        for i, w in weights.items()
    )
    where = " and ".join(rows[i].equation.where for i in weights)
    return Quotient(functools.reduce(_plus, terms), denominator, where)


_Combination: TypeAlias = tuple[dict[str, fractions.Fraction], dict[int, fractions.Fraction]]


def _without(row: _Combination, pivot: _Combination, variable: str) -> _Combination:
    factor = row[0].get(variable, fractions.Fraction(0)) / pivot[0][variable]
    if not factor:
        return row
    return _minus(row[0], factor, pivot[0]), _minus(row[1], factor, pivot[1])


_Key = TypeVar("_Key")


def _minus(
    a: dict[_Key, fractions.Fraction], factor: fractions.Fraction, b: dict[_Key, fractions.Fraction]
) -> dict[_Key, fractions.Fraction]:
    zero = fractions.Fraction(0)
    return {k: a.get(k, zero) - factor * b.get(k, zero) for k in {*a, *b}}


# Sizes may be tensors of a graph, where adding 0 or multiplying by 1 would be an op.


def _plus(a: Size, b: Size) -> Size:
    if _is_int(b) and b == 0:
        return a
    return b if _is_int(a) and a == 0 else a + b


def _times(size: Size, factor: Size) -> Size:
    if _is_int(factor) and factor == 1:
        return size
    return factor if _is_int(size) and size == 1 else size * factor


def _quotient(quotient: Quotient) -> Size:
    if _is_int(quotient.denominator) and quotient.denominator == 1:
        return quotient.numerator
    return quotient.numerator // quotient.denominator


def _is_int(size: Size) -> bool:
    return isinstance(size, int)


def _actual_size(tensor: Tensor, axis: int) -> Size:
    known = tensor.shape[axis]
    return known if known is not None else ops.shape(tensor)[axis]
