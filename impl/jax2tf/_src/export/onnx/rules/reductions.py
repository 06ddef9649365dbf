"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import ask, cast, compute, narrowed, widened
from jax2tf._src.export.onnx.rules.elementwise import dtype_of, is_float
from jax2tf._src.export.onnx.rules.scans import folded
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Size, Tensor

# The first opset whose ReduceMax and ReduceMin take bool.
_OPSET_OF_BOOLS = 20
# More ones than these are made when the model runs.
_MANY_ONES = 256

_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)
_UINT8 = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)


@writes("Sum", "Prod", "Mean")
def _arithmetic(w: Writer, node: Node, x: ir.Value, axes: ir.Value) -> ir.Value:
    dtype, known, keepdims = dtype_of(node), _known_axes(node), _keeps_axes(node)
    if not known:
        return x
    if not is_float(dtype):
        if node.op == "Sum":
            return _integer_sum(w, node, dtype, x, known, keepdims)
        if node.op == "Mean":
            return _integer_mean(w, node, x, known, keepdims)
        if not _counts(node.inputs[0]):
            return _integer_product(w, node, x, known, keepdims)
    if node.op == "Mean" and not _has_elements(node, known):
        return _mean_of_perhaps_nothing(w, node, x, known)
    return _reduced(w, f"Reduce{node.op}", dtype, x, known, keepdims)


@writes("Max", "Min")
def _extreme(w: Writer, node: Node, x: ir.Value, axes: ir.Value) -> ir.Value:
    """The extreme; the graphs choose a NaN by an op of their own, as not all kernels keep it."""
    op, dtype = f"Reduce{node.op}", dtype_of(node)
    known, keepdims = _known_axes(node), _keeps_axes(node)
    if not known:
        return x
    if 0 in _sizes(node, known) and not is_float(dtype):
        limits = np.iinfo(dtype)
        return _filled(w, dtype, x, known, keepdims, limits.min if node.op == "Max" else limits.max)
    if dtype in (np.int64, np.uint64):
        return _long_extreme(w, f"Arg{node.op}", dtype, x, known, keepdims)
    if dtype == np.int16 and not _has_elements(node, known):
        return _int16_extreme(w, op, x, known, keepdims)
    return _reduced(w, op, dtype, x, known, keepdims)


@writes("All", "Any")
def _logical(w: Writer, node: Node, x: ir.Value, axes: ir.Value) -> ir.Value:
    op = "ReduceMin" if node.op == "All" else "ReduceMax"
    known, keepdims = _known_axes(node), _keeps_axes(node)
    if not known:
        return x
    if w.opset >= _OPSET_OF_BOOLS and _has_elements(node, known):
        result: ir.Value = w.op(op, x, w.constant(known, np.int64), keepdims=int(keepdims))
        return result
    # ONNX Runtime refuses bools of an axis without elements.
    return cast(w, _reduced(w, op, _UINT8, cast(w, x, _UINT8), known, keepdims), _BOOL)


def _keeps_axes(node: Node) -> bool:
    return bool(node.attributes.get("keep_dims", False))


def _known_axes(node: Node) -> list[int]:
    """The axes in order, counted from the front.

    Raises:
      NotImplementedError: they are computed, or the rank is unknown.
    """
    known, shape = node.inputs[1].value, node.inputs[0].shape
    if known is None or shape is None:
        raise NotImplementedError(f"ONNX has no {node.op} along axes that are computed")
    return sorted(int(axis) % len(shape) for axis in np.ravel(known))


def _sizes(node: Node, axes: Sequence[int]) -> list[Size]:
    shape = node.inputs[0].shape
    return [None if shape is None else shape[axis] for axis in axes]


def _has_elements(node: Node, axes: Sequence[int]) -> bool:
    """Whether no axis is known or open to be empty."""
    return all(isinstance(size, int) and size > 0 for size in _sizes(node, axes))


def _reduced(
    w: Writer, op: str, dtype: np.dtype, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    listed = w.constant(axes, np.int64)
    result = w.op(op, widened(w, op, dtype, x), listed, keepdims=int(keepdims))
    return narrowed(w, op, dtype, result)


def _int16_extreme(
    w: Writer, op: str, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    """The extreme computed in int32, of which that of nothing is no int16."""
    limits = np.iinfo(np.int16)
    extreme = _reduced(w, op, _INT32, cast(w, x, _INT32), axes, keepdims)
    low, high = w.constant(limits.min, _INT32), w.constant(limits.max, _INT32)
    return cast(w, w.op("Clip", extreme, low, high), np.dtype(np.int16))


def _long_extreme(
    w: Writer, arg: str, dtype: np.dtype, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    """The extreme of integers of 64 bits, by its place; see `KERNELS` for the reason."""
    x = widened(w, arg, dtype, x)
    for axis in axes:
        place = w.op(arg, x, axis=axis, keepdims=1)
        x = w.op("GatherElements", x, place, axis=axis)
    x = narrowed(w, arg, dtype, x)
    return x if keepdims else w.op("Squeeze", x, w.constant(axes, np.int64))


def _counts(x: Tensor) -> bool:
    """Whether `x` is made of sizes of arrays: their product is one too, and does not overflow."""
    if x.node is None:
        return False
    if x.node.op in ("Shape", "Size"):
        return True
    if x.node.op == "Const":
        return x.value is not None and bool(np.all(x.value >= 0))
    if x.node.op in ("Pack", "Cast", "Identity"):
        return all(map(_counts, x.node.inputs))
    if x.node.op in ("ConcatV2", "GatherV2", "StridedSlice", "Slice", "Reshape", "ExpandDims"):
        data = x.node.inputs[:-1] if x.node.op == "ConcatV2" else x.node.inputs[:1]
        return all(map(_counts, data))
    return False


def _integer_sum(
    w: Writer, node: Node, dtype: np.dtype, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    """The sum as a product with ones, which wraps around; ONNX Runtime adds integers as floats."""
    shape = node.inputs[0].shape
    assert shape is not None
    inside = _INT64 if dtype.itemsize == 8 else _INT32
    x = x if dtype == inside else cast(w, x, inside)
    kept = list(range(len(shape)))
    for axis in reversed(axes):
        place = kept.index(axis)
        kept.remove(axis)
        x = _summed(w, inside, x, place, shape[axis], [shape[i] for i in kept])
    if keepdims:
        x = w.op("Unsqueeze", x, w.constant(axes, np.int64))
    return x if dtype == inside else cast(w, x, dtype)


def _summed(
    w: Writer, dtype: np.dtype, x: ir.Value, axis: int, size: Size, others: Sequence[Size]
) -> ir.Value:
    """The sum of int32 or int64 along an axis of a size, beside the sizes of the other axes."""
    ones = _ones(w, dtype, x, axis, size)
    if all(isinstance(other, int) and other > 0 for other in others) and axis == len(others) - 1:
        return w.op("MatMul", ones, x)
    if axis < len(others):
        order = [i for i in range(len(others) + 1) if i != axis]
        x = w.op("Transpose", x, perm=[*order, axis])
    if all(isinstance(other, int) and other > 0 for other in others):
        return w.op("MatMul", x, ones)
    # ONNX Runtime refuses the product of an array without elements and a vector.
    column = w.op("Unsqueeze", ones, w.constant([1], np.int64))
    return w.op("Squeeze", w.op("MatMul", x, column), w.constant([-1], np.int64))


def _ones(w: Writer, dtype: np.dtype, x: ir.Value, axis: int, size: Size) -> ir.Value:
    """As many ones as `x` has elements along an axis."""
    if isinstance(size, int):
        if size <= _MANY_ONES:
            return w.constant(np.ones(size, dtype))
        number = w.constant([size], np.int64)
    else:
        number = w.op("Shape", x, start=axis, end=axis + 1)
    return w.op("Expand", w.constant(1, dtype), number)


def _integer_mean(
    w: Writer, node: Node, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    """The sum in 64 bits, divided by the number of elements toward zero."""
    dtype = dtype_of(node)
    wide = np.dtype(np.uint64) if dtype == np.uint64 else _INT64
    total = _integer_sum(w, node, wide, cast(w, x, wide), axes, keepdims)
    number = cast(w, _number_along(w, node, x, axes), wide)
    return cast(w, w.op("Div", total, number), dtype)


def _integer_product(
    w: Writer, node: Node, x: ir.Value, axes: Sequence[int], keepdims: bool
) -> ir.Value:
    """The product by multiplications; ONNX Runtime multiplies integers as floats."""
    dtype, shape = dtype_of(node), node.inputs[0].shape
    assert shape is not None
    sizes = list(shape)
    for axis in reversed(axes):
        size = sizes[axis]
        if size == 0:
            x = _filled(w, dtype, x, [axis], True, 1)
        elif isinstance(size, int):
            x = _halved(w, dtype, x, axis, size)
        else:
            x = folded(w, "Mul", dtype, 1, x, sizes, axis)
        is_kept = isinstance(size, int)
        if is_kept != keepdims:
            change = "Unsqueeze" if keepdims else "Squeeze"
            x = w.op(change, x, w.constant([axis], np.int64))
        sizes[axis : axis + 1] = [1] if keepdims else []
    return x


def _halved(w: Writer, dtype: np.dtype, x: ir.Value, axis: int, size: int) -> ir.Value:
    """The product along an axis, which keeps one element: that of its halves, and so on."""
    left = []
    while size > 1:
        half, odd = divmod(size, 2)
        parts = w.constant([half, half] + [1] * odd, np.int64)
        first, second, *rest = w.op("Split", x, parts, n=2 + odd, axis=axis)
        x, size = compute(w, "Mul", dtype, first, second), half
        left += rest
    for one in left:
        x = compute(w, "Mul", dtype, x, one)
    return x


def _filled(
    w: Writer, dtype: np.dtype, x: ir.Value, axes: Sequence[int], keepdims: bool, number: int
) -> ir.Value:
    """A number for each reduction of an axis without elements."""
    listed = w.constant(axes, np.int64)
    zeros = w.op("ReduceSum", cast(w, x, _INT64), listed, keepdims=int(keepdims))
    return compute(w, "Add", dtype, cast(w, zeros, dtype), w.constant(number, dtype))


def _mean_of_perhaps_nothing(w: Writer, node: Node, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The sum divided by the number of elements; ONNX Runtime's mean of nothing is 0."""
    dtype = dtype_of(node)
    total = _reduced(w, "ReduceSum", dtype, x, axes, _keeps_axes(node))
    return compute(w, "Div", dtype, total, cast(w, _number_along(w, node, x, axes), dtype))


def _number_along(w: Writer, node: Node, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """How many elements each reduction has, as a scalar of int64."""
    sizes = _sizes(node, axes)
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        return w.constant(math.prod(numbers), _INT64)
    counted = w.op("Gather", w.op("Shape", x), w.constant(axes, np.int64))
    return w.op("ReduceProd", counted, keepdims=0)


@writes("ArgMax", "ArgMin")
def _arg(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    known = node.inputs[1].value
    if known is None:
        raise NotImplementedError(f"ONNX has no {node.op} along an axis that is computed")
    dtype = dtype_of(node)
    if dtype == _BOOL:
        x, dtype = cast(w, x, _UINT8), _UINT8
    place = ask(w, node.op, dtype, x, axis=int(known), keepdims=0)
    result = node.outputs[0].dtype
    assert result is not None
    return place if result == _INT64 else cast(w, place, result)
