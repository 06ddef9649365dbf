"""Selection of elements: by a condition, by a mask, and each different one once."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.arrays.shaping import reshape, shape_of
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, has_dtype, listed, static_value, traced

JAX_MODE = False
if JAX_MODE:
    import jax


@op("where", static=True)
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """x where the condition holds, else y; without them where it holds, as int64 indices.

    While JAX traces the condition, single rows of the indices can be taken.

    Raises:
      ValueError: one of x and y alone; or all indices while JAX traces the condition.
    """
    if x is None and y is None:
        chosen = convert(condition)
        return IndicesOfTraced(chosen) if traced(chosen) else _indices(chosen)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    chosen = convert(condition, dtype=None if has_dtype(condition) else np.bool_)
    if chosen.dtype != np.bool_:
        raise invalid_argument(
            "cannot compute SelectV2 as input #0(zero-based) was expected to be a bool tensor but"
            f" is a {dtypes.dtype_of(chosen).name} tensor [Op:SelectV2]"
        )
    x, y = listed("SelectV2", [x, y])
    shape = broadcast_shapes(x.shape, y.shape, "SelectV2")
    broadcast_shapes(chosen.shape, shape, "SelectV2")
    return xp.where(chosen, x, y)


def _indices(chosen: Any) -> Any:
    found = static_value(chosen, "The number of indices that tf.where(condition) gives")
    return np.argwhere(found).astype(np.int64)


class IndicesOfTraced:
    """The indices of a condition that JAX traces: it is not known how many, and so not all of them.

    `indices[0, 0]` and `indices[2]` are known in shape. A row that is not there is zeros, as JAX's
    indices outside of an array are no errors.
    """

    def __init__(self, condition: Any) -> None:
        self._condition = condition

    def __getitem__(self, key: Any) -> Any:
        row, *rest = key if isinstance(key, tuple) else (key,)
        if not isinstance(row, (int, np.integer)) or row < 0:
            return _indices(self._condition)[key]
        nonzero: Any = xp.nonzero  # jax.numpy's: NumPy's takes no size
        at = nonzero(self._condition, size=int(row) + 1, fill_value=0)
        found = xp.stack(at, -1)[int(row)].astype(dtypes.numpy_dtype(dtypes.int64))
        return found[tuple(rest)]

    def __tf_tensor__(self, *_: Any) -> Any:
        return _indices(self._condition)

    __array__ = __len__ = __iter__ = __tf_tensor__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __tf_tensor__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_indices(self._condition), name)


if JAX_MODE:
    # As the result of what JAX compiles they are all wanted.
    jax.tree_util.register_pytree_node(
        IndicesOfTraced, lambda indices: (_indices(indices._condition), None), lambda _, rows: rows
    )


@export("compat.v1.where", "compat.v1.where_v2")
def where_v1(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """tf.where; a condition of rank 1 chooses among rows, as TensorFlow 1 does."""
    if x is not None and y is not None:
        rank_of = len(shape_of(condition))
        extra = len(shape_of(x)) - rank_of
        if rank_of == 1 and extra > 0:
            condition = reshape(condition, [-1] + [1] * extra)
    return where(condition, x, y)


@op("boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask") -> Any:
    """What the mask holds for. The mask must be known under jax.jit."""
    x = convert(tensor)
    mask = static_value(convert(mask, hint=np.bool_), "The mask of tf.boolean_mask").astype(
        np.bool_
    )
    axis = 0 if axis is None else one_axis(axis, len(x.shape), "tf.boolean_mask")
    if mask.ndim == 0:
        raise ValueError("mask cannot be scalar.")
    if x.shape[axis : axis + mask.ndim] != mask.shape:
        raise ValueError(f"Shapes {x.shape[axis:]} and {mask.shape} are incompatible")
    flat = x.reshape((*x.shape[:axis], -1, *x.shape[axis + mask.ndim :]))
    return xp.take(flat, np.flatnonzero(mask), axis)


Unique = collections.namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = collections.namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def _unique(x: Any) -> tuple:
    values = static_value(convert(x), "The number of values that tf.unique gives")
    if values.ndim != 1:
        raise invalid_argument("unique expects a 1D vector. [Op:Unique]")
    return unique_along(values, 0)


def unique_along(values: np.ndarray, axis: int) -> tuple:
    """The distinct slices in order of appearance, each slice's index among them, their counts."""
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    order = np.argsort(first)
    index = np.argsort(order)[np.reshape(inverse, -1)]
    return np.take(values, first[order], axis), index, counts[order]


@op("unique")
def unique(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    """The distinct values in the order they come, and the index of each element's value."""
    y, index, _ = _unique(x)
    return Unique(y, index.astype(dtypes.numpy_dtype(out_idx)))


@op("unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    y, index, counts = _unique(x)
    wanted = dtypes.numpy_dtype(out_idx)
    return UniqueWithCounts(y, index.astype(wanted), counts.astype(wanted))
