"""Adjoints, inverses and products of other linear operators."""

from __future__ import annotations

import functools
from typing import Any

from tf_substrates.numpy import linalg
from tf_substrates.numpy.linear_operators.base import LinearOperator
from tf_substrates.numpy.math.complex_numbers import conj
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.shapes import TensorShape, broadcast_static_shape


def _agreed(given: Any, known: Any, what: str) -> Any:
    """A hint, where the operator that it is about may know better."""
    if given is not None and known is not None and bool(given) != bool(known):
        raise ValueError(f"The operator's hint {what}={known} contradicts {what}={given}.")
    return known if given is None else given


def of_one_dtype(operators: Any) -> list[LinearOperator]:
    """The operators that another one is made of, one at least."""
    found = list(operators)
    if not found:
        raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
    if any(other.dtype != found[0].dtype for other in found):
        raise TypeError(
            f"Expected all operators to have the same dtype. Found: {[o.dtype.name for o in found]}"
        )
    return found


@export("linalg.LinearOperatorAdjoint")
class LinearOperatorAdjoint(LinearOperator):
    """The conjugate transpose of an operator."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = None,
    ):
        self._operator = operator
        super().__init__(
            operator.dtype,
            is_non_singular=_agreed(is_non_singular, operator._is_non_singular, "is_non_singular"),
            is_self_adjoint=_agreed(is_self_adjoint, operator._is_self_adjoint, "is_self_adjoint"),
            is_positive_definite=_agreed(
                is_positive_definite, operator._is_positive_definite, "is_positive_definite"
            ),
            is_square=_agreed(is_square, operator._is_square, "is_square"),
            name=name or f"{operator.name}_adjoint",
        )

    @property
    def operator(self) -> LinearOperator:
        return self._operator

    def _shape(self) -> tuple:
        *batch, rows, columns = self._operator._shape()
        return (*batch, columns, rows)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._matmul(x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._solve(rhs, not adjoint, adjoint_arg)

    def _to_dense(self) -> Any:
        return linalg.adjoint(self._operator.to_dense())

    def _diag_part(self) -> Any:
        return conj(self._operator._diag_part())

    def _determinant(self) -> Any:
        return conj(self._operator._determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator._log_abs_determinant()

    def _adjoint(self) -> LinearOperator:
        return self._operator


@export("linalg.LinearOperatorInversion")
class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator, which solves in place of multiplying."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = None,
    ):
        if operator._is_non_singular is False or is_non_singular is False:
            raise ValueError("Argument `is_non_singular` must be True or None: it has an inverse.")
        self._operator = operator
        super().__init__(
            operator.dtype,
            is_non_singular=True,
            is_self_adjoint=_agreed(is_self_adjoint, operator._is_self_adjoint, "is_self_adjoint"),
            is_positive_definite=_agreed(
                is_positive_definite, operator._is_positive_definite, "is_positive_definite"
            ),
            is_square=is_square,
            name=name or f"{operator.name}_inv",
        )

    @property
    def operator(self) -> LinearOperator:
        return self._operator

    def _shape(self) -> tuple:
        return self._operator._shape()

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._solve(x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator._determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator._log_abs_determinant()

    def _inverse(self) -> LinearOperator:
        return self._operator


@export("linalg.LinearOperatorComposition")
class LinearOperatorComposition(LinearOperator):
    """The product of operators, the first of which is the leftmost."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = None,
    ):
        self._operators = of_one_dtype(operators)
        first = self._operators[0]
        if is_non_singular is None and all(o._is_non_singular for o in self._operators):
            is_non_singular = True
        super().__init__(
            first.dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name or "_o_".join(o.name for o in self._operators),
        )

    @property
    def operators(self) -> list:
        return self._operators

    def _shape(self) -> tuple:
        shapes = [operator._shape() for operator in self._operators]
        batch = functools.reduce(
            broadcast_static_shape, [TensorShape(shape[:-2]) for shape in shapes]
        )
        return (*batch, shapes[0][-2], shapes[-1][-1])

    def _in_turn(
        self, x: Any, method: str, from_left: bool, adjoint: bool, adjoint_arg: bool
    ) -> Any:
        for operator in self._operators if from_left else reversed(self._operators):
            x = getattr(operator, method)(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return x

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._in_turn(x, "matmul", adjoint, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._in_turn(rhs, "solve", not adjoint, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return functools.reduce(lambda a, b: a * b, [o.determinant() for o in self._operators])

    def _log_abs_determinant(self) -> Any:
        parts = [o.log_abs_determinant() for o in self._operators]
        return functools.reduce(lambda a, b: a + b, parts)
