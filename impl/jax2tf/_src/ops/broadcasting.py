"""Which operands an op of TensorFlow's repeats to the shape of the others.

An op of several arrays that is named nowhere here reads them by shapes of their own, as a gather
does. A test calls every op that the lowering makes and holds this table against TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_X_AND_Y = (
    *("AddV2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "FloorDiv", "FloorMod"),
    *("Greater", "GreaterEqual", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr"),
    *("Maximum", "Minimum", "Mul", "NotEqual", "Pow", "RealDiv", "RightShift", "Sub"),
    *("TruncateDiv", "TruncateMod"),
)
# Ops of NumPy's broadcasting, and the names of the operands that take part.
REPEATED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_X_AND_Y, ("x", "y")),
    "Atan2": ("y", "x"),
    "Igamma": ("a", "x"),
    "IgammaGradA": ("a", "x"),
    "Igammac": ("a", "x"),
    "NextAfter": ("x1", "x2"),
    "SelectV2": ("condition", "t", "e"),
}
# Ops that refuse operands of several shapes, although JAX's primitives take such.
OF_ONE_SHAPE: Mapping[str, tuple[str, ...]] = {"Betainc": ("a", "b", "x")}
# Ops that repeat all dimensions of their operands but the last two.
OF_BATCHES: Mapping[str, tuple[str, ...]] = {"BatchMatMulV2": ("x", "y")}
