"""Ops on each element: arithmetic, functions of numbers, comparisons, logic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.choices import where
from jax2tf._src.export.onnx.rules.dtypes import ask, compute
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# ONNX's op of the same meaning, whose result has the dtype of its operands.
_SAME: Mapping[str, str] = {
    **{op: op for op in ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos")},
    **{op: op for op in ("Cosh", "Erf", "Exp", "Floor", "Log", "Mul", "Neg", "Pow", "Sin", "Sinh")},
    **{op: op for op in ("Sqrt", "Sub", "Tan", "Tanh")},
    **dict.fromkeys(("Add", "AddV2"), "Add"),
    **dict.fromkeys(("Div", "RealDiv"), "Div"),
    **dict.fromkeys(("Inv", "Reciprocal"), "Reciprocal"),
    "Maximum": "Max",
    "Minimum": "Min",
}
_COMPARISONS: Mapping[str, str] = {
    "Equal": "Equal",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "IsNan": "IsNaN",
    "IsInf": "IsInf",
}
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


@writes("IsFinite")
def _is_finite(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    # Less than infinity: a NaN is less than nothing.
    dtype = dtype_of(node)
    size = compute(w, "Abs", dtype, x)
    return ask(w, "Less", dtype, size, w.constant(np.inf, dtype))


@writes("Sign")
def _sign(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return compute(w, "Sign", dtype_of(node), x)


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
    """The angle by quadrant: atan(y / x), plus or minus pi where x is negative."""
    dtype = dtype_of(node)

    def number(value: float) -> ir.Value:
        return w.constant(value, dtype)

    zero = number(0)
    # 1 / x tells the signs of zeros apart.
    x_is_negative = _has_sign(w, dtype, x)
    y_is_negative = _has_sign(w, dtype, y)
    both_zero = w.op("And", ask(w, "Equal", dtype, x, zero), ask(w, "Equal", dtype, y, zero))
    infinite = number(np.inf)
    both_infinite = w.op(
        "And",
        ask(w, "Equal", dtype, compute(w, "Abs", dtype, x), infinite),
        ask(w, "Equal", dtype, compute(w, "Abs", dtype, y), infinite),
    )
    ratio = compute(w, "Div", dtype, compute(w, "Abs", dtype, y), compute(w, "Abs", dtype, x))
    ratio = where(w, dtype, both_infinite, number(1), ratio)
    ratio = where(w, dtype, both_zero, zero, ratio)
    angle = compute(w, "Atan", dtype, ratio)
    angle = where(w, dtype, x_is_negative, compute(w, "Sub", dtype, number(np.pi), angle), angle)
    return where(w, dtype, y_is_negative, compute(w, "Neg", dtype, angle), angle)


def _has_sign(w: Writer, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """Whether `x` is negative or -0.0."""
    zero = w.constant(0, dtype)
    inverse = compute(w, "Reciprocal", dtype, x)
    return w.op("Or", ask(w, "Less", dtype, x, zero), ask(w, "Less", dtype, inverse, zero))


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
