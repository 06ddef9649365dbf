"""Ops of each element, and choices between elements."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from jax2tf._src.export.tflite.model import Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor

# Known arrays of up to so many elements are constants; others are made where they are read.
SMALL = 1024

# LiteRT's op of the same meaning.
_SAME: Mapping[str, str] = {
    "Abs": "ABS",
    "AddV2": "ADD",
    "Atan2": "ATAN2",
    "BiasAdd": "ADD",
    "BitwiseXor": "BITWISE_XOR",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Elu": "ELU",
    "Equal": "EQUAL",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "FloorDiv": "FLOOR_DIV",
    "FloorMod": "FLOOR_MOD",
    "Greater": "GREATER",
    "GreaterEqual": "GREATER_EQUAL",
    "Imag": "IMAG",
    "Less": "LESS",
    "LessEqual": "LESS_EQUAL",
    "Log": "LOG",
    "LogicalAnd": "LOGICAL_AND",
    "LogicalNot": "LOGICAL_NOT",
    "LogicalOr": "LOGICAL_OR",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "Mul": "MUL",
    "Neg": "NEG",
    "NotEqual": "NOT_EQUAL",
    "Pow": "POW",
    "Real": "REAL",
    "RealDiv": "DIV",
    "Relu6": "RELU6",
    "RightShift": "RIGHT_SHIFT",
    "Rint": "ROUND",
    "Round": "ROUND",
    "Rsqrt": "RSQRT",
    "SelectV2": "SELECT_V2",
    "Sigmoid": "LOGISTIC",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sqrt": "SQRT",
    "SquaredDifference": "SQUARED_DIFFERENCE",
    "Sub": "SUB",
    "Tanh": "TANH",
    "TruncateDiv": "DIV",
}


@writes(*_SAME)
def _same(w: Writer, node: Node, *operands: Value) -> Value:
    return w.op(_SAME[node.op], *operands, like=node.outputs[0])


@writes("Identity", "EnsureShape", "PreventGradient", "StopGradient", "Snapshot")
def _identity(w: Writer, node: Node, x: Value) -> Value:
    return x


@writes("Relu")
def _relu(w: Writer, node: Node, x: Value) -> Value:
    if x.dtype == np.float32:
        return w.op("RELU", x, like=x)
    return w.op("MAXIMUM", x, w.constant(0, x.dtype), like=x)


@writes("LeakyRelu")
def _leaky_relu(w: Writer, node: Node, x: Value) -> Value:
    return w.op("LEAKY_RELU", x, like=x, alpha=float(node.attributes["alpha"]))


@writes("Square")
def _square(w: Writer, node: Node, x: Value) -> Value:
    return w.op("SQUARE", x, like=x) if x.dtype == np.float32 else w.op("MUL", x, x, like=x)


@writes("Reciprocal", "Inv")
def _reciprocal(w: Writer, node: Node, x: Value) -> Value:
    return w.op("DIV", w.constant(1, x.dtype), x, like=x)


@writes("AddN")
def _add_n(w: Writer, node: Node, x: Value, *others: Value) -> Value:
    for other in others:
        x = w.op("ADD", x, other, like=node.outputs[0])
    return x


@writes("IsNan")
def _is_nan(w: Writer, node: Node, x: Value) -> Value:
    return w.op("NOT_EQUAL", x, x, like=node.outputs[0])


@writes("IsInf")
def _is_inf(w: Writer, node: Node, x: Value) -> Value:
    size = w.op("ABS", x, like=x)
    return w.op("EQUAL", size, w.constant(np.inf, x.dtype), like=node.outputs[0])


@writes("IsFinite")
def _is_finite(w: Writer, node: Node, x: Value) -> Value:
    # A NaN is less than nothing.
    size = w.op("ABS", x, like=x)
    return w.op("LESS", size, w.constant(np.inf, x.dtype), like=node.outputs[0])


@writes("ZerosLike", "OnesLike")
def _zeros_like(w: Writer, node: Node, x: Value) -> Value:
    result = node.outputs[0]
    number = int(node.op == "OnesLike")
    shape = static_shape(result)
    if shape is not None and math.prod(shape) <= SMALL:
        return w.constant(np.full(shape, number, result.dtype))
    if shape is not None:
        lengths = w.constant(shape, np.int32)
        return w.op("FILL", lengths, w.constant(number, result.dtype), like=result)
    lengths = w.op("SHAPE", x, dtype=np.int32, shape=(rank_of(result),), outType=np.dtype("int32"))
    return w.op("FILL", lengths, w.constant(number, result.dtype), like=result)


@writes("Cast")
def _cast(w: Writer, node: Node, x: Value) -> Value:
    return cast(w, x, node.outputs[0].dtype)


def cast(w: Writer, x: Value, dtype: np.dtype | None) -> Value:
    """The numbers in another dtype."""
    assert dtype is not None
    if x.dtype == dtype:
        return x
    return w.op(
        "CAST", x, dtype=dtype, shape=x.shape, inDataType=x.dtype, outDataType=np.dtype(dtype)
    )


@writes("Bitcast")
def _bitcast(w: Writer, node: Node, x: Value) -> Value:
    return x if x.dtype == node.outputs[0].dtype else w.op("BITCAST", x, like=node.outputs[0])


@writes("Softmax")
def _softmax(w: Writer, node: Node, x: Value) -> Value:
    return w.op("SOFTMAX", x, like=x, beta=1.0)


@writes("Gelu")
def _gelu(w: Writer, node: Node, x: Value) -> Value:
    return w.op("GELU", x, like=x, approximate=node.attributes["approximate"])


@writes("HardSwish")
def _hard_swish(w: Writer, node: Node, x: Value) -> Value:
    return w.op("HARD_SWISH", x, like=x)


@writes("XlaDynamicUpdateSlice")
def _dynamic_update_slice(w: Writer, node: Node, x: Value, update: Value, start: Value) -> Value:
    return w.op("DYNAMIC_UPDATE_SLICE", x, update, start, like=node.outputs[0])


@writes("LogSoftmax")
def _log_softmax(w: Writer, node: Node, x: Value) -> Value:
    return w.op("LOG_SOFTMAX", x, like=x)


def static_shape(tensor: Tensor | Value) -> tuple[int, ...] | None:
    """The shape if it has no open size."""
    if tensor.shape is None:
        return None
    known = tuple(n for n in tensor.shape if isinstance(n, int))
    return known if len(known) == len(tensor.shape) else None


def rank_of(tensor: Tensor | Value) -> int:
    """The number of dimensions, which has to be known."""
    if tensor.shape is None:
        raise NotImplementedError(f"the number of dimensions of {tensor.name} is unknown")
    return len(tensor.shape)
