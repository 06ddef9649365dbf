"""Division and remainders, and ops on the bits of integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.choices import where
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
    return w.op("Clip", distance, w.constant(0, dtype), w.constant(highest, dtype))


def _shifted_right(w: Writer, dtype: np.dtype, x: ir.Value, distance: ir.Value) -> ir.Value:
    """An int64 shifted to the right: of a negative number all bits are flipped before and after."""
    unsigned = np.dtype(np.uint64)
    flips = w.op("Neg", cast(w, w.op("Less", x, w.constant(0, dtype)), dtype))
    flipped = cast(w, w.op("BitwiseXor", x, flips), unsigned)
    shifted = w.op("BitShift", flipped, cast(w, distance, unsigned), direction="RIGHT")
    return w.op("BitwiseXor", cast(w, shifted, dtype), flips)


@writes("TruncateDiv")
def _truncate_div(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    return compute(w, "Div", dtype_of(node), x, y)


@writes("TruncateMod")
def _truncate_mod(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    return compute(w, "Mod", dtype_of(node), x, y, fmod=1)


@writes("FloorDiv")
def _floor_div(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    quotient = compute(w, "Div", dtype, x, y)
    if is_float(dtype):
        return compute(w, "Floor", dtype, quotient)
    if dtype.kind == "u":
        return quotient
    # The quotient is one too large where both remainders differ.
    same = ask(
        w,
        "Equal",
        dtype,
        compute(w, "Mod", dtype, x, y),
        compute(w, "Mod", dtype, x, y, fmod=1),
    )
    return compute(w, "Sub", dtype, quotient, cast(w, w.op("Not", same), dtype))


@writes("FloorMod", "Mod")
def _floor_mod(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = dtype_of(node)
    if node.op == "Mod":
        return compute(w, "Mod", dtype, x, y, fmod=1)
    if not is_float(dtype):
        return compute(w, "Mod", dtype, x, y)
    zero = w.constant(0, dtype)
    remainder = compute(w, "Mod", dtype, x, y, fmod=1)
    signs_differ = w.op(
        "Xor", ask(w, "Less", dtype, remainder, zero), ask(w, "Less", dtype, y, zero)
    )
    is_zero = ask(w, "Equal", dtype, remainder, zero)
    wrong = w.op("And", signs_differ, w.op("Not", is_zero))
    return where(w, dtype, wrong, compute(w, "Add", dtype, remainder, y), remainder)
