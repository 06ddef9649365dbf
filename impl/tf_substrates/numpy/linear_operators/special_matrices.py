"""Linear operators of reflections and of zeros, and sums of operators."""

from __future__ import annotations

from typing import Any

from tf_substrates.numpy import dtypes, linalg
from tf_substrates.numpy.arrays import creation, shaping
from tf_substrates.numpy.linear_operators.base import LinearOperator
from tf_substrates.numpy.linear_operators.dense import LinearOperatorFullMatrix, checked
from tf_substrates.numpy.math.complex_numbers import conj
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.tensors import convert_to_tensor, static_value

_LINALG = "python.ops.linalg"
export(f"{_LINALG}.linear_operator.LinearOperator")(LinearOperator)


@export(f"{_LINALG}.linear_operator.make_composite_tensor")
def make_composite_tensor(cls: type, module_name: str = "tf.linalg") -> type:
    """The class: every operator is a pytree already."""
    return cls


@export(f"{_LINALG}.linear_operator_addition.add_operators")
def add_operators(
    operators: Any, operator_name: Any = None, addition_tiers: Any = None, name: Any = None
) -> list:
    """One operator, the sum of several."""
    total = operators[0].to_dense()
    for operator in operators[1:]:
        total = operator.add_to_tensor(total)
    return [LinearOperatorFullMatrix(total)]


@export("linalg.LinearOperatorHouseholder")
class LinearOperatorHouseholder(LinearOperator):
    """The reflections `I - 2 v v^H` of vectors `[..., n]`, which need no length of 1.

    >>> from tf_substrates.numpy import tf
    >>> print(tf.linalg.LinearOperatorHouseholder([0.0, 2.0]).matvec([3.0, 4.0]))
    tf.Tensor([ 3. -4.], shape=(2,), dtype=float32)

    Raises:
      ValueError: a hint says that it is not self-adjoint, not square or singular, or that it is
        positive definite.
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = "LinearOperatorHouseholder",
    ):
        self._reflection_axis = checked(reflection_axis, "reflection_axis", 1)
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite is True:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        super().__init__(
            self._reflection_axis.dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=True,
            is_positive_definite=is_positive_definite,
            is_square=True,
            name=name,
        )

    @property
    def reflection_axis(self) -> Any:
        return self._reflection_axis

    def _shape(self) -> tuple:
        shape = tuple(self._reflection_axis.shape)
        return (*shape, shape[-1])

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        axis = convert_to_tensor(self._reflection_axis)
        x = linalg.adjoint(x) if adjoint_arg else x
        axis = linalg.l2_normalize(axis, axis=-1)
        column = shaping.expand_dims(axis, -1)
        return x - column * 2 * linalg.matmul(column, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _adjoint(self) -> LinearOperator:
        return self

    def _inverse(self) -> LinearOperator:
        return self

    def _diag_part(self) -> Any:
        axis = linalg.l2_normalize(convert_to_tensor(self._reflection_axis), axis=-1)
        return 1 - 2 * axis * conj(axis)

    def trace(self, name: Any = "trace") -> Any:
        """As many as the rows, less 2, whatever the vectors are."""
        return creation.ones(self._shape()[:-2], self._dtype) * (self._shape()[-1] - 2)

    def _determinant(self) -> Any:
        return -creation.ones(self._shape()[:-2], self._dtype)

    def _log_abs_determinant(self) -> Any:
        return creation.zeros(self._shape()[:-2], self._dtype)


@export("linalg.LinearOperatorZeros")
class LinearOperatorZeros(LinearOperator):
    """Matrices `[..., num_rows, num_columns]` of zeros.

    Raises:
      ValueError: a hint says that it is not singular, or the counts are no known integers.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Any = False,
        is_self_adjoint: Any = True,
        is_positive_definite: Any = False,
        is_square: Any = True,
        assert_proper_shapes: bool = False,
        name: Any = "LinearOperatorZeros",
    ):
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        self._num_rows = int(static_value(num_rows, "num_rows"))
        columns = num_rows if num_columns is None else num_columns
        self._num_columns = int(static_value(columns, "num_columns"))
        batch = () if batch_shape is None else static_value(batch_shape, "batch_shape")
        self._batch = tuple(int(size) for size in batch)
        super().__init__(
            dtypes.float32 if dtype is None else dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name,
        )

    def _shape(self) -> tuple:
        return (*self._batch, self._num_rows, self._num_columns)

    def _to_dense(self) -> Any:
        return creation.zeros(self._shape(), self._dtype)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorZeros(
            self._num_columns,
            self._num_rows,
            self._batch,
            self._dtype,
            is_self_adjoint=self._is_self_adjoint,
            is_square=self._is_square,
        )

    def _diag_part(self) -> Any:
        size = min(self._num_rows, self._num_columns)
        return creation.zeros([*self._batch, size], self._dtype)

    def _determinant(self) -> Any:
        return creation.zeros(self._batch, self._dtype)
