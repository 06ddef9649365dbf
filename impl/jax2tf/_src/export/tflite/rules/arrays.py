"""Ops on whole arrays: their shapes, their joining and parting, and making new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jax2tf._src.export.tflite.model import Shape, Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.elementwise import SMALL, cast, rank_of, static_shape
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor

_INT32 = np.dtype("int32")


@writes("Reshape")
def _reshape(w: Writer, node: Node, x: Value, shape: Value) -> Value:
    return reshaped(w, x, node.outputs[0].shape, shape)


def reshaped(w: Writer, x: Value, target: Shape, shape: Value | None = None) -> Value:
    """The array in another shape.

    Args:
      w: the writer.
      x: the array.
      target: the sizes. One that is open is inferred from the others.
      shape: the sizes as they are computed, for a target with several open ones.
    """
    if target is not None and x.shape == target and None not in target:
        return x
    known = None if target is None else [n if isinstance(n, int) else -1 for n in target]
    if x.array is not None and known is not None and -1 not in known:
        return w.constant(x.array.reshape(known))
    if known == []:
        return w.op("SQUEEZE", x, dtype=x.dtype, shape=(), squeezeDims=[])
    if known is not None and known.count(-1) <= 1 and not (-1 in known and 0 in known):
        lengths = w.constant(np.array(known, np.int32))
        return w.op("RESHAPE", x, lengths, dtype=x.dtype, shape=target, newShape=known)
    if shape is None:
        raise NotImplementedError(f"a reshape to {target} whose sizes are not computed")
    return w.op("RESHAPE", x, cast(w, shape, _INT32), dtype=x.dtype, shape=target)


@writes("ExpandDims")
def _expand_dims(w: Writer, node: Node, x: Value, axis: Value) -> Value:
    result = node.outputs[0]
    if n_open(result) <= 1:
        return reshaped(w, x, result.shape)
    return w.op("EXPAND_DIMS", x, axis, like=result)


def n_open(tensor: Tensor | Value) -> int:
    """How many sizes are open; many if even their number is."""
    if tensor.shape is None:
        return 99
    return sum(not isinstance(n, int) for n in tensor.shape)


@writes("Squeeze")
def _squeeze(w: Writer, node: Node, x: Value) -> Value:
    result = node.outputs[0]
    if n_open(result) <= 1:
        return reshaped(w, x, result.shape)
    rank = rank_of(node.inputs[0])
    axes = [int(a) % rank for a in node.attributes.get("squeeze_dims", ())]
    return w.op("SQUEEZE", x, like=result, squeezeDims=axes)


@writes("Transpose")
def _transpose(w: Writer, node: Node, x: Value, permutation: Value) -> Value:
    if permutation.array is None:
        raise NotImplementedError("LiteRT has no TRANSPOSE by a permutation that is computed")
    order = [int(d) % len(permutation.array) for d in permutation.array]
    return transposed(w, x, order)


def transposed(w: Writer, x: Value, order: Sequence[int]) -> Value:
    """The array with its dimensions in another order; a known array is turned here."""
    if list(order) == list(range(len(order))):
        return x
    if x.array is not None:
        return w.turned(x.array, order)
    assert x.shape is not None
    shape = tuple(x.shape[i] for i in order)
    return w.op("TRANSPOSE", x, w.constant(np.array(order, np.int32)), dtype=x.dtype, shape=shape)


@writes("ConcatV2")
def _concat(w: Writer, node: Node, *operands: Value) -> Value:
    result = node.outputs[0]
    *parts, axis = operands
    # An operand without elements adds nothing, and LiteRT may refuse it.
    full = [x for x in parts if not _is_empty(x)]
    if static_shape(result) is not None and _is_empty(result):
        full = []
    parts = full or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return w.op("CONCATENATION", *parts, like=result, axis=known_axis(axis, rank_of(result)))


def _is_empty(x: Value | Tensor) -> bool:
    return x.shape is not None and 0 in x.shape


def known_axis(axis: Value, rank: int) -> int:
    """A known axis, counted from the front."""
    if axis.array is None:
        raise NotImplementedError("LiteRT has no op along an axis that is computed")
    return int(axis.array.reshape(())) % max(rank, 1)


@writes("Pack")
def _pack(w: Writer, node: Node, *parts: Value) -> Value:
    result = node.outputs[0]
    axis = int(node.attributes["axis"]) % rank_of(result)
    return w.op("PACK", *parts, like=result, axis=axis, valuesCount=len(parts))


@writes("Unpack")
def _unpack(w: Writer, node: Node, x: Value) -> list[Value]:
    types = [(y.dtype, y.shape) for y in node.outputs]
    axis = int(node.attributes["axis"]) % rank_of(node.inputs[0])
    return w.ops_of("UNPACK", [x], types, axis=axis, num=len(types))


@writes("Split")
def _split(w: Writer, node: Node, axis: Value, x: Value) -> list[Value]:
    types = [(y.dtype, y.shape) for y in node.outputs]
    if len(types) == 1:
        return [x]
    return w.ops_of("SPLIT", [axis, x], types, numSplits=len(types))


@writes("SplitV")
def _split_v(w: Writer, node: Node, x: Value, parts: Value, axis: Value) -> list[Value]:
    types = [(y.dtype, y.shape) for y in node.outputs]
    if len(types) == 1:
        return [x]
    return w.ops_of("SPLIT_V", [x, parts, axis], types, numSplits=len(types))


@writes("Tile")
def _tile(w: Writer, node: Node, x: Value, multiples: Value) -> Value:
    if multiples.array is not None and (multiples.array == 1).all():
        return x
    return w.op("TILE", x, multiples, like=node.outputs[0])


@writes("BroadcastTo")
def _broadcast_to(w: Writer, node: Node, x: Value, shape: Value) -> Value:
    result = node.outputs[0]
    if static_shape(result) is not None and x.shape == result.shape:
        return x
    return w.op("BROADCAST_TO", x, shape, like=result)


@writes("Fill")
def _fill(w: Writer, node: Node, shape: Value, value: Value) -> Value:
    result, sizes = node.outputs[0], static_shape(node.outputs[0])
    if value.array is not None and sizes is not None and np.prod(sizes) <= SMALL:
        return w.constant(np.full(sizes, value.array))
    return w.op("FILL", shape, value, like=result)


@writes("Range")
def _range(w: Writer, node: Node, *operands: Value) -> Value:
    return w.op("RANGE", *operands, like=node.outputs[0])


@writes("Shape")
def _shape(w: Writer, node: Node, x: Value) -> Value:
    return w.op("SHAPE", x, like=node.outputs[0], outType=node.outputs[0].dtype)


@writes("Size")
def _size(w: Writer, node: Node, x: Value) -> Value:
    result = node.outputs[0]
    sizes = static_shape(node.inputs[0])
    if sizes is not None:
        return w.constant(np.array(np.prod(sizes, dtype=np.int64), result.dtype))
    shape = w.op(
        "SHAPE", x, dtype=result.dtype, shape=(rank_of(node.inputs[0]),), outType=result.dtype
    )
    return w.op("REDUCE_PROD", shape, w.constant([0], np.int32), like=result, keepDims=False)


@writes("Rank")
def _rank(w: Writer, node: Node, x: Value) -> Value:
    return w.constant(np.array(rank_of(node.inputs[0]), node.outputs[0].dtype))


@writes("ReverseV2")
def _reverse(w: Writer, node: Node, x: Value, axes: Value) -> Value:
    if axes.array is None:
        raise NotImplementedError("LiteRT has no REVERSE_V2 along axes that are computed")
    rank = rank_of(node.inputs[0])
    # One op reverses along neighbours only.
    runs: list[list[int]] = []
    for axis in sorted({int(a) % rank for a in axes.array}):
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    for run in runs:
        x = w.op("REVERSE_V2", x, w.constant(run, np.int32), like=node.outputs[0])
    return x


@writes("OneHot")
def _one_hot(w: Writer, node: Node, *operands: Value) -> Value:
    return w.op("ONE_HOT", *operands, like=node.outputs[0], axis=int(node.attributes["axis"]))
