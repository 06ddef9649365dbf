"""tf.IndexedSlices: some of a tensor's rows, and which they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.composite_tensors import CompositeTensor
from tf_substrates.numpy.namespaces import EXPORTS, export
from tf_substrates.numpy.shapes import TensorShape, TensorSpec, TypeSpec, as_shape
from tf_substrates.numpy.tensors import OPERATORS, convert, static_shape, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


@export("IndexedSlices")
class IndexedSlices(CompositeTensor):
    """Rows of a tensor whose other rows are zeros. What converts it to a tensor adds equal rows.

    >>> from tf_substrates.numpy import tf
    >>> rows = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([2, 0]), tf.constant([3]))
    >>> print(tf.convert_to_tensor(rows))
    tf.Tensor([2. 0. 1.], shape=(3,), dtype=float32)

    Args:
      values: `[n, ...]`, the rows.
      indices: `[n]`, where they are.
      dense_shape: the shape of the whole tensor, known while JAX traces; None if it is not needed.
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None):
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Any:
        return self._values

    @property
    def indices(self) -> Any:
        return self._indices

    @property
    def dense_shape(self) -> Any:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        return TensorShape(None if self._dense_shape is None else static_shape(self._dense_shape))

    @property
    def dtype(self) -> dtypes.DType:
        return dtypes.dtype_of(self._values)

    @property
    def _type_spec(self) -> TypeSpec:
        known = self._dense_shape is not None
        return IndexedSlicesSpec(
            self.shape if known else [None, *np.shape(self._values)[1:]],
            self.dtype,
            dtypes.dtype_of(self._indices),
            dtypes.dtype_of(self._dense_shape) if known else None,
            np.shape(self._indices),
        )

    def __neg__(self) -> IndexedSlices:
        negative = OPERATORS["negative"](self._values)
        return IndexedSlices(negative, self._indices, self._dense_shape)

    def __tf_tensor__(self) -> Any:
        if self._dense_shape is None:
            raise ValueError(
                "Tensor conversion requested for IndexedSlices for argument `value` without"
                f" dense_shape: {self}"
            )
        rows = static_shape(self._dense_shape)[0]
        return EXPORTS["math.unsorted_segment_sum"](self._values, self._indices, rows)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"


@export("IndexedSlicesSpec")
class IndexedSlicesSpec(TypeSpec):
    """What a tf.IndexedSlices is."""

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ):
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = (
            None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        )
        self._indices_shape = as_shape([None] if indices_shape is None else indices_shape)

    @property
    def value_type(self) -> type:
        return IndexedSlices

    def _serialize(self) -> tuple:
        return (
            self._shape,
            self._dtype,
            self._indices_dtype,
            self._dense_shape_dtype,
            self._indices_shape,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexedSlicesSpec) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash(tuple(map(str, self._serialize())))

    def __repr__(self) -> str:
        return f"IndexedSlicesSpec({', '.join(map(repr, self._serialize()))})"

    @property
    def _component_specs(self) -> list:
        rows = self._indices_shape.as_list()
        below = None if self._shape.rank is None else [*rows, *self._shape.as_list()[1:]]
        specs = [
            TensorSpec(below, self._dtype),
            TensorSpec(self._indices_shape, self._indices_dtype),
        ]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return specs

    def _to_components(self, value: IndexedSlices) -> list:
        parts = [value.values, value.indices]
        return parts if value.dense_shape is None else [*parts, value.dense_shape]

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)


if JAX_MODE:

    def _flattened(value: IndexedSlices) -> tuple:
        shape = value.dense_shape
        # A list of sizes stays the list that it was given as.
        dtype = dtypes.dtype_of(shape).name if hasattr(shape, "dtype") else "int32"
        known = None if shape is None else (static_shape(shape), dtype)
        return (value.values, value.indices), known

    def _unflattened(known: Any, parts: tuple) -> IndexedSlices:
        shape = None if known is None else wrap(convert(known[0], dtypes.as_dtype(known[1])))
        values, indices = parts
        return IndexedSlices(values, indices, shape)

    jax.tree_util.register_pytree_node(IndexedSlices, _flattened, _unflattened)
