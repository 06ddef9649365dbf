"""Activations of neural networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import compute
from jax2tf._src.export.onnx.rules.elementwise import dtype_of
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# ONNX's op of the same meaning.
_SAME: Mapping[str, str] = {
    "Relu": "Relu",
    "Elu": "Elu",
    "Selu": "Selu",
    "Sigmoid": "Sigmoid",
    "Softplus": "Softplus",
}


@writes(*_SAME)
def _same(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, _SAME[node.op], dtype_of(node), x)


@writes("Softmax", "LogSoftmax")
def _softmax(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, node.op, dtype_of(node), x, axis=-1)


@writes("LeakyRelu")
def _leaky_relu(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, "LeakyRelu", dtype_of(node), x, alpha=float(node.attributes["alpha"]))


@writes("Relu6")
def _relu6(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    return compute(w, "Clip", dtype, x, w.constant(0, dtype), w.constant(6, dtype))


@writes("Softsign")
def _softsign(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    below = compute(w, "Add", dtype, compute(w, "Abs", dtype, x), w.constant(1, dtype))
    return compute(w, "Div", dtype, x, below)


@writes("BiasAdd")
def _bias_add(w: Writer, node: Node, x: ir.Value, bias: ir.Value) -> ir.Value:
    shape = node.inputs[0].shape
    if node.attributes.get("data_format", "NHWC") == "NCHW":
        assert shape is not None
        sizes = [-1] + [1] * (len(shape) - 2)
        bias = w.op("Reshape", bias, w.constant(sizes, np.int64))
    return compute(w, "Add", dtype_of(node), x, bias)
