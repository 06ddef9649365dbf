"""Operators made of several others: Kronecker products, blocks of operators, low-rank updates."""

from __future__ import annotations

import functools
import math
import operator as arithmetic
from typing import Any

from tf_substrates.numpy import linalg
from tf_substrates.numpy.arrays import creation, joining, shaping
from tf_substrates.numpy.linear_operators.base import LinearOperator, log, reduce_sum
from tf_substrates.numpy.linear_operators.composed import of_one_dtype
from tf_substrates.numpy.linear_operators.dense import LinearOperatorFullMatrix, checked
from tf_substrates.numpy.linear_operators.diagonal import LinearOperatorDiag
from tf_substrates.numpy.math import conversions
from tf_substrates.numpy.math.elementwise import tf_abs
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.shapes import TensorShape, broadcast_static_shape


class _OfSeveral(LinearOperator):
    """What operators have in common that are made of several ones of one dtype."""

    # Between the names of the operators.
    _JOINED_BY = ""

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
        super().__init__(
            self._operators[0].dtype,
            is_non_singular=self._hint("is_non_singular", is_non_singular),
            is_self_adjoint=self._hint("is_self_adjoint", is_self_adjoint),
            is_positive_definite=self._hint("is_positive_definite", is_positive_definite),
            is_square=is_square,
            name=name or self._JOINED_BY.join(o.name for o in self._operators),
        )

    def _hint(self, what: str, given: Any) -> Any:
        """A hint, which all operators together may give."""
        if not all(getattr(o, what) for o in self._operators):
            return given
        if given is False:
            raise ValueError(
                f"The operator is {what} since all its operators are; given is {what}=False."
            )
        return True

    @property
    def operators(self) -> list:
        return self._operators

    def _batch(self) -> list:
        shapes = [TensorShape(operator._shape()[:-2]) for operator in self._operators]
        return functools.reduce(broadcast_static_shape, shapes).as_list()

    def _of_each(self, method: str) -> LinearOperator:
        """The operator of what a method gives of each one."""
        return type(self)([getattr(operator, method)() for operator in self._operators])

    def _adjoint(self) -> LinearOperator:
        return self._of_each("adjoint")

    def _inverse(self) -> LinearOperator:
        return self._of_each("inverse")

    def _cholesky(self) -> LinearOperator:
        return self._of_each("cholesky")


@export("linalg.LinearOperatorKronecker")
class LinearOperatorKronecker(_OfSeveral):
    """The Kronecker product of operators."""

    _JOINED_BY = "_x_"

    def _shape(self) -> tuple:
        shapes = [operator._shape() for operator in self._operators]
        return (*self._batch(), *(math.prod(shape[axis] for shape in shapes) for axis in (-2, -1)))

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._in_turn("matmul", x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._in_turn("solve", rhs, adjoint, adjoint_arg)

    def _in_turn(self, method: str, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        """Applies each operator along its part of the rows: no product is ever made dense."""
        x = linalg.adjoint(x) if adjoint_arg else x
        batch = broadcast_static_shape(self._batch(), x.shape[:-2]).as_list()
        columns = x.shape[-1]
        x = shaping.broadcast_to(x, [*batch, *x.shape[-2:]])
        for operator in self._operators:
            # The rows are [this operator's, those of the others]; what comes out goes behind them.
            rows = operator._shape()[-2 if adjoint or method == "solve" else -1]
            others = x.shape[-2] // rows
            x = shaping.reshape(x, [*batch, rows, others * columns])
            x = getattr(operator, method)(x, adjoint=adjoint)
            x = shaping.reshape(x, [*batch, x.shape[-2], others, columns])
            last = len(batch)
            turned = shaping.transpose(x, [*range(last), last + 1, last, last + 2])
            x = shaping.reshape(turned, [*batch, -1, columns])
        return x

    def _determinant(self) -> Any:
        rows = self._shape()[-1]
        parts = [o.determinant() ** (rows // o._shape()[-1]) for o in self._operators]
        return functools.reduce(arithmetic.mul, parts)

    def _log_abs_determinant(self) -> Any:
        rows = self._shape()[-1]
        parts = [o.log_abs_determinant() * (rows // o._shape()[-1]) for o in self._operators]
        return functools.reduce(arithmetic.add, parts)


class _OfBlocks(LinearOperator):
    """Operators that multiply, beside a matrix, the list of its blocks: what comes out is a list.

    Subclasses give the operators of the diagonal and the products and solutions of lists.
    """

    def _diagonal(self) -> list[LinearOperator]:
        raise NotImplementedError

    def _sizes(self, axis: int) -> list[int]:
        """How many rows (-2) or columns (-1) each block has."""
        return [operator._shape()[axis] for operator in self._diagonal()]

    def _of_blocks(self, method: str, blocks: list, adjoint: bool) -> list:
        raise NotImplementedError

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: Any = "matmul"
    ) -> Any:
        """The product with matrices, or with the list of their blocks of rows."""
        blocks = self._blocks(x, -2 if adjoint else -1, -1 if adjoint_arg else -2)
        if blocks is None:
            return super().matmul(x, adjoint, adjoint_arg)
        return self._of_blocks("matmul", _turned(blocks, adjoint_arg), adjoint)

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: Any = "solve"
    ) -> Any:
        """The solution for matrices, or for the list of their blocks of rows."""
        blocks = self._blocks(rhs, -1 if adjoint else -2, -1 if adjoint_arg else -2)
        if blocks is None:
            return super().solve(rhs, adjoint, adjoint_arg)
        return self._of_blocks("solve", _turned(blocks, adjoint_arg), adjoint)

    def matvec(self, x: Any, adjoint: bool = False, name: Any = "matvec") -> Any:
        """The product with vectors, or with the list of their blocks."""
        blocks = self._blocks(x, -2 if adjoint else -1, -1)
        if blocks is None:
            return super().matvec(x, adjoint)
        return self._of_vectors("matmul", blocks, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: Any = "solve") -> Any:
        """The solution for vectors, or for the list of their blocks."""
        blocks = self._blocks(rhs, -1 if adjoint else -2, -1)
        if blocks is None:
            return super().solvevec(rhs, adjoint)
        return self._of_vectors("solve", blocks, adjoint)

    def _of_vectors(self, method: str, blocks: list, adjoint: bool) -> list:
        columns = [shaping.expand_dims(block, -1) for block in blocks]
        found = self._of_blocks(method, columns, adjoint)
        return [shaping.squeeze(block, axis=[-1]) for block in found]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._whole("matmul", x, adjoint, adjoint_arg, -2 if adjoint else -1)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._whole("solve", rhs, adjoint, adjoint_arg, -1 if adjoint else -2)

    def _whole(self, method: str, x: Any, adjoint: bool, adjoint_arg: bool, axis: int) -> Any:
        x = linalg.adjoint(x) if adjoint_arg else x
        batch = broadcast_static_shape(self._shape()[:-2], x.shape[:-2]).as_list()
        blocks = joining.split(x, self._sizes(axis), axis=-2)
        found = self._of_blocks(method, blocks, adjoint)
        pieces = [shaping.broadcast_to(block, [*batch, *block.shape[-2:]]) for block in found]
        return joining.concat(pieces, axis=-2)

    def _blocks(self, x: Any, own_axis: int, axis: int) -> list | None:
        """The tensors of a list that is one of blocks; a list may be a matrix too."""
        sizes = self._sizes(own_axis)
        if not isinstance(x, (list, tuple)) or len(x) != len(sizes):
            return None
        blocks = [self._operand(block) for block in x]
        if any(len(block.shape) < -axis for block in blocks):
            return None
        return blocks if [block.shape[axis] for block in blocks] == sizes else None

    def _determinant(self) -> Any:
        return functools.reduce(arithmetic.mul, [o.determinant() for o in self._diagonal()])

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(arithmetic.add, [o.log_abs_determinant() for o in self._diagonal()])


def _turned(blocks: list, adjoint: bool) -> list:
    return [linalg.adjoint(block) for block in blocks] if adjoint else blocks


@export("linalg.LinearOperatorBlockDiag")
class LinearOperatorBlockDiag(_OfBlocks, _OfSeveral):
    """Operators along a diagonal, with zeros beside them."""

    _JOINED_BY = "_ds_"

    def __init__(
        self,
        operators: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = True,
        name: Any = None,
    ):
        super().__init__(
            operators, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )

    def _shape(self) -> tuple:
        shapes = [operator._shape() for operator in self._operators]
        return (*self._batch(), *(sum(shape[axis] for shape in shapes) for axis in (-2, -1)))

    def _diagonal(self) -> list[LinearOperator]:
        return self._operators

    def _of_blocks(self, method: str, blocks: list, adjoint: bool) -> list:
        return [
            getattr(operator, method)(block, adjoint=adjoint)
            for operator, block in zip(self._operators, blocks, strict=True)
        ]


@export("linalg.LinearOperatorBlockLowerTriangular")
class LinearOperatorBlockLowerTriangular(_OfBlocks):
    """Operators below and on a diagonal: the i-th list has those of row i, i + 1 of them."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorBlockLowerTriangular",
    ):
        rows = [list(row) for row in operators]
        if not rows:
            raise ValueError("Argument `operators` must be a list of >=1 operators.")
        for i, row in enumerate(rows):
            if len(row) != i + 1:
                raise ValueError(
                    f"Argument `operators[{i}]` must contain `{i + 1}` blocks. Received:"
                    f" {len(row)} blocks."
                )
        of_one_dtype([operator for row in rows for operator in row])
        self._operators = rows
        self._check_shapes()
        diagonal = self._diagonal()
        if is_non_singular is None and all(o.is_non_singular for o in diagonal):
            is_non_singular = True
        super().__init__(
            rows[0][0].dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=True if is_square is None else is_square,
            name=name,
        )

    def _check_shapes(self) -> None:
        sizes = self._sizes(-1)
        for i, row in enumerate(self._operators):
            for j, operator in enumerate(row):
                if tuple(operator._shape()[-2:]) != (sizes[i], sizes[j]):
                    raise ValueError(
                        f"Argument `operators[{i}][{j}]` must have {sizes[i]} rows and {sizes[j]}"
                        f" columns, as the operators of the diagonal. Received:"
                        f" {list(operator._shape()[-2:])}."
                    )

    @property
    def operators(self) -> list:
        return self._operators

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._operators]

    def _shape(self) -> tuple:
        batches = [TensorShape(o._shape()[:-2]) for row in self._operators for o in row]
        batch = functools.reduce(broadcast_static_shape, batches).as_list()
        return (*batch, *[sum(self._sizes(-1))] * 2)

    def _of_blocks(self, method: str, blocks: list, adjoint: bool) -> list:
        """Products; or solutions, from the first row on, and of the adjoint from the last one."""
        count = len(blocks)
        found: list = [None] * count
        for i in reversed(range(count)) if adjoint else range(count):
            others = range(i + 1, count) if adjoint else range(i)
            factors = found if method == "solve" else blocks
            parts = [
                (self._operators[j][i] if adjoint else self._operators[i][j]).matmul(
                    factors[j], adjoint=adjoint
                )
                for j in others
            ]
            diagonal = self._operators[i][i]
            if method == "solve":
                rest = functools.reduce(arithmetic.sub, parts, blocks[i])
                found[i] = diagonal.solve(rest, adjoint=adjoint)
            else:
                own = diagonal.matmul(blocks[i], adjoint=adjoint)
                found[i] = functools.reduce(arithmetic.add, parts, own)
        return found


@export("linalg.LinearOperatorLowRankUpdate")
class LinearOperatorLowRankUpdate(LinearOperator):
    """`L + U D V^H` of an operator L, matrices U `[..., m, k]` and V `[..., n, k]`, a diagonal D.

    It is solved by Woodbury's identity, with a matrix of k rows.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Any = None,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorLowRankUpdate",
    ):
        dtype = base_operator.dtype
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.")
            is_diag_update_positive = True
        self._base_operator = base_operator
        self._u = checked(u, "u", 2)
        self._v = self._u if v is None else checked(v, "v", 2)
        self._diag_update = None if diag_update is None else checked(diag_update, "diag_update", 1)
        self._is_diag_update_positive = is_diag_update_positive
        symmetric = v is None and (diag_update is None or not dtype.is_complex)
        if symmetric and base_operator.is_self_adjoint:
            is_self_adjoint = _agree(is_self_adjoint, "is_self_adjoint")
            if base_operator.is_positive_definite and is_diag_update_positive:
                is_positive_definite = _agree(is_positive_definite, "is_positive_definite")
        super().__init__(
            dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name,
        )
        rank = self._u.shape[-1]
        if self._v.shape[-1] != rank or (
            self._diag_update is not None and self._diag_update.shape[-1] not in (1, rank)
        ):
            raise ValueError(f"Dimensions of u {self._u.shape} and v {self._v.shape} differ")

    @property
    def base_operator(self) -> LinearOperator:
        return self._base_operator

    @property
    def u(self) -> Any:
        return self._u

    @property
    def v(self) -> Any:
        return self._v

    @property
    def diag_update(self) -> Any:
        return self._diag_update

    @property
    def is_diag_update_positive(self) -> Any:
        return self._is_diag_update_positive

    @property
    def diag_operator(self) -> LinearOperator:
        return LinearOperatorDiag(
            self._diagonal(), is_positive_definite=self._is_diag_update_positive
        )

    def _diagonal(self) -> Any:
        if self._diag_update is None:
            return creation.ones([self._u.shape[-1]], self.dtype)
        return self._diag_update

    def _shape(self) -> tuple:
        *batch, rows, columns = self._base_operator._shape()
        whole = broadcast_static_shape(
            batch, broadcast_static_shape(self._u.shape[:-2], self._diagonal().shape[:-1])
        )
        return (*broadcast_static_shape(whole, self._v.shape[:-2]).as_list(), rows, columns)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = linalg.matmul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        update = linalg.matmul(left, self.diag_operator.matmul(inner, adjoint=adjoint))
        return self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg) + update

    def _capacitance(self) -> LinearOperator:
        """`D^-1 + V^H L^-1 U`."""
        solved = self._base_operator.solve(self._u)
        inner = linalg.matmul(self._v, solved, adjoint_a=True)
        return LinearOperatorFullMatrix(self.diag_operator.inverse().add_to_tensor(inner))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        base = self._base_operator
        solved = base.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = linalg.matmul(right, solved, adjoint_a=True)
        inner = self._capacitance().solve(inner, adjoint=adjoint)
        return solved - base.solve(linalg.matmul(left, inner), adjoint=adjoint)

    def _determinant(self) -> Any:
        inner = self._capacitance().determinant() * self.diag_operator.determinant()
        return inner * self._base_operator.determinant()

    def _log_abs_determinant(self) -> Any:
        diagonal = reduce_sum(log(tf_abs(self._diagonal())), axis=-1)
        inner = self._capacitance().log_abs_determinant()
        return (
            inner
            + conversions.cast(diagonal, self.dtype)
            + self._base_operator.log_abs_determinant()
        )

    def _to_dense(self) -> Any:
        update = self.diag_operator.matmul(linalg.adjoint(self._v))
        return self._base_operator.to_dense() + linalg.matmul(self._u, update)


def _agree(given: Any, what: str) -> bool:
    if given is False:
        raise ValueError(f"The operator is {what}, by its parts; given is {what}=False.")
    return True
