"""Loops over the elements along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.rules.dtypes import compute
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Size


def folded(
    w: Writer,
    op: str,
    dtype: np.dtype,
    identity: int,
    x: ir.Value,
    shape: Sequence[Size],
    axis: int,
) -> ir.Value:
    """The elements along an axis combined by an op of two operands, without that axis.

    Args:
      op: an op of ONNX, such as "Mul".
      dtype: that of `x`.
      identity: the result where there is no element.
      shape: the sizes of `x`.
      axis: counted from the front.
    """
    start = _slice_of(w, dtype, identity, x, shape, axis)
    body = _body(w, op, dtype, len(shape) - 1, None)
    result: ir.Value = w.op("Scan", start, x, body=body, num_scan_inputs=1, scan_input_axes=[axis])
    return result


def running(
    w: Writer,
    op: str,
    dtype: np.dtype,
    identity: int,
    x: ir.Value,
    shape: Sequence[Size],
    axis: int,
    exclusive: bool,
    reverse: bool,
) -> ir.Value:
    """The results of all first elements along an axis, in the place of the last of these.

    Args:
      op, dtype, identity, x, shape, axis: as for `folded`.
      exclusive: leave out the element at the place.
      reverse: combine from the end of the axis.
    """
    start = _slice_of(w, dtype, identity, x, shape, axis)
    _, results = w.op(
        "Scan",
        start,
        x,
        n=2,
        body=_body(w, op, dtype, len(shape) - 1, exclusive),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis],
        scan_input_directions=[int(reverse)],
        scan_output_directions=[int(reverse)],
    )
    return results  # type: ignore[no-any-return]


def _slice_of(
    w: Writer,
    dtype: np.dtype,
    number: int,
    x: ir.Value,
    shape: Sequence[Size],
    axis: int,
) -> ir.Value:
    """A number for each element of a slice of `x` at one place of an axis."""
    rest = [size for i, size in enumerate(shape) if i != axis]
    kept = [i for i in range(len(shape)) if i != axis]
    if all(isinstance(size, int) for size in rest):
        sizes = w.constant(rest, np.int64)
    else:
        sizes = w.op("Gather", w.op("Shape", x), w.constant(kept, np.int64))
    return w.op("Expand", w.constant(number, dtype), sizes) if rest else w.constant(number, dtype)


def _body(w: Writer, op: str, dtype: np.dtype, rank: int, exclusive: bool | None) -> ir.Graph:
    """A step: the state combined with a slice, and what is given for this slice, if anything."""
    number = next(w._numbers)
    kind, shape = ir.TensorType(onnx_dtype(dtype)), ir.Shape([None] * rank)

    def value(name: str) -> ir.Value:
        return ir.Value(name=f"{name}_{number}", type=kind, shape=shape)

    state, x = value("state"), value("slice")
    inner = Writer(w.program, w.opset, w)
    following = compute(inner, op, dtype, state, x)
    results = [following]
    if exclusive is not None:
        results.append(inner.op("Identity", state if exclusive else following))
    for result in results:
        result.type, result.shape = kind, shape
    return ir.Graph([state, x], results, nodes=inner.nodes, name=f"step_{number}")
