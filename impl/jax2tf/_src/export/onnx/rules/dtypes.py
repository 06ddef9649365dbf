"""The dtypes for which ONNX Runtime has a kernel of an op, and what is done for the others.

An op without a kernel for a dtype is computed in a wider dtype and cast back. That is exact:
sums and products of integers wrap around when they are cast back, and choices and comparisons
keep their order. No dtype is wider than uint64. Its sums are those of the same bits in int64; its
order is that of int64 with the highest bit flipped.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

_HALF_AND_SINGLE = frozenset({"float16", "float32"})
_FLOATS = _HALF_AND_SINGLE | {"float64"}
_SIGNED = frozenset({"int8", "int16", "int32", "int64"})
_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})
_INTEGERS = _SIGNED | _UNSIGNED
_NUMBERS = _INTEGERS | _FLOATS
_WIDE = frozenset({"int32", "int64"}) | _FLOATS
_ORDERED = _WIDE | {"int8", "uint8"}

# The dtypes for which ONNX Runtime 1.31 has a kernel on the CPU, by op of ONNX. It computes float16
# in float32 where it has no kernel.
KERNELS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Abs", "Add", "Sub", "Mul", "Div", "Mod"), _NUMBERS),
    # The sign of a NaN in float16 and bfloat16 is 0, and that of an int64 may be wrong.
    "Sign": _NUMBERS - {"float16", "int64"},
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _NUMBERS),
    "Equal": _NUMBERS | {"bool"},
    "Neg": _SIGNED | _FLOATS,
    # Of two int64 whose high halves are equal, ONNX Runtime compares the low halves as int32.
    **dict.fromkeys(("Max", "Min", "Clip"), _NUMBERS - {"int16", "uint16", "int64"}),
    "Pow": _WIDE,
    **dict.fromkeys(("Floor", "Ceil", "Round", "Sqrt", "Reciprocal"), _FLOATS),
    **dict.fromkeys(("Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid"), _FLOATS),
    **dict.fromkeys(("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh"), _HALF_AND_SINGLE),
    **dict.fromkeys(("Asinh", "Acosh", "Atanh", "Erf"), _HALF_AND_SINGLE),
    **dict.fromkeys(("Elu", "LeakyRelu", "Softplus", "Selu", "Gelu"), _HALF_AND_SINGLE),
    **dict.fromkeys(("Softmax", "LogSoftmax", "IsNaN", "IsInf"), _FLOATS),
    "Relu": _FLOATS | {"int8", "int32"},
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _INTEGERS),
    "BitShift": frozenset({"uint8", "uint32", "uint64"}),
    "Where": _ORDERED | {"uint32"},
    "Expand": _NUMBERS | {"bool"},
    "Pad": _ORDERED | {"bool", "uint32", "uint64"},
    "Tile": _NUMBERS | {"bool"},
    "Trilu": _WIDE | {"bool"},
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool"), _HALF_AND_SINGLE),
    "MaxPool": _FLOATS | {"int8", "uint8"},
    "Resize": _HALF_AND_SINGLE | {"int8", "int32", "uint8"},
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMean", "CumSum", "Einsum"), _WIDE),
    "CumProd": _WIDE | {"uint32", "uint64"},
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _ORDERED - {"int64"}),
    **dict.fromkeys(("ArgMax", "ArgMin"), _ORDERED),
    "TopK": _ORDERED | {"int16"},
    "MatMul": _WIDE | {"uint32", "uint64"},
}

# These ops read the order of integers, which int64 does not share with uint64.
_READS_ORDER = frozenset({"ArgMax", "ArgMin", "TopK"})

_WIDER: Mapping[str, str] = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
}
_WIDER_OF_OP: Mapping[tuple[str, str], str] = {
    ("ReduceMax", "uint32"): "float64",
    ("ReduceMin", "uint32"): "float64",
    ("Where", "bool"): "uint8",
}
_HIGHEST_BIT = np.int64(np.iinfo(np.int64).min)


def has_kernel(op: str, dtype: np.dtype) -> bool:
    """Whether ONNX Runtime computes an op in a dtype."""
    return dtype.name in KERNELS[op]


@cached
def dtype_to_compute(op: str, dtype: np.dtype) -> np.dtype:
    """The dtype in which ONNX Runtime computes an op of operands of a dtype.

    Raises:
      NotImplementedError: neither the dtype nor a wider one has a kernel.
    """
    if has_kernel(op, dtype):
        return dtype
    wider = _WIDER_OF_OP.get((op, dtype.name)) or _WIDER.get(dtype.name)
    if wider not in KERNELS[op]:
        raise NotImplementedError(f"ONNX Runtime has no kernel of {op} for {dtype.name}")
    return np.dtype(wider)


def cast(w: Writer, x: ir.Value, dtype: np.dtype) -> ir.Value:
    """`x` in another dtype, integers modulo 2**n; a constant is cast at once."""
    if x.const_value is not None:
        return w.constant(x.const_value.numpy().astype(dtype))
    return w.op("Cast", x, to=int(onnx_dtype(dtype)))


def widened(w: Writer, op: str, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """`x` of a dtype in the dtype that an op computes in."""
    wider = dtype_to_compute(op, dtype)
    if wider == dtype:
        return x
    x = cast(w, x, wider)
    return _flipped(w, x) if _is_flipped(op, dtype) else x


def narrowed(w: Writer, op: str, dtype: np.dtype, x: ir.Value) -> ir.Value:
    """A result of an op, in the dtype that it computes in, as the dtype of the operands."""
    if dtype_to_compute(op, dtype) == dtype:
        return x
    return cast(w, _flipped(w, x) if _is_flipped(op, dtype) else x, dtype)


def compute(
    w: Writer, op: str, dtype: np.dtype, *operands: ir.Value, **attributes: PyTree
) -> ir.Value:
    """The result of an op whose operands and result have a dtype."""
    inside = [widened(w, op, dtype, x) for x in operands]
    return narrowed(w, op, dtype, w.op(op, *inside, **attributes))


def ask(w: Writer, op: str, dtype: np.dtype, *operands: ir.Value, **attributes: PyTree) -> ir.Value:
    """The result of an op whose operands have a dtype and whose result has one of its own."""
    return w.op(op, *(widened(w, op, dtype, x) for x in operands), **attributes)


def _is_flipped(op: str, dtype: np.dtype) -> bool:
    return op in _READS_ORDER and dtype == np.uint64


def _flipped(w: Writer, x: ir.Value) -> ir.Value:
    """An int64 with its highest bit flipped."""
    if x.const_value is not None:
        return w.constant(x.const_value.numpy() ^ _HIGHEST_BIT)
    return w.op("BitwiseXor", x, w.constant(_HIGHEST_BIT))
