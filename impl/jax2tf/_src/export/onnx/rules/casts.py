"""Casts, and bits read as another dtype."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Node

# The first opset that has BitCast.
_OPSET_OF_BITCAST = 26


@writes("Cast")
def _cast(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    if dtype == node.inputs[0].dtype:
        return x
    number = onnx_dtype(dtype)
    # TensorFlow makes NaN or infinities of what is too large for eight bits.
    saturate = 0 if number.name.startswith("FLOAT8") else None
    return w.op("Cast", x, to=int(number), saturate=saturate)


@writes("Bitcast")
def _bitcast(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    source, target = node.inputs[0].dtype, node.outputs[0].dtype
    assert source is not None
    assert target is not None
    if source == target:
        return x
    if source.itemsize == target.itemsize:
        if source.kind in "iu" and target.kind in "iu":
            return w.op("Cast", x, to=int(onnx_dtype(target)))
        if w.opset >= _OPSET_OF_BITCAST and np.bool_ not in (source, target):
            return w.op("BitCast", x, to=int(onnx_dtype(target)))
    raise NotImplementedError(
        f"ONNX of opset {w.opset} does not read the bits of {source.name} as {target.name}"
    )
