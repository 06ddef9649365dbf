"""Computes with elements that are known as sizes.

The shape to which an array is reshaped is often computed: a Pack of numbers and of elements of the
Shape of an array. Here elements are numbers, names, expressions of names, or None for unknown ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Node, Size, Tensor
from jax2tf._src.graph.shapes.registry import MOST, elements_of
from jax2tf._src.util.typing import PyTree

Compute = Callable[..., PyTree]


def sizes_of(node: Node, i: int) -> np.ndarray | None:
    """The elements of a result of integers as sizes; None if no element is known.

    Args:
      node: its operands' `sizes` are set.
      i: the position of the result.
    """
    dtype = node.outputs[i].dtype
    if dtype is None or dtype.kind not in "iu":
        return None
    by_shape = _BY_SHAPE.get(node.op)
    if by_shape is not None:
        shape = node.inputs[0].shape
        return None if shape is None else _kept(by_shape(shape), dtype)
    compute = _BY_ELEMENTS.get(node.op)
    if compute is None:
        return None
    elements = [_elements(x) for x in node.inputs]
    known = [x for x in elements if x is not None]
    if len(known) < len(elements):
        return None
    result = compute(node, *known)
    return _kept(result[i] if isinstance(result, list) else result, dtype)


def _elements(x: Tensor) -> np.ndarray | None:
    """The elements; all unknown ones of a small tensor whose shape is known."""
    known = elements_of(x)
    is_integer = x.dtype is not None and x.dtype.kind in "iu"
    if known is not None or x.shape is None or not is_integer:
        return known
    shape = [size for size in x.shape if isinstance(size, int)]
    if len(shape) < len(x.shape) or math.prod(shape) > MOST:
        return None
    return np.full(shape, None, object)


def _kept(result: PyTree, dtype: np.dtype) -> np.ndarray | None:
    """The result; None if no element is known, or if the dtype cannot hold one of them."""
    if result is None:
        return None
    elements = np.empty(np.shape(result), object)
    elements[...] = result
    limits = np.iinfo(dtype)
    numbers = [x for x in elements.ravel() if isinstance(x, int)]
    is_held = all(limits.min <= x <= limits.max for x in numbers)
    is_known = any(x is not None for x in elements.ravel()) or not elements.size
    return elements if is_held and is_known and elements.size <= MOST else None


def _each(function: Callable[[Size, Size], Size]) -> Compute:
    operate = np.frompyfunc(function, 2, 1)
    return lambda node, a, b: operate(a, b)


def _truncate(a: Size, b: Size) -> Size:
    """A quotient rounded toward zero, known for sizes that are not negative."""
    is_size = dimensions.is_at_least(a, 0) and dimensions.is_at_least(b, 1)
    return dimensions.divide(a, b) if is_size else None


def _floor(a: Size, b: Size) -> Size:
    return None if isinstance(b, int) and b == 0 else dimensions.divide(a, b)


def _along(function: Callable[[Sequence[Size]], Size]) -> Compute:
    """A reduction."""

    def reduce(node: Node, x: np.ndarray, axes: np.ndarray) -> np.ndarray | None:
        numbers = [axis for axis in axes.ravel() if isinstance(axis, int)]
        if len(numbers) < axes.size:
            return None
        gone = {axis % x.ndim for axis in numbers} if x.ndim else set()
        kept = [i for i in range(x.ndim) if i not in gone]
        n_gone = math.prod(x.shape[i] for i in gone)
        rows = x.transpose([*kept, *gone]).reshape([*(x.shape[i] for i in kept), n_gone])
        result = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(result.shape):
            result[place] = function(rows[place].tolist())
        if node.attributes["keep_dims"]:
            return result.reshape([1 if i in gone else n for i, n in enumerate(x.shape)])
        return result

    return reduce


def _all_numbers(*arrays: np.ndarray) -> bool:
    return all(isinstance(x, int) for array in arrays for x in array.ravel())


def _by_numbers(compute: Compute) -> Compute:
    """A function of the first operand that needs all numbers of the others."""

    def checked(node: Node, x: np.ndarray, *others: np.ndarray) -> PyTree:
        return compute(node, x, *others) if _all_numbers(*others) else None

    return checked


def _reshape(node: Node, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return x.reshape([int(n) for n in shape])


def _squeeze(node: Node, x: np.ndarray) -> np.ndarray:
    axes = node.attributes["squeeze_dims"]
    return np.squeeze(x, tuple(axes) if axes else None)


def _gather(node: Node, x: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray | None:
    if node.attributes["batch_dims"]:
        return None
    at = int(axis.item())
    places = indices.astype(np.int64)
    inside = (places >= 0) & (places < x.shape[at])
    return np.take(x, places, at) if inside.all() else None


def _concat(node: Node, *operands: np.ndarray) -> np.ndarray | None:
    *parts, axis = operands
    return np.concatenate(parts, int(axis.item())) if _all_numbers(axis) else None


def _slice(node: Node, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    places = [
        slice(b, None if n == -1 else b + n)
        for b, n in zip(begin.tolist(), size.tolist(), strict=True)
    ]
    return x[tuple(places)]


def _strided_slice(
    node: Node, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray | None:
    index: list[PyTree] = []
    for i, part in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        has = {name: node.attributes[f"{name}_mask"] >> i & 1 for name in _MASKS}
        if has["ellipsis"] or has["new_axis"]:
            index.append(Ellipsis if has["ellipsis"] else None)
        elif has["shrink_axis"]:
            index.append(part[0])
        else:
            first, last, step = part
            index.append(slice(None if has["begin"] else first, None if has["end"] else last, step))
    return x[tuple(index)]


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


def _range(node: Node, start: np.ndarray, limit: np.ndarray, step: np.ndarray) -> PyTree:
    if not _all_numbers(start, limit, step):
        return None
    numbers = range(start.item(), limit.item(), step.item())
    return np.array(numbers, object) if len(numbers) <= MOST else None


def _fill(node: Node, shape: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    if not _all_numbers(shape) or math.prod(shape.tolist()) > MOST:
        return None
    return np.full(shape.tolist(), x.item(), object)


def _broadcast_to(node: Node, x: np.ndarray, shape: np.ndarray) -> np.ndarray | None:
    small = math.prod(shape.tolist()) <= MOST
    return np.broadcast_to(x, [int(n) for n in shape]) if small else None


def _split(node: Node, axis: np.ndarray, x: np.ndarray) -> PyTree:
    n = node.attributes["num_split"]
    return list(np.split(x, n, int(axis.item()))) if _all_numbers(axis) else [None] * n


def _unpack(node: Node, x: np.ndarray) -> list[np.ndarray]:
    axis = node.attributes["axis"]
    return [np.take(x, i, axis) for i in range(node.attributes["num"])]


_BY_SHAPE: Mapping[str, Callable[[Sequence[Size]], PyTree]] = {
    "Rank": len,
    "Shape": lambda shape: np.array([*shape], object),
    "Size": dimensions.product,
}

_BY_ELEMENTS: Mapping[str, Compute] = {
    "AddV2": _each(dimensions.add),
    "FloorDiv": _each(_floor),
    "FloorMod": _each(dimensions.modulo),
    "Maximum": _each(dimensions.maximum),
    "Minimum": _each(dimensions.minimum),
    "Mul": _each(dimensions.multiply),
    "Sub": _each(dimensions.subtract),
    "TruncateDiv": _each(_truncate),
    "Neg": lambda node, x: np.frompyfunc(lambda a: dimensions.subtract(0, a), 1, 1)(x),
    "Prod": _along(dimensions.product),
    "Sum": _along(dimensions.total),
    "BroadcastTo": _by_numbers(_broadcast_to),
    "Cast": lambda node, x: x,
    "ConcatV2": _concat,
    "ExpandDims": _by_numbers(lambda node, x, axis: np.expand_dims(x, axis.item())),
    "Fill": _fill,
    "GatherV2": _by_numbers(_gather),
    "Identity": lambda node, x: x,
    "Pack": lambda node, *parts: np.stack(parts, node.attributes["axis"]),
    "Range": _range,
    "Reshape": _by_numbers(_reshape),
    "ReverseV2": _by_numbers(lambda node, x, axes: np.flip(x, tuple(axes.tolist()))),
    "Slice": _by_numbers(_slice),
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _by_numbers(_strided_slice),
    "Transpose": _by_numbers(lambda node, x, axes: np.transpose(x, axes.tolist())),
    "Unpack": _unpack,
}
