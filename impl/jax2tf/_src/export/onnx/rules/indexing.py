"""Ops that read and write elements by their indices, which have to be in bounds."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.arrays import expanded, filled, transposed
from jax2tf._src.export.onnx.rules.choices import where
from jax2tf._src.export.onnx.rules.dtypes import cast
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor


@writes("GatherV2")
def _gather(w: Writer, node: Node, x: ir.Value, indices: ir.Value, _: ir.Value) -> ir.Value:
    given, places = node.inputs[0], node.inputs[1]
    rank = sizes.rank_of(given)
    axis = sizes.axis_of(node.inputs[2], rank)
    batches = int(node.attributes.get("batch_dims", 0)) % (sizes.rank_of(places) + 1)
    if not batches:
        return w.op("Gather", x, _index(w, places, indices), axis=axis)
    # GatherND reads behind the batches: the dimension comes there, and those before it go behind.
    before = list(range(batches, axis))
    behind = list(range(axis + 1, rank))
    x = transposed(w, x, [*range(batches), axis, *before, *behind])
    points = w.op("Unsqueeze", sizes.as_int64(w, indices, places.dtype), int64s(w, -1))
    result = w.op("GatherND", x, points, batch_dims=batches)
    read = sizes.rank_of(places)
    moved = range(read, read + len(before))
    rest = range(read + len(before), read + len(before) + len(behind))
    return transposed(w, result, [*range(batches), *moved, *range(batches, read), *rest])


def _index(w: Writer, tensor: Tensor, indices: ir.Value) -> ir.Value:
    """Indices of int32 or int64."""
    if tensor.dtype in (np.int32, np.int64):
        return indices
    return sizes.as_int64(w, indices, tensor.dtype)


@writes("GatherNd")
def _gather_nd(w: Writer, node: Node, x: ir.Value, indices: ir.Value) -> ir.Value:
    given, places = node.inputs
    depth = places.shape[-1] if places.shape else None
    if depth == 0:
        batch = sizes.sizes_of(places) or []
        target = [*batch[:-1], *(sizes.sizes_of(given) or [])]
        return expanded(w, sizes.dtype_of(given), x, sizes.joined(w, target))
    if depth == 1:
        flat = w.op("Squeeze", _index(w, places, indices), int64s(w, -1))
        return w.op("Gather", x, flat, axis=0)
    return w.op("GatherND", x, sizes.as_int64(w, indices, places.dtype))


_REDUCTIONS = {
    "TensorScatterUpdate": None,
    "TensorScatterAdd": "add",
    "TensorScatterMin": "min",
    "TensorScatterMax": "max",
}


@writes(*_REDUCTIONS)
def _tensor_scatter(
    w: Writer, node: Node, x: ir.Value, indices: ir.Value, updates: ir.Value
) -> ir.Value:
    return scattered(w, node, x, indices, updates, _REDUCTIONS[node.op])


@writes("TensorScatterSub")
def _tensor_scatter_sub(
    w: Writer, node: Node, x: ir.Value, indices: ir.Value, updates: ir.Value
) -> ir.Value:
    zero = w.constant(np.array(0, node.inputs[2].dtype))
    negative = (
        w.op("Neg", updates) if node.inputs[2].dtype in _NEGATED else w.op("Sub", zero, updates)
    )
    return scattered(w, node, x, indices, negative, "add")


_NEGATED = tuple(
    map(np.dtype, ("float16", "float32", "float64", "int8", "int16", "int32", "int64"))
)


def scattered(
    w: Writer,
    node: Node,
    x: ir.Value,
    indices: ir.Value,
    updates: ir.Value,
    reduction: str | None,
) -> ir.Value:
    """The array with the updates of a node written into it."""
    places = sizes.as_int64(w, indices, node.inputs[1].dtype)
    return written_into(w, sizes.dtype_of(node.inputs[0]), x, places, updates, reduction)


def written_into(
    w: Writer,
    dtype: np.dtype,
    x: ir.Value,
    places: ir.Value,
    updates: ir.Value,
    reduction: str | None,
) -> ir.Value:
    """An array of a dtype with updates written into it, at places of int64."""
    if reduction is None or dtype.itemsize != 2 or dtype.kind in "iu":
        return w.op("ScatterND", x, places, updates, reduction=reduction)
    if reduction in ("add", "mul"):
        # A result in a wider dtype would be rounded once, and not after each update.
        raise NotImplementedError(f"ONNX Runtime's ScatterND has no {reduction} of {dtype.name}")
    single = np.dtype(np.float32)
    x, updates = cast(w, x, single), cast(w, updates, single)
    return cast(w, w.op("ScatterND", x, places, updates, reduction=reduction), dtype)


@writes("ScatterNd")
def _scatter_nd(
    w: Writer, node: Node, indices: ir.Value, updates: ir.Value, shape: ir.Value
) -> ir.Value:
    result = node.outputs[0]
    zero = w.constant(np.array(0, result.dtype))
    x = filled(w, result, sizes.entries(node.inputs[2]), zero, node.inputs[2])
    places = sizes.as_int64(w, indices, node.inputs[0].dtype)
    return written_into(w, sizes.dtype_of(result), x, places, updates, "add")


@writes("OneHot")
def _one_hot(
    w: Writer, node: Node, indices: ir.Value, depth: ir.Value, on: ir.Value, off: ir.Value
) -> ir.Value:
    places, result = node.inputs[0], node.outputs[0]
    rank = sizes.rank_of(places)
    axis = int(node.attributes["axis"]) % (rank + 1)
    numbers = sizes.as_int64(w, indices, places.dtype)
    count = sizes.scalar(node.inputs[1])
    if isinstance(count, int):
        classes = w.constant(np.arange(count).reshape(-1, *[1] * (rank - axis)))
    else:
        zero, one = (w.constant(np.array(n, np.int64)) for n in (0, 1))
        classes = w.op("Range", zero, sizes.as_int64(w, depth, node.inputs[1].dtype), one)
        classes = w.op("Reshape", classes, int64s(w, -1, *[1] * (rank - axis)))
    # ONNX's OneHot counts negative indices from the end.
    is_on = w.op("Equal", w.op("Unsqueeze", numbers, int64s(w, axis)), classes)
    return where(w, sizes.dtype_of(result), is_on, on, off)
