"""Arrays that are stored once: equal ones, and those that are another one in another order.

A language model reads its embedding twice, by rows and as a matrix that is transposed.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable

import numpy as np
import onnx_ir as ir

# Equal numbers of smaller arrays are one initialiser already.
_LARGE = 4096
# The bytes at both ends that are compared first.
_END = 256


def share(model: ir.Model) -> None:
    """Lets initialisers share their arrays, in place."""
    groups: dict[Hashable, list[ir.Value]] = collections.defaultdict(list)
    for value in model.graph.initializers.values():
        array = _array(value)
        if array.nbytes >= _LARGE:
            groups[array.dtype, array.size].append(value)
    for group in groups.values():
        kept: list[ir.Value] = []
        for value in sorted(group, key=_is_turned):
            if not any(_replaced(model, value, other) for other in kept):
                kept.append(value)


def _array(value: ir.Value) -> np.ndarray:
    assert value.const_value is not None
    return value.const_value.numpy()


def _is_turned(value: ir.Value) -> bool:
    return not _array(value).flags.c_contiguous


def _replaced(model: ir.Model, value: ir.Value, other: ir.Value) -> bool:
    """Replaces an initialiser by another one if that has its numbers."""
    array, kept = _array(value), _array(other)
    if value.is_graph_output():
        return False
    if array.shape == kept.shape and _are_equal(array, kept):
        ir.convenience.replace_all_uses_with(value, other)
    else:
        order = _order(array, kept)
        if order is None:
            return False
        result = ir.Value(name=f"{value.name}^T", type=value.type, shape=value.shape)
        node = ir.node("Transpose", [other], {"perm": order}, outputs=[result], name=result.name)
        ir.convenience.replace_all_uses_with(value, result)
        model.graph.insert_before(model.graph[0], node)
    del model.graph.initializers[str(value.name)]
    return True


def _are_equal(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether all bytes are equal."""
    if _place(x) == _place(y) and x.strides == y.strides:
        return True
    if not (x.flags.c_contiguous and y.flags.c_contiguous):
        return False
    x, y = (a.reshape(-1).view(np.uint8) for a in (x, y))
    ends = (slice(_END), slice(-_END, None))
    return all(np.array_equal(x[end], y[end]) for end in ends) and np.array_equal(x, y)


def _order(array: np.ndarray, kept: np.ndarray) -> list[int] | None:
    """The permutation with which an array is another one, if they have the same memory."""
    if _place(array) != _place(kept) or array.ndim != kept.ndim or not kept.flags.c_contiguous:
        return None
    if 1 in array.shape:  # the strides of such a dimension tell nothing
        return None
    strides = list(kept.strides)
    order = [strides.index(s) for s in array.strides if s in strides]
    is_whole = sorted(order) == list(range(kept.ndim))
    return order if is_whole and [kept.shape[i] for i in order] == list(array.shape) else None


def _place(array: np.ndarray) -> tuple[int, int]:
    """The ends of an array in memory."""
    first, last = np.lib.array_utils.byte_bounds(array)
    return int(first), int(last)
