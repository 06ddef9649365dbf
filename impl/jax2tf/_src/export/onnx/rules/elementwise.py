"""Ops on each element: arithmetic, functions of numbers, comparisons, logic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.choices import where
from jax2tf._src.export.onnx.rules.dtypes import ask, cast, compute
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# ONNX's op of the same meaning, whose result has the dtype of its operands.
_SAME: Mapping[str, str] = {
    **{op: op for op in ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos")},
    **{op: op for op in ("Cosh", "Erf", "Exp", "Floor", "Log", "Mul", "Neg", "Sin", "Sinh")},
    **{op: op for op in ("Sqrt", "Sub", "Tan", "Tanh")},
    **dict.fromkeys(("Add", "AddV2"), "Add"),
    "RealDiv": "Div",
    **dict.fromkeys(("Inv", "Reciprocal"), "Reciprocal"),
}
_COMPARISONS: Mapping[str, str] = {
    "Equal": "Equal",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "IsNan": "IsNaN",
}
# The first opset whose IsInf takes float16.
_OPSET_OF_INFINITE_HALVES = 20
_LOGIC: Mapping[str, str] = {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not"}


def dtype_of(node: Node, i: int = 0) -> np.dtype:
    """The dtype of an operand."""
    dtype = node.inputs[i].dtype
    assert dtype is not None
    return dtype


def is_float(dtype: np.dtype) -> bool:
    """Whether numbers of the dtype may have a fraction."""
    return dtype.kind not in "biu"


@writes(*_SAME)
def _same(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    return compute(w, _SAME[node.op], dtype_of(node), *operands)


@writes(*_COMPARISONS)
def _comparison(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    return ask(w, _COMPARISONS[node.op], dtype_of(node), *operands)


@writes(*_LOGIC)
def _logic(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    return w.op(_LOGIC[node.op], *operands)


@writes("NotEqual")
def _not_equal(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    if dtype_of(node) == np.bool_:
        return w.op("Xor", x, y)
    return w.op("Not", ask(w, "Equal", dtype_of(node), x, y))


@writes("IsInf")
def _is_inf(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return is_infinite(w, dtype_of(node), x)


def is_infinite(w: Writer, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """Whether each number is infinite."""
    if dtype == np.float16 and w.opset < _OPSET_OF_INFINITE_HALVES:
        return w.op("IsInf", cast(w, x, np.dtype(np.float32)))
    return ask(w, "IsInf", dtype, x)


@writes("IsFinite")
def _is_finite(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    # Less than infinity: a NaN is less than nothing.
    dtype = dtype_of(node)
    size = compute(w, "Abs", dtype, x)
    return ask(w, "Less", dtype, size, w.constant(np.inf, dtype))


@writes("Sign")
def _sign(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return sign(w, dtype_of(node), x)


def sign(w: Writer, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """-1, 0, 1 or NaN."""
    if dtype != np.int64:
        return compute(w, "Sign", dtype, x)
    zero = w.constant(0, dtype)
    positive = cast(w, w.op("Less", zero, x), dtype)
    return w.op("Where", w.op("Less", x, zero), w.constant(-1, dtype), positive)


@writes("Round", "Rint")
def _round(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    return compute(w, "Round", dtype, x) if is_float(dtype) else x


@writes("Square")
def _square(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, "Mul", dtype_of(node), x, x)


@writes("SquaredDifference")
def _squared_difference(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    difference = compute(w, "Sub", dtype_of(node), x, y)
    return compute(w, "Mul", dtype_of(node), difference, difference)


@writes("Rsqrt")
def _rsqrt(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, "Reciprocal", dtype_of(node), compute(w, "Sqrt", dtype_of(node), x))


@writes("AddN")
def _add_n(w: Writer, node: Node, x: ir.Value, *others: ir.Value) -> ir.Value:
    for other in others:
        x = compute(w, "Add", dtype_of(node), x, other)
    return x


@writes("Atan2")
def _atan2(w: Writer, node: Node, y: ir.Value, x: ir.Value) -> ir.Value:
    """atan(y / x), and for a negative `x` half a turn more in the direction of `y`."""
    dtype, known = dtype_of(node), node.inputs[1].value
    if known is not None and np.all((known > 0) & np.isfinite(known)):
        return compute(
            w, "Atan", dtype, y if np.all(known == 1) else compute(w, "Div", dtype, y, x)
        )

    def number(value: float) -> ir.Value:
        return w.constant(value, dtype)

    def both(this: ir.Value, that: ir.Value) -> ir.Value:
        return w.op("And", this, that)

    # The quotient of two infinities is that of their signs, and two zeros have the angle of y / 1.
    infinite = both(is_infinite(w, dtype, y), is_infinite(w, dtype, x))
    zero = both(ask(w, "Equal", dtype, y, number(0)), ask(w, "Equal", dtype, x, number(0)))
    above = where(w, dtype, infinite, compute(w, "Sign", dtype, y), y)
    below = where(w, dtype, infinite, compute(w, "Sign", dtype, x), x)
    below = where(w, dtype, zero, number(1), below)
    angle = compute(w, "Atan", dtype, compute(w, "Div", dtype, above, below))
    half_turn = where(w, dtype, _has_sign(w, dtype, y), number(-np.pi), number(np.pi))
    turned = compute(w, "Add", dtype, angle, half_turn)
    return where(w, dtype, _has_sign(w, dtype, x), turned, angle)


def _has_sign(w: Writer, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """Whether `x` is negative or -0.0."""
    inverse = compute(w, "Reciprocal", dtype, x)
    return ask(w, "Less", dtype, compute(w, "Add", dtype, x, inverse), w.constant(0, dtype))


@writes("DivNoNan")
def _div_no_nan(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    zero = w.constant(0, dtype)
    is_zero = ask(w, "Equal", dtype, y, zero)
    return where(w, dtype, is_zero, zero, compute(w, "Div", dtype, x, y))


@writes("MulNoNan")
def _mul_no_nan(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    zero = w.constant(0, dtype)
    is_zero = ask(w, "Equal", dtype, y, zero)
    return where(w, dtype, is_zero, zero, compute(w, "Mul", dtype, x, y))
