"""The ops that DTensor can shard over a mesh, found by running each op on a mesh.

TensorFlow has no public list of these ops. Any other op fails in DTensor with "does not implement
layout propagation" when the graph first runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_NAMES = """
Abs Acos Acosh Add AddN AddV2 All Angle Any ArgMax Asin Asinh Assert Atan Atan2 Atanh AvgPool
AvgPool3D AvgPoolGrad BatchMatMul BatchMatMulV2 BesselI0e BesselI1e Betainc BiasAdd BiasAddGrad
Bincount Bitcast BitwiseAnd BitwiseOr BitwiseXor BroadcastGradientArgs BroadcastTo Cast Ceil
CheckNumerics Cholesky ClipByValue Complex ComplexAbs ConcatV2 Conj Conv2D Conv2DBackpropFilter
Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 Cos Cosh Cumsum DepthwiseConv2dNative
DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Digamma Div DivNoNan Einsum
Elu EluGrad EnsureShape Equal Erf Erfc Erfinv Exp ExpandDims Expm1 FFT FFT2D FFT3D Fill Floor
FloorDiv FloorMod Gather GatherNd GatherV2 Greater GreaterEqual IFFT IFFT2D IFFT3D IRFFT IRFFT2D
IRFFT3D If Igamma IgammaGradA Igammac Imag Inv Invert InvertPermutation IsFinite IsInf IsNan L2Loss
LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogSoftmax LogicalAnd LogicalNot
LogicalOr MatMul Max MaxPool MaxPool3D Maximum Mean Min Minimum Mul MulNoNan Ndtri Neg NextAfter
NotEqual OneHot OnesLike Pack Pad PadV2 Polygamma PopulationCount Pow PreventGradient Prod Qr RFFT
RFFT2D RFFT3D Range Rank Real RealDiv Reciprocal ReciprocalGrad Relayout Relu Relu6 Relu6Grad
ReluGrad Reshape RightShift Rint Round Rsqrt RsqrtGrad ScatterNd Select SelectV2 Selu SeluGrad Shape
ShapeN Sigmoid SigmoidGrad Sign Sin Sinh Size Slice Softmax Softplus Softsign Split SplitV Sqrt
SqrtGrad Square SquaredDifference Squeeze StatelessIf StatelessWhile StopGradient StridedSlice
StridedSliceGrad Sub Sum Tan Tanh TanhGrad TensorScatterAdd TensorScatterUpdate
TensorStridedSliceUpdate Tile TopKV2 Transpose TruncateDiv TruncateMod Unpack UnsortedSegmentSum
While Xdivy Xlog1py Xlogy ZerosLike Zeta
"""

# All dtypes: an op without a kernel for its dtype fails as it does outside of DTensor.
_DTYPES = (
    *("bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("int16", "int32", "int4", "int64", "int8", "uint16", "uint32", "uint4", "uint64", "uint8"),
)

OPS: Mapping[str, Sequence[str]] = dict.fromkeys(_NAMES.split(), _DTYPES)
