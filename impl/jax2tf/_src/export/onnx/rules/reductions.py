"""Reductions over axes, running sums and products, and the largest elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import ask, cast, compute, narrowed, widened
from jax2tf._src.export.onnx.rules.elementwise import dtype_of
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree

_REDUCTIONS: Mapping[str, str] = {
    "Sum": "ReduceSum",
    "Prod": "ReduceProd",
    "Mean": "ReduceMean",
    "Max": "ReduceMax",
    "Min": "ReduceMin",
    "All": "ReduceMin",
    "Any": "ReduceMax",
}
# The first opset whose ReduceMax and ReduceMin take bool.
_OPSET_OF_BOOLS = 20
# The first opset that has CumProd.
_OPSET_OF_CUMPROD = 26

_INT64 = np.dtype(np.int64)
_UINT8 = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)


@writes(*_REDUCTIONS)
def _reduce(w: Writer, node: Node, x: ir.Value, axes: ir.Value) -> ir.Value:
    op, dtype = _REDUCTIONS[node.op], dtype_of(node)
    known = node.inputs[1].value
    if known is not None:
        if known.size == 0:
            return x
        axes = w.constant(np.atleast_1d(known).astype(np.int64))
    else:
        axes = w.op("Reshape", cast(w, axes, _INT64), w.constant([-1], np.int64))
    settings: dict[str, PyTree] = {"keepdims": int(node.attributes.get("keep_dims", False))}
    if known is None:
        settings["noop_with_empty_axes"] = 1
    if dtype == _BOOL and w.opset < _OPSET_OF_BOOLS:
        return cast(w, w.op(op, cast(w, x, _UINT8), axes, **settings), _BOOL)
    if dtype == _BOOL:
        return w.op(op, x, axes, **settings)
    result = w.op(op, widened(w, op, dtype, x), axes, **settings)
    return narrowed(w, op, dtype, result)


@writes("ArgMax", "ArgMin")
def _arg(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    known = node.inputs[1].value
    if known is None:
        raise NotImplementedError(f"ONNX has no {node.op} along an axis that is computed")
    dtype = dtype_of(node)
    if dtype == _BOOL:
        x, dtype = cast(w, x, _UINT8), _UINT8
    place = ask(w, node.op, dtype, x, axis=int(known), keepdims=0)
    result = node.outputs[0].dtype
    assert result is not None
    return place if result == _INT64 else cast(w, place, result)


@writes("TopKV2", "TopK")
def _top_k(w: Writer, node: Node, x: ir.Value, *k: ir.Value) -> Sequence[ir.Value]:
    dtype = dtype_of(node)
    if not k:
        number = w.constant([node.attributes["k"]], np.int64)
    elif node.inputs[1].value is not None:
        number = w.constant([int(node.inputs[1].value)], np.int64)
    else:
        number = w.op("Reshape", cast(w, k[0], _INT64), w.constant([1], np.int64))
    values, places = w.op("TopK", widened(w, "TopK", dtype, x), number, n=2, axis=-1)
    result = node.outputs[1].dtype
    assert result is not None
    places = places if result == _INT64 else cast(w, places, result)
    return narrowed(w, "TopK", dtype, values), places


@writes("Cumsum")
def _cumsum(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    return _running(w, node, "CumSum", x, axis)


@writes("Cumprod")
def _cumprod(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    if w.opset >= _OPSET_OF_CUMPROD:
        return _running(w, node, "CumProd", x, axis)
    return _running_product(w, node, x)


def _running(w: Writer, node: Node, op: str, x: ir.Value, axis: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    known = node.inputs[1].value
    if known is not None:
        axis = w.constant(known.astype(np.int64))
    result = w.op(
        op,
        widened(w, op, dtype, x),
        axis,
        exclusive=int(node.attributes.get("exclusive", False)),
        reverse=int(node.attributes.get("reverse", False)),
    )
    return narrowed(w, op, dtype, result)


def _running_product(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    """Products along an axis by a Scan, which multiplies slice by slice."""
    known, shape = node.inputs[1].value, node.inputs[0].shape
    if known is None or shape is None:
        raise NotImplementedError("ONNX needs the axis and the rank of a Cumprod")
    dtype, rank = dtype_of(node), len(shape)
    axis = int(known) % rank
    rest = [size for i, size in enumerate(shape) if i != axis]
    if all(isinstance(size, int) for size in rest):
        start = w.constant(np.ones(rest, dtype))
    else:
        sizes = w.op("Shape", x)
        kept = w.op("Gather", sizes, w.constant([i for i in range(rank) if i != axis], np.int64))
        start = w.op("Expand", w.constant(1, dtype), kept)
    direction = int(node.attributes.get("reverse", False))
    _, result = w.op(
        "Scan",
        start,
        x,
        n=2,
        body=_step(w, dtype, rank - 1, bool(node.attributes.get("exclusive", False))),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis],
        scan_input_directions=[direction],
        scan_output_directions=[direction],
    )
    return result


def _step(w: Writer, dtype: np.dtype, rank: int, exclusive: bool) -> ir.Graph:
    """The body of a Scan: the product until here, and what is given for this slice."""
    kind = ir.TensorType(onnx_dtype(dtype))
    inner = Writer(w.program, w.opset, w)
    product, x = (
        ir.Value(name=f"{name}_{next(w._numbers)}", type=kind, shape=ir.Shape([None] * rank))
        for name in ("product", "slice")
    )
    following = compute(inner, "Mul", dtype, product, x)
    carried, given = (
        inner.op("Identity", y) for y in (following, product if exclusive else following)
    )
    for value in (carried, given):
        value.type, value.shape = kind, ir.Shape([None] * rank)
    return ir.Graph(
        [product, x], [carried, given], nodes=inner.nodes, name=f"step_{next(w._numbers)}"
    )
