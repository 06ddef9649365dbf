"""Ops on the diagonals of matrices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.choices import where
from jax2tf._src.export.onnx.rules.dtypes import narrowed, widened
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.rules.slices import padded
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor


@writes("MatrixBandPart")
def _band_part(w: Writer, node: Node, x: ir.Value, lower: ir.Value, upper: ir.Value) -> ir.Value:
    below, above = (_number(t) for t in node.inputs[1:])

    def cut(t: ir.Value) -> ir.Value:
        if below >= 0:
            t = w.op("Trilu", t, w.constant(np.array(-below, np.int64)), upper=1)
        if above >= 0:
            t = w.op("Trilu", t, w.constant(np.array(above, np.int64)), upper=0)
        return t

    if below < 0 and above < 0:
        return x
    dtype = sizes.dtype_of(node.inputs[0])
    return narrowed(w, "Trilu", dtype, cut(widened(w, "Trilu", dtype, x)))


def _number(tensor: Tensor) -> int:
    entry = sizes.scalar(tensor)
    if not isinstance(entry, int):
        raise NotImplementedError("ONNX has no op of a diagonal whose number is computed")
    return entry


def _one_diagonal(node: Node, at: int) -> int:
    """The number of the only diagonal."""
    found = sizes.entries(node.inputs[at])
    if found is None or not isinstance(found[0], int) or any(k != found[0] for k in found):
        raise NotImplementedError(f"a {node.op} of several diagonals")
    return found[0]


@writes("MatrixDiagV3")
def _diag(
    w: Writer,
    node: Node,
    diagonal: ir.Value,
    k: ir.Value,
    rows: ir.Value,
    columns: ir.Value,
    padding: ir.Value,
) -> ir.Value:
    number, result = _one_diagonal(node, 1), node.outputs[0]
    shape = result.shape or (None, None)
    height, width = (n if isinstance(n, int) else None for n in shape[-2:])
    column = w.op("Unsqueeze", diagonal, int64s(w, -1 if number >= 0 else -2))
    length = (node.inputs[0].shape or (None,))[-1]
    side = height if number >= 0 else width
    if side != length and not (side is None and _square(node)):
        # The diagonal ends before the last row, or the last column.
        column = _lengthened(w, node, column, number, side, length)
    # A Where of ONNX Runtime makes 0.0 of a -0.0 that it takes where the condition holds.
    is_elsewhere = _off_diagonal(w, node, number, height, width)
    return where(w, sizes.dtype_of(result), is_elsewhere, padding, column)


def _square(node: Node) -> bool:
    return all(sizes.scalar(x) == -1 for x in node.inputs[2:4]) and _one_diagonal(node, 1) == 0


def _lengthened(
    w: Writer, node: Node, column: ir.Value, number: int, side: object, length: object
) -> ir.Value:
    if not isinstance(side, int) or not isinstance(length, int):
        raise NotImplementedError("a MatrixDiagV3 of open sizes that is not square")
    rank = sizes.rank_of(node.outputs[0])
    pads = [0] * (2 * rank)
    pads[-2 if number >= 0 else -1] = side - length
    return padded(w, sizes.dtype_of(node.outputs[0]), column, int64s(w, *pads))


def _off_diagonal(
    w: Writer, node: Node, number: int, height: int | None, width: int | None
) -> ir.Value:
    """Where a matrix does not have its diagonal."""
    if height is not None and width is not None:
        return w.constant(~np.eye(height, width, number, dtype=bool))
    if not _square(node):
        raise NotImplementedError(f"a {node.op} of open sizes that is not square")
    length = w.op("Squeeze", _last_size(w, node.inputs[0]), int64s(w, 0))
    places = w.op("Range", w.constant(np.int64(0)), length, w.constant(np.int64(1)))
    # ONNX Runtime takes a Not of the condition out of a Where and exchanges its operands.
    apart = w.op("Sub", w.op("Unsqueeze", places, int64s(w, 1)), places)
    return w.op("Cast", apart, to=ir.DataType.BOOL)


def _last_size(w: Writer, tensor: Tensor) -> ir.Value:
    rank = sizes.rank_of(tensor)
    return sizes.shape_of(w, tensor, rank - 1, rank)


@writes("MatrixDiagPartV3")
def _diag_part(w: Writer, node: Node, x: ir.Value, k: ir.Value, padding: ir.Value) -> ir.Value:
    number, given = _one_diagonal(node, 1), node.inputs[0]
    height, width = _sides(given)
    length = min(height + min(number, 0), width - max(number, 0))
    # In a row of all elements, those of the diagonal are width + 1 apart.
    start = number if number >= 0 else -number * width
    batch = (sizes.sizes_of(given) or [])[:-2]
    flat = w.op("Reshape", x, sizes.joined(w, [*batch, height * width]), allowzero=1)
    end = start + (length - 1) * (width + 1) + 1 if length > 0 else start
    axis = len(batch)
    return w.op(
        "Slice", flat, int64s(w, start), int64s(w, end), int64s(w, axis), int64s(w, width + 1)
    )


def _sides(tensor: Tensor) -> tuple[int, int]:
    shape = tensor.shape or (None, None)
    height, width = shape[-2:]
    if not isinstance(height, int) or not isinstance(width, int):
        raise NotImplementedError("an op on the diagonals of matrices of open sizes")
    return height, width


@writes("MatrixSetDiagV3")
def _set_diag(w: Writer, node: Node, x: ir.Value, diagonal: ir.Value, k: ir.Value) -> ir.Value:
    number, given = _one_diagonal(node, 2), node.inputs[0]
    height, width = _sides(given)
    column = w.op("Unsqueeze", diagonal, int64s(w, -1 if number >= 0 else -2))
    length = min(height + min(number, 0), width - max(number, 0))
    side = height if number >= 0 else width
    if side != length:
        column = _lengthened(w, node, column, number, side, length)
    is_there = w.constant(np.eye(height, width, number, dtype=bool))
    return where(w, sizes.dtype_of(given), is_there, column, x)
