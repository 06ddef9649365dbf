"""The values of ops whose operands are known: of arrays, and of elements that are sizes.

Elements of integers are often known as sizes: numbers, names, expressions of names, or None for
unknown ones. The shape to which an array is reshaped is a Pack of such elements. Here arrays of
objects hold sizes, and all other arrays hold numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Node, Size
from jax2tf._src.util.typing import PyTree

# Takes a node and the values of its operands. Gives the value of the result, a list for several
# results, or None if it is not known.
Compute = Callable[..., PyTree]


@dataclasses.dataclass(frozen=True)
class Op:
    """How the value of an op is computed.

    Attributes:
      of_numbers: from arrays of numbers; None if only the engine knows.
      of_sizes: from arrays of sizes; None if nothing is known then.
      places: the operands that are axes, shapes or places, whose elements have to be numbers.
    """

    of_numbers: Compute | None
    of_sizes: Compute | None
    places: Sequence[int] = ()

    def value(self, node: Node, operands: Sequence[np.ndarray]) -> PyTree:
        """The value of a node, as `Compute` gives it."""
        has_sizes = any(x.dtype == object for x in operands)
        compute = self.of_sizes if has_sizes else self.of_numbers
        if compute is None or not all(_has_numbers(operands[i]) for i in self.places):
            return None
        return compute(node, *operands)


def _has_numbers(x: np.ndarray) -> bool:
    return x.dtype != object or all(isinstance(size, int) for size in x.ravel())


# Ops that move elements, whatever these are.


def _move(compute: Compute, *places: int) -> Op:
    return Op(compute, compute, places)


def _integers(x: np.ndarray) -> list[int]:
    return [int(n) for n in x.ravel()]


def _squeeze(node: Node, x: np.ndarray) -> np.ndarray:
    axes = node.attributes["squeeze_dims"]
    return np.squeeze(x, tuple(axes) if axes else None)


def _gather(node: Node, x: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray | None:
    if node.attributes["batch_dims"]:
        return None
    at, places = int(axis.item()), indices.astype(np.int64)
    inside = (places >= 0) & (places < x.shape[at])
    return np.take(x, places, at) if inside.all() else None


def _slice(node: Node, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    pairs = zip(_integers(begin), _integers(size), strict=True)
    return x[tuple(slice(b, None if n == -1 else b + n) for b, n in pairs)]


def _strided_slice(
    node: Node, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    index: list[PyTree] = []
    for i, part in enumerate(zip(*map(_integers, (begin, end, strides)), strict=True)):
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


def _range(node: Node, *limits: PyTree) -> np.ndarray:
    start, stop, step = (x.item() if x.dtype == object else x for x in limits)
    return np.arange(start, stop, step)


def _unpack(node: Node, x: np.ndarray) -> list[np.ndarray]:
    axis = node.attributes["axis"]
    return [np.take(x, i, axis) for i in range(node.attributes["num"])]


_MOVES: Mapping[str, Op] = {
    "BroadcastTo": _move(lambda node, x, shape: np.broadcast_to(x, _integers(shape)), 1),
    "ConcatV2": _move(lambda node, *xs: np.concatenate(xs[:-1], int(xs[-1])), -1),
    "ExpandDims": _move(lambda node, x, axis: np.expand_dims(x, int(axis.item())), 1),
    "Fill": _move(lambda node, shape, x: np.full(_integers(shape), x, x.dtype), 0),
    "GatherV2": _move(_gather, 1, 2),
    "Identity": _move(lambda node, x: x),
    "OnesLike": _move(lambda node, x: np.ones_like(x)),
    "Pack": _move(lambda node, *xs: np.stack(xs, node.attributes["axis"])),
    "Range": _move(_range, 0, 1, 2),
    "Reshape": _move(lambda node, x, shape: np.reshape(x, _integers(shape)), 1),
    "ReverseV2": _move(lambda node, x, axes: np.flip(x, tuple(_integers(axes))), 1),
    "Slice": _move(_slice, 1, 2),
    "Split": _move(
        lambda node, axis, x: np.split(x, node.attributes["num_split"], int(axis.item())), 0
    ),
    "Squeeze": _move(_squeeze),
    "StridedSlice": _move(_strided_slice, 1, 2, 3),
    "Tile": _move(lambda node, x, multiples: np.tile(x, _integers(multiples)), 1),
    "Transpose": _move(lambda node, x, axes: np.transpose(x, _integers(axes)), 1),
    "Unpack": _move(_unpack),
    "ZerosLike": _move(lambda node, x: np.zeros_like(x)),
}


# Ops that compute with elements.


def _each(
    of_numbers: Callable[..., PyTree] | None,
    of_sizes: Callable[..., Size] | None = None,
    n: int = 2,
) -> Op:
    """An op of each element of `n` operands."""
    numbers = None if of_numbers is None else lambda node, *xs: of_numbers(*xs)
    operate = None if of_sizes is None else np.frompyfunc(of_sizes, n, 1)
    return Op(numbers, None if operate is None else lambda node, *xs: operate(*xs))


def _truncate(a: Size, b: Size) -> Size:
    """A quotient rounded toward zero, known for sizes that are not negative."""
    is_size = dimensions.is_at_least(a, 0) and dimensions.is_at_least(b, 1)
    return dimensions.divide(a, b) if is_size else None


def _floor(a: Size, b: Size) -> Size:
    return None if isinstance(b, int) and b == 0 else dimensions.divide(a, b)


def _along(function: Callable[[Sequence[Size]], Size]) -> Op:
    """A reduction of sizes."""

    def reduce(node: Node, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
        gone = {axis % x.ndim for axis in _integers(axes)} if x.ndim else set()
        kept = [i for i in range(x.ndim) if i not in gone]
        n_gone = math.prod(x.shape[i] for i in gone)
        rows = x.transpose([*kept, *gone]).reshape([*(x.shape[i] for i in kept), n_gone])
        result = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(result.shape):
            result[place] = function(rows[place].tolist())
        if node.attributes["keep_dims"]:
            return result.reshape([1 if i in gone else n for i, n in enumerate(x.shape)])
        return result

    return Op(None, reduce, (1,))


def _cast(node: Node, x: np.ndarray) -> np.ndarray | None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    # Numbers out of range become what the engine makes of them.
    is_exact = x.dtype.kind in "iub" or dtype.kind not in "iu"
    return x.astype(dtype) if is_exact else None


def _right_shift(node: Node, x: np.ndarray, distance: np.ndarray) -> np.ndarray | None:
    # Engines differ in distances that are negative, or not less than the number of bits.
    is_known = ((distance >= 0) & (distance < 8 * x.dtype.itemsize)).all()
    return np.right_shift(x, distance) if is_known else None


def _bitcast(node: Node, x: np.ndarray) -> np.ndarray | None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else None


# NumPy rounds each of these as every engine does.
_ELEMENTWISE: Mapping[str, Op] = {
    "Abs": _each(np.abs),
    "AddV2": _each(np.add, dimensions.add),
    "Bitcast": Op(_bitcast, None),
    "BitwiseXor": _each(np.bitwise_xor),
    "Cast": Op(_cast, lambda node, x: x),
    "Equal": _each(np.equal),
    "FloorDiv": _each(None, _floor),
    "FloorMod": _each(None, dimensions.modulo),
    "Greater": _each(np.greater),
    "GreaterEqual": _each(np.greater_equal),
    "Less": _each(np.less),
    "LessEqual": _each(np.less_equal),
    "LogicalAnd": _each(np.logical_and),
    "LogicalNot": _each(np.logical_not),
    "LogicalOr": _each(np.logical_or),
    "Maximum": _each(np.maximum, dimensions.maximum),
    "Minimum": _each(np.minimum, dimensions.minimum),
    "Mul": _each(np.multiply, dimensions.multiply),
    "Neg": _each(np.negative, lambda x: dimensions.subtract(0, x), 1),
    "NotEqual": _each(np.not_equal),
    "Pad": Op(lambda node, x, paddings: np.pad(x, paddings), None),
    "PadV2": Op(lambda node, x, paddings, value: np.pad(x, paddings, constant_values=value), None),
    "RealDiv": _each(np.divide),
    "RightShift": Op(_right_shift, None),
    "Reciprocal": _each(lambda x: np.ones_like(x) / x),
    "Rsqrt": _each(lambda x: np.ones_like(x) / np.sqrt(x)),
    "SelectV2": _each(np.where),
    "Sqrt": _each(np.sqrt),
    "Square": _each(np.square),
    "Sub": _each(np.subtract, dimensions.subtract),
    "TruncateDiv": _each(None, _truncate),
    "Prod": _along(dimensions.product),
    "Sum": _along(dimensions.total),
}

OPS: Mapping[str, Op] = {**_MOVES, **_ELEMENTWISE}

# Ops of only the shape of their operand.
OF_SHAPE: Mapping[str, Callable[[Sequence[Size]], PyTree]] = {
    "Rank": len,
    "Shape": lambda shape: np.array([*shape], object),
    "Size": dimensions.product,
}
