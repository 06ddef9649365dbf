"""Random numbers that no key determines."""

from __future__ import annotations

import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Node


@writes("RandomUniform")
def _random_uniform(w: Writer, node: Node, shape: ir.Value) -> ir.Value:
    """Numbers from 0 to 1, other ones in each run: TensorFlow's seeds mean nothing elsewhere."""
    dtype = onnx_dtype(sizes.dtype_of(node.outputs[0]))
    zeros = w.op("ConstantOfShape", w.op("Cast", shape, to=ir.DataType.INT64))
    return w.op("RandomUniformLike", zeros, dtype=dtype, low=0.0, high=1.0)
