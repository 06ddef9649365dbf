"""Finds the choices whose zeros must keep their sign.

ONNX Runtime's Where loses the sign of a zero that it takes from one of its operands: it merges
the chosen numbers of both by `a if a != 0 else b`. To keep it costs nodes, so that this asks first
whether an operand can be -0.0, and whether a reader of the result can tell -0.0 from 0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jax2tf._src.graph.graph import Graph, Node, Size, Tensor, graphs_in
from jax2tf._src.graph.shapes.registry import Shape

# The result is no -0.0, whatever the operands are. A sum starts at 0.0.
_SUMS = frozenset(
    {
        *("BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "Einsum"),
        "MatMul",
    }
)
_NEVER = _SUMS | {
    *("Abs", "Cosh", "Exp", "Sigmoid", "Softmax", "Square", "SquaredDifference", "ZerosLike"),
    *("OnesLike", "RandomUniform", "Cos", "Acos"),
}
# The result is -0.0 only if an operand is, of those at these positions (all, where it says None).
_MOVES: Mapping[str, Sequence[int] | None] = {
    **dict.fromkeys(("BroadcastTo", "EnsureShape", "ExpandDims", "Gather", "GatherNd"), (0,)),
    **dict.fromkeys(("GatherV2", "Identity", "MatrixDiagPartV3", "Max", "MaxPool", "Min"), (0,)),
    **dict.fromkeys(("MirrorPad", "Pad", "Reshape", "ReverseV2", "Slice", "Squeeze"), (0,)),
    **dict.fromkeys(("StridedSlice", "Tile", "TopKV2", "Transpose", "Unpack", "Cumsum"), (0,)),
    # The sum of one number is that number.
    **dict.fromkeys(("Mean", "Sum"), (0,)),
    "Fill": (1,),
    "OneHot": (2, 3),
    **dict.fromkeys(("ConcatV2", "Maximum", "Minimum", "Pack", "IdentityN"), None),
    "Split": (1,),
    "SplitV": (0,),
    "PadV2": (0, 2),
    "SelectV2": (1, 2),
    "ClipByValue": None,
}
# No reader of the result can tell the sign of a zero among the operands.
_TELLS_NOTHING = _SUMS | {
    *("Abs", "Cosh", "Exp", "Sigmoid", "Softmax", "LogSoftmax", "Softplus", "Square", "ZerosLike"),
    *("SquaredDifference", "OnesLike", "Cos", "Acos", "Log", "ArgMax", "ArgMin", "All", "Any"),
    *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "IsNan", "IsInf"),
    *("IsFinite", "Shape", "ShapeN", "Size", "Rank"),
}
# Their results differ in more than the sign of a zero.
_TELLS = frozenset(
    {
        *("Atan2", "Bitcast", "Div", "Inv", "Pow", "RealDiv", "Reciprocal", "Rsqrt", "Xdivy"),
        *("While", "If"),
    }
)


def choices_that_keep_signs(graph: Graph) -> Mapping[Node, tuple[bool, bool]]:
    """The nodes SelectV2 whose zeros must keep their sign, in the graph and in those within it.

    Returns:
      Whether the first and the second choice of each may hold -0.0.
    """
    positive: set[Tensor] = set()
    _find_positive(graph, positive)
    told: set[Tensor] = set()
    kept: dict[Node, tuple[bool, bool]] = {}
    _find_told(graph, positive, told, kept)
    return kept


def losers(condition: Shape, this: Shape, that: Shape) -> tuple[bool, bool]:
    """Whether a Where of these shapes may lose signs of the first and of the second choice.

    ONNX Runtime makes one array for each choice, as large as the choice and the condition, and
    merges them row by row. If the row of the second is one number, its zeros lose their signs, else
    those of the first.
    """
    if condition is None or this is None or that is None:
        return True, True
    for i in range(1, max(map(len, (condition, this, that))) + 1):
        shared, first, second = ({_size(x, i)} - {1} for x in (condition, this, that))
        first, second = shared | first, shared | second
        if any(isinstance(size, int) for size in second):
            return True, False
        if first and not second:
            # An open size may be one; then the next axis decides.
            return any(not isinstance(size, int) for size in first), True
        if None in first | second or not first <= second:
            return True, True
    return True, False


def _size(shape: Sequence[Size], i: int) -> Size:
    """The size of the i-th axis from the last one."""
    return shape[-i] if i <= len(shape) else 1


def _has_negative_zeros(array: np.ndarray) -> bool:
    if array.dtype.kind == "c":
        return True
    return array.dtype.kind not in "biu" and bool(np.any((array == 0) & np.signbit(array)))


def _find_positive(graph: Graph, positive: set[Tensor]) -> None:
    """Finds the tensors that hold no -0.0."""
    positive.update(x for x in graph.inputs if not _is_float(x))
    for node in graph.nodes:
        for inner in graphs_in(node):
            _find_positive(inner, positive)
        is_positive = _is_positive(node, positive)
        positive.update(x for x in node.outputs if is_positive or not _is_float(x))


def _is_positive(node: Node, positive: Collection[Tensor]) -> bool:
    if node.op == "Const":
        return not _has_negative_zeros(node.attributes["value"])
    if node.op == "Cast":
        return not _is_float(node.inputs[0])
    if node.op in _MOVES:
        places = _MOVES[node.op]
        moved = node.inputs if places is None else [node.inputs[i] for i in places]
        return all(x in positive for x in moved)
    if node.op in ("Add", "AddV2"):
        return any(x in positive for x in node.inputs)
    if node.op == "Sub":
        return node.inputs[0] in positive
    return node.op in _NEVER


def _find_told(
    graph: Graph,
    positive: Collection[Tensor],
    told: set[Tensor],
    kept: dict[Node, tuple[bool, bool]],
) -> None:
    """Finds the tensors whose signs of zeros a reader tells, from the results on."""
    told.update(graph.outputs)
    for node in reversed(graph.nodes):
        for inner in graphs_in(node):
            _find_told(inner, positive, told, kept)
        is_told = not told.isdisjoint(node.outputs)
        if node.op == "SelectV2" and is_told:
            first, second = (x not in positive for x in node.inputs[1:3])
            if first or second:
                kept[node] = first, second
        if is_told or node.op in _TELLS:
            told.update(x for i, x in enumerate(node.inputs) if _is_read(node, i, positive))


def _is_read(node: Node, i: int, positive: Collection[Tensor]) -> bool:
    """Whether the sign of a zero in an operand may change the result."""
    if not _is_float(node.inputs[i]) or node.op in _TELLS_NOTHING:
        return False
    if node.op == "Cast":
        return _is_float(node.outputs[0])
    if node.op in ("Add", "AddV2"):
        # 0.0 and -0.0 are equal beside 0.0, and beside any number that is not zero.
        return node.inputs[1 - i] not in positive
    if node.op in ("Mean", "Sum"):
        return _large_sizes(node.inputs[0]) == _large_sizes(node.outputs[0])
    return True


def _large_sizes(x: Tensor) -> list[Size]:
    return [size for size in x.shape or () if size != 1]


def _is_float(x: Tensor) -> bool:
    return x.dtype is None or x.dtype.kind not in "biu"
