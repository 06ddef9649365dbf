"""Polymorphic shapes: specs to symbolic shapes, dimension variables solved from the arguments,
symbolic dimensions evaluated as ints or tensors, assumptions checked when the function runs.

JAX parses the specs and computes with the symbolic dimensions (jax.export.symbolic_shape); their
text is the documented syntax, so that is what is evaluated here.
"""

from __future__ import annotations

import ast
import fractions
import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import tensorflow as tf
from jax import export

# An int where it is known, else a scalar int32 tensor.
Size: TypeAlias = Any
Values: TypeAlias = Mapping[str, Size]


class PolyShape(tuple):
    """A shape spec as older callers write it: `PolyShape("b", None, 3)` stands for "b, _, 3"."""

    def __new__(cls, *dim_specs: Any) -> PolyShape:
        return super().__new__(cls, dim_specs)

    def __str__(self) -> str:
        text = {None: "_", ...: "..."}
        return "(" + ", ".join(text.get(d, str(d)) for d in self) + ")"


def is_static(shape: Sequence[Any]) -> bool:
    """Whether no dimension of a JAX shape is symbolic."""
    return not any(export.is_symbolic_dim(d) for d in shape)


def spec_leaves(polymorphic_shapes: Any, args: tuple[Any, ...], n_kwargs: int) -> list[str | None]:
    """One spec for each leaf of the arguments, from a spec for all or a pytree prefix of specs.

    Raises:
      ValueError: the tree of specs is no prefix of the tree of positional arguments.
    """
    if polymorphic_shapes is None or isinstance(polymorphic_shapes, str | PolyShape):
        specs: list[Any] = [polymorphic_shapes] * len(jax.tree.leaves(args))
    else:
        prefix = polymorphic_shapes
        if isinstance(prefix, list):
            prefix = tuple(prefix)
        specs = _broadcast_prefix(prefix, args)
    # Keyword arguments have known shapes: a positional prefix says nothing about them.
    return [None if s is None else str(s) for s in specs] + [None] * n_kwargs


def symbolic_shape(
    spec: str | None, shape: tf.TensorShape, scope: export.SymbolicScope, where: str
) -> tuple[Any, ...]:
    """The shape that JAX should trace for an argument.

    Args:
      spec: the shape spec, or None for a known shape.
      shape: what TensorFlow knows of the argument's shape.
      scope: holds the dimension variables and their constraints.
      where: the argument, for messages.

    Raises:
      ValueError: the spec does not fit the shape, or leaves a dimension unknown.
    """
    if spec is None:
        if not shape.is_fully_defined():
            raise ValueError(
                f"{where}: its shape {shape} is not fully known; give the tf.function an "
                "input_signature of known shapes, or name the dimension in polymorphic_shapes, "
                'for example polymorphic_shapes="b, ..."'
            )
        return tuple(shape.as_list())
    if shape.rank is None:
        raise ValueError(
            f"{where}: its rank is unknown, and polymorphic_shapes {spec!r} needs one; give the "
            "tf.function an input_signature"
        )
    try:
        symbolic = tuple(export.symbolic_shape(spec, scope=scope, like=shape.as_list()))
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"{where}: polymorphic_shapes {spec!r} does not fit its shape {shape}: {error}"
        ) from None
    if len(symbolic) != shape.rank:
        raise ValueError(
            f"{where}: polymorphic_shapes {spec!r} has {len(symbolic)} dimensions, but the "
            f"argument has shape {shape}; end the spec with ... for the dimensions left out"
        )
    return symbolic


def evaluate(dim: Any, values: Values) -> Size:
    """The size of a dimension: an int where the values it needs are ints, else an int32 tensor."""
    return dim if isinstance(dim, int) else _evaluate(_parse(str(dim)), values)


def solve(
    shapes: Sequence[tuple[Any, ...]], tensors: Sequence[tf.Tensor], names: Callable[[int], str]
) -> Equations:
    """The dimension variables of symbolic `shapes`, solved from the shapes of `tensors`.

    Args:
      shapes: for each tensor the symbolic shape that was traced.
      tensors: what came.
      names: the argument of an index, for messages.

    Raises:
      ValueError: a variable cannot be solved, or known sizes contradict the symbolic shapes.
    """
    return Equations(
        [
            (dim, _actual_size(tensor, axis), f"{names(i)}.shape[{axis}]")
            for i, (shape, tensor) in enumerate(zip(shapes, tensors, strict=True))
            for axis, dim in enumerate(shape)
        ]
    )


class Equations:
    """`dimension == size` for each dimension of each argument, and what follows from them.

    Attributes:
      values: the value of each dimension variable.
    """

    def __init__(self, equations: Sequence[tuple[Any, Size, str]]):
        self._all = [(_parse(str(dim)), size, where) for dim, size, where in equations]
        self.values: dict[str, Size] = {}
        self._divisible: list[tuple[Size, Size, str]] = []
        self._solve_all([e for e in self._all if _variables(e[0])])

    def check(self, constraints: Sequence[str]) -> list[tf.Operation]:
        """Checks what the trace assumed; returns the checks that have to wait for the run.

        Raises:
          ValueError: sizes that are known contradict an assumption.
        """
        checks = []
        for expression, size, where in self._all:
            checks.append(
                _require(
                    "==",
                    size,
                    _evaluate(expression, self.values),
                    f"{where} should be {ast.unparse(expression)}",
                    self.values,
                )
            )
        for numerator, denominator, where in self._divisible:
            checks.append(
                _require(
                    "==", numerator % denominator, 0, f"{where} has no whole solution", self.values
                )
            )
        for name, value in self.values.items():
            checks.append(
                _require(
                    ">=", value, 1, f"dimension variable {name} should be at least 1", self.values
                )
            )
        for constraint in constraints:
            left, comparison, right = _split_constraint(constraint)
            checks.append(
                _require(
                    comparison,
                    _evaluate(left, self.values),
                    _evaluate(right, self.values),
                    f"constraint {constraint} does not hold",
                    self.values,
                )
            )
        return [c for c in checks if c is not None]

    def _solve_all(self, pending: list[tuple[ast.expr, Size, str]]) -> None:
        wanted = sorted({v for e, _, _ in pending for v in _variables(e)})
        while len(self.values) < len(wanted):
            rows = [
                (linear, size, where)
                for expression, size, where in pending
                if (linear := _linear(expression, self.values)) is not None
            ]
            found = _eliminate(rows, [v for v in wanted if v not in self.values]) or _divide(rows)
            if not found:
                missing = [v for v in wanted if v not in self.values]
                raise ValueError(
                    f"jax2tf.convert: cannot solve dimension variable {', '.join(missing)} from "
                    + "; ".join(f"{w} == {ast.unparse(e)}" for e, _, w in pending)
                    + ". Name it alone, or in a linear expression, as a dimension of an argument"
                )
            for name, numerator, denominator, where in found:
                if not _is_int(denominator) or denominator != 1:
                    self._divisible.append((numerator, denominator, where))
                    numerator = numerator // denominator
                self.values[name] = numerator


# A linear form over unknown variables: their coefficients, and a known rest.
_Linear: TypeAlias = tuple[dict[str, Size], Size]


def _linear(expression: ast.expr, values: Values) -> _Linear | None:
    """`expression` as a linear form in the variables without a value, or None if it is not one."""
    if not any(v not in values for v in _variables(expression)):
        return {}, _evaluate(expression, values)
    match expression:
        case ast.Name(id=name):
            return {name: 1}, 0
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _scale(_linear(operand, values), -1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(_linear(left, values), _linear(right, values))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum(_linear(left, values), _scale(_linear(right, values), -1))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for factor, other in ((left, right), (right, left)):
                if all(v in values for v in _variables(factor)):
                    return _scale(_linear(other, values), _evaluate(factor, values))
    return None


def _scale(form: _Linear | None, factor: Size) -> _Linear | None:
    if form is None:
        return None
    coefficients, rest = form
    return {v: c * factor for v, c in coefficients.items()}, rest * factor


def _sum(a: _Linear | None, b: _Linear | None) -> _Linear | None:
    if a is None or b is None:
        return None
    coefficients = {v: a[0].get(v, 0) + b[0].get(v, 0) for v in {*a[0], *b[0]}}
    return {v: c for v, c in coefficients.items() if not _is_int(c) or c}, a[1] + b[1]


def _is_int(size: Size) -> bool:
    return isinstance(size, int)


def _divide(rows: Sequence[_Equation]) -> list[_Solved]:
    """The variables that stand alone in an equation, times a size that only the run can tell."""
    return [
        (*form[0], size - form[1], *form[0].values(), where)
        for form, size, where in rows
        if len(form[0]) == 1
    ]


def _eliminate(rows: Sequence[_Equation], unknowns: Sequence[str]) -> list[_Solved]:
    """Gauss-Jordan elimination on exact fractions.

    The coefficients are known when the function is converted, the right sides only when it runs:
    each row remembers how much of every original right side it holds.
    """
    matrix: list[_Row] = [
        ({v: fractions.Fraction(c) for v, c in form[0].items()}, {i: fractions.Fraction(1)})
        for i, (form, _, _) in enumerate(rows)
        if form[0] and all(_is_int(c) for c in form[0].values())
    ]
    pivots: set[int] = set()
    for variable in unknowns:
        candidates = [k for k, row in enumerate(matrix) if k not in pivots and row[0].get(variable)]
        if not candidates:
            continue
        # The simplest equation first: a variable that stands alone is solved without arithmetic.
        k = min(candidates, key=lambda k: (len(matrix[k][0]), len(matrix[k][1])))
        pivots.add(k)
        pivot = matrix[k]
        matrix = [row if j == k else _without(row, pivot, variable) for j, row in enumerate(matrix)]
    solved: dict[str, _Solved] = {}
    for row, origin in matrix:
        coefficients = {v: c for v, c in row.items() if c}
        if len(coefficients) != 1:
            continue
        ((variable, coefficient),) = coefficients.items()
        if variable in solved:
            continue
        weights = {i: w / coefficient for i, w in origin.items() if w}
        denominator = math.lcm(*(w.denominator for w in weights.values()))
        numerator = sum(
            (int(w * denominator) * (rows[i][1] - rows[i][0][1]) for i, w in weights.items()), 0
        )
        where = " and ".join(rows[i][2] for i in weights)
        solved[variable] = (variable, numerator, denominator, where)
    return list(solved.values())


_Equation: TypeAlias = tuple[_Linear, Size, str]
# Variable, numerator, denominator, and the equations it comes from.
_Solved: TypeAlias = tuple[str, Size, Size, str]
_Row: TypeAlias = tuple[dict[str, fractions.Fraction], dict[int, fractions.Fraction]]


def _without(row: _Row, pivot: _Row, variable: str) -> _Row:
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


def _require(
    comparison: str, left: Size, right: Size, message: str, values: Values
) -> tf.Operation | None:
    if isinstance(left, int) and isinstance(right, int):
        if not _COMPARISONS[comparison][0](left, right):
            raise ValueError(
                f"jax2tf.convert: {message}: {left} {comparison} {right} is false"
                + (f", with {_shown(values)}" if values else "")
            )
        return None
    holds = _COMPARISONS[comparison][1](left, right)
    known = [part for name, value in values.items() for part in (f"{name} =", value)]
    return tf.debugging.Assert(
        holds, [f"jax2tf.convert: {message}:", left, comparison, right, "is false, with", *known]
    )


def _shown(values: Values) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


_COMPARISONS: dict[str, tuple[Callable[..., bool], Callable[..., tf.Tensor]]] = {
    "==": (operator.eq, tf.equal),
    ">=": (operator.ge, tf.greater_equal),
    "<=": (operator.le, tf.less_equal),
}


def _split_constraint(constraint: str) -> tuple[ast.expr, str, ast.expr]:
    for comparison in _COMPARISONS:
        left, found, right = constraint.partition(comparison)
        if found:
            return _parse(left), comparison, _parse(right)
    raise ValueError(
        f"jax2tf.convert: polymorphic_constraints {constraint!r} should be a comparison with "
        f"{', '.join(_COMPARISONS)}"
    )


def _maximum(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else tf.maximum(a, b)


def _minimum(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else tf.minimum(a, b)


_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": _maximum, "min": _minimum}
_OPERATORS: dict[type, Callable[..., Size]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _evaluate(expression: ast.expr, values: Values) -> Size:
    match expression:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(a, values) for a in args))
    raise ValueError(f"jax2tf.convert: cannot evaluate the dimension {ast.unparse(expression)}")


@functools.lru_cache(4096)
def _parse(text: str) -> ast.expr:
    # JAX writes powers as b^2.
    return ast.parse(text.strip().replace("^", "**"), mode="eval").body


@functools.lru_cache(4096)
def _variables(expression: ast.expr) -> frozenset[str]:
    calls = {id(n.func) for n in ast.walk(expression) if isinstance(n, ast.Call)}
    return frozenset(
        n.id for n in ast.walk(expression) if isinstance(n, ast.Name) and id(n) not in calls
    )


def _actual_size(tensor: tf.Tensor, axis: int) -> Size:
    known = tensor.shape[axis]
    return known if known is not None else tf.shape(tensor)[axis]


def _broadcast_prefix(prefix: Any, args: tuple[Any, ...]) -> list[Any]:
    def is_spec(node: Any) -> bool:
        return node is None or isinstance(node, str | PolyShape)

    leaves: list[Any] = []

    def extend(spec: Any, subtree: Any) -> None:
        leaves.extend([spec] * len(jax.tree.leaves(subtree)))

    try:
        jax.tree.map(extend, prefix, args, is_leaf=is_spec)
    except ValueError as error:
        raise ValueError(
            "jax2tf.convert: polymorphic_shapes should be a spec, or a pytree of specs that is a "
            f"prefix of the positional arguments {jax.tree.structure(args)}, "
            f"got {jax.tree.structure(prefix, is_leaf=is_spec)}: {error}"
        ) from None
    return leaves
