"""Full and lower triangular matrices as linear operators."""

from __future__ import annotations

from typing import Any

from tf_substrates.numpy import dtypes, linalg
from tf_substrates.numpy.linear_operators.base import (
    LinearOperator,
    assert_positive,
    log,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reference,
)
from tf_substrates.numpy.math.elementwise import tf_abs
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.tensors import convert_to_tensor

DTYPES = ("float16", "float32", "float64", "complex64", "complex128")


def checked(value: Any, argument: str, rank: int, allowed: tuple = DTYPES) -> Any:
    """A tensor or variable of `rank` axes at least and a dtype that operators have."""
    tensor = reference(value)
    if len(tensor.shape) < rank:
        raise ValueError(
            f"Argument `{argument}` must have at least {rank} dimensions. Received: {tensor}."
        )
    found = dtypes.as_dtype(tensor.dtype)
    if found.name not in allowed:
        raise TypeError(
            f"Argument `{argument}` must have dtype in [{', '.join(allowed)}]. Received: {found}."
        )
    return tensor


@export("linalg.LinearOperatorFullMatrix")
class LinearOperatorFullMatrix(LinearOperator):
    """The operator of matrices `[..., rows, columns]`."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorFullMatrix",
    ):
        self._matrix = checked(matrix, "matrix", 2)
        super().__init__(
            self._matrix.dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name,
        )

    @property
    def matrix(self) -> Any:
        return self._matrix

    def _shape(self) -> tuple:
        return tuple(self._matrix.shape)

    def _to_dense(self) -> Any:
        return convert_to_tensor(self._matrix)


@export("linalg.LinearOperatorLowerTriangular")
class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of the lower triangles of square matrices."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorLowerTriangular",
    ):
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = checked(tril, "tril", 2)
        super().__init__(
            self._tril.dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=True,
            name=name,
        )

    @property
    def tril(self) -> Any:
        return self._tril

    def _shape(self) -> tuple:
        return tuple(self._tril.shape)

    def _to_dense(self) -> Any:
        return linalg.band_part(convert_to_tensor(self._tril), -1, 0)

    def _diag_part(self) -> Any:
        return linalg.diag_part(convert_to_tensor(self._tril))

    def _determinant(self) -> Any:
        return reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(tf_abs(self._diag_part())), axis=-1)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = linalg.adjoint(rhs) if adjoint_arg else rhs
        tril = convert_to_tensor(self._tril)
        return linalg.triangular_solve(tril, rhs, lower=True, adjoint=adjoint)

    def assert_non_singular(self, name: Any = "assert_non_singular") -> None:
        smallest = reduce_min(tf_abs(self._diag_part()))
        assert_positive(smallest, "Singular operator:  Diagonal contained zero values.")
