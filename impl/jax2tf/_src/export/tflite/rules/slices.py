"""Ops that take a part of an array, or put something around it."""

from __future__ import annotations

import dataclasses

import numpy as np

from jax2tf._src.export.tflite.model import Shape, Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.arrays import n_open, reshaped
from jax2tf._src.export.tflite.rules.elementwise import rank_of
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree


@writes("Slice")
def _slice(w: Writer, node: Node, x: Value, begin: Value, size: Value) -> Value:
    return w.op("SLICE", x, begin, size, like=node.outputs[0])


_MASKS = {
    "begin_mask": "beginMask",
    "end_mask": "endMask",
    "ellipsis_mask": "ellipsisMask",
    "new_axis_mask": "newAxisMask",
    "shrink_axis_mask": "shrinkAxisMask",
}


@writes("StridedSlice")
def _strided_slice(w: Writer, node: Node, x: Value, *places: Value) -> Value:
    result = node.outputs[0]
    masks: dict[str, PyTree] = {name: int(node.attributes[key]) for key, name in _MASKS.items()}
    known = [place.array.tolist() for place in places if place.array is not None]
    if len(known) < len(places):
        return w.op("STRIDED_SLICE", x, *places, like=result, **masks)
    cuts = _cuts(masks, known, rank_of(x))
    part = _cut(w, x, cuts)
    added = [i for i, cut in enumerate(cut for cut in cuts if not cut.shrinks) if cut.is_new]
    if not added:
        return w.op(*part, like=result, **_options(cuts)) if isinstance(part, tuple) else part
    shape = _without(result.shape, added)
    if isinstance(part, tuple):
        part = w.op(*part, dtype=result.dtype, shape=shape, **_options(cuts))
    if n_open(result) <= 1:
        return reshaped(w, part, result.shape)
    for axis in added:
        shape = None if shape is None else (*shape[:axis], 1, *shape[axis:])
        at = w.constant(axis, np.int32)
        part = w.op("EXPAND_DIMS", part, at, dtype=result.dtype, shape=shape)
    return part


@dataclasses.dataclass
class _Cut:
    """What a StridedSlice takes along one dimension of its operand, or a new dimension.

    Attributes:
      begin: None stands for the first element in the direction of the stride.
      end: None stands for all that follows.
      stride: the stride.
      shrinks: whether the dimension goes, for one element of it is taken.
      is_new: whether the operand has no such dimension.
    """

    begin: int | None = None
    end: int | None = None
    stride: int = 1
    shrinks: bool = False
    is_new: bool = False

    @property
    def is_whole(self) -> bool:
        return self.begin in (None, 0) and self.end is None and self.stride == 1


def _cuts(masks: dict[str, int], places: list[list[int]], rank: int) -> list[_Cut]:
    """The entries of a StridedSlice, with one for each dimension of the operand."""

    def has(mask: str, i: int) -> bool:
        return bool(masks[mask] >> i & 1)

    given = len(places[0])
    n_own = sum(not has("newAxisMask", i) and not has("ellipsisMask", i) for i in range(given))
    cuts: list[_Cut] = []
    for i, (begin, end, stride) in enumerate(zip(*places, strict=True)):
        if has("ellipsisMask", i):
            cuts += [_Cut() for _ in range(rank - n_own)]
        elif has("newAxisMask", i):
            cuts.append(_Cut(is_new=True))
        elif has("shrinkAxisMask", i):
            cuts.append(_Cut(begin, begin + 1 if begin != -1 else None, 1, shrinks=True))
        else:
            first = None if has("beginMask", i) else begin
            last = None if has("endMask", i) else end
            cuts.append(_Cut(first, last, stride))
    n_taken = sum(not cut.is_new for cut in cuts)
    return cuts + [_Cut() for _ in range(rank - n_taken)]


def _cut(w: Writer, x: Value, cuts: list[_Cut]) -> PyTree:
    """The op that takes the part, with its operands; the array itself if that is the part."""
    own = [cut for cut in cuts if not cut.is_new]
    if all(cut.is_whole and not cut.shrinks for cut in own):
        return x
    places = ([getattr(cut, name) or 0 for cut in own] for name in ("begin", "end", "stride"))
    limits = np.iinfo(np.int32)
    constants = [w.constant(np.clip(p, limits.min, limits.max), np.int32) for p in places]
    return ("STRIDED_SLICE", x, *constants)


def _options(cuts: list[_Cut]) -> dict[str, PyTree]:
    own = [cut for cut in cuts if not cut.is_new]
    bits = {
        "beginMask": [cut.begin is None for cut in own],
        "endMask": [cut.end is None and not cut.shrinks for cut in own],
        "shrinkAxisMask": [cut.shrinks for cut in own],
    }
    masks = {name: sum(1 << i for i, on in enumerate(ons) if on) for name, ons in bits.items()}
    return {**masks, "ellipsisMask": 0, "newAxisMask": 0}


def _without(shape: Shape, axes: list[int]) -> Shape:
    return None if shape is None else tuple(n for i, n in enumerate(shape) if i not in axes)


@writes("Pad")
def _pad(w: Writer, node: Node, x: Value, paddings: Value) -> Value:
    return w.op("PAD", x, paddings, like=node.outputs[0])


@writes("PadV2")
def _pad_v2(w: Writer, node: Node, x: Value, paddings: Value, number: Value) -> Value:
    if number.array is not None and number.array == 0 and not np.signbit(number.array):
        return w.op("PAD", x, paddings, like=node.outputs[0])
    return w.op("PADV2", x, paddings, number, like=node.outputs[0])


@writes("MirrorPad")
def _mirror_pad(w: Writer, node: Node, x: Value, paddings: Value) -> Value:
    mode = int(node.attributes["mode"] == "SYMMETRIC")
    return w.op("MIRROR_PAD", x, paddings, like=node.outputs[0], mode=mode)
