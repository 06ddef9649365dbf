"""Diagonal matrices, identities and their multiples as linear operators."""

from __future__ import annotations

from typing import Any

from tf_substrates.numpy import dtypes, linalg
from tf_substrates.numpy.arrays import creation, shaping
from tf_substrates.numpy.linear_operators.base import (
    LinearOperator,
    assert_equal,
    assert_positive,
    log,
    reciprocal,
    reduce_prod,
    reduce_sum,
    sqrt,
)
from tf_substrates.numpy.linear_operators.dense import DTYPES, checked
from tf_substrates.numpy.math import conversions
from tf_substrates.numpy.math.complex_numbers import conj, real
from tf_substrates.numpy.math.elementwise import tf_abs
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.tensors import convert_to_tensor, static_shape, static_value


class _Diagonal(LinearOperator):
    """What operators have in common of which the dense matrix is zero beside its diagonal."""

    def _hinted(
        self,
        dtype: Any,
        is_non_singular: Any,
        is_self_adjoint: Any,
        is_positive_definite: Any,
        name: Any,
    ) -> None:
        """The hints of a diagonal, which is square, and self-adjoint where it is real."""
        is_complex = dtypes.as_dtype(dtype).is_complex
        if not is_complex and is_self_adjoint is False:
            raise ValueError("A real diagonal operator is always self adjoint.")
        super().__init__(
            dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint if is_complex else True,
            is_positive_definite=is_positive_definite,
            is_square=True,
            name=name,
        )

    def _factor(self) -> Any:
        """The diagonal, or a part that broadcasts to it."""
        return self._diag_part()

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        x = linalg.adjoint(x) if adjoint_arg else x
        factor = self._factor()
        return shaping.expand_dims(conj(factor) if adjoint else factor, -1) * x

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = linalg.adjoint(rhs) if adjoint_arg else rhs
        factor = self._factor()
        return rhs / shaping.expand_dims(conj(factor) if adjoint else factor, -1)

    def _to_dense(self) -> Any:
        return linalg.diag(self._diag_part())

    def _determinant(self) -> Any:
        return reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Any:
        logarithms = log(tf_abs(self._diag_part()))
        return conversions.cast(reduce_sum(logarithms, axis=-1), self.dtype)

    def _singular_values(self) -> Any:
        return tf_abs(self._diag_part())

    def _eigvals(self) -> Any:
        return self._diag_part()

    def add_to_tensor(self, x: Any, name: Any = "add_to_tensor") -> Any:
        return self._operand(x) + self.to_dense()

    def assert_self_adjoint(self, name: Any = "assert_self_adjoint") -> None:
        diagonal = self._diag_part()
        assert_equal(
            diagonal, conj(diagonal), "This operator was not self-adjoint: imaginary parts."
        )

    def assert_positive_definite(self, name: Any = "assert_positive_definite") -> None:
        assert_positive(
            real(self._diag_part()),
            "Real diagonal operator had non-positive diagonal entries, thus was not positive"
            " definite.",
        )

    def _product(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, LinearOperatorIdentity) and not other._batch_shape:
            return self
        if isinstance(other, _Diagonal):
            return LinearOperatorDiag(self._diag_part() * other._diag_part())
        return super()._product(other)


@export("linalg.LinearOperatorDiag")
class LinearOperatorDiag(_Diagonal):
    """The operator of square matrices with the diagonals `[..., n]`."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorDiag",
    ):
        self._diag = checked(diag, "diag", 1)
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        self._hinted(self._diag.dtype, is_non_singular, is_self_adjoint, is_positive_definite, name)

    @property
    def diag(self) -> Any:
        return self._diag

    def _shape(self) -> tuple:
        shape = tuple(self._diag.shape)
        return (*shape, shape[-1])

    def _diag_part(self) -> Any:
        return convert_to_tensor(self._diag)

    def _adjoint(self) -> LinearOperator:
        return self._alike(conj(self._diag_part()))

    def _inverse(self) -> LinearOperator:
        return self._alike(reciprocal(self._diag_part()))

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(sqrt(self._diag_part()), is_non_singular=True)

    def _alike(self, diagonal: Any) -> LinearOperator:
        return LinearOperatorDiag(
            diagonal,
            is_non_singular=self._is_non_singular,
            is_self_adjoint=self._is_self_adjoint,
            is_positive_definite=self._is_positive_definite,
        )


def _rows(num_rows: Any) -> int:
    rows = static_value(num_rows, "num_rows")
    if rows.ndim:
        raise ValueError(f"Argument num_rows must be a 0-D Tensor. Found: {num_rows}")
    if int(rows) < 0:
        raise ValueError(f"Argument num_rows must be non-negative. Found: {num_rows}")
    return int(rows)


@export("linalg.LinearOperatorIdentity")
class LinearOperatorIdentity(_Diagonal):
    """The identity of `num_rows` rows, in a batch of any shape."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Any = True,
        is_self_adjoint: Any = True,
        is_positive_definite: Any = True,
        is_square: Any = True,
        assert_proper_shapes: bool = False,
        name: Any = "LinearOperatorIdentity",
    ):
        for holds, what in (
            (is_self_adjoint, "self-adjoint"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
        ):
            if not holds:
                raise ValueError(f"An identity operator is always {what}.")
        if not is_square:
            raise ValueError("Only square identity operators currently supported.")
        self._num_rows = _rows(num_rows)
        self._batch_shape = () if batch_shape is None else static_shape(batch_shape)
        super().__init__(
            dtypes.float32 if dtype is None else dtype,
            is_non_singular=True,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
            name=name,
        )

    def _shape(self) -> tuple:
        return (*self._batch_shape, self._num_rows, self._num_rows)

    def _diag_part(self) -> Any:
        return creation.ones([*self._batch_shape, self._num_rows], self.dtype)

    def _factor(self) -> Any:
        return creation.ones([*self._batch_shape, 1], self.dtype)

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self

    def _product(self, other: LinearOperator) -> LinearOperator:
        return super()._product(other) if self._batch_shape else other


@export("linalg.LinearOperatorScaledIdentity")
class LinearOperatorScaledIdentity(_Diagonal):
    """A multiple of the identity for each multiplier of `[...]`."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = True,
        assert_proper_shapes: bool = False,
        name: Any = "LinearOperatorScaledIdentity",
    ):
        self._multiplier = checked(multiplier, "multiplier", 0, (*DTYPES, "int32", "int64"))
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._num_rows = _rows(num_rows)
        self._hinted(
            self._multiplier.dtype, is_non_singular, is_self_adjoint, is_positive_definite, name
        )

    @property
    def multiplier(self) -> Any:
        return self._multiplier

    def _shape(self) -> tuple:
        return (*self._multiplier.shape, self._num_rows, self._num_rows)

    def _factor(self) -> Any:
        return shaping.expand_dims(convert_to_tensor(self._multiplier), -1)

    def _diag_part(self) -> Any:
        return shaping.broadcast_to(self._factor(), [*self._multiplier.shape, self._num_rows])

    def _adjoint(self) -> LinearOperator:
        return self._alike(conj(convert_to_tensor(self._multiplier)))

    def _inverse(self) -> LinearOperator:
        return self._alike(reciprocal(convert_to_tensor(self._multiplier)))

    def _cholesky(self) -> LinearOperator:
        root = sqrt(convert_to_tensor(self._multiplier))
        return LinearOperatorScaledIdentity(self._num_rows, root, is_non_singular=True)

    def _alike(self, multiplier: Any) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._num_rows,
            multiplier,
            is_non_singular=self._is_non_singular,
            is_self_adjoint=self._is_self_adjoint,
            is_positive_definite=self._is_positive_definite,
        )
