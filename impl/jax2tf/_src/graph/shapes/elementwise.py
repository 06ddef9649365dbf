"""Ops on each element: of one operand, or of several that are broadcast."""

from __future__ import annotations

import functools

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.shapes.registry import Shape, Use, gives


@gives(
    # Arithmetic of one operand.
    *("Abs", "ComplexAbs", "Conj", "Imag", "Invert", "LogicalNot", "Neg", "PopulationCount"),
    *("Real", "Reciprocal", "Rint", "Round", "Sign", "Square", "Ceil", "Floor"),
    *("IsFinite", "IsInf", "IsNan"),
    # Functions.
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BesselI0e", "BesselI1e", "Cos", "Cosh"),
    *("Digamma", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "Lgamma", "Log", "Log1p", "Rsqrt"),
    *("Sigmoid", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
    # Activations.
    *("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"),
    # The same elements.
    *("Cast", "Identity", "OnesLike", "PlaceholderWithDefault", "PreventGradient"),
    *("StopGradient", "ZerosLike"),
)
def _same(use: Use) -> Shape:
    return use.operands[0].shape


@gives("LogSoftmax", "Softmax")
def _softmax(use: Use) -> Shape:
    return use.at_least(0, 1)


@gives("IdentityN")
def _each(use: Use) -> list[Shape]:
    return [x.shape for x in use.operands]


@gives(
    # Arithmetic.
    *("AddV2", "DivNoNan", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Mul", "MulNoNan"),
    *("Pow", "RealDiv", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod"),
    # Bits.
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"),
    # Functions.
    *("Atan2", "Complex", "Igamma", "IgammaGradA", "Igammac", "NextAfter"),
    *("Xdivy", "Xlog1py", "Xlogy", "Zeta"),
    # Choices, whose condition is broadcast too.
    *("ClipByValue", "LogicalAnd", "LogicalOr", "SelectV2"),
    *("Greater", "GreaterEqual", "Less", "LessEqual"),
)
def _broadcast(use: Use) -> Shape:
    return functools.reduce(use.broadcast, (x.shape for x in use.operands))


@gives("Equal", "NotEqual")
def _equal(use: Use) -> Shape:
    """Without `incompatible_shape_error` arrays that cannot be broadcast give one False."""
    if use.attributes.get("incompatible_shape_error", True):
        return _broadcast(use)
    a, b = use.shape(0), use.shape(1)
    aligned = zip(reversed(a), reversed(b), strict=False)
    for x, y in aligned:
        # An open size that may be neither 1 nor the number.
        if 1 not in (x, y) and isinstance(x, int) != isinstance(y, int):
            return None
    try:
        return _broadcast(use)
    except ValueError:
        return ()


@gives("AddN", "ApproximateEqual")
def _merged(use: Use) -> Shape:
    return functools.reduce(use.merged, (x.shape for x in use.operands))


@gives("Betainc")
def _of_one_shape(use: Use) -> Shape:
    """Scalars are repeated."""
    known = [x.shape for x in use.operands if x.shape != ()]
    return functools.reduce(use.merged, known) if known else ()


@gives("BiasAdd")
def _with_bias(use: Use) -> Shape:
    is_last = use.attributes["data_format"] == "NHWC"
    shape = use.at_least(0, 2 if is_last else 3)
    axis = len(shape) - 1 if is_last else 1
    (channels,) = use.ranked(1, 1)
    return (*shape[:axis], use.merge(shape[axis], channels), *shape[axis + 1 :])


@gives("EnsureShape")
def _ensured(use: Use) -> Shape:
    return use.merged(use.operands[0].shape, use.attributes["shape"])


@gives("Bitcast")
def _bits(use: Use) -> Shape:
    """A larger dtype takes the elements of the last dimension, a smaller one adds a dimension."""
    shape = use.shape(0)
    before, after = use.attributes["T"].itemsize, use.attributes["type"].itemsize
    if before == after:
        return shape
    if before > after:
        return (*shape, before // after)
    if not shape or dimensions.are_equal(shape[-1], after // before) is False:
        raise use.error(f"the last dimension should have size {after // before}")
    return shape[:-1]
