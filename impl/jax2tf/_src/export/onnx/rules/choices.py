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
    """`this` where the condition holds, else `that`, both of a dtype.

    ONNX Runtime makes 0.0 of each -0.0 that it takes from the first choice.
    """
    negated = _negated(condition)
    if negated is not None:
        # ONNX Runtime exchanges the choices behind a Not, but not behind another op.
        if not _may_be_negative_zero(this) and _may_be_negative_zero(that):
            condition = w.op("Xor", negated, w.constant(True))
        else:
            condition, this, that = negated, that, this
    if dtype == np.bool_:
        logic = _logic(w, condition, this, that)
        if logic is not None:
            return logic
    this, that = (widened(w, "Where", dtype, x) for x in (this, that))
    return narrowed(w, "Where", dtype, w.op("Where", condition, this, that))


def _logic(w: Writer, condition: ir.Value, this: ir.Value, that: ir.Value) -> ir.Value | None:
    """A choice of bools, one of which is a constant scalar; None for others."""
    known = [_scalar(x) for x in (this, that)]
    if known[0] is not None:
        return w.op("Or", condition, that) if known[0] else w.op("And", _not(w, condition), that)
    if known[1] is not None:
        return w.op("Or", _not(w, condition), this) if known[1] else w.op("And", condition, this)
    return None


def _scalar(x: ir.Value) -> bool | None:
    array = None if x.const_value is None else x.const_value.numpy()
    return bool(array) if array is not None and array.ndim == 0 else None


def _not(w: Writer, condition: ir.Value) -> ir.Value:
    result: ir.Value = w.op("Not", condition)
    return result


def _negated(condition: ir.Value) -> ir.Value | None:
    """The operand of a Not; None for another condition."""
    made = condition.producer()
    return made.inputs[0] if made is not None and made.op_type == "Not" else None


def _may_be_negative_zero(x: ir.Value) -> bool:
    if x.const_value is None:
        return True
    array = x.const_value.numpy()
    return array.dtype.kind not in "biu" and bool(np.any((array == 0) & np.signbit(array)))


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
