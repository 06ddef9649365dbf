"""Gathers, scatters, reductions, sums along an axis and sorted elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jax2tf._src.export.tflite.model import Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.arrays import known_axis
from jax2tf._src.export.tflite.rules.elementwise import rank_of, static_shape
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree


@writes("GatherV2")
def _gather(w: Writer, node: Node, x: Value, indices: Value, axis: Value) -> Value:
    rank = rank_of(node.inputs[0])
    batch = int(node.attributes.get("batch_dims", 0))
    batch += rank_of(node.inputs[1]) if batch < 0 else 0
    at = known_axis(axis, rank)
    return w.op("GATHER", x, indices, like=node.outputs[0], axis=at, batchDims=batch)


@writes("GatherNd")
def _gather_nd(w: Writer, node: Node, x: Value, indices: Value) -> Value:
    return w.op("GATHER_ND", x, indices, like=node.outputs[0])


@writes("ScatterNd")
def _scatter_nd(w: Writer, node: Node, indices: Value, updates: Value, shape: Value) -> Value:
    return w.op("SCATTER_ND", indices, updates, shape, like=node.outputs[0])


@writes("TensorScatterAdd")
def _scatter_add(w: Writer, node: Node, x: Value, indices: Value, updates: Value) -> Value:
    sums = w.op("SCATTER_ND", indices, updates, _shape_of(w, x), like=x)
    return w.op("ADD", x, sums, like=x)


@writes("TensorScatterUpdate")
def _scatter_update(w: Writer, node: Node, x: Value, indices: Value, updates: Value) -> Value:
    # No index is there twice: the target lacks the op where one may be.
    shape = _shape_of(w, x)
    written = w.op("SCATTER_ND", indices, updates, shape, like=x)
    filled = w.op(
        "FILL", _shape_of(w, updates), w.constant(True), dtype=np.bool_, shape=updates.shape
    )
    places = w.op("SCATTER_ND", indices, filled, shape, dtype=np.bool_, shape=x.shape)
    return w.op("SELECT_V2", places, written, x, like=x)


def _shape_of(w: Writer, x: Value) -> Value:
    known = static_shape(x)
    if known is not None:
        return w.constant(np.array(known, np.int32))
    return w.op("SHAPE", x, dtype=np.int32, shape=(rank_of(x),), outType=np.dtype("int32"))


_SEGMENTS = {
    "UnsortedSegmentMax": "UNSORTED_SEGMENT_MAX",
    "UnsortedSegmentMin": "UNSORTED_SEGMENT_MIN",
    "UnsortedSegmentProd": "UNSORTED_SEGMENT_PROD",
    "UnsortedSegmentSum": "UNSORTED_SEGMENT_SUM",
}


@writes(*_SEGMENTS)
def _segments(w: Writer, node: Node, *operands: Value) -> Value:
    return w.op(_SEGMENTS[node.op], *operands, like=node.outputs[0])


_REDUCTIONS: Mapping[str, str] = {
    "All": "REDUCE_ALL",
    "Any": "REDUCE_ANY",
    "Max": "REDUCE_MAX",
    "Mean": "MEAN",
    "Min": "REDUCE_MIN",
    "Prod": "REDUCE_PROD",
    "Sum": "SUM",
}


@writes(*_REDUCTIONS)
def _reduction(w: Writer, node: Node, x: Value, axes: Value) -> Value:
    if axes.array is not None and axes.array.size == 0:
        return x
    keeps = bool(node.attributes["keep_dims"])
    return w.op(_REDUCTIONS[node.op], x, axes, like=node.outputs[0], keepDims=keeps)


@writes("Cumsum")
def _cumsum(w: Writer, node: Node, x: Value, axis: Value) -> Value:
    flags: dict[str, PyTree] = {
        name: bool(node.attributes[name]) for name in ("exclusive", "reverse")
    }
    return w.op("CUMSUM", x, axis, like=node.outputs[0], **flags)


@writes("ArgMax", "ArgMin")
def _arg(w: Writer, node: Node, x: Value, axis: Value) -> Value:
    code = "ARG_MAX" if node.op == "ArgMax" else "ARG_MIN"
    return w.op(code, x, axis, like=node.outputs[0], outputType=node.outputs[0].dtype)


@writes("TopKV2")
def _top_k(w: Writer, node: Node, x: Value, k: Value) -> list[Value]:
    return w.ops_of("TOPK_V2", [x, k], [(y.dtype, y.shape) for y in node.outputs])
