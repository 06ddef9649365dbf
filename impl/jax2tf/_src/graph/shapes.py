"""Finds the shapes that TensorFlow left out, as in functions that were written without them.

`SHAPES` has the shape function of each op that such functions hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jax2tf._src.graph.graph import Node, Size, Tensor, graphs_in
from jax2tf._src.util.typing import PyTree

Shape = tuple[Size, ...]


def infer(node: Node) -> None:
    """Gives shapes to the results of a node that have none."""
    if all(x.shape is not None or x.dtype is None for x in node.outputs):
        return
    for result, shape in zip(node.outputs, shapes_of(node), strict=False):
        take(result, shape)


def shapes_of(node: Node) -> Sequence[Shape | None]:
    """The shapes of a node's results; [] where they are not known."""
    if node.op in ("If", "While"):
        return [x.shape for x in graphs_in(node)[-1].outputs]
    shapes = [x.shape for x in node.inputs]
    function = SHAPES.get(node.op)
    known = [shape for shape in shapes if shape is not None]
    if function is None or len(known) < len(shapes):
        return []
    found = function(node, *known)
    return found if isinstance(found, list) else [found]


def take(x: Tensor, shape: Shape | None) -> None:
    """Gives a shape to a tensor that has none."""
    if x.shape is None:
        x.shape = shape


ShapeFunction = Callable[..., PyTree]


def _broadcast(node: Node, *shapes: Shape) -> Shape:
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(map(_broadcast_size, zip(*aligned, strict=True)))


def _broadcast_size(sizes: tuple[Size, ...]) -> Size:
    known = [size for size in sizes if isinstance(size, int) and size != 1]
    if known:
        return known[0]
    unknown = {size for size in sizes if size != 1}
    return unknown.pop() if len(unknown) == 1 else (None if unknown else 1)


def _same(node: Node, first: Shape, *others: Shape) -> Shape:
    return first


def _value(node: Node, index: int) -> list[int] | None:
    value = node.inputs[index].value
    return None if value is None else [int(x) for x in np.ravel(value)]


def _axes(node: Node, index: int, rank: int) -> list[int] | None:
    values = _value(node, index)
    return None if values is None else [axis % rank for axis in values]


def _as_value(index: int) -> ShapeFunction:
    """The shape is the value of an operand."""

    def function(node: Node, *shapes: Shape) -> Shape:
        sizes = _value(node, index)
        (rank,) = shapes[index]
        assert isinstance(rank, int)
        return (None,) * rank if sizes is None else tuple(sizes)

    return function


def _reshape(node: Node, x: Shape, shape: Shape) -> Shape:
    sizes = _as_value(1)(node, x, shape)
    if -1 not in sizes:
        return tuple(sizes)
    known = [size for size in x if isinstance(size, int)]
    if len(known) < len(x):
        return tuple(None if size == -1 else size for size in sizes)
    rest = int(np.prod([size for size in sizes if size != -1]))
    inferred = int(np.prod(known)) // rest if rest else 0
    return tuple(inferred if size == -1 else size for size in sizes)


def _expand_dims(node: Node, x: Shape, axis: Shape) -> Shape | None:
    places = _axes(node, 1, len(x) + 1)
    return None if places is None else (*x[: places[0]], 1, *x[places[0] :])


def _squeeze(node: Node, x: Shape) -> Shape:
    given = node.attributes.get("squeeze_dims") or [i for i, size in enumerate(x) if size == 1]
    axes = {axis % len(x) for axis in given}
    return tuple(size for i, size in enumerate(x) if i not in axes)


def _transpose(node: Node, x: Shape, order: Shape) -> Shape:
    places = _value(node, 1)
    return (None,) * len(x) if places is None else tuple(x[i] for i in places)


def _concat(node: Node, *shapes: Shape) -> Shape | None:
    first, *_ = arrays = shapes[:-1]
    axis = _axes(node, len(arrays), len(first))
    if axis is None:
        return None
    sizes = [shape[axis[0]] for shape in arrays]
    known = [size for size in sizes if isinstance(size, int)]
    total = sum(known) if len(known) == len(sizes) else None
    return (*first[: axis[0]], total, *first[axis[0] + 1 :])


def _pack(node: Node, *shapes: Shape) -> Shape:
    axis = node.attributes["axis"] % (len(shapes[0]) + 1)
    return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


def _unpack(node: Node, x: Shape) -> list[Shape]:
    axis = node.attributes["axis"] % len(x)
    return [(*x[:axis], *x[axis + 1 :])] * len(node.outputs)


def _slice(node: Node, x: Shape, begin: Shape, size: Shape) -> Shape:
    starts, sizes = _value(node, 1), _value(node, 2)
    if sizes is None:
        return (None,) * len(x)
    return tuple(_rest(x[i], starts, i) if n == -1 else n for i, n in enumerate(sizes))


def _rest(size: Size, starts: list[int] | None, i: int) -> Size:
    return size - starts[i] if isinstance(size, int) and starts is not None else None


def _strided_slice(node: Node, x: Shape, *bounds: Shape) -> Shape | None:
    values = [_value(node, i) for i in (1, 2, 3)]
    starts, ends, steps = values
    attributes = node.attributes
    if starts is None or ends is None or steps is None or attributes["ellipsis_mask"]:
        return None
    sizes = iter(x)
    result: list[Size] = []
    for i, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
        if attributes["new_axis_mask"] >> i & 1:
            result.append(1)
            continue
        size = next(sizes)
        if attributes["shrink_axis_mask"] >> i & 1:
            continue
        first = None if attributes["begin_mask"] >> i & 1 else start
        last = None if attributes["end_mask"] >> i & 1 else end
        is_whole = first is None and last is None and step == 1
        known = len(range(size)[first:last:step]) if isinstance(size, int) else None
        result.append(size if is_whole else known)
    return (*result, *sizes)


def _gather(node: Node, x: Shape, at: Shape, axis: Shape) -> Shape | None:
    place = _axes(node, 2, len(x))
    n_batch = node.attributes.get("batch_dims", 0)
    return None if place is None else (*x[: place[0]], *at[n_batch:], *x[place[0] + 1 :])


def _split(node: Node, axis: Shape, x: Shape) -> list[Shape]:
    place = _axes(node, 0, len(x))
    if place is None:
        return []
    size = x[place[0]]
    part = size // len(node.outputs) if isinstance(size, int) else None
    return [(*x[: place[0]], part, *x[place[0] + 1 :])] * len(node.outputs)


def _split_v(node: Node, x: Shape, sizes: Shape, axis: Shape) -> list[Shape]:
    places, parts = _axes(node, 2, len(x)), _value(node, 1)
    if places is None or parts is None:
        return []
    return [(*x[: places[0]], part, *x[places[0] + 1 :]) for part in parts]


def _reduced(node: Node, x: Shape, axes: Shape) -> Shape | None:
    places = _axes(node, 1, len(x)) if x else []
    if places is None:
        return (None,) * len(x) if node.attributes.get("keep_dims") else None
    if node.attributes.get("keep_dims"):
        return tuple(1 if i in places else size for i, size in enumerate(x))
    return tuple(size for i, size in enumerate(x) if i not in places)


def _tile(node: Node, x: Shape, times: Shape) -> Shape:
    counts = _value(node, 1) or itertools.repeat(None, len(x))
    pairs = zip(x, counts, strict=True)
    return tuple(
        size * n if isinstance(size, int) and n is not None else (size if n == 1 else None)
        for size, n in pairs
    )


def _pad(node: Node, x: Shape, paddings: Shape, *value: Shape) -> Shape:
    given = _value(node, 1)
    if given is None:
        return (None,) * len(x)
    pairs = zip(given[::2], given[1::2], strict=True)
    return tuple(
        size + before + after if isinstance(size, int) else (None if before or after else size)
        for size, (before, after) in zip(x, pairs, strict=True)
    )


def _matmul(node: Node, x: Shape, y: Shape) -> Shape:
    is_batched = node.op != "MatMul"
    names = ("adj_x", "adj_y") if is_batched else ("transpose_a", "transpose_b")
    rows = x[-1] if node.attributes.get(names[0]) else x[-2]
    columns = y[-2] if node.attributes.get(names[1]) else y[-1]
    return (*_broadcast(node, x[:-2], y[:-2]), rows, columns)


def _range(node: Node, *shapes: Shape) -> Shape:
    values = [x.value for x in node.inputs]
    start, end, step = values
    if start is None or end is None or step is None:
        return (None,)
    return (len(np.arange(*map(np.ndarray.item, (start, end, step)))),)


_ELEMENTWISE = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bitcast", "Cast", "Ceil", "Cos"),
    *("Cosh", "Cumprod", "Cumsum", "Elu", "Erf", "Exp", "Expm1", "Floor", "Invert", "IsFinite"),
    *("IsInf", "IsNan", "Log", "Log1p", "LogSoftmax", "LogicalNot", "Neg", "OnesLike"),
    *("Reciprocal", "Relu", "Relu6", "ReverseV2", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softmax", "Softplus", "Sqrt", "Square", "Tan", "Tanh", "TensorScatterAdd"),
    *("TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"),
    "ZerosLike",
)
_BROADCASTING = (
    *("AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "ClipByValue", "DivNoNan"),
    *("Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "LeftShift", "Less"),
    *("LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mul", "NotEqual", "Pow"),
    *("RealDiv", "RightShift", "SelectV2", "SquaredDifference", "Sub", "TruncateDiv"),
    "TruncateMod",
)
_REDUCTIONS = ("All", "Any", "ArgMax", "ArgMin", "Max", "Mean", "Min", "Prod", "Sum")

SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(_ELEMENTWISE, _same),
    **dict.fromkeys(_BROADCASTING, _broadcast),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    "BatchMatMulV2": _matmul,
    "BroadcastTo": _as_value(1),
    "ConcatV2": _concat,
    "ExpandDims": _expand_dims,
    "Fill": _as_value(0),
    "GatherV2": _gather,
    "MatMul": _matmul,
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": lambda node, x: (len(x),),
    "Size": lambda node, x: (),
    "Slice": _slice,
    "Split": _split,
    "SplitV": _split_v,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
