"""Division and remainders, and ops on the bits of integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.choices import clipped, where
from jax2tf._src.export.onnx.rules.dtypes import ask, cast, compute
from jax2tf._src.export.onnx.rules.elementwise import dtype_of, is_float
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

_BITWISE: Mapping[str, str] = {
    "BitwiseAnd": "BitwiseAnd",
    "BitwiseOr": "BitwiseOr",
    "BitwiseXor": "BitwiseXor",
    "Invert": "BitwiseNot",
}


@writes(*_BITWISE)
def _bitwise(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    return compute(w, _BITWISE[node.op], dtype_of(node), *operands)


@writes("LeftShift", "RightShift")
def _shift(w: Writer, node: Node, x: ir.Value, distance: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    distance = _in_range(w, node, distance)
    is_left = node.op == "LeftShift"
    if dtype == np.int64 and not is_left:
        return _shifted_right(w, dtype, x, distance)
    # A signed number in twice as many bits has its sign in all the new ones, which move into the
    # old ones. Shifted to the left it needs no more bits.
    bits = 8 * dtype.itemsize
    wide = np.dtype(_wide_for(bits, is_left or dtype.kind == "u"))
    shifted = w.op(
        "BitShift",
        x if wide == dtype else cast(w, x, wide),
        distance if wide == dtype else cast(w, distance, wide),
        direction="LEFT" if is_left else "RIGHT",
    )
    return shifted if wide == dtype else cast(w, shifted, dtype)


def _wide_for(bits: int, same: bool) -> str:
    """The unsigned dtype in which numbers of so many bits are shifted."""
    if same:
        return {8: "uint8", 16: "uint32", 32: "uint32", 64: "uint64"}[bits]
    return {8: "uint32", 16: "uint32", 32: "uint64"}[bits]


def _in_range(w: Writer, node: Node, distance: ir.Value) -> ir.Value:
    """The distance of a shift between 0 and the highest bit, as TensorFlow takes it."""
    dtype = dtype_of(node)
    highest = 8 * dtype.itemsize - 1
    known = node.inputs[1].value
    if known is not None:
        return w.constant(np.clip(known, 0, highest).astype(dtype))
    return clipped(w, dtype, distance, w.constant(0, dtype), w.constant(highest, dtype))


def _shifted_right(w: Writer, dtype: np.dtype, x: ir.Value, distance: ir.Value) -> ir.Value:
    """An int64 shifted to the right: of a negative number all bits are flipped before and after."""
    unsigned = np.dtype(np.uint64)
    flips = w.op("Neg", cast(w, w.op("Less", x, w.constant(0, dtype)), dtype))
    flipped = cast(w, w.op("BitwiseXor", x, flips), unsigned)
    shifted = w.op("BitShift", flipped, cast(w, distance, unsigned), direction="RIGHT")
    return w.op("BitwiseXor", cast(w, shifted, dtype), flips)


@writes("TruncateDiv", "Div")
def _truncate_div(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    quotient = _quotient(w, node, x, y)
    if node.op == "Div" or not is_float(dtype):
        return quotient
    positive = ask(w, "Less", dtype, w.constant(0, dtype), quotient)
    floor = compute(w, "Floor", dtype, quotient)
    return where(w, dtype, positive, floor, compute(w, "Ceil", dtype, quotient))


@writes("TruncateMod", "Mod")
def _truncate_mod(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if dtype.kind == "u":
        return compute(w, "Mod", dtype, x, y)
    if dtype == np.int64:
        # ONNX Runtime computes this remainder in float64.
        part = w.op("Mul", _quotient(w, node, x, y), y)
        return w.op("Sub", x, part)
    return compute(w, "Mod", dtype, x, y, fmod=1)


@writes("FloorDiv")
def _floor_div(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if is_float(dtype):
        return _floor_of_quotient(w, dtype, x, y)
    if dtype.kind == "u":
        return compute(w, "Div", dtype, x, y)
    if dtype != np.int64:
        # In more bits nothing overflows.
        wide = np.dtype(np.int64)
        x, y = cast(w, x, wide), cast(w, y, wide)
        exact = w.op("Sub", x, w.op("Mod", x, y))
        return cast(w, w.op("Div", exact, y), dtype)
    quotient = _quotient(w, node, x, y)
    remainder = w.op("Sub", x, w.op("Mul", quotient, y))
    # A remainder whose sign is not that of the divisor makes the quotient one less.
    zero = w.constant(0, dtype)
    signs_differ = w.op("Xor", w.op("Less", remainder, zero), w.op("Less", y, zero))
    is_exact = w.op("Equal", remainder, zero)
    less = w.op("Sub", quotient, cast(w, signs_differ, dtype))
    return w.op("Where", is_exact, quotient, less)


def _floor_of_quotient(w: Writer, dtype: np.dtype, x: ir.Value, y: ir.Value) -> ir.Value:
    if dtype != np.float16:
        return compute(w, "Floor", dtype, compute(w, "Div", dtype, x, y))
    # Between two ops of float16, ONNX Runtime may keep the digits of float32.
    wide = np.dtype(np.float32)
    quotient = cast(w, w.op("Div", cast(w, x, wide), cast(w, y, wide)), dtype)
    return cast(w, w.op("Floor", cast(w, quotient, wide)), dtype)


@writes("FloorMod")
def _floor_mod(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if not is_float(dtype):
        return compute(w, "Mod", dtype, x, _not_minus_one(w, node, y)[0])
    zero = w.constant(0, dtype)
    remainder = compute(w, "Mod", dtype, x, y, fmod=1)
    signs_differ = w.op(
        "Xor", ask(w, "Less", dtype, remainder, zero), ask(w, "Less", dtype, y, zero)
    )
    is_zero = ask(w, "Equal", dtype, remainder, zero)
    wrong = w.op("And", signs_differ, w.op("Not", is_zero))
    return where(w, dtype, wrong, compute(w, "Add", dtype, remainder, y), remainder)


def _quotient(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    """The quotient of integers toward zero; that of the least number by -1 wraps around."""
    dtype = dtype_of(node)
    divisor, is_minus_one = _not_minus_one(w, node, y)
    quotient = compute(w, "Div", dtype, x, divisor)
    if is_minus_one is None:
        return quotient
    return where(w, dtype, is_minus_one, compute(w, "Neg", dtype, x), quotient)


def _not_minus_one(w: Writer, node: Node, y: ir.Value) -> tuple[ir.Value, ir.Value | None]:
    """A divisor of integers with 1 for each -1, and where those were; None if there are none.

    ONNX Runtime ends the process where the least int32 or int64 is divided by -1.
    """
    dtype, known = dtype_of(node), node.inputs[1].value
    if dtype not in (np.int32, np.int64) or (known is not None and not np.any(known == -1)):
        return y, None
    is_minus_one = w.op("Equal", y, w.constant(-1, dtype))
    return w.op("Where", is_minus_one, w.constant(1, dtype), y), is_minus_one
