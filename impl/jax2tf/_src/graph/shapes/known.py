"""The elements of small tensors of integers that are known as sizes; see graph/values.py."""

from __future__ import annotations

import math

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Node, Size, Tensor
from jax2tf._src.graph.shapes.registry import MOST, Shape, elements_of
from jax2tf._src.graph.values import OF_SHAPE, OPS
from jax2tf._src.util.typing import PyTree


def sizes_of(node: Node, i: int) -> np.ndarray | None:
    """The elements of a result of integers as sizes; None if no element is known.

    Args:
      node: its operands' `sizes` are set, and its results have types.
      i: the position of the result.
    """
    dtype = node.outputs[i].dtype
    if dtype is None or dtype.kind not in "iu":
        return None
    of_shape = OF_SHAPE.get(node.op)
    if of_shape is not None:
        shape = node.inputs[0].shape
        return None if shape is None else _kept(of_shape(shape), dtype)
    op = OPS.get(node.op)
    if op is None or not _is_small(node.outputs[i].shape):
        return None
    elements = [_elements(x) for x in node.inputs]
    known = [
        _exact(x, given) if node.op in _READ_WHOLE_NUMBERS else x
        for x, given in zip(elements, node.inputs, strict=True)
        if x is not None
    ]
    if len(known) < len(elements):
        return None
    result = op.value(node, known)
    return _kept(result[i] if isinstance(result, list) else result, dtype)


def _is_small(shape: Shape) -> bool:
    """Whether there are a few elements, of a number that is known."""
    sizes = [size for size in shape or () if isinstance(size, int)]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= MOST


def _elements(x: Tensor) -> np.ndarray | None:
    """The elements; all unknown ones of a small tensor whose shape is known."""
    known = elements_of(x)
    is_integer = x.dtype is not None and x.dtype.kind in "iu"
    if known is not None or not is_integer or not _is_small(x.shape):
        return known
    assert x.shape is not None
    return np.full([size for size in x.shape if isinstance(size, int)], None, object)


# Sums, differences and products that wrap around are still right modulo 2**32. These ops read the
# whole numbers.
_READ_WHOLE_NUMBERS = frozenset(
    {"Cast", "FloorDiv", "FloorMod", "Maximum", "Minimum", "TruncateDiv"}
)


def _exact(elements: np.ndarray, x: Tensor) -> np.ndarray:
    """The elements, without expressions that may have wrapped around in the dtype of `x`."""
    if elements.dtype != object or x.dtype is None or x.dtype.itemsize > _BYTES_OF_SIZES:
        return elements
    exact = np.empty(elements.shape, object)
    for place in np.ndindex(elements.shape):
        size: Size = elements[place]  # type: ignore[assignment]
        is_held = x.dtype.kind == "i" or dimensions.is_at_least(size, 0)
        exact[place] = size if is_held and dimensions.fits_int32(size) else None
    return exact


# Integers of fewer bytes do not hold every size.
_BYTES_OF_SIZES = 4


def _kept(result: PyTree, dtype: np.dtype) -> np.ndarray | None:
    """The result; None if no element is known, or if the dtype cannot hold one of them."""
    if result is None:
        return None
    elements = np.empty(np.shape(result), object)
    elements[...] = result
    limits = np.iinfo(dtype)
    if dtype.itemsize < _BYTES_OF_SIZES:  # a size that has a name may wrap around
        for place in np.ndindex(elements.shape):
            if not isinstance(elements[place], int):
                elements[place] = None
    numbers = [x for x in elements.ravel() if isinstance(x, int)]
    is_held = all(limits.min <= x <= limits.max for x in numbers)
    is_known = any(x is not None for x in elements.ravel()) or not elements.size
    return elements if is_held and is_known and elements.size <= MOST else None
