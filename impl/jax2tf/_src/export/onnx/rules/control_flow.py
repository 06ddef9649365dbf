"""Calls, loops and branches, and ops that pass values on."""

from __future__ import annotations

import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node


@writes("Identity", "PreventGradient", "StopGradient")
def _identity(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return x
