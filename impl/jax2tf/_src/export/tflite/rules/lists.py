"""Lists of tensors, which are arrays of one more dimension."""

from __future__ import annotations

import math

import numpy as np

from jax2tf._src.export.tflite.model import Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.elementwise import SMALL, cast, rank_of
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node

_INT32 = np.dtype("int32")


@writes("TensorListReserve")
def _reserve(w: Writer, node: Node, shape: Value, count: Value) -> Value:
    dtype = np.dtype(node.attributes["element_dtype"])
    row = _sizes_of_rows(shape)
    n = None if count.array is None else int(count.array.reshape(()))
    if n is not None and None not in row:
        whole = [n, *(size for size in row if size is not None)]
        if math.prod(whole) <= SMALL:
            return w.constant(np.zeros(whole, dtype))
        lengths = w.constant(whole, np.int32)
    else:
        one = w.constant([1], np.int32)
        size = cast(w, count, _INT32)
        first = w.op("RESHAPE", size, one, dtype=_INT32, shape=(1,), newShape=[1])
        others = cast(w, shape, _INT32)
        lengths = w.op("CONCATENATION", first, others, dtype=_INT32, shape=(1 + len(row),), axis=0)
    return w.op("FILL", lengths, w.constant(0, dtype), dtype=dtype, shape=(n, *row))


def _sizes_of_rows(shape: Value) -> list[int | None]:
    """The sizes of the arrays of a list, as far as they are known before the run."""
    if shape.array is None:
        length = shape.shape[0] if shape.shape else None
        if isinstance(length, int):
            return [None] * length
    elif shape.array.ndim == 1 and (shape.array >= 0).all():
        return [int(n) for n in shape.array]
    raise NotImplementedError("a list of arrays whose shape is not known")


@writes("TensorListSetItem")
def _set_item(w: Writer, node: Node, array: Value, index: Value, item: Value) -> Value:
    rank = rank_of(array)
    row = w.op(
        "EXPAND_DIMS",
        item,
        w.constant(0, np.int32),
        dtype=item.dtype,
        shape=(1, *(item.shape or ())),
    )
    return w.op("DYNAMIC_UPDATE_SLICE", array, row, _start(w, index, rank), like=array)


def _start(w: Writer, index: Value, rank: int) -> Value:
    """The place of an element: its index, and zeros."""
    if index.array is not None:
        return w.constant([int(index.array.reshape(())), *[0] * (rank - 1)], np.int32)
    zeros = [w.constant(0, np.int32)] * (rank - 1)
    return w.op(
        "PACK",
        cast(w, index, _INT32),
        *zeros,
        dtype=_INT32,
        shape=(rank,),
        axis=0,
        valuesCount=rank,
    )


@writes("TensorListGetItem")
def _get_item(w: Writer, node: Node, array: Value, index: Value, shape: Value) -> Value:
    return w.op("GATHER", array, index, like=node.outputs[0], axis=0, batchDims=0)


@writes("TensorListStack")
def _stack(w: Writer, node: Node, array: Value, shape: Value) -> Value:
    return array


@writes("TensorListFromTensor")
def _from_tensor(w: Writer, node: Node, array: Value, shape: Value) -> Value:
    return array


@writes("TensorListLength")
def _length(w: Writer, node: Node, array: Value) -> Value:
    rank = rank_of(array)
    sizes = w.op("SHAPE", array, dtype=_INT32, shape=(rank,), outType=_INT32)
    return w.op("GATHER", sizes, w.constant(0, np.int32), like=node.outputs[0], axis=0, batchDims=0)
