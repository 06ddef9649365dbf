"""Ops that take a part of an array, or put something around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.dtypes import narrowed, widened
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor


@writes("Slice")
def _slice(w: Writer, node: Node, x: ir.Value, begin: ir.Value, size: ir.Value) -> ir.Value:
    given, result = node.inputs[0], node.outputs[0]
    rank = sizes.rank_of(given)
    starts = sizes.entries(node.inputs[1]) or [sizes.Item(node.inputs[1], i) for i in range(rank)]
    lengths = sizes.entries(node.inputs[2]) or [sizes.Item(node.inputs[2], i) for i in range(rank)]
    of_given = sizes.sizes_of(given) or []
    whole = [
        start == 0 and (length in (-1, n) or _is_same(result, given, i))
        for i, (start, length, n) in enumerate(zip(starts, lengths, of_given, strict=True))
    ]
    axes = [i for i in range(rank) if not whole[i]]
    if not axes:
        return x
    low, count = [starts[i] for i in axes], [lengths[i] for i in axes]
    if count == [1] and not isinstance(low[0], int):
        return w.op("Gather", x, _index(w, low[0]), axis=axes[0])
    first = sizes.joined(w, low)
    return w.op("Slice", x, first, _ends(w, low, count, first), int64s(w, *axes))


def _index(w: Writer, entry: sizes.Entry) -> ir.Value:
    """An index that is computed as a vector, in its own dtype."""
    if isinstance(entry, sizes.Item) and entry.index is None:
        return w.op("Unsqueeze", w.value(entry.tensor), int64s(w, 0))
    return sizes.joined(w, [entry])


def _is_same(result: Tensor, given: Tensor, axis: int) -> bool:
    """Whether a dimension is known to keep its size."""
    if result.shape is None or given.shape is None:
        return False
    return isinstance(given.shape[axis], int) and result.shape[axis] == given.shape[axis]


def _ends(
    w: Writer, low: Sequence[sizes.Entry], count: Sequence[sizes.Entry], first: ir.Value
) -> ir.Value:
    """Where parts end that start at `low`: a length of -1 goes to the end."""
    known: list[int] = []
    for start, length in zip(low, count, strict=True):
        if length == -1:
            known.append(sizes.TO_THE_END)
        elif isinstance(start, int) and isinstance(length, int):
            known.append(start + length)
    if len(known) == len(low):
        return int64s(w, *known)
    if all(start == 0 for start in low):
        return sizes.joined(w, [sizes.TO_THE_END if n == -1 else n for n in count])
    if -1 not in count:
        return w.op("Add", first, sizes.joined(w, count))
    # A sum with the largest number would overflow.
    parts = [
        int64s(w, sizes.TO_THE_END)
        if n == -1
        else w.op("Add", sizes.joined(w, [start]), sizes.joined(w, [n]))
        for start, n in zip(low, count, strict=True)
    ]
    return w.op("Concat", *parts, axis=0)


@dataclasses.dataclass
class _Cut:
    """What a StridedSlice takes along one dimension of its operand."""

    axis: int
    start: sizes.Entry
    end: sizes.Entry
    step: int


@dataclasses.dataclass
class _Parts:
    """A StridedSlice, taken apart.

    Attributes:
      cuts: the parts along dimensions.
      single: dimensions of which one element is taken, by its index; they go.
      added: the places of new dimensions in the result.
    """

    cuts: list[_Cut] = dataclasses.field(default_factory=list)
    single: dict[int, sizes.Entry] = dataclasses.field(default_factory=dict)
    added: list[int] = dataclasses.field(default_factory=list)


@writes("StridedSlice")
def _strided_slice(w: Writer, node: Node, x: ir.Value, *_: ir.Value) -> ir.Value:
    known = _known_element(w, node)
    if known is not None:
        return known
    parts = _parts(node)
    if len(parts.single) == 1 and not parts.cuts:
        ((axis, index),) = parts.single.items()
        x = w.op("Gather", x, _scalar(w, index), axis=axis)
    else:
        singles = [_single(axis, index) for axis, index in parts.single.items()]
        x = _cut(w, x, sorted([*parts.cuts, *singles], key=lambda cut: cut.axis))
        if parts.single:
            x = w.op("Squeeze", x, int64s(w, *sorted(parts.single)))
    return w.op("Unsqueeze", x, int64s(w, *parts.added)) if parts.added else x


def _known_element(w: Writer, node: Node) -> ir.Value | None:
    """The element or the part of a shape, if it is known."""
    result = node.outputs[0]
    if node.inputs[0].node is None or result.dtype not in (np.int32, np.int64):
        return None
    if result.shape == ():
        entry = sizes.scalar(result)
        return w.constant(np.array(entry, result.dtype)) if isinstance(entry, int) else None
    found = sizes.entries(result) if result.shape is not None and len(result.shape) == 1 else None
    if found is None or not all(isinstance(n, int) for n in found):
        return None
    return w.constant(np.array(found, result.dtype))


def _single(axis: int, index: sizes.Entry) -> _Cut:
    """One element, as a part of length 1; its index is a number."""
    if not isinstance(index, int):
        return _Cut(axis, index, sizes.Item(_NOWHERE, None), 1)
    return _Cut(axis, index, sizes.TO_THE_END if index == -1 else index + 1, 1)


# Stands for the end of a part of length 1 whose start is computed.
_NOWHERE = Tensor("", None, None)


def _parts(node: Node) -> _Parts:
    """Reads the masks of a StridedSlice."""
    masks = {name: int(mask) for name, mask in node.attributes.items() if name.endswith("_mask")}
    begin, end, strides = (_numbers(x) for x in node.inputs[1:4])
    rank, count = sizes.rank_of(node.inputs[0]), len(begin)

    def has(name: str, i: int) -> bool:
        return bool(masks[f"{name}_mask"] >> i & 1)

    new = sum(has("new_axis", i) and not has("ellipsis", i) for i in range(count))
    dots = [i for i in range(count) if has("ellipsis", i)]
    covered = rank - (count - new - len(dots))
    parts, axis, place = _Parts(), 0, 0
    for i in range(count):
        if i in dots:
            axis, place = axis + covered, place + covered
        elif has("new_axis", i):
            parts.added.append(place)
            place += 1
        elif has("shrink_axis", i):
            parts.single[axis] = begin[i]
            axis += 1
        else:
            cut = _whole_or_part(
                axis,
                None if has("begin", i) else begin[i],
                None if has("end", i) else end[i],
                strides[i],
            )
            parts.cuts += [] if cut is None else [cut]
            axis, place = axis + 1, place + 1
    return parts


def _numbers(tensor: Tensor) -> list[sizes.Entry]:
    found = sizes.entries(tensor)
    if found is None:
        raise NotImplementedError("a StridedSlice of an unknown number of dimensions")
    return found


def _whole_or_part(
    axis: int, start: sizes.Entry | None, end: sizes.Entry | None, step: sizes.Entry
) -> _Cut | None:
    if not isinstance(step, int):
        raise NotImplementedError("a StridedSlice by a stride that is computed")
    if step > 0:
        if start in (None, 0) and end is None and step == 1:
            return None
        first: sizes.Entry = 0 if start is None else start
        return _Cut(axis, first, sizes.TO_THE_END if end is None else end, step)
    first = sizes.TO_THE_END if start is None else start
    return _Cut(axis, first, sizes.TO_THE_BEGINNING if end is None else end, step)


def _cut(w: Writer, x: ir.Value, cuts: Sequence[_Cut]) -> ir.Value:
    if not cuts:
        return x
    steps = [] if all(c.step == 1 for c in cuts) else [int64s(w, *(c.step for c in cuts))]
    starts = sizes.joined(w, [c.start for c in cuts])
    ends = _ends_of_cuts(w, cuts)
    return w.op("Slice", x, starts, ends, int64s(w, *(c.axis for c in cuts)), *steps)


def _ends_of_cuts(w: Writer, cuts: Sequence[_Cut]) -> ir.Value:
    if not any(_is_nowhere(c.end) for c in cuts):
        return sizes.joined(w, [c.end for c in cuts])
    parts = [_after(w, c.start) if _is_nowhere(c.end) else sizes.joined(w, [c.end]) for c in cuts]
    return parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=0)


def _is_nowhere(entry: sizes.Entry) -> bool:
    return isinstance(entry, sizes.Item) and entry.tensor is _NOWHERE


def _after(w: Writer, start: sizes.Entry) -> ir.Value:
    """The end of the single element at `start`, which may count from the end."""
    index = sizes.joined(w, [start])
    is_last = w.op("Equal", index, int64s(w, -1))
    behind = w.op("Add", index, int64s(w, 1))
    return w.op("Where", is_last, int64s(w, sizes.TO_THE_END), behind)


def _scalar(w: Writer, index: sizes.Entry) -> ir.Value:
    if isinstance(index, int):
        return w.constant(np.array(index, np.int64))
    if isinstance(index, sizes.Item) and index.index is None:
        return w.value(index.tensor)
    return w.op("Squeeze", sizes.joined(w, [index]), int64s(w, 0))


@writes("Pad", "PadV2")
def _pad(w: Writer, node: Node, x: ir.Value, paddings: ir.Value, *number: ir.Value) -> ir.Value:
    known = sizes.array_of(paddings)
    if known is not None and not known.any():
        return x
    return padded(w, sizes.dtype_of(node.inputs[0]), x, _pads(w, node.inputs[1], paddings), *number)


def padded(w: Writer, dtype: np.dtype, x: ir.Value, pads: ir.Value, *number: ir.Value) -> ir.Value:
    """The array with a number around it; the number is 0 if it is left out."""
    inside = [widened(w, "Pad", dtype, t) for t in (x, *number)]
    return narrowed(w, "Pad", dtype, w.op("Pad", inside[0], pads, *inside[1:]))


def _pads(w: Writer, tensor: Tensor, paddings: ir.Value) -> ir.Value:
    """A matrix of pairs as ONNX's vector: what comes before all dimensions, what comes behind."""
    known = sizes.array_of(paddings)
    if known is not None:
        return w.constant(known.T.astype(np.int64).reshape(-1))
    found = _pairs(tensor)
    if found is not None:
        return sizes.joined(w, [*(low for low, _ in found), *(high for _, high in found)])
    numbers = sizes.as_int64(w, paddings, tensor.dtype)
    return w.op("Reshape", w.op("Transpose", numbers, perm=[1, 0]), int64s(w, -1))


def _pairs(tensor: Tensor) -> list[tuple[sizes.Entry, sizes.Entry]] | None:
    """Where the numbers of a matrix of pairs come from."""
    tensor = sizes.root(tensor)
    node = tensor.node
    if node is None:
        return None
    if node.op == "Reshape":
        flat = sizes.entries(node.inputs[0])
    elif node.op == "Pack" and node.attributes["axis"] == 0:
        rows = [sizes.entries(x) for x in node.inputs]
        flat = [n for row in rows if row is not None for n in row]
        flat = None if None in rows else flat
    else:
        return None
    if flat is None or tensor.shape is None or len(flat) != 2 * int(tensor.shape[0] or 0):
        return None
    return list(zip(flat[::2], flat[1::2], strict=True))


@writes("MirrorPad")
def _mirror_pad(w: Writer, node: Node, x: ir.Value, paddings: ir.Value) -> ir.Value:
    known = sizes.array_of(paddings)
    if known is None:
        raise NotImplementedError("a MirrorPad by paddings that are computed")
    edge = 0 if node.attributes["mode"] == "SYMMETRIC" else 1
    for axis, (low, high) in enumerate(known.tolist()):
        parts = [x]
        if low:
            # From the element at low - 1 + edge backwards to that at edge.
            last = edge - 1 if edge else sizes.TO_THE_BEGINNING
            parts.insert(0, _backwards(w, x, axis, low - 1 + edge, last))
        if high:
            parts.append(_backwards(w, x, axis, -1 - edge, -1 - edge - high))
        x = w.op("Concat", *parts, axis=axis) if len(parts) > 1 else x
    return x


def _backwards(w: Writer, x: ir.Value, axis: int, first: int, end: int) -> ir.Value:
    return w.op("Slice", x, int64s(w, first), int64s(w, end), int64s(w, axis), int64s(w, -1))
