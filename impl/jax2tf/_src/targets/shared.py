"""What the targets of several engines have in common."""

from __future__ import annotations

# The uses that rules make of ops, where these are not the plain ones.
NEEDS = ("FloorDiv: of numbers of one sign", "FloorMod: of numbers of one sign")
# Of these no engine has arrays that its converter knows.
NARROW = frozenset(
    {
        *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float4_e2m1fn", "int2", "int4", "uint2", "uint4"),
    }
)
# The converters of ONNX, OpenVINO and Core ML make float16 of it.
BFLOAT16 = frozenset({"bfloat16"})
# Few kernels compute in integers of fewer bits.
IN_INT32 = dict.fromkeys(("int8", "int16", "uint8", "uint16"), "int32")
# No engine has complex numbers, or it has few functions of them.
IN_PARTS = {"complex64": "float32", "complex128": "float64"}
# LiteRT's PadV2 takes arrays of no more dimensions.
FEW_IN_PADS = {"PadV2": 5}

_ACTIVATIONS = frozenset({"relu", "relu6", "leaky_relu", "elu", "hard_swish", "gelu"})
_SOFTMAX = frozenset({"softmax", "log_softmax"})
_SIZES = frozenset({"resize_by_products", "resize_nearest"})
IDIOMS = _ACTIVATIONS | _SOFTMAX | _SIZES | {"mean", "variance", "one_hot"}
NORMS = frozenset({"layer_norm", "batch_norm"})
# JAX resizes by products, in which a NaN reaches all pixels, and an op those beside it.
RESIZE = frozenset({"resize"})
