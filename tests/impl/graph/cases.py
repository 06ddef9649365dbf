"""Uses of each op: operands, attributes. An operand is an array, or a type; see `S`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.impl.graph.tensorflow_shapes import S

F, INTEGER = np.float32, np.int32
INT = {"dtype": "int32"}
BOOL = {"dtype": "bool"}
COMPLEX = {"dtype": "complex64"}


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def one(value: int) -> np.ndarray:
    return np.array(value, np.int32)


SHAPES = [S(), S(3), S(0, 2), S("b", 3), S("b", "n", 1), S(None)]
PAIRS = [
    (S(), S(2)),
    (S(3), S(1, 3)),
    (S("b", 3), S(3)),
    (S("b", 1), S(1, "n")),
    (S("b", 3), S("b", 1)),
    (S("b"), S(5)),
    (S(1), S("b")),
    (S("b"), S("n")),
    (S(None), S(3)),
    (S(0, 1), S(1, 4)),
    (S(2, 1, 3), S("n", 1)),
]


def _typed(x: S, dtype: str) -> S:
    return S(*((None,) if x.shape is None else x.shape), dtype=dtype)


_UNARY = {
    "float32": (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BesselI0e", "BesselI1e"),
        *("Ceil", "Cos", "Cosh", "Digamma", "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1"),
        *("Floor", "Identity", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log"),
        *("Log1p", "Neg", "OnesLike", "PreventGradient", "Reciprocal", "Relu", "Relu6", "Rint"),
        *("Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign"),
        *("Sqrt", "Square", "StopGradient", "Tan", "Tanh", "ZerosLike", "IdentityN"),
        *("Rank", "Shape", "Size"),
    ),
    "complex64": ("Conj", "ComplexAbs", "Imag", "Real"),
    "int32": ("Invert", "PopulationCount"),
    "bool": ("LogicalNot", "Where"),
}
_BINARY = {
    "float32": (
        *("AddV2", "Atan2", "Complex", "DivNoNan", "FloorDiv", "FloorMod", "Greater"),
        *("GreaterEqual", "Igamma", "IgammaGradA", "Igammac", "Less", "LessEqual", "Maximum"),
        *("Minimum", "Mul", "MulNoNan", "NextAfter", "Pow", "RealDiv", "SquaredDifference"),
        *("Sub", "Xdivy", "Xlog1py", "Xlogy", "Zeta", "Equal", "NotEqual", "TruncateMod"),
    ),
    "int32": (
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "TruncateDiv"),
    ),
    "bool": ("LogicalAnd", "LogicalOr"),
}

Case = tuple[str, list[Any], dict[str, Any]]

CASES: list[Case] = [
    *((op, [_typed(x, t)], {}) for t, ops in _UNARY.items() for op in ops for x in SHAPES),
    *(
        (op, [_typed(x, t) for x in pair], {})
        for t, ops in _BINARY.items()
        for op in ops
        for pair in PAIRS
    ),
    *(
        (op, [S(3, "b")], {})
        for op in ("Softmax", "LogSoftmax", "Cholesky", "MatrixInverse", "MatrixDeterminant")
    ),
]


def case(op: str, *operands: Any, **attributes: Any) -> None:
    CASES.append((op, list(operands), attributes))


# The same elements, other types.
for x in SHAPES:
    case("Cast", x, DstT=np.dtype(bool))
    case("PlaceholderWithDefault", x, shape=None)
    case("AddN", x, x, x)
    case("Betainc", x, x, S())
    case("SelectV2", _typed(x, "bool"), S(1), S())
    case("SelectV2", S(dtype="bool"), x, x)
    case("ClipByValue", x, S(), S())
    case("ApproximateEqual", x, x)
case("Const", value=np.ones((2, 3), F), dtype=np.dtype(F))
case("Placeholder", dtype=np.dtype(F), shape=(2, None))
case("EnsureShape", S("b", None, 3), shape=(None, 4, 3))
case("AddN", S("b", 3), S(2, None))
case("Betainc", S(), S("b"), S())
case("Betainc", S(), S(), S())
for pair in [*PAIRS, (S(2), S(3)), (S("b", 2), S("b", 3)), (S("b", 3), S("b", 3))]:
    case("Equal", *pair, incompatible_shape_error=False)
case("Bitcast", S("b", 3), type=np.dtype(INTEGER))
case("Bitcast", S("b", 3), type=np.dtype(np.uint8))
case("Bitcast", S("b", 4, dtype="uint8"), type=np.dtype(F))
case("Bitcast", S(4, "b", dtype="uint8"), type=np.dtype(F))
case("BiasAdd", S("b", 3, 4), S(4))
case("BiasAdd", S("b", 3, 4, 5), S(3), data_format="NCHW")
case("NoOp")
case("Assert", S(dtype="bool"), S(3), S(), T=[np.dtype(F)] * 2)
case("PyFunc", S(3), S(2), token="t", Tin=[np.dtype(F)] * 2, Tout=[np.dtype(F), np.dtype(INTEGER)])

# Made arrays.
case("Fill", ints(2, 0), S())
case("Fill", S(2, **INT), S())
case("Fill", S("n", **INT), S())
case("BroadcastTo", S("b", 1), ints(4, 5, 6))
case("BroadcastTo", S("b", 1), S(3, **INT))
case("BroadcastTo", S(3, 1), S(2, **INT))
case("BroadcastTo", S(None), ints(4, 5))
case("BroadcastArgs", ints(1, 2), ints(3, 1, 1))
for limits in ((0, 5, 1), (5, 0, -2), (3, 3, 1)):
    case("Range", *map(one, limits))
case("Range", F(0), F(1), F(0.3))
case("Range", one(0), S(**INT), one(1))
case("LinSpace", S(), S(), one(5))
case("RandomUniform", ints(2, 3), dtype=np.dtype(F))
case("RandomUniformInt", ints(2, 3), S(**INT), S(**INT))
case("StatelessRandomUniformV2", ints(2), S(1, dtype="uint64"), S(2, dtype="uint64"), one(1))
case(
    "StatelessRandomUniformFullIntV2",
    ints(2),
    *(S(1, dtype="uint64"), S(2, dtype="uint64"), one(1)),
    dtype=np.dtype(np.uint32),
)
for x in (S("b", 3), S(2, 3), S(3)):
    case("OneHot", _typed(x, "int32"), one(5), S(), S())
    case("OneHot", _typed(x, "int32"), S(**INT), S(), S(), axis=1)

# Shapes and dimensions.
for shape in ((6,), (-1,), (2, -1), (-1, 3), (3, 2, 1, -1)):
    case("Reshape", S(2, 3), ints(*shape))
    case("Reshape", S("b", 6), ints(*shape))
    case("Reshape", S(None), ints(*shape))
case("Reshape", S(0, 3), ints(0, 7))
case("Reshape", S(0, 3), ints(-1, 3))
case("Reshape", S(), np.zeros(0, INTEGER))
case("Reshape", S("b", 3), S(2, **INT))
case("Reshape", S("b", 3), S("n", **INT))
case("Reshape", S("b", 3), np.array([-1], np.int64))
for axis in (0, 1, -1, -3):
    case("ExpandDims", S("b", 3), one(axis))
case("ExpandDims", S("b", 3), ints(1))
case("ExpandDims", S("b", 3), S(**INT))
case("ExpandDims", S(), one(0))
case("Squeeze", S(1, 3, 1))
case("Squeeze", S(1, "b", 1))
case("Squeeze", S(1, "b", 1), squeeze_dims=[0, -1])
case("Squeeze", S("b", 3), squeeze_dims=[0])
case("Transpose", S("b", 3, 4), ints(2, 0, 1))
case("Transpose", S("b", 3, 4), ints(-1, 0, 1))
case("Transpose", S("b", 3), S(2, **INT))
case("Transpose", S(None), ints(1, 0))
case("Transpose", S(), np.zeros(0, INTEGER))
case("ConjugateTranspose", S("b", 3, **COMPLEX), ints(1, 0))
case("ReverseV2", S("b", 3), ints(-1, 0))
case("ReverseV2", S("b", 3), S(1, **INT))
case("InvertPermutation", S("b", **INT))
case("Tile", S("b", 3), ints(2, 0))
case("Tile", S("b", 3), S(2, **INT))
case("Tile", S(), np.zeros(0, INTEGER))
for axis in (0, 1, -1):
    case("ConcatV2", S("b", 3), S(2, 3), one(axis))
    case("Pack", S("b", 3), S(2, 3), axis=axis)
case("ConcatV2", S("b", 3), S("n", 3), S(2, 3), one(0))
case("ConcatV2", S("b", 3), S(2, 3), S(**INT))
case("ConcatV2", S("b", 3), S(None), one(0))
case("ConcatV2", S(0), S(2), one(0))
case("Pack", S())
case("Pack", S(None), S(3), axis=0)
case("Pack", S("b", 3), axis=-3)
case("Unpack", S(2, "b"), num=2)
case("Unpack", S("b", 3), num=3, axis=-1)
case("Unpack", S("b", 3), num=4)
case("Unpack", S(0, 3), num=0)
case("Unpack", S(None), num=2)
case("Split", one(0), S(4, "b"), num_split=2)
case("Split", one(-1), S(4, "b"), num_split=2)
case("Split", S(**INT), S(4, "b"), num_split=2)
case("SplitV", S(5, "b"), ints(2, 3), one(0), num_split=2)
case("SplitV", S(5, "b"), ints(2, -1), one(0), num_split=2)
case("SplitV", S(5, "b"), ints(2, -1), one(1), num_split=2)
case("SplitV", S(5, "b"), S(2, **INT), one(1), num_split=2)
case("SplitV", S(5, "b"), S(2, **INT), S(**INT), num_split=2)
case("DepthToSpace", S("b", 2, 3, 8), block_size=2)
case("SpaceToDepth", S("b", 4, 6, 2), block_size=2)
case("SpaceToBatchND", S("b", 4, 6, 2), ints(2, 2), np.zeros((2, 2), INTEGER))
case("BatchToSpaceND", S(8, 4, "n", 2), ints(2, 2), np.ones((2, 2), INTEGER))
case("BatchToSpaceND", S(8, 4, "n", 2), S(2, **INT), np.ones((2, 2), INTEGER))

# Parts and edges.
case("Slice", S("b", 5), ints(0, 1), ints(2, -1))
case("Slice", S("b", 5), ints(0, 1), ints(-1, 0))
case("Slice", S("b", 5), S(2, **INT), ints(2, -1))
case("Slice", S("b", 5), S(2, **INT), S(2, **INT))
case("Slice", S(None), ints(0, 1), ints(2, 3))
case("Slice", S(), np.zeros(0, INTEGER), np.zeros(0, INTEGER))


def cut(x: S, index: list[tuple[int, int, int]], **masks: int) -> None:
    begin, end, strides = (ints(*part) for part in zip(*index, strict=True))
    case("StridedSlice", x, begin, end, strides, **{f"{k}_mask": v for k, v in masks.items()})


for x in (S(5, "b", 4), S("b", 5, 4)):
    cut(x, [(1, 3, 1)])
    cut(x, [(0, 0, 1), (-3, -1, 1)], begin=1, end=1)
    cut(x, [(0, 0, 2)], begin=1, end=1)
    cut(x, [(0, 0, -1), (0, 0, -2)], begin=3, end=3)
    cut(x, [(-1, -9, -1)])
    cut(x, [(7, 9, 1)])
    cut(x, [(0, 9, 1)])
    cut(x, [(1, 0, 1)], shrink_axis=1)
    cut(x, [(-1, 0, 1), (0, 0, 1)], shrink_axis=1, begin=2, end=2)
    cut(x, [(0, 0, 1), (1, 2, 1)], new_axis=1)
    cut(x, [(0, 0, 1), (1, 3, 1)], ellipsis=1)
    cut(x, [(0, 0, 1), (0, 0, 1), (0, 0, 1)], ellipsis=2, new_axis=5)
    cut(x, [(1, 2, 1), (0, 0, 1), (0, 0, 1)], ellipsis=2, shrink_axis=5)
    case("StridedSlice", x, S(1, **INT), S(1, **INT), ints(1))
    case("StridedSlice", x, S(1, **INT), S(1, **INT), ints(1), shrink_axis_mask=1)
    case("StridedSlice", x, S(1, **INT), S(1, **INT), ints(1), begin_mask=1, end_mask=1)
    case("StridedSlice", x, S(1, **INT), S(1, **INT), S(1, **INT))
for op in ("Pad", "PadV2", "MirrorPad"):
    more = [S()] if op == "PadV2" else []
    attributes = {"mode": "REFLECT"} if op == "MirrorPad" else {}
    for x in (S("b", 5), S(None), S(2, 3)):
        case(op, x, ints((0, 1), (2, 0)), *more, **attributes)
        case(op, x, S(2, 2, **INT), *more, **attributes)
    case(op, S("b", 5), S("n", 2, **INT), *more, **attributes)

# Places.
for x in (S("b", 3, 4), S(2, "n", 4)):
    case("GatherV2", x, S(5, **INT), one(0))
    case("GatherV2", x, S(5, "m", **INT), one(-1))
    case("GatherV2", x, S(**INT), one(1))
    case("GatherV2", x, S(5, **INT), S(**INT))
    case("GatherV2", x, S("b", 7, **INT), one(1), batch_dims=1)
    case("GatherV2", x, S("b", 7, **INT), one(2), batch_dims=-1)
    case("GatherNd", x, S(5, 2, **INT))
    case("GatherNd", x, S(5, 0, **INT))
    case("GatherNd", x, S("m", 3, **INT))
    case("GatherNd", x, S(5, "m", **INT))
    for name in ("Add", "Max", "Min", "Sub", "Update"):
        case(f"TensorScatter{name}", x, S("m", 3, **INT), S("m"))
case("ScatterNd", S("m", 1, **INT), S("m", 3), ints(5, 3))
case("ScatterNd", S("m", 1, **INT), S("m", 3), S(2, **INT))
for name in ("Max", "Min", "Prod", "Sum"):
    case(f"UnsortedSegment{name}", S("b", 3), S("b", **INT), one(4))
    case(f"UnsortedSegment{name}", S("b", 3), S("b", **INT), S(**INT))
case("TopKV2", S("b", 5), one(2))
case("TopKV2", S(5, "b"), one(2))
case("TopKV2", S("b", 5), S(**INT))
for op in ("LowerBound", "UpperBound"):
    case(op, S("b", 5), S("b", 7))

# Along dimensions.
for op in ("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"):
    for keeps in (False, True):
        x = S("b", 3, 4, dtype="bool" if op in ("All", "Any") else "float32")
        for axes in (ints(0, -1), ints(), one(1), S(2, **INT), S(None, **INT)):
            case(op, x, axes, keep_dims=keeps)
for op in ("ArgMax", "ArgMin"):
    case(op, S("b", 3, 4), one(-1), output_type=np.dtype(INTEGER))
    case(op, S("b", 3, 4), one(0))
    case(op, S("b", 3, 4), S(**INT))
for op in ("Cumprod", "Cumsum", "CumulativeLogsumexp"):
    case(op, S("b", 3), one(-1))
    case(op, S("b", 3), S(**INT))

# Matrices.
for a in (False, True):
    for b in (False, True):
        left = S(3, "b") if a else S("b", 3)
        right = S("n", 3) if b else S(3, "n")
        case("MatMul", left, right, transpose_a=a, transpose_b=b)
        left, right = S(2, "k", *left.shape), S(1, *right.shape)
        case("BatchMatMulV2", left, right, adj_x=a, adj_y=b)
case("BatchMatMulV2", S(2, 3), S(3, 4))
for full in (False, True):
    for x in (S("b", 3, 2), S(2, "n"), S("b", 2, 3)):
        case("Qr", x, full_matrices=full)
        case("Svd", x, full_matrices=full)
        case("Svd", x, full_matrices=full, compute_uv=False)
for x in (S("b", 3, 3), S("n", 3)):
    case("Lu", x)
    case("SelfAdjointEigV2", x)
    case("SelfAdjointEigV2", x, compute_v=False)
case("MatrixSolve", S("b", 3, 3), S("b", 3, "n"))
case("MatrixTriangularSolve", S("b", 3, 3), S(1, 3, "n"))
case("TridiagonalSolve", S("b", 3, 5), S("b", 5, "n"))
case("MatrixBandPart", S("b", 3, 4), one(1), one(-1))
for k in (ints(0), ints(-1, 2), one(1), S(1, **INT)):
    case("MatrixDiagPartV3", S("b", 3, 4), k, F(0))
    case("MatrixSetDiagV3", S("b", 3, 4), S(None), k)
case("MatrixDiagPartV3", S("b", 3, "n"), ints(1), F(0))
for rows, columns in ((-1, -1), (4, -1), (-1, 5), (4, 5)):
    case("MatrixDiagV3", S("b", 3), ints(-1), one(rows), one(columns), F(0))
for rows, columns in ((-1, -1), (4, -1), (-1, 5), (3, 5)):
    case("MatrixDiagV3", S("b", 2, 3), ints(0, 1), one(rows), one(columns), F(0))
case("MatrixDiagV3", S("b", 3), S(1, **INT), one(4), one(4), F(0))
for rank, name in enumerate(("", "2D", "3D"), 1):
    shape = ("b", *range(4, 4 + rank))
    case(f"FFT{name}", S(*shape, **COMPLEX))
    case(f"IFFT{name}", S(*shape, **COMPLEX))
    for lengths in (ints(*range(5, 5 + rank)), S(rank, **INT)):
        case(f"RFFT{name}", S(*shape), lengths)
        case(f"IRFFT{name}", S(*shape, **COMPLEX), lengths)
case(
    "BlockLSTMV2", S(dtype="int64"), S("t", "b", 3), *[S("b", 4)] * 2, S(7, 16), *[S(4)] * 3, S(16)
)

# Windows.
for padding in ("SAME", "VALID"):
    for n, x in ((2, S("b", 7, "w", 4)), (3, S("b", 7, "w", 6, 4))):
        ones = [1] * (n + 2)
        two = [1, *[2] * n, 1]
        case(f"Conv{n}D", x, S(*[3] * n, 4, 6), strides=two, padding=padding)
        case(f"Conv{n}D", x, S(*[3] * n, 2, 6), strides=ones, padding=padding, dilations=two)
        for pool in ("AvgPool", "MaxPool"):
            op = pool if n == 2 else f"{pool}3D"
            case(op, x, ksize=[1, *[3] * n, 1], strides=two, padding=padding)
    case(
        "DepthwiseConv2dNative", S("b", 7, "w", 4), S(3, 2, 4, 2), strides=two[:4], padding=padding
    )
two = [1, 2, 2, 1]
pads = [0, 0, 1, 2, 3, 4, 0, 0]
case(
    "Conv2D",
    S("b", 7, 8, 4),
    S(3, 3, 4, 6),
    strides=two,
    padding="EXPLICIT",
    explicit_paddings=pads,
)
case(
    "Conv2D",
    *(S("b", 4, 7, 8), S(3, 3, 4, 6)),
    strides=[1, 1, 2, 2],
    padding="VALID",
    data_format="NCHW",
)
case(
    "MaxPool",
    S("b", 4, 7, 8),
    ksize=[1, 1, 2, 2],
    strides=[1, 1, 2, 2],
    padding="SAME",
    data_format="NCHW",
)
for sizes in (ints(2, 9, 9, 4), S(4, **INT)):
    case("Conv2DBackpropInput", sizes, S(3, 3, 4, 6), S("b", 5, 5, 6), strides=two, padding="SAME")
case(
    "Conv3DBackpropInputV2",
    *(ints(2, 9, 9, 9, 4), S(3, 3, 3, 4, 6), S("b", 5, 5, 5, 6)),
    strides=[1, 2, 2, 2, 1],
    padding="SAME",
)
for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
    case(op, S("b", 3, 4, 2), ints(5, 6))
    case(op, S("b", 3, 4, 2), S(2, **INT))

# Lists.
LIST = {"dtype": "variant"}
ITEM = np.dtype(F)
case("TensorListReserve", ints(3), one(4), element_dtype=ITEM)
case("TensorListFromTensor", S(2, 3), ints(3))
case("TensorListSetItem", S(**LIST), one(0), S(3))
case("TensorListGetItem", S(**LIST), one(0), ints(3), element_dtype=ITEM)
case("TensorListGetItem", S(**LIST), one(0), one(-1), element_dtype=ITEM)
case("TensorListStack", S(**LIST), ints(3), element_dtype=ITEM, num_elements=5)
case("TensorListStack", S(**LIST), ints(-1, 3), element_dtype=ITEM)
case("TensorListLength", S(**LIST))
case("TensorListElementShape", S(**LIST), shape_type=np.dtype(INTEGER))

# Refused uses.
REFUSED: list[Case] = []


def refused(op: str, *operands: Any, **attributes: Any) -> None:
    REFUSED.append((op, list(operands), attributes))


for op in ("AddV2", "Less", "Atan2", "Complex"):
    refused(op, S(2), S(3))
    refused(op, S("b", 2), S(3))
    refused(op, S(2), S(2, **INT))
refused("AddV2", S(2, **BOOL), S(2, **BOOL))
refused("AddV2", S(2))
refused("Sin", S(2, **INT))
refused("SelectV2", S(2), S(2), S(2))
refused("SelectV2", S(2, **BOOL), S(3), S())
refused("LogicalAnd", S(2), S(2))
refused("AddN", S(2), S(3))
refused("Softmax", S())
refused("Bitcast", S(3, dtype="uint8"), type=ITEM)
refused("EnsureShape", S(3), shape=(4,))
refused("BiasAdd", S(2, 3), S(4))
refused("Fill", ints(-1), S())
refused("Fill", ints((1, 2)), S())
refused("BroadcastTo", S(2, 3), ints(3))
refused("BroadcastTo", S(2), ints(3))
refused("Range", one(0), one(3), one(0))
refused("Range", one(5), one(0), one(1))
refused("OneHot", S(2, **INT), one(-1), S(), S())
refused("Reshape", S(2, 3), ints(4))
refused("Reshape", S(2, 3), ints(-1, 4))
refused("Reshape", S(2, 3), ints(-2, 3))
refused("ExpandDims", S(2), one(3))
refused("Squeeze", S(2, 1), squeeze_dims=[0])
refused("Squeeze", S(2, 1), squeeze_dims=[2])
refused("Transpose", S(2, 3), ints(0))
refused("Transpose", S(2, 3), ints(0, 2))
refused("ReverseV2", S(2), ints(1))
refused("ReverseV2", S(2, 3), ints(0, 0))
refused("Tile", S(2), ints(1, 2))
refused("ConcatV2", S(2, 3), S(2, 4), one(0))
refused("ConcatV2", S(2), S(2, 4), one(0))
refused("ConcatV2", S(2, 3), S(2, 3), one(2))
refused("Pack", S(2), S(3))
refused("Pack", S(2), S(2), axis=2)
refused("Unpack", S(2), num=3)
refused("Unpack", S(), num=1)
refused("Split", one(0), S(3), num_split=2)
refused("SplitV", S(5), ints(2, 2), one(0), num_split=2)
refused("SplitV", S(5), ints(2, 3), one(1), num_split=2)
refused("Slice", S(3), ints(0, 0), ints(1, 1))
refused("StridedSlice", S(3), ints(0), ints(1), ints(0))
refused("StridedSlice", S(3), ints(3), ints(4), ints(1), shrink_axis_mask=1)
refused("StridedSlice", S(3), ints(0, 0), ints(1, 1), ints(1, 1))
refused("Pad", S(3), ints((1, 1), (1, 1)))
refused("Pad", S(3), ints((-1, 1)))
refused("GatherV2", S(), S(2, **INT), one(0))
refused("GatherV2", S(3), S(2, **INT), one(1))
refused("GatherNd", S(3), S(2, 2, **INT))
refused("GatherNd", S(3), S(**INT))
refused("TensorScatterUpdate", S(3, 4), S(2, 1, **INT), S(2, 5))
refused("TensorScatterUpdate", S(3, 4), S(2, 1, **INT), S(3, 4))
refused("TopKV2", S(3), one(4))
refused("TopKV2", S(), one(0))
refused("Sum", S(2, 3), ints(2))
refused("Sum", S(2, 3), ints(-3))
refused("ArgMax", S(2, 3), one(2))
refused("MatMul", S(2, 3), S(4, 5))
refused("MatMul", S(2, 3), S(3))
refused("BatchMatMulV2", S(2, 3, 4), S(3, 4, 5))
refused("BatchMatMulV2", S(3), S(3, 4))
refused("Cholesky", S(2, 3))
refused("MatrixSolve", S(3, 3), S(4, 2))
refused("FFT", S(**COMPLEX))
refused("RFFT", S(3), ints(3, 3))
refused("Conv2D", S(1, 5, 5, 3), S(3, 3, 2, 4), strides=[1, 1, 1, 1], padding="SAME")
refused("Conv2D", S(5, 5, 3), S(3, 3, 3, 4), strides=[1, 1, 1, 1], padding="SAME")
refused("Conv2D", S(1, 5, 5, 3), S(3, 3, 3, 4), strides=[1, 1, 1, 1], padding="OTHER")
refused("Conv2D", S(1, 5, 5, 3), S(3, 3, 3, 4), padding="SAME")
refused("ResizeBilinear", S(1, 2, 3, 1), ints(2, 3, 4))

# TensorFlow refuses these uses when they run.
N_REFUSED_EARLY = len(REFUSED)
refused("Reshape", S(2, 3), ints(-1, -1))
refused("Transpose", S(2, 3), ints(0, 0))
refused("Tile", S(2), ints(-1))
refused("Slice", S(3), ints(1), ints(3))
refused("Cumsum", S(2), one(1))
