"""Tables of the TensorFlow ops that broadcast their operands.

Any other op of several arrays, such as a gather, takes operands of different shapes. A test calls
every op that the lowering makes and compares these tables with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_X_AND_Y = (
    *("AddV2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "FloorDiv", "FloorMod"),
    *("Greater", "GreaterEqual", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr"),
    *("Maximum", "Minimum", "Mul", "NotEqual", "Pow", "RealDiv", "RightShift", "Sub"),
    *("TruncateDiv", "TruncateMod"),
)
# Ops with NumPy's broadcasting, and the names of the operands that are broadcast.
REPEATED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_X_AND_Y, ("x", "y")),
    "Atan2": ("y", "x"),
    "Igamma": ("a", "x"),
    "IgammaGradA": ("a", "x"),
    "Igammac": ("a", "x"),
    "NextAfter": ("x1", "x2"),
    "SelectV2": ("condition", "t", "e"),
}
# Ops that refuse operands of different shapes, which JAX's primitives take.
OF_ONE_SHAPE: Mapping[str, tuple[str, ...]] = {"Betainc": ("a", "b", "x")}
# Ops that broadcast all dimensions of their operands except the last two.
OF_BATCHES: Mapping[str, tuple[str, ...]] = {"BatchMatMulV2": ("x", "y")}
