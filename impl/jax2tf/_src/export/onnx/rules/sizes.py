"""Sizes: the known and computed numbers of a shape, and vectors of them for ONNX's ops.

TensorFlow's graphs compute shapes as arrays of int32: Shape, StridedSlice, Pack. ONNX's ops take
vectors of int64. These functions read through the graph where each number comes from, so that a
known number stays known, and the size of a dimension is a Shape and nothing else.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor

# The end of a slice that goes to the end, and of one that goes backwards to the beginning.
TO_THE_END = int(np.iinfo(np.int64).max)
TO_THE_BEGINNING = int(np.iinfo(np.int64).min)

_PASSES_ON = ("Identity", "IdentityN", "PreventGradient", "StopGradient")


@dataclasses.dataclass(frozen=True)
class SizeOf:
    """The size of a dimension of a tensor."""

    tensor: Tensor
    axis: int


@dataclasses.dataclass(frozen=True)
class Item:
    """An element of a vector that is computed, or a scalar that is computed (the index is None)."""

    tensor: Tensor
    index: int | None


@dataclasses.dataclass(frozen=True)
class Result:
    """The sum, difference or product of two sizes, by ONNX's name of the op."""

    op: str
    one: Entry
    other: Entry


Entry: TypeAlias = "int | SizeOf | Item | Result"

_ARITHMETIC = {"AddV2": "Add", "Sub": "Sub", "Mul": "Mul"}


def is_size(entry: Entry, tensor: Tensor, axis: int) -> bool:
    """Whether a number is the size of a dimension of a tensor, or one of the same name."""
    if not isinstance(entry, SizeOf) or tensor.shape is None or not 0 <= axis < len(tensor.shape):
        return False
    if entry == SizeOf(root(tensor), axis):
        return True
    other = entry.tensor.shape
    name = tensor.shape[axis]
    return isinstance(name, str) and other is not None and other[entry.axis] == name


def root(tensor: Tensor) -> Tensor:
    """The tensor behind ops that pass on what they are given."""
    while tensor.node is not None and tensor.node.op in _PASSES_ON:
        tensor = tensor.node.inputs[tensor.index]
    return tensor


def scalar(tensor: Tensor) -> Entry:
    """Where a scalar integer comes from."""
    tensor = root(tensor)
    if tensor.value is not None:
        return int(tensor.value.reshape(()))
    node = tensor.node
    if node is None:
        return Item(tensor, None)
    if node.op == "Cast" and _is_index(node.inputs[0]):
        return scalar(node.inputs[0])
    if node.op == "StridedSlice":
        found = _element(node)
        if found is not None:
            return found
    if node.op in _ARITHMETIC and _is_index(tensor):
        numbers = [scalar(x) for x in node.inputs]
        # Sizes do not overflow; other numbers of int32 may.
        if not any(isinstance(n, Item) for n in numbers):
            return Result(_ARITHMETIC[node.op], *numbers)
    return Item(tensor, None)


def entries(tensor: Tensor) -> list[Entry] | None:
    """Where each number of a vector of integers comes from; None for one of unknown length."""
    tensor = root(tensor)
    if tensor.value is not None:
        return [int(n) for n in tensor.value.reshape(-1)]
    found = _composed(tensor.node) if tensor.node is not None else None
    if found is not None:
        return found
    if tensor.shape is not None and len(tensor.shape) == 1 and isinstance(tensor.shape[0], int):
        return [Item(tensor, i) for i in range(tensor.shape[0])]
    return None


def _composed(node: Node) -> list[Entry] | None:
    first = node.inputs[0] if node.inputs else None
    if first is None:
        return None
    if node.op == "Shape":
        return sizes_of(first)
    if node.op == "Pack" and first.shape == ():
        return [scalar(x) for x in node.inputs]
    if node.op == "Cast" and _is_index(first) and first.shape is not None and len(first.shape) == 1:
        return entries(first)
    if node.op == "ExpandDims" and first.shape == ():
        return [scalar(first)]
    if node.op == "Reshape" and first.shape == () and node.outputs[0].shape == (1,):
        return [scalar(first)]
    if node.op == "ConcatV2":
        parts = [entries(x) for x in node.inputs[:-1]]
        if all(part is not None for part in parts):
            return list(itertools.chain(*(part for part in parts if part is not None)))
    if node.op == "StridedSlice":
        return _part(node)
    return None


def _is_index(tensor: Tensor) -> bool:
    return tensor.dtype in (np.int32, np.int64)


def sizes_of(tensor: Tensor) -> list[Entry] | None:
    """The sizes of a tensor; None if their number is unknown."""
    if tensor.shape is None:
        return None
    source = root(tensor)
    return [n if isinstance(n, int) else SizeOf(source, i) for i, n in enumerate(tensor.shape)]


def _element(node: Node) -> Entry | None:
    """The element that a StridedSlice takes from a vector."""
    begin = node.inputs[1].value
    masks = ("begin_mask", "ellipsis_mask", "new_axis_mask")
    if node.attributes["shrink_axis_mask"] != 1 or any(node.attributes[m] for m in masks):
        return None
    vector = node.inputs[0]
    if begin is None or vector.shape is None or len(vector.shape) != 1:
        return None
    found = entries(vector)
    return None if found is None else found[int(begin[0])]


def _part(node: Node) -> list[Entry] | None:
    """The elements that a StridedSlice takes from a vector, as a vector."""
    begin, end, strides = (x.value for x in node.inputs[1:4])
    masks = ("shrink_axis_mask", "ellipsis_mask", "new_axis_mask")
    if begin is None or end is None or strides is None or len(begin) != 1:
        return None
    vector = node.inputs[0]
    if any(node.attributes[m] for m in masks) or vector.shape is None or len(vector.shape) != 1:
        return None
    found = entries(vector)
    if found is None:
        return None
    first = None if node.attributes["begin_mask"] else int(begin[0])
    last = None if node.attributes["end_mask"] else int(end[0])
    return found[first : last : int(strides[0])]


def vector(w: Writer, tensor: Tensor) -> ir.Value:
    """The vector of int64 that a vector of integers has become."""
    found = entries(tensor)
    if found is None or found == [Item(root(tensor), i) for i in range(len(found))]:
        return as_int64(w, w.value(tensor), tensor.dtype)
    return joined(w, found)


def joined(w: Writer, found: Sequence[Entry]) -> ir.Value:
    """A vector of int64 of these numbers."""
    if not found:
        return w.constant(np.zeros(0, np.int64))
    parts = [_run(w, run) for run in _runs(found)]
    return parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=0)


def _runs(found: Iterable[Entry]) -> list[list[Entry]]:
    """Neighbours that one op gives together."""
    runs: list[list[Entry]] = []
    for entry in found:
        if runs and _follows(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs


def _follows(one: Entry, other: Entry) -> bool:
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int)
    if isinstance(one, SizeOf) and isinstance(other, SizeOf):
        return one.tensor is other.tensor and one.axis + 1 == other.axis
    if isinstance(one, Item) and isinstance(other, Item):
        is_next = one.index is not None and one.index + 1 == other.index
        return one.tensor is other.tensor and is_next
    return False


def _run(w: Writer, run: Sequence[Entry]) -> ir.Value:
    first = run[0]
    if isinstance(first, int):
        return w.constant(np.array(run, np.int64))
    if isinstance(first, Result):
        return w.op(first.op, joined(w, [first.one]), joined(w, [first.other]))
    if isinstance(first, SizeOf):
        return shape_of(w, first.tensor, first.axis, first.axis + len(run))
    numbers = as_int64(w, w.value(first.tensor), first.tensor.dtype)
    if first.index is None:
        return w.op("Unsqueeze", numbers, w.constant(np.array([0], np.int64)))
    length = first.tensor.shape[0] if first.tensor.shape is not None else None
    return numbers if length == len(run) else _slice(w, numbers, first.index, len(run))


def _slice(w: Writer, numbers: ir.Value, start: int, count: int) -> ir.Value:
    starts, ends = (w.constant(np.array([n], np.int64)) for n in (start, start + count))
    return w.op("Slice", numbers, starts, ends)


def shape_of(w: Writer, tensor: Tensor, start: int = 0, end: int | None = None) -> ir.Value:
    """The sizes of dimensions as a vector of int64."""
    rank = None if tensor.shape is None else len(tensor.shape)
    last = rank if end is None else end
    result: ir.Value = w.op(
        "Shape", w.value(tensor), start=start or None, end=None if end == rank else end
    )
    return of_int64(result, [None if last is None else last - start])


def of_int64(value: ir.Value, shape: Sequence[int | None]) -> ir.Value:
    """A value on the way to a result, which says its dtype and its shape."""
    value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape(shape)
    return value


def as_int64(w: Writer, value: ir.Value, dtype: np.dtype | None) -> ir.Value:
    """The integers as int64."""
    array = array_of(value)
    if array is not None:
        return w.constant(array.astype(np.int64))
    if dtype == np.int64:
        return value
    return w.op("Cast", value, to=ir.DataType.INT64)


def int64s(w: Writer, *numbers: int) -> ir.Value:
    """A known vector of int64."""
    return w.constant(np.array(numbers, np.int64))


def array_of(value: ir.Value) -> np.ndarray | None:
    """The array of an initialiser; None for what is computed or given."""
    return None if value.const_value is None else value.const_value.numpy()


def dtype_of(tensor: Tensor) -> np.dtype:
    """The dtype of an array."""
    assert tensor.dtype is not None, tensor.name
    return tensor.dtype


def axis_of(tensor: Tensor, rank: int) -> int:
    """A known axis, counted from the front."""
    value = tensor.value
    if value is None:
        raise NotImplementedError("ONNX has no op along an axis that is computed")
    axis = int(value.reshape(()))
    return axis + rank if axis < 0 else axis


def rank_of(tensor: Tensor) -> int:
    """The number of dimensions, which has to be known."""
    if tensor.shape is None:
        raise NotImplementedError(f"the number of dimensions of {tensor.name} is unknown")
    return len(tensor.shape)
