"""Ops that cut arrays and pad them."""

from __future__ import annotations

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Size
from jax2tf._src.graph.shapes.registry import Shape, Sizes, Use, gives, shown


@gives("Slice")
def _slice(use: Use) -> Shape:
    begins, sizes = use.vector(1), use.vector(2)
    given = use.operands[0].shape
    lengths = [len(part) for part in (given, begins, sizes) if part is not None]
    if not lengths:
        return None
    rank = lengths[0]
    if len(set(lengths)) > 1:
        raise use.error("the operand, its begins and its sizes have different lengths")
    unknown: Sizes = (None,) * rank
    parts = zip(given or unknown, begins or unknown, sizes or unknown, strict=True)
    return tuple(_sliced(use, *part) for part in parts)


def _sliced(use: Use, given: Size, begin: Size, size: Size) -> Size:
    stated = dimensions.subtract(given, begin) if size == -1 else size
    end = dimensions.add(begin, stated)
    is_negative = any(isinstance(x, int) and x < 0 for x in (begin, stated))
    is_beyond = isinstance(end, int) and isinstance(given, int) and end > given
    if is_negative or is_beyond:
        raise use.error(f"size {given} has no part from {begin} of size {size}")
    return stated


@gives("StridedSlice")
def _strided_slice(use: Use) -> Shape:
    begins, ends, strides = use.vector(1), use.vector(2), use.vector(3)
    lengths = {len(part) for part in (begins, ends, strides) if part is not None}
    if not lengths:
        return None
    n = max(lengths)
    if len(lengths) > 1:
        raise use.error("begins, ends and strides have different lengths")
    unknown: Sizes = (None,) * n
    parts = list(zip(begins or unknown, ends or unknown, strides or unknown, strict=True))
    masks = _Masks(use)
    shape = use.shape(0)
    cut = sum(not masks.has("new_axis", i) and not masks.has("ellipsis", i) for i in range(n))
    if cut > len(shape):
        raise use.error(f"{cut} dimensions are cut of {len(shape)}")
    result: list[Size] = []
    # The number of dimensions before the next one that is cut.
    at = 0
    for i, part in enumerate(parts):
        if masks.has("ellipsis", i):
            later = sum(not masks.has("new_axis", j) for j in range(i + 1, n))
            end = len(shape) - later
            result += shape[at:end]
            at = end
        elif masks.has("new_axis", i):
            result.append(1)
        elif masks.has("shrink_axis", i):
            _check_index(use, shape[at], part[0])
            at += 1
        else:
            begin = None if masks.has("begin", i) else part[0]
            end_of = None if masks.has("end", i) else part[1]
            whole = (masks.has("begin", i), masks.has("end", i))
            result.append(_cut(use, shape[at], begin, end_of, part[2], whole))
            at += 1
    return (*result, *shape[at:])


class _Masks:
    def __init__(self, use: Use) -> None:
        self._masks = {
            name: use.attributes[f"{name}_mask"]
            for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }

    def has(self, name: str, i: int) -> bool:
        """Whether a mask is set at a position. An ellipsis is nothing else."""
        if name != "ellipsis" and self._masks["ellipsis"] >> i & 1:
            return False
        if name == "shrink_axis" and self._masks["new_axis"] >> i & 1:
            return False
        return bool(self._masks[name] >> i & 1)


def _check_index(use: Use, size: Size, index: Size) -> None:
    if isinstance(size, int) and isinstance(index, int) and not -size <= index < size:
        raise use.error(f"index {index} is out of range for size {size}")


def _cut(
    use: Use, size: Size, begin: Size, end: Size, stride: Size, whole: tuple[bool, bool]
) -> Size:
    """The size of a dimension from `begin` to `end`, or without them if it is `whole` there."""
    if stride == 0:
        raise use.error("a stride is 0")
    if not isinstance(stride, int):
        return 1 if size == 1 and all(whole) else 0 if size == 0 else None
    if all(whole):
        return dimensions.divide_up(size, abs(stride))
    is_known = all(
        is_whole or isinstance(place, int)
        for place, is_whole in zip((begin, end), whole, strict=True)
    )
    if isinstance(size, int) and is_known:
        places = slice(begin, end, stride).indices(size)
        return len(range(*places))
    if stride < 0:
        return None
    first = 0 if whole[0] else _place(begin, size)
    last = size if whole[1] else _place(end, size)
    length = dimensions.maximum(dimensions.subtract(last, first), 0)
    return dimensions.divide_up(length, stride)


def _place(place: Size, size: Size) -> Size:
    """A place within a dimension; negative ones count from its end."""
    if isinstance(place, int) and place < 0:
        return dimensions.maximum(dimensions.add(size, place), 0)
    if dimensions.is_at_least(place, 0):
        return dimensions.minimum(place, size)
    return None


@gives("MirrorPad", "Pad", "PadV2")
def _pad(use: Use) -> Shape:
    edges, given = use.sizes(1), use.operands[0].shape
    if edges is None:
        counts = use.operands[1].shape
        rank = None if counts is None else counts[0]
        if given is None and not isinstance(rank, int):
            return None
        length = rank if given is None and isinstance(rank, int) else len(given or ())
        return (None,) * length
    if edges.ndim != 2 or edges.shape[1] != 2 or (given is not None and len(given) != len(edges)):
        raise use.error(f"paddings of shape {shown(edges.shape)} do not fit")
    if given is None:
        return (None,) * len(edges)
    if any(isinstance(n, int) and n < 0 for n in np.ravel(edges)):
        raise use.error("paddings are negative")
    return tuple(
        dimensions.total((size, *pair)) for size, pair in zip(given, edges.tolist(), strict=True)
    )


@gives("XlaDynamicUpdateSlice")
def _update(use: Use) -> Shape:
    return use.operands[0].shape
