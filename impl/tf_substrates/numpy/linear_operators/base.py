"""What every linear operator has, computed from its dense matrix where nothing better is known."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tf_substrates.numpy import debugging, dtypes, linalg, nest
from tf_substrates.numpy.arrays import creation, shaping
from tf_substrates.numpy.composite_tensors import (
    CompositeTensor,
    convert_variables_to_tensors,
    type_spec_from_value,
)
from tf_substrates.numpy.math.elementwise import tf_abs
from tf_substrates.numpy.modules import Module
from tf_substrates.numpy.namespaces import EXPORTS, export
from tf_substrates.numpy.shapes import TensorShape, TypeSpec
from tf_substrates.numpy.tensors import convert_to_tensor, wrap

JAX_MODE = False
if JAX_MODE:
    import jax

# What tables register.
add = EXPORTS["add"]
log, reciprocal, sqrt = EXPORTS["math.log"], EXPORTS["math.reciprocal"], EXPORTS["sqrt"]
reduce_sum, reduce_prod = EXPORTS["reduce_sum"], EXPORTS["reduce_prod"]
reduce_min, reduce_max = EXPORTS["reduce_min"], EXPORTS["reduce_max"]
assert_positive, assert_equal = (
    EXPORTS["debugging.assert_positive"],
    EXPORTS["debugging.assert_equal"],
)


@export("linalg.LinearOperator")
class LinearOperator(CompositeTensor, Module):
    """A batch of matrices `[..., rows, columns]` with hints about what is known of them.

    A hint (`is_square`, `is_non_singular` ...) is True, False or None for not known. Nothing checks
    a hint, but what it rules out is refused. On JAX operators are pytrees of their tensors.

    >>> from tf_substrates.numpy import tf
    >>> operator = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> print(operator.matvec([3.0, 4.0]), operator.determinant())
    tf.Tensor([3. 8.], shape=(2,), dtype=float32) tf.Tensor(2.0, shape=(), dtype=float32)

    Raises:
      ValueError: the hints contradict each other, or operand and operator do not go together.
      TypeError: an operand has another dtype than the operator.
      NotImplementedError: a hint rules out what is asked for.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: Any = None,
        is_self_adjoint: Any = None,
        is_positive_definite: Any = None,
        is_square: Any = None,
        name: Any = None,
        parameters: Any = None,
    ):
        if is_positive_definite and is_non_singular is False:
            raise ValueError("A positive definite matrix is always non-singular.")
        if is_square is False and is_non_singular:
            raise ValueError("A non-singular operator is always square.")
        if is_square is False and is_self_adjoint:
            raise ValueError("A self-adjoint operator is always square.")
        super().__init__(name)
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._is_square = True if is_self_adjoint or is_non_singular else is_square
        self._is_non_singular = True if is_positive_definite else is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A class with methods for it is registered by who wrote them.
        if JAX_MODE and "tree_flatten" not in vars(cls):
            jax.tree_util.register_pytree_node(cls, _flattened, lambda *of: _unflattened(cls, *of))

    @property
    def _type_spec(self) -> LinearOperatorSpec:
        return LinearOperatorSpec.from_operator(self)

    def _convert_variables_to_tensors(self) -> LinearOperator:
        tensors, known = _flattened(self)
        return _unflattened(type(self), known, convert_variables_to_tensors(tensors))

    # What an operator is, of which subclasses define what they know better.

    def _shape(self) -> tuple:
        raise NotImplementedError(f"_shape is not implemented for {self.name}.")

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return linalg.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = linalg.adjoint(rhs) if adjoint_arg else rhs
        batch = shaping.broadcast_dynamic_shape(self._shape()[:-2], rhs.shape[:-2])
        dense = shaping.broadcast_to(self.to_dense(), [*batch, *self._shape()[-2:]])
        rhs = shaping.broadcast_to(rhs, [*batch, *rhs.shape[-2:]])
        if self._is_self_adjoint and self._is_positive_definite:
            return linalg.cholesky_solve(linalg.cholesky(dense), rhs)
        return linalg.solve(dense, rhs, adjoint=adjoint)

    def _to_dense(self) -> Any:
        columns = self._shape()[-1]
        eye = creation.eye(columns, batch_shape=self._shape()[:-2], dtype=self._dtype)
        return self._matmul(eye, adjoint=False, adjoint_arg=False)

    def _diag_part(self) -> Any:
        return linalg.diag_part(self.to_dense())

    def _determinant(self) -> Any:
        return linalg.det(self.to_dense())

    def _log_abs_determinant(self) -> Any:
        return linalg.slogdet(self.to_dense())[1]

    def _adjoint(self) -> LinearOperator:
        return EXPORTS["linalg.LinearOperatorAdjoint"](self)

    def _inverse(self) -> LinearOperator:
        return EXPORTS["linalg.LinearOperatorInversion"](self)

    def _cholesky(self) -> LinearOperator:
        return EXPORTS["linalg.LinearOperatorLowerTriangular"](
            linalg.cholesky(self.to_dense()),
            is_non_singular=True,
            is_self_adjoint=False,
            is_square=True,
        )

    def _product(self, other: LinearOperator) -> LinearOperator:
        """The operator `self @ other`."""
        return EXPORTS["linalg.LinearOperatorComposition"]([self, other])

    # Properties.

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def parameters(self) -> dict:
        """What the operator was made of, by the names of its constructor's arguments."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, f"_{name}", None) for name in names}

    @property
    def graph_parents(self) -> list:
        return []

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        return TensorShape(self._shape()[:-2])

    @property
    def tensor_rank(self) -> int:
        return len(self._shape())

    @property
    def domain_dimension(self) -> int:
        return self._shape()[-1]

    @property
    def range_dimension(self) -> int:
        return self._shape()[-2]

    @property
    def is_square(self) -> bool:
        """Whether rows and columns are as many, by the hint or the shape."""
        rows, columns = self._shape()[-2:]
        if self._is_square is not None and bool(self._is_square) != (rows == columns):
            raise ValueError(
                f"User provided is_square={self._is_square}, but the shape is {self.shape}"
            )
        return rows == columns

    @property
    def is_non_singular(self) -> Any:
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> Any:
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> Any:
        return self._is_positive_definite

    @property
    def H(self) -> LinearOperator:
        return self.adjoint()

    # Shapes as tensors; they are known while JAX traces.

    def shape_tensor(self, name: Any = "shape_tensor") -> Any:
        return wrap(np.array(self._shape(), np.int32))

    def batch_shape_tensor(self, name: Any = "batch_shape_tensor") -> Any:
        return wrap(np.array(self._shape()[:-2], np.int32))

    def tensor_rank_tensor(self, name: Any = "tensor_rank_tensor") -> Any:
        return wrap(np.array(self.tensor_rank, np.int32))

    def domain_dimension_tensor(self, name: Any = "domain_dimension_tensor") -> Any:
        return wrap(np.array(self.domain_dimension, np.int32))

    def range_dimension_tensor(self, name: Any = "range_dimension_tensor") -> Any:
        return wrap(np.array(self.range_dimension, np.int32))

    # Products and solutions.

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: Any = "matmul"
    ) -> Any:
        """The product with matrices `[..., columns, n]`, or with an operator, which is one too."""
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            _same_dimension(left.domain_dimension, right.range_dimension)
            return left._product(right)
        x = self._operand(x)
        _same_dimension(self._shape()[-2 if adjoint else -1], x.shape[-1 if adjoint_arg else -2])
        return self._matmul(x, adjoint, adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: Any = "matvec") -> Any:
        """The product with vectors `[..., columns]`."""
        x = self._operand(x)
        _same_dimension(self._shape()[-2 if adjoint else -1], x.shape[-1])
        return shaping.squeeze(self.matmul(shaping.expand_dims(x, -1), adjoint=adjoint), axis=[-1])

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: Any = "solve"
    ) -> Any:
        """X of `operator @ X = rhs` for matrices `[..., rows, n]`, or for an operator.

        Raises:
          NotImplementedError: the operator is not square, or singular by its hint.
        """
        if self._is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        self._must_be_square("Exact solve")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = rhs.adjoint() if adjoint_arg else rhs
            _same_dimension(left.range_dimension, right.range_dimension)
            return left.inverse()._product(right)
        rhs = self._operand(rhs)
        _same_dimension(self._shape()[-1], rhs.shape[-1 if adjoint_arg else -2])
        return self._solve(rhs, adjoint, adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: Any = "solve") -> Any:
        """The same for vectors `[..., rows]`."""
        rhs = self._operand(rhs)
        return shaping.squeeze(self.solve(shaping.expand_dims(rhs, -1), adjoint=adjoint), axis=[-1])

    def _operand(self, x: Any) -> Any:
        x = convert_to_tensor(x, dtype_hint=self._dtype)
        if dtypes.dtype_of(x) != self._dtype:
            raise TypeError(
                f"Expected argument to have dtype {self._dtype}. Found: {dtypes.dtype_of(x)} in"
                f" tensor {x}"
            )
        return x

    def _must_be_square(self, what: str) -> None:
        if not self.is_square:
            raise NotImplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    # Other operators.

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        return self if self._is_self_adjoint else self._adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        if not self.is_square:
            raise ValueError(
                "Cannot take the Inverse: This operator represents a non square matrix."
            )
        if self._is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return self._inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        if not self._is_positive_definite or not self._is_self_adjoint:
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint"
                " matrix."
            )
        return self._cholesky()

    # Tensors.

    def to_dense(self, name: Any = "to_dense") -> Any:
        return self._to_dense()

    def diag_part(self, name: Any = "diag_part") -> Any:
        return self._diag_part()

    def trace(self, name: Any = "trace") -> Any:
        return reduce_sum(self._diag_part(), axis=-1)

    def determinant(self, name: Any = "det") -> Any:
        self._must_be_square("Determinant")
        return self._determinant()

    def log_abs_determinant(self, name: Any = "log_abs_det") -> Any:
        self._must_be_square("Determinant")
        return self._log_abs_determinant()

    def eigvals(self, name: Any = "eigvals") -> Any:
        if not self._is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def _eigvals(self) -> Any:
        return linalg.eigvalsh(self.to_dense())

    def cond(self, name: Any = "cond") -> Any:
        """The largest singular value over the smallest one."""
        sizes = self._singular_values()
        return reduce_max(sizes, axis=-1) / reduce_min(sizes, axis=-1)

    def _singular_values(self) -> Any:
        return linalg.svd(self.to_dense(), compute_uv=False)

    def add_to_tensor(self, x: Any, name: Any = "add_to_tensor") -> Any:
        return add(self.to_dense(), self._operand(x))

    # Assertions about values that are known.

    def assert_non_singular(self, name: Any = "assert_non_singular") -> None:
        smallest = reduce_min(self._singular_values())
        assert_positive(smallest, "Singular matrix")

    def assert_self_adjoint(self, name: Any = "assert_self_adjoint") -> None:
        dense = self.to_dense()
        assert_equal(dense, linalg.adjoint(dense), "Matrix was not equal to its adjoint.")

    def assert_positive_definite(self, name: Any = "assert_positive_definite") -> None:
        if not self._is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        factor = linalg.diag_part(linalg.cholesky(self.to_dense()))
        debugging.check_numerics(tf_abs(factor), "the matrix is not positive definite")


def reference(value: Any) -> Any:
    """A tensor of a value; a variable stays one, and is read where it is used."""
    return value if hasattr(value, "__tf_tensor__") else convert_to_tensor(value)


def _same_dimension(here: int, there: int) -> None:
    if here != there:
        raise ValueError(f"Dimensions {here} and {there} are not compatible")


def _flattened(operator: LinearOperator) -> tuple:
    """Its attributes that are tensors or operators, and what else is known of it."""
    items = sorted(operator.__dict__.items())
    static = tuple((name, value) for name, value in items if isinstance(value, _STATIC))
    names = tuple(name for name, value in items if not isinstance(value, _STATIC))
    return tuple(operator.__dict__[name] for name in names), (names, static)


_STATIC = (type(None), bool, int, float, str, tuple, dtypes.DType)


def _unflattened(cls: type, known: tuple, tensors: tuple) -> LinearOperator:
    names, static = known
    operator: Any = object.__new__(cls)
    operator.__dict__.update([*static, *zip(names, tensors, strict=True)])
    return operator


@export("python.ops.linalg.linear_operator._LinearOperatorSpec")
class LinearOperatorSpec(TypeSpec):
    """The class of an operator, its hints, and the specs of its tensors and operators."""

    __slots__ = ("_known", "_specs", "_value_type")

    def __init__(self, param_specs: tuple, non_tensor_params: tuple, prefer_static_fields: tuple):
        """A spec of the specs of the tensors, and of the class and what else is known.

        The arguments are named as TensorFlow names them. No field is preferred static here: what is
        no tensor is known.
        """
        del prefer_static_fields
        self._specs = param_specs
        self._value_type, self._known = non_tensor_params

    @classmethod
    def from_operator(cls, operator: LinearOperator) -> LinearOperatorSpec:
        """The spec of an operator."""
        tensors, known = _flattened(operator)
        return cls(nest.map_structure(type_spec_from_value, tensors), (type(operator), known), ())

    @property
    def value_type(self) -> type:
        return self._value_type

    @property
    def _component_specs(self) -> tuple:
        return self._specs

    def _to_components(self, value: LinearOperator) -> tuple:
        return _flattened(value)[0]

    def _from_components(self, components: tuple) -> LinearOperator:
        return _unflattened(self._value_type, self._known, components)

    def _serialize(self) -> tuple:
        return self._value_type, self._known, self._specs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearOperatorSpec) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((self._value_type, self._known))
