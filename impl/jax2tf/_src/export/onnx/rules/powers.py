"""Powers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import cast, compute
from jax2tf._src.export.onnx.rules.elementwise import dtype_of, is_float
from jax2tf._src.export.onnx.rules.scans import argument
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Size

_INT32 = np.dtype(np.int32)


@writes("Pow")
def _pow(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype, known = dtype_of(node), node.inputs[1].value
    if is_float(dtype):
        return compute(w, "Pow", dtype, x, y)
    if known is not None and known.size == 1 and known.ndim == 0 and known > 0:
        return _known_power(w, dtype, x, int(known))
    wide = dtype if dtype.itemsize >= 4 else _INT32
    shapes = [tensor.shape for tensor in node.inputs]
    power = _power(w, wide, cast(w, x, wide), cast(w, y, wide), shapes, 8 * dtype.itemsize - 1)
    return power if wide == dtype else cast(w, power, dtype)


def _known_power(w: Writer, dtype: np.dtype, x: ir.Value, exponent: int) -> ir.Value:
    """The product of the squares that the bits of the exponent name."""
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else compute(w, "Mul", dtype, result, x)
        exponent >>= 1
        if exponent:
            x = compute(w, "Mul", dtype, x, x)
    assert result is not None
    return result


def _power(
    w: Writer,
    dtype: np.dtype,
    x: ir.Value,
    y: ir.Value,
    shapes: list[tuple[Size, ...] | None],
    bits: int,
) -> ir.Value:
    """The power of integers by a loop over the bits of the exponents.

    ONNX Runtime computes powers in float64, and ends them at the largest number.
    """
    zero, one, two = (w.constant(n, dtype) for n in (0, 1, 2))
    start = w.op("Add", w.op("Mul", w.op("Mul", x, y), zero), one)
    ranks = [len(shape) for shape in shapes if shape is not None]
    step = argument(w, "step", np.dtype(np.int64), 0)
    goes_on = argument(w, "goes_on", np.dtype(np.bool_), 0)
    power = argument(w, "power", dtype, max(ranks))
    square = argument(w, "square", dtype, ranks[0])
    exponent = argument(w, "exponent", dtype, ranks[1])
    inner = w.inner()
    is_odd = inner.op("Equal", inner.op("Mod", exponent, two), one)
    results = [
        goes_on,
        inner.op("Where", is_odd, inner.op("Mul", power, square), power),
        inner.op("Mul", square, square),
        inner.op("Div", exponent, two),
    ]
    body = inner.graph(w.unique("squares"), [step, goes_on, power, square, exponent], results)
    result: ir.Value = w.op(
        "Loop", w.constant(bits, np.int64), w.constant(True), start, x, y, n=3, body=body
    )[0]
    return result
