"""tf.SparseTensor and its dense tensor, and tf.sets of values that are known.

How many elements a set has decides a shape, so its values are known while JAX traces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export, named, op
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import convert, static_value, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


@export("SparseTensor", "sparse.SparseTensor", "compat.v1.SparseTensorValue")
class SparseTensor:
    """The elements of a tensor that are not zero, and where they are.

    >>> from tf_substrates.numpy import tf
    >>> sparse = tf.SparseTensor([[0, 1]], [5], [2, 2])
    >>> print(tf.sparse.to_dense(sparse))
    tf.Tensor([[0 5]
     [0 0]], shape=(2, 2), dtype=int32)
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any):
        self.indices = wrap(convert(indices, dtype=dtypes.int64))
        self.values = wrap(convert(values))
        self.dense_shape = wrap(convert(dense_shape, dtype=dtypes.int64))

    @property
    def dtype(self) -> dtypes.DType:
        return dtypes.dtype_of(self.values)

    @property
    def shape(self) -> TensorShape:
        return TensorShape([int(size) for size in np.asarray(self.dense_shape)])

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values},"
            f" dense_shape={self.dense_shape})"
        )


if JAX_MODE:

    def _flattened(value: SparseTensor) -> tuple:
        return (value.indices, value.values), tuple(value.shape.as_list())

    def _unflattened(shape: tuple, parts: tuple) -> SparseTensor:
        # Not by __init__: the parts may be anything while JAX takes trees apart.
        made = object.__new__(SparseTensor)
        made.indices, made.values = parts
        made.dense_shape = np.array(shape, np.int64)
        return made

    jax.tree_util.register_pytree_node(SparseTensor, _flattened, _unflattened)


@op("sparse.to_dense")
def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Any:
    """The whole tensor, with `default_value` (0) where the sparse one has no element."""
    values, shape = convert(sp_input.values), sp_input.shape.as_list()
    nothing = b"" if values.dtype.kind == "O" else np.zeros((), values.dtype)
    default = convert(nothing if default_value is None else default_value, dtype=values.dtype)
    indices = convert(sp_input.indices)
    if validate_indices and isinstance(indices, np.ndarray):
        _validate(indices, shape)
    at = tuple(xp.moveaxis(indices, -1, 0))
    if all(isinstance(part, np.ndarray) for part in (values, indices, default)):
        dense = np.full(shape, default, values.dtype)
        dense[at] = values
        return dense
    filled: Any = xp.full(shape, default, values.dtype)  # an array of JAX's
    return filled.at[at].set(values)


def _validate(indices: np.ndarray, shape: list) -> None:
    """The indices of tf.sparse.to_dense, which are inside and rise."""
    before: list = []
    for i, index in enumerate(indices.tolist()):
        what = ""
        if not all(0 <= part < size for part, size in zip(index, shape, strict=True)):
            what = f"out of bounds: need 0 <= index < {shape}"
        elif index == before:
            what = "repeated"
        elif index < before:
            what = "out of order. Many sparse ops require sorted indices"
        if what:
            raise invalid_argument(f"indices[{i}] = {index} is {what} [Op:SparseToDense]")
        before = index


def _set_operation(kind: str, combine: Callable, documentation: str) -> None:
    def call(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
        return _of_rows(kind, functools.partial(_kept, combine), a, b)

    export(f"sets.{kind}")(named(call, kind, documentation))


def _kept(combine: Callable, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return combine(np.unique(a), np.unique(b))


@export("sets.difference")
def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of each row of `a` that are not in the same row of `b`, or the other way.

    Args:
      a, b: `[..., n]` and `[..., m]`, known while JAX traces, with the same leading dimensions.
      aminusb: whether `b` is taken from `a`.

    Raises:
      ValueError: a value depends on what JAX traces.
      tf.errors.InvalidArgumentError: the leading dimensions differ.
    """
    first, second = (a, b) if aminusb else (b, a)
    return _of_rows("difference", functools.partial(_kept, np.setdiff1d), first, second)


_set_operation("intersection", np.intersect1d, "The elements that both rows have.")
_set_operation("union", np.union1d, "The elements that either row has.")


def _of_rows(kind: str, combine: Callable, a: Any, b: Any) -> SparseTensor:
    first, second = (
        np.asarray(static_value(convert(_dense(x)), f"tf.sets.{kind}: a set")) for x in (a, b)
    )
    if first.dtype != second.dtype:
        raise TypeError(f"Types mismatch: {first.dtype} and {second.dtype} in tf.sets.{kind}")
    if first.shape[:-1] != second.shape[:-1]:
        raise invalid_argument(
            f"Mismatched group shapes {list(first.shape[:-1])} vs {list(second.shape[:-1])}"
        )
    rows = {at: combine(first[at], second[at]) for at in np.ndindex(first.shape[:-1])}
    indices = [(*at, i) for at, row in rows.items() for i in range(len(row))]
    width = max((len(row) for row in rows.values()), default=0)
    values = np.concatenate([*rows.values(), np.zeros(0, first.dtype)]).astype(first.dtype)
    where = np.array(indices, np.int64).reshape(len(indices), first.ndim)
    return SparseTensor(where, values, [*first.shape[:-1], width])


def _dense(value: Any) -> Any:
    return to_dense(value) if isinstance(value, SparseTensor) else value


@op("sets.size")
def size(a: SparseTensor, validate_indices: bool = True) -> Any:
    """How many different elements each row of a sparse tensor has, as int32."""
    shape = tuple(a.shape.as_list()[:-1])
    counts = np.zeros(shape, np.int32)
    seen = set()
    for index, value in zip(np.asarray(a.indices), np.asarray(a.values), strict=True):
        row = tuple(int(i) for i in index[:-1])
        if (row, value.item()) not in seen:
            seen.add((row, value.item()))
            counts[row] += 1
    return counts
