"""Computes what is known of a graph, with NumPy: ops of constants, and shapes of known size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree

# Larger results are computed at run time, unless the operands are as large.
_MAX_BYTES = 1 << 16


def fold(node: Node) -> None:
    """Replaces a node by a constant if its result is known."""
    array = _known(node)
    if array is not None:
        node.op, node.inputs, node.attributes = "Const", [], {"value": array}
        (result,) = node.outputs
        result.shape = array.shape


def _known(node: Node) -> np.ndarray | None:
    """The result of a node if it is known; None otherwise."""
    if len(node.outputs) != 1:
        return None
    by_shape = _BY_SHAPE.get(node.op)
    if by_shape is not None:
        shape = node.inputs[0].shape
        if shape is None or not all(isinstance(size, int) for size in shape):
            return None
        return by_shape(node, shape)
    compute = _BY_VALUE.get(node.op)
    values = [x.value for x in node.inputs]
    arrays = [x for x in values if x is not None]
    if compute is None or not arrays or len(arrays) < len(values) or not _is_small(node, arrays):
        return None
    with np.errstate(all="ignore"):
        result = compute(node, *arrays)
    return None if result is None else np.asarray(result, node.outputs[0].dtype)


def _is_small(node: Node, arrays: list[np.ndarray]) -> bool:
    (result,) = node.outputs
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

Compute = Callable[..., PyTree]


def _strided_slice(
    node: Node, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    masks = {name: node.attributes[f"{name}_mask"] for name in _MASKS}

    def has(name: str, i: int) -> bool:
        return bool(masks[name] >> i & 1)

    index: list[PyTree] = []
    for i, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        if has("ellipsis", i):
            index.append(Ellipsis)
        elif has("new_axis", i):
            index.append(None)
        elif has("shrink_axis", i):
            index.append(int(start))
        else:
            first = None if has("begin", i) else int(start)
            last = None if has("end", i) else int(stop)
            index.append(slice(first, last, int(step)))
    return x[tuple(index)]


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


def _slice(node: Node, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    ends = [None if n == -1 else b + n for b, n in zip(begin, size, strict=True)]
    return x[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]


def _cast(node: Node, x: np.ndarray) -> np.ndarray | None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    # Numbers out of range become what the engine makes of them.
    is_exact = x.dtype.kind in "iub" or dtype.kind not in "iu"
    return x.astype(dtype) if is_exact else None


def _bitcast(node: Node, x: np.ndarray) -> np.ndarray | None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else None


def _squeeze(node: Node, x: np.ndarray) -> np.ndarray:
    axes = node.attributes.get("squeeze_dims") or None
    return np.squeeze(x, None if axes is None else tuple(axes))


def _inverse(x: np.ndarray) -> np.ndarray:
    return np.ones_like(x) / x


# NumPy rounds each of these as every engine does.
_ELEMENTWISE: Mapping[str, Compute] = {
    "Abs": np.abs,
    "RealDiv": np.divide,
    "Reciprocal": _inverse,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "AddV2": np.add,
    "Mul": np.multiply,
    "Sub": np.subtract,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
    "SelectV2": np.where,
}


def _moved(function: Callable[..., PyTree]) -> Compute:
    return lambda node, *arrays: function(*arrays)


_MOVES: Mapping[str, Compute] = {
    "Bitcast": _bitcast,
    "BroadcastTo": _moved(np.broadcast_to),
    "Cast": _cast,
    "ConcatV2": lambda node, *xs: np.concatenate(xs[:-1], int(xs[-1])),
    "ExpandDims": _moved(lambda x, axis: np.expand_dims(x, int(axis.ravel()[0]))),
    "Fill": _moved(lambda shape, x: np.full(shape, x)),
    "Pack": lambda node, *xs: np.stack(xs, node.attributes["axis"]),
    "Range": _moved(lambda start, stop, step: np.arange(start, stop, step)),
    "Reshape": _moved(np.reshape),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _moved(np.tile),
    "Transpose": _moved(np.transpose),
    "ZerosLike": _moved(np.zeros_like),
    "OnesLike": _moved(np.ones_like),
}

_BY_VALUE: Mapping[str, Compute] = {
    **_MOVES,
    **{op: _moved(function) for op, function in _ELEMENTWISE.items()},
}

_BY_SHAPE: Mapping[str, Compute] = {
    "Rank": lambda node, shape: np.array(len(shape), np.int32),
    "Shape": lambda node, shape: np.array(shape, node.outputs[0].dtype),
    "Size": lambda node, shape: np.array(math.prod(shape), node.outputs[0].dtype),
}
