"""Ops on each element."""

from __future__ import annotations

import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# ONNX's op of the same meaning, for the dtypes that ONNX Runtime has.
_SAME = {"Cos": "Cos", "Exp": "Exp", "Sin": "Sin"}


@writes(*_SAME)
def _same(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return w.op(_SAME[node.op], x)
