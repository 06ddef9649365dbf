"""Reductions of the rows that have the same number, and the places of what is not zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.arrays import transposed
from jax2tf._src.export.onnx.rules.dtypes import cast
from jax2tf._src.export.onnx.rules.indexing import written_into
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node


def _lowest(dtype: np.dtype) -> object:
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> object:
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


# The reduction of ScatterND, and what a row without data has.
_SEGMENTS: Mapping[str, tuple[str, Callable[[np.dtype], object]]] = {
    "UnsortedSegmentSum": ("add", lambda dtype: 0),
    "UnsortedSegmentProd": ("mul", lambda dtype: 1),
    "UnsortedSegmentMax": ("max", _lowest),
    "UnsortedSegmentMin": ("min", _highest),
}


@writes(*_SEGMENTS)
def _segments(w: Writer, node: Node, x: ir.Value, places: ir.Value, count: ir.Value) -> ir.Value:
    given, numbers = node.inputs[:2]
    reduction, start = _SEGMENTS[node.op]
    dtype, depth = sizes.dtype_of(given), sizes.rank_of(numbers)
    row = (sizes.sizes_of(given) or [])[depth:]
    # Data of a negative number is dropped: it goes to a row behind the others, which is number -1.
    rows = sizes.joined(w, [sizes.scalar(node.inputs[2])])
    shape = [w.op("Add", rows, int64s(w, 1)), *([sizes.joined(w, row)] if row else [])]
    lengths = shape[0] if len(shape) == 1 else w.op("Concat", *shape, axis=0)
    number = np.array([start(dtype)], dtype)
    zeros = w.op("ConstantOfShape", lengths, value=ir.tensor(number))
    lowest = w.constant(np.array(-1, np.int32))
    near = w.op("Max", cast(w, places, np.dtype(np.int32)), lowest)
    index = w.op("Unsqueeze", cast(w, near, np.dtype(np.int64)), int64s(w, -1))
    result = written_into(w, dtype, zeros, index, x, reduction)
    return w.op("Slice", result, int64s(w, 0), rows, int64s(w, 0))


@writes("Where")
def _where(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    """The places of what is not zero: a row for each."""
    if node.inputs[0].dtype != np.bool_:
        x = w.op("Cast", x, to=ir.DataType.BOOL)
    return transposed(w, w.op("NonZero", x), [1, 0])
