"""Ops on whole arrays: their shapes, their joining and parting, and making new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.dtypes import narrowed, widened
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Node, Tensor

# Known arrays of up to so many elements are initialisers; others are made where they are read.
_SMALL = 1024
_INT64 = ir.DataType.INT64


@writes("Reshape")
def _reshape(w: Writer, node: Node, x: ir.Value, shape: ir.Value) -> ir.Value:
    given, result = node.inputs[0], node.outputs[0]
    if _is_static(result) and given.shape == result.shape:
        return x
    target = sizes.entries(node.inputs[1])
    if target is None:
        return w.op("Reshape", x, sizes.vector(w, node.inputs[1]), allowzero=1)
    target = _with_known(target, result)
    array, known = sizes.array_of(x), [n for n in target if isinstance(n, int)]
    if array is not None and len(known) == len(target):
        return w.constant(array.reshape(known))
    return _reshaped(w, x, given, target)


def _reshaped(w: Writer, x: ir.Value, given: Tensor, target: Sequence[sizes.Entry]) -> ir.Value:
    """A Reshape to numbers if they can say the sizes, else to a vector that is computed.

    A -1 stands for the only open size, which is known from the number of elements where no other
    size is 0. A 0 stands for the size of `given` at the same place.
    """
    is_open = [not isinstance(n, int) or n == -1 for n in target]
    if sum(is_open) <= 1 and 0 not in target:
        return w.op("Reshape", x, int64s(w, *(n if isinstance(n, int) else -1 for n in target)))
    numbers = [0 if sizes.is_size(n, given, i) else n for i, n in enumerate(target)]
    if 0 not in target and all(isinstance(n, int) for n in numbers):
        return w.op("Reshape", x, sizes.joined(w, numbers))
    return w.op("Reshape", x, sizes.joined(w, target), allowzero=1)


def _with_known(target: Sequence[sizes.Entry], result: Tensor) -> list[sizes.Entry]:
    """The sizes of a result; -1 stays only where the size is open."""
    known = result.shape or [None] * len(target)
    return [n if isinstance(n, int) else old for old, n in zip(target, known, strict=True)]


def _is_static(tensor: Tensor) -> bool:
    return tensor.shape is not None and all(isinstance(n, int) for n in tensor.shape)


def static_shape(tensor: Tensor) -> tuple[int, ...] | None:
    """The shape of a tensor if it has no open size."""
    if tensor.shape is None or not _is_static(tensor):
        return None
    return tuple(n for n in tensor.shape if isinstance(n, int))


@writes("ExpandDims")
def _expand_dims(w: Writer, node: Node, x: ir.Value, axis: ir.Value) -> ir.Value:
    at = sizes.axis_of(node.inputs[1], sizes.rank_of(node.inputs[0]) + 1)
    array = sizes.array_of(x)
    if array is not None:
        return w.constant(np.expand_dims(array, at))
    return w.op("Unsqueeze", x, int64s(w, at))


@writes("Squeeze")
def _squeeze(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    shape = node.inputs[0].shape or ()
    axes = [a % len(shape) for a in node.attributes.get("squeeze_dims", ())]
    axes = axes or [i for i, n in enumerate(shape) if n == 1]
    array = sizes.array_of(x)
    if array is not None:
        return w.constant(np.squeeze(array, tuple(axes)))
    return w.op("Squeeze", x, int64s(w, *axes)) if axes else x


@writes("Transpose")
def _transpose(w: Writer, node: Node, x: ir.Value, permutation: ir.Value) -> ir.Value:
    order = sizes.array_of(permutation)
    if order is None:
        raise NotImplementedError("ONNX has no Transpose by a permutation that is computed")
    return transposed(w, x, [int(d) % len(order) for d in order])


def transposed(w: Writer, x: ir.Value, order: Sequence[int]) -> ir.Value:
    """The array with its dimensions in another order; a known array is turned here."""
    if list(order) == list(range(len(order))):
        return x
    array = sizes.array_of(x)
    if array is not None:
        return w.constant(array.transpose(order))
    return w.op("Transpose", x, perm=list(order))


@writes("ConcatV2")
def _concat(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    *parts, _ = operands
    axis = sizes.axis_of(node.inputs[-1], sizes.rank_of(node.outputs[0]))
    return parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=axis)


@writes("Pack")
def _pack(w: Writer, node: Node, *parts: ir.Value) -> ir.Value:
    axis = int(node.attributes["axis"]) % sizes.rank_of(node.outputs[0])
    expanded = [_unsqueezed(w, x, axis) for x in parts]
    return expanded[0] if len(expanded) == 1 else w.op("Concat", *expanded, axis=axis)


def _unsqueezed(w: Writer, x: ir.Value, axis: int) -> ir.Value:
    array = sizes.array_of(x)
    if array is not None:
        return w.constant(np.expand_dims(array, axis))
    return w.op("Unsqueeze", x, int64s(w, axis))


@writes("Unpack")
def _unpack(w: Writer, node: Node, x: ir.Value) -> list[ir.Value]:
    axis = int(node.attributes["axis"]) % sizes.rank_of(node.inputs[0])
    if len(node.outputs) == 1:
        return [w.op("Squeeze", x, int64s(w, axis))]
    return [
        w.op("Gather", x, w.constant(np.array(i, np.int64)), axis=axis)
        for i in range(len(node.outputs))
    ]


@writes("Split")
def _split(w: Writer, node: Node, axis: ir.Value, x: ir.Value) -> list[ir.Value]:
    given = node.inputs[1]
    at, count = sizes.axis_of(node.inputs[0], sizes.rank_of(given)), len(node.outputs)
    if count == 1:
        return [x]
    size = given.shape[at] if given.shape is not None else None
    if isinstance(size, int):
        parts = int64s(w, *[size // count] * count)
        return list(w.op("Split", x, parts, n=count, axis=at))
    return list(w.op("Split", x, n=count, axis=at, num_outputs=count))


@writes("SplitV")
def _split_v(w: Writer, node: Node, x: ir.Value, parts: ir.Value, axis: ir.Value) -> list[ir.Value]:
    given = node.inputs[0]
    at, count = sizes.axis_of(node.inputs[2], sizes.rank_of(given)), len(node.outputs)
    if count == 1:
        return [x]
    known = sizes.array_of(parts)
    if known is None or -1 not in known:
        lengths = sizes.vector(w, node.inputs[1])
        return list(w.op("Split", x, lengths, n=count, axis=at))
    # One part has what the others leave.
    rest = -int(known[known >= 0].sum())
    total = sizes.joined(w, (sizes.sizes_of(given) or [])[at : at + 1])
    array = sizes.array_of(total)
    filled = [
        (
            int64s(w, rest + int(array[0]))
            if array is not None
            else w.op("Add", total, int64s(w, rest))
        )
        if n == -1
        else int64s(w, int(n))
        for n in known
    ]
    return list(w.op("Split", x, w.op("Concat", *filled, axis=0), n=count, axis=at))


@writes("Tile")
def _tile(w: Writer, node: Node, x: ir.Value, multiples: ir.Value) -> ir.Value:
    known = sizes.array_of(multiples)
    if known is not None and all(known == 1):
        return x
    repeats = sizes.vector(w, node.inputs[1])
    dtype = sizes.dtype_of(node.inputs[0])
    return narrowed(w, "Tile", dtype, w.op("Tile", widened(w, "Tile", dtype, x), repeats))


@writes("BroadcastTo")
def _broadcast_to(w: Writer, node: Node, x: ir.Value, shape: ir.Value) -> ir.Value:
    given, result = node.inputs[0], node.outputs[0]
    if _is_static(result) and given.shape == result.shape:
        return x
    target = sizes.entries(node.inputs[1])
    if target is None:
        return expanded(w, sizes.dtype_of(given), x, sizes.vector(w, node.inputs[1]))
    target = _with_known(target, result)
    # A dimension that keeps its size is broadcast to 1.
    front = len(target) - sizes.rank_of(given)
    target = [1 if sizes.is_size(n, given, i - front) else n for i, n in enumerate(target)]
    if all(n == 1 for n in target) and front == 0:
        return x
    return expanded(w, sizes.dtype_of(given), x, sizes.joined(w, target))


def expanded(w: Writer, dtype: np.dtype, x: ir.Value, shape: ir.Value) -> ir.Value:
    """The array, broadcast to a shape."""
    return narrowed(w, "Expand", dtype, w.op("Expand", widened(w, "Expand", dtype, x), shape))


@writes("Fill")
def _fill(w: Writer, node: Node, shape: ir.Value, value: ir.Value) -> ir.Value:
    return filled(w, node.outputs[0], sizes.entries(node.inputs[0]), value, node.inputs[0])


def filled(
    w: Writer,
    result: Tensor,
    target: Sequence[sizes.Entry] | None,
    value: ir.Value,
    shape: Tensor,
) -> ir.Value:
    """An array of one number; `target` has its sizes, if their number is known."""
    target = None if target is None else _with_known(target, result)
    array, static = sizes.array_of(value), static_shape(result)
    if array is not None and static is not None and np.prod(static) <= _SMALL:
        return w.constant(np.full(static, array))
    lengths = sizes.vector(w, shape) if target is None else sizes.joined(w, target)
    if array is None:
        return expanded(w, sizes.dtype_of(result), value, lengths)
    return w.op("ConstantOfShape", lengths, value=ir.tensor(array.reshape(1)))


@writes("ZerosLike", "OnesLike")
def _zeros_like(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    given = node.inputs[0]
    number = w.constant(np.array(node.op == "OnesLike", given.dtype))
    target = sizes.sizes_of(given)
    if target is None:
        shape = sizes.shape_of(w, given)
        array = sizes.array_of(number)
        assert array is not None
        return w.op("ConstantOfShape", shape, value=ir.tensor(array.reshape(1)))
    return filled(w, node.outputs[0], target, number, given)


@writes("Range")
def _range(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    known = [sizes.array_of(x) for x in operands]
    dtype = node.outputs[0].dtype
    assert dtype is not None
    static = static_shape(node.outputs[0])
    if all(x is not None for x in known) and static is not None and static[0] <= _SMALL:
        start, _, delta = (np.asarray(x) for x in known)
        return w.constant(start + delta * np.arange(static[0]).astype(dtype), dtype)
    return w.op("Range", *operands)


@writes("Shape")
def _shape(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return _shapes(w, node, 0)


@writes("ShapeN")
def _shape_n(w: Writer, node: Node, *operands: ir.Value) -> list[ir.Value]:
    return [_shapes(w, node, i) for i in range(len(operands))]


def _shapes(w: Writer, node: Node, i: int) -> ir.Value:
    dtype, static = node.outputs[i].dtype, static_shape(node.inputs[i])
    assert dtype is not None
    if static is not None:
        return w.constant(np.array(static, dtype))
    return _from_int64(w, sizes.shape_of(w, node.inputs[i]), dtype)


def _from_int64(w: Writer, numbers: ir.Value, dtype: np.dtype | None) -> ir.Value:
    if dtype is None or dtype == np.int64:
        return numbers
    return w.op("Cast", numbers, to=onnx_dtype(dtype))


@writes("Size")
def _size(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    dtype, static = node.outputs[0].dtype, static_shape(node.inputs[0])
    if static is not None:
        return w.constant(np.array(np.prod(static, dtype=np.int64), dtype))
    if str(node.inputs[0].dtype) in ("float16", "bfloat16"):
        count = w.op("ReduceProd", sizes.shape_of(w, node.inputs[0]), keepdims=0)
    else:
        count = w.op("Size", x)
    return _from_int64(w, sizes.of_int64(count, []), dtype)


@writes("Rank")
def _rank(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return w.constant(np.array(sizes.rank_of(node.inputs[0]), node.outputs[0].dtype))


@writes("EnsureShape")
def _ensure_shape(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    return x


@writes("ReverseV2")
def _reverse(w: Writer, node: Node, x: ir.Value, axes: ir.Value) -> ir.Value:
    known = sizes.array_of(axes)
    if known is None:
        raise NotImplementedError("ONNX has no op that reverses along axes that are computed")
    rank = sizes.rank_of(node.inputs[0])
    return reversed_along(w, x, [int(a) % rank for a in known])


def reversed_along(w: Writer, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The array backwards along some axes."""
    if not axes:
        return x
    array = sizes.array_of(x)
    if array is not None:
        return w.constant(np.ascontiguousarray(np.flip(array, tuple(axes))))
    n = len(axes)
    ends = int64s(w, *[sizes.TO_THE_BEGINNING] * n)
    return w.op("Slice", x, int64s(w, *[-1] * n), ends, int64s(w, *axes), int64s(w, *[-1] * n))
