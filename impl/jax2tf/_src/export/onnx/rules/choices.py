"""Choices between two arrays."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import compute, narrowed, widened
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node


def where(
    w: Writer, dtype: np.dtype, condition: ir.Value, this: ir.Value, that: ir.Value
) -> ir.Value:
    """`this` where the condition holds, else `that`, both of a dtype."""
    this, that = (widened(w, "Where", dtype, x) for x in (this, that))
    return narrowed(w, "Where", dtype, w.op("Where", condition, this, that))


@writes("SelectV2")
def _select(w: Writer, node: Node, condition: ir.Value, this: ir.Value, that: ir.Value) -> ir.Value:
    dtype = node.inputs[1].dtype
    assert dtype is not None
    return where(w, dtype, condition, this, that)


@writes("Maximum", "Minimum")
def _extreme(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return (maximum if node.op == "Maximum" else minimum)(w, dtype, x, y)


def maximum(w: Writer, dtype: np.dtype, x: ir.Value, y: ir.Value) -> ir.Value:
    """The larger numbers, and NaN where one is NaN."""
    if dtype == np.int64:
        return where(w, dtype, w.op("Less", x, y), y, x)
    return compute(w, "Max", dtype, x, y)


def minimum(w: Writer, dtype: np.dtype, x: ir.Value, y: ir.Value) -> ir.Value:
    """The smaller numbers, and NaN where one is NaN."""
    if dtype == np.int64:
        return where(w, dtype, w.op("Less", x, y), x, y)
    return compute(w, "Min", dtype, x, y)


def clipped(w: Writer, dtype: np.dtype, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """`x` between two scalars."""
    if dtype == np.int64:
        return maximum(w, dtype, minimum(w, dtype, x, high), low)
    return compute(w, "Clip", dtype, x, low, high)


@writes("ClipByValue")
def _clip(w: Writer, node: Node, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    dtype = node.inputs[0].dtype
    assert dtype is not None
    if node.inputs[1].shape == () and node.inputs[2].shape == ():
        return clipped(w, dtype, x, low, high)
    return maximum(w, dtype, minimum(w, dtype, x, high), low)
