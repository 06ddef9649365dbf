"""tf.TensorShape, tf.TensorSpec and broadcasting of shapes."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export


@export("TensorShape")
class TensorShape:
    """A shape of which the rank or some dimensions may be unknown (None).

    >>> from tf_substrates.numpy import tf
    >>> shape = tf.TensorShape([2, None])
    >>> shape.rank, shape.is_fully_defined(), shape.merge_with([None, 3])
    (2, False, TensorShape([2, 3]))
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any):
        if isinstance(dims, TensorShape):
            self._dims: tuple | None = dims._dims
        elif dims is None:
            self._dims = None
        elif isinstance(dims, (int, np.integer)):
            self._dims = (_dimension(dims),)
        elif isinstance(dims, (str, bytes)):
            raise TypeError(f"Failed to convert {dims!r} to a shape: it is a string.")
        else:
            self._dims = tuple(map(_dimension, dims))

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list | None:
        """The dimensions as objects, each with its `value`."""
        return None if self._dims is None else list(map(Dimension, self._dims))

    def as_list(self) -> list:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def num_elements(self) -> int | None:
        if not self.is_fully_defined():
            return None
        count = 1
        for dim in self.as_list():
            count *= dim
        return count

    def with_rank(self, rank: int) -> TensorShape:
        return self.merge_with(unknown_shape(rank))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        other = as_shape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def is_compatible_with(self, other: Any) -> bool:
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims, strict=True)
        )

    def is_subtype_of(self, other: Any) -> bool:
        if not isinstance(other, TensorShape):
            return False
        if other._dims is None:
            return True
        return (
            self._dims is not None
            and len(self._dims) == len(other._dims)
            and all(b is None or a == b for a, b in zip(self._dims, other._dims, strict=True))
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        return TensorShape(
            [b if a is None else a for a, b in zip(self._dims, other._dims, strict=True)]
        )

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        other = as_shape(other)
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return unknown_shape()
        return TensorShape(
            [a if a == b else None for a, b in zip(self._dims, other._dims, strict=True)]
        )

    def concatenate(self, other: Any) -> TensorShape:
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __iter__(self) -> Iterator:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return unknown_shape() if isinstance(key, slice) else None
        return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __reduce__(self) -> tuple:
        return TensorShape, (self._dims,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.as_list(), dtype=dtype or np.int32)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        return f"({', '.join(map(str, self._dims))}{',' if len(self._dims) == 1 else ''})"


def _dimension(value: Any) -> int | None:
    if value is None or value is _UNKNOWN_DIMENSION:
        return None
    size = value.__index__() if hasattr(value, "__index__") else None
    if size is None:
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got {value!r}"
        )
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def as_shape(value: Any) -> TensorShape:
    return value if isinstance(value, TensorShape) else TensorShape(value)


@export("compat.v1.Dimension", "python.framework.tensor_shape.Dimension")
class Dimension(int):
    """A dimension of `TensorShape.dims`: an integer with a `value`, as TensorFlow 1 has them.

    `Dimension(None)` is one whose `value` is None.
    """

    def __new__(cls, value: Any) -> Any:
        return _UNKNOWN_DIMENSION if value is None else super().__new__(cls, value)

    @property
    def value(self) -> int:
        return int(self)

    def is_compatible_with(self, other: Any) -> bool:
        return _dimension(other) in (None, int(self))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        self.assert_is_compatible_with(other)
        return self

    def __repr__(self) -> str:
        return f"Dimension({int(self)})"

    def __str__(self) -> str:
        return str(int(self))


class _UnknownDimension:
    value = None

    def is_compatible_with(self, other: Any) -> bool:
        return True

    def assert_is_compatible_with(self, other: Any) -> None:
        """Nothing: every dimension may be this one."""

    def merge_with(self, other: Any) -> Any:
        return Dimension(_dimension(other))

    def __repr__(self) -> str:
        return "Dimension(None)"

    def __str__(self) -> str:
        return "?"


_UNKNOWN_DIMENSION = _UnknownDimension()


def unknown_shape(rank: int | None = None) -> TensorShape:
    return TensorShape(None if rank is None else [None] * rank)


@export("compat.dimension_value", "compat.v1.dimension_value")
def dimension_value(dimension: Any) -> int | None:
    return dimension.value if isinstance(dimension, (Dimension, _UnknownDimension)) else dimension


@export("compat.dimension_at_index")
def dimension_at_index(shape: Any, index: int) -> int | None:
    return as_shape(shape)[index]


@export("broadcast_static_shape")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape to which two shapes broadcast, dimensions of None included.

    Raises:
      ValueError: they do not broadcast.
    """
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.rank is None or y.rank is None:
        return unknown_shape()
    rank = max(x.rank, y.rank)
    dims: list = []
    for a, b in zip(
        [1] * (rank - x.rank) + x.as_list(), [1] * (rank - y.rank) + y.as_list(), strict=True
    ):
        if a == b or b == 1:
            dims.append(a)
        elif a == 1:
            dims.append(b)
        elif a is None or b is None:
            dims.append(a if b is None else b)
        else:
            raise ValueError(
                f"Incompatible shapes for broadcasting: {x} and {y}, whose dimensions {a} and {b}"
                " are neither equal nor 1"
            )
    return TensorShape(dims)


def broadcast_shapes(x: tuple, y: tuple, op_name: str) -> tuple:
    """The shape to which two operands of an operation broadcast."""
    if x == y:
        return x
    try:
        return np.broadcast_shapes(x, y)
    except ValueError:
        raise invalid_argument(
            f"Incompatible shapes: {list(x)} vs. {list(y)} [Op:{op_name}]".replace(", ", ",")
        ) from None


@export("TypeSpec")
class TypeSpec(metaclass=abc.ABCMeta):  # noqa: B024  # subclasses have the metaclass too
    """What a value is: the base of tf.TensorSpec, and of the specs of values made of tensors."""

    __slots__ = ()

    @property
    def value_type(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    @property
    def _component_specs(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._component_specs")

    def _to_components(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_components")

    def _from_components(self, components: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._from_components")

    def _serialize(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._serialize")

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return cls(*serialization)

    def is_subtype_of(self, other: Any) -> bool:
        return type(self) is type(other) and self == other

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        return type(self) is type(spec_or_value) and self == spec_or_value

    def most_specific_common_supertype(self, others: Any) -> Any:
        return self if all(self == other for other in others) else None

    def most_specific_compatible_type(self, other: Any) -> Any:
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def _with_tensor_ranks_only(self) -> TypeSpec:
        return self

    @classmethod
    def __is_compatible(cls, a: Any, b: Any) -> bool:
        """Whether what specs serialize to agrees, part by part."""
        if isinstance(a, TypeSpec):
            return a.is_compatible_with(b)
        if type(a) is not type(b):
            return False
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(cls.__is_compatible, a, b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(cls.__is_compatible(a[k], b[k]) for k in a)
        if isinstance(a, (TensorShape, dtypes.DType)):
            return a.is_compatible_with(b)
        return a == b


@export("python.framework.tensor_spec.DenseSpec")
class DenseSpec(TypeSpec):
    """The spec of values that have a shape and one dtype."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None):
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and self._shape == other._shape
            and self._dtype == other._dtype
            and self._name == other._name
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(shape={self._shape}, dtype={self._dtype!r},"
            f" name={self._name!r})"
        )


@export("TensorSpec")
class TensorSpec(DenseSpec):
    """The shape, dtype and name of a tensor."""

    __slots__ = ()

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        return cls(tensor.shape, dtypes.as_dtype(tensor.dtype), name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        return self._dtype == spec_or_tensor.dtype and self._shape.is_compatible_with(
            spec_or_tensor.shape
        )

    def is_subtype_of(self, other: Any) -> bool:
        return (
            type(self) is type(other)
            and self._dtype == other._dtype
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_common_supertype(self, others: Any) -> Any:
        shape = self._shape
        for other in others:
            if type(other) is not type(self) or other._dtype != self._dtype:
                return None
            shape = shape.most_specific_compatible_shape(other._shape)
        return type(self)(shape, self._dtype)
