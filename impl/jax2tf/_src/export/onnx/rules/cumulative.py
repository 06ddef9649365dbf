"""Running sums and products, and the largest elements in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import cast, dtype_to_compute, narrowed, widened
from jax2tf._src.export.onnx.rules.elementwise import dtype_of
from jax2tf._src.export.onnx.rules.scans import running
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# The first opset that has CumProd.
_OPSET_OF_CUMPROD = 26

_INT64 = np.dtype(np.int64)


@writes("Cumsum")
def _cumsum(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    return _cumulative(w, node, "CumSum", x, axis)


@writes("Cumprod")
def _cumprod(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    if w.opset >= _OPSET_OF_CUMPROD:
        return _cumulative(w, node, "CumProd", x, axis)
    known, shape = node.inputs[1].value, node.inputs[0].shape
    if known is None or shape is None:
        raise NotImplementedError("ONNX has no Cumprod along an axis that is computed")
    if 0 in shape:
        return x
    dtype = dtype_of(node)
    result = running(
        w,
        "Mul",
        dtype_to_compute("Mul", dtype),
        1,
        widened(w, "Mul", dtype, x),
        shape,
        int(known) % len(shape),
        exclusive=bool(node.attributes.get("exclusive", False)),
        reverse=bool(node.attributes.get("reverse", False)),
    )
    return narrowed(w, "Mul", dtype, result)


def _cumulative(w: Writer, node: Node, op: str, x: ir.Value, axis: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    result = w.op(
        op,
        widened(w, op, dtype, x),
        cast(w, axis, _INT64),
        exclusive=int(node.attributes.get("exclusive", False)),
        reverse=int(node.attributes.get("reverse", False)),
    )
    return narrowed(w, op, dtype, result)


@writes("TopKV2", "TopK")
def _top_k(w: Writer, node: Node, x: ir.Value, *k: ir.Value) -> Sequence[ir.Value]:
    dtype = dtype_of(node)
    known = node.inputs[1].value if k else np.array(node.attributes["k"])
    if known is None:
        number = w.op("Reshape", cast(w, k[0], _INT64), w.constant([1], np.int64))
    else:
        number = w.constant([int(known)], np.int64)
    values, places = w.op("TopK", widened(w, "TopK", dtype, x), number, n=2, axis=-1)
    result = node.outputs[1].dtype
    assert result is not None
    places = places if result == _INT64 else cast(w, places, result)
    return narrowed(w, "TopK", dtype, values), places
