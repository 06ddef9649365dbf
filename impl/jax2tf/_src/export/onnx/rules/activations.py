"""Activations of neural networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.choices import clipped, maximum
from jax2tf._src.export.onnx.rules.dtypes import compute, has_kernel
from jax2tf._src.export.onnx.rules.elementwise import dtype_of
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# ONNX's op of the same meaning.
_SAME: Mapping[str, str] = {
    "Selu": "Selu",
    "Softplus": "Softplus",
}


@writes(*_SAME)
def _same(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, _SAME[node.op], dtype_of(node), x)


@writes("Relu")
def _relu(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if dtype.kind == "u":
        return x
    if has_kernel("Relu", dtype):
        return w.op("Relu", x)
    return maximum(w, dtype, x, w.constant(0, dtype))


@writes("Elu")
def _elu(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if dtype != np.float64:
        return compute(w, "Elu", dtype, x)
    # exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), exact near zero.
    half = w.op("Tanh", w.op("Mul", x, w.constant(0.5, dtype)))
    below = w.op("Mul", half, w.op("Add", w.op("Exp", x), w.constant(1, dtype)))
    return w.op("Where", w.op("Less", x, w.constant(0, dtype)), below, x)


@writes("Sigmoid")
def _sigmoid(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if dtype != np.float64:
        return compute(w, "Sigmoid", dtype, x)
    # ONNX Runtime computes that of float64 with the precision of float32.
    return w.op("Reciprocal", w.op("Add", w.op("Exp", w.op("Neg", x)), w.constant(1, dtype)))


@writes("Softmax", "LogSoftmax")
def _softmax(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if node.op == "LogSoftmax" and dtype == np.float64:
        return _log_softmax(w, x)
    return compute(w, node.op, dtype, x, axis=-1)


def _log_softmax(w: Writer, x: ir.Value) -> ir.Value:
    """That of float64, of which ONNX Runtime loses NaN."""
    last = w.constant([-1], np.int64)
    shifted = w.op("Sub", x, w.op("ReduceMax", x, last, keepdims=1))
    total = w.op("ReduceSum", w.op("Exp", shifted), last, keepdims=1)
    return w.op("Sub", shifted, w.op("Log", total))


@writes("LeakyRelu")
def _leaky_relu(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype, slope = dtype_of(node), float(node.attributes["alpha"])
    if dtype != np.float64:
        return compute(w, "LeakyRelu", dtype, x, alpha=slope)
    below = w.op("Mul", x, w.constant(slope, dtype))
    return w.op("Where", w.op("Less", x, w.constant(0, dtype)), below, x)


@writes("Relu6")
def _relu6(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    return clipped(w, dtype, x, w.constant(0, dtype), w.constant(6, dtype))


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
