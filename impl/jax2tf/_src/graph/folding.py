"""Makes constants of what is known of a graph: ops of constants, and shapes of known size."""

from __future__ import annotations

import math

import numpy as np

from jax2tf._src.graph.graph import Node, Tensor
from jax2tf._src.graph.values import OPS

# Larger results are computed at run time, unless the operands are as large.
_MAX_BYTES = 1 << 16


def fold(node: Node) -> None:
    """Replaces a node with inferred types by a constant if its result is known."""
    if len(node.outputs) != 1 or node.op == "Const":
        return
    (result,) = node.outputs
    array = _known_sizes(result)
    if array is None:
        array = _known(node, result)
    if array is not None:
        node.op, node.inputs = "Const", []
        node.attributes = {"value": array, "dtype": array.dtype}
        result.shape = array.shape


def _known_sizes(result: Tensor) -> np.ndarray | None:
    sizes = result.sizes
    if sizes is None or not all(isinstance(size, int) for size in sizes.ravel()):
        return None
    return sizes.astype(result.dtype)


def _known(node: Node, result: Tensor) -> np.ndarray | None:
    """The result of a node if its operands are constants; None otherwise."""
    op = OPS.get(node.op)
    values = [x.value for x in node.inputs]
    arrays = [x for x in values if x is not None]
    if op is None or not arrays or len(arrays) < len(values) or not _is_small(node, result, arrays):
        return None
    with np.errstate(all="ignore"):
        value = op.value(node, arrays)
    if isinstance(value, list):
        (value,) = value
    return None if value is None else np.asarray(value, result.dtype)


def _is_small(node: Node, result: Tensor, arrays: list[np.ndarray]) -> bool:
    if result.dtype is None or result.dtype.hasobject or result.shape is None:
        return False
    sizes = [size for size in result.shape if isinstance(size, int)]
    n_given = sum(x.nbytes for x in arrays)
    if len(sizes) < len(result.shape):
        # TensorFlow did not infer the size.
        return n_given <= _MAX_BYTES and node.op in _SMALLER
    return math.prod(sizes) * result.dtype.itemsize <= max(_MAX_BYTES, n_given)


# Ops whose results are not larger than their operands.
_SMALLER = frozenset({"ConcatV2", "Pack", "Reshape", "Slice", "Squeeze", "StridedSlice"})
