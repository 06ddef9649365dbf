"""Loops over the elements along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    def scan(w: Writer) -> ir.Value:
        body = _body(w, op, dtype, len(shape) - 1, None)
        result: ir.Value = w.op(
            "Scan", start, x, body=body, num_scan_inputs=1, scan_input_axes=[axis]
        )
        return result

    return _unless_empty(w, x, shape, start, scan)


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

    def scan(w: Writer) -> ir.Value:
        result: ir.Value = w.op(
            "Scan",
            _slice_of(w, dtype, identity, x, shape, axis),
            x,
            n=2,
            body=_body(w, op, dtype, len(shape) - 1, exclusive),
            num_scan_inputs=1,
            scan_input_axes=[axis],
            scan_output_axes=[axis],
            scan_input_directions=[int(reverse)],
            scan_output_directions=[int(reverse)],
        )[1]
        return result

    return _unless_empty(w, x, shape, x, scan)


def _unless_empty(
    w: Writer,
    x: ir.Value,
    shape: Sequence[Size],
    if_empty: ir.Value,
    scan: Callable[[Writer], ir.Value],
) -> ir.Value:
    """The result of a Scan of `x`; ONNX Runtime ends the process at one without elements."""
    if 0 in shape:
        return if_empty
    if all(isinstance(size, int) for size in shape):
        return scan(w)
    is_empty = w.op("Equal", w.op("Size", x), w.constant(0, np.int64))
    result: ir.Value = w.op(
        "If",
        is_empty,
        then_branch=_branch(w, lambda inner: if_empty),
        else_branch=_branch(w, scan),
    )
    return result


def _branch(w: Writer, write: Callable[[Writer], ir.Value]) -> ir.Graph:
    inner = w.inner()
    return inner.graph(w.unique("branch"), [], [write(inner)])


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
    if not rest:
        return w.constant(number, dtype)
    if all(isinstance(size, int) for size in rest):
        sizes = w.constant(rest, np.int64)
    else:
        sizes = w.op("Gather", w.op("Shape", x), w.constant(kept, np.int64))
    result: ir.Value = w.op("Expand", w.constant(number, dtype), sizes)
    return result


def _body(w: Writer, op: str, dtype: np.dtype, rank: int, exclusive: bool | None) -> ir.Graph:
    """A step: the state combined with a slice, and what is given for this slice, if anything."""
    state, x = (argument(w, name, dtype, rank) for name in ("state", "slice"))
    inner = w.inner()
    following = compute(inner, op, dtype, state, x)
    results = [following]
    if exclusive is not None:
        results.append(state if exclusive else following)
    return inner.graph(w.unique("step"), [state, x], results)


def argument(w: Writer, name: str, dtype: np.dtype, rank: int) -> ir.Value:
    """A new argument of an inner graph, of unknown sizes."""
    shape = ir.Shape([None] * rank)
    return ir.Value(name=w.unique(name), type=ir.TensorType(onnx_dtype(dtype)), shape=shape)
