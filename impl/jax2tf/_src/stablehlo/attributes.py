"""Attributes and types of MLIR as Python values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jax2tf._src.stablehlo.program import Quantization, TensorType, TokenType, TupleType, Type
from jax2tf._src.util.typing import PyTree

_DTYPES = {
    "i1": np.bool_,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
    "bf16": ml_dtypes.bfloat16,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "index": np.int64,
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"si{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
DTYPES = {name: np.dtype(dtype) for name, dtype in _DTYPES.items()}

# Enumerations print as `#stablehlo<comparison_direction LT>`.
_ENUMERATION = re.compile(r"#(?:stablehlo|chlo|vhlo)<(\w+)\s+([\w.]+)>$")


def type_of(mlir_type: ir.Type) -> Type:
    """The type of a value.

    Raises:
      LookupError: a type that no rule reads, such as an unranked tensor.
    """
    if isinstance(mlir_type, ir.RankedTensorType):
        shape = tuple(
            None if mlir_type.is_dynamic_dim(i) else mlir_type.get_dim_size(i)
            for i in range(mlir_type.rank)
        )
        return _tensor_type(shape, str(mlir_type.element_type))
    if isinstance(mlir_type, ir.TupleType):
        return TupleType(tuple(type_of(mlir_type.get_type(i)) for i in range(mlir_type.num_types)))
    if str(mlir_type) == "!stablehlo.token":
        return TokenType()
    raise LookupError(f"the type {mlir_type} is no tensor of a known rank")


def _tensor_type(shape: tuple[int | None, ...], element: str) -> TensorType:
    if match := _QUANTIZED.fullmatch(element):
        return _quantized(shape, *match.groups())
    if element.startswith("!quant"):
        raise LookupError(f"no rule reads the quantized type {element}")
    if element not in DTYPES:
        raise LookupError(f"JAX has no dtype for elements of type {element}")
    return TensorType(shape, DTYPES[element])


# `!quant.uniform<i8<-127:127>:f32:1, {0.1:3, 0.2}>`: storage, its limits, floats, axis, scales.
_QUANTIZED = re.compile(
    r"!quant\.uniform<([iu])(\d+)(?:<(-?\d+):(-?\d+)>)?:(\w+)(?::(\d+))?, \{?([^{}]*)\}?>"
)


def _quantized(
    shape: tuple[int | None, ...],
    sign: str,
    bits: str,
    lowest: str | None,
    highest: str | None,
    expressed: str,
    axis: str | None,
    parameters: str,
) -> TensorType:
    dtype = DTYPES["ui" + bits if sign == "u" else sign + bits]
    n = int(bits) - (sign == "i")
    pairs = [pair.partition(":") for pair in parameters.split(",")]
    quantization = Quantization(
        DTYPES[expressed],
        tuple(float(scale) for scale, _, _ in pairs),
        tuple(int(zero or 0) for _, _, zero in pairs),
        None if axis is None else int(axis),
        int(lowest or -(1 << n) * (sign == "i")),
        int(highest or (1 << n) - 1),
    )
    return TensorType(shape, dtype, quantization)


def attribute(value: ir.Attribute) -> PyTree:
    """The Python value of an attribute. One of a dialect is its text or its numbers by name."""
    for kind, convert in _PLAIN.items():
        if isinstance(value, kind):
            return convert(value)
    if match := _ENUMERATION.match(text := str(value)):
        return match[2]
    if text.startswith("dense_resource"):
        return _resource(ir.DenseResourceElementsAttr(value))
    for prefix, (kind, fields) in _STRUCTURES.items():
        if text.startswith(prefix):
            numbers = kind(value)
            return {field: _numbers(getattr(numbers, field)) for field in fields}
    return text


def _numbers(value: PyTree) -> PyTree:
    return value if isinstance(value, int) else tuple(value)


def _resource(value: ir.DenseResourceElementsAttr) -> PyTree:
    tensor = type_of(value.type)
    assert isinstance(tensor, TensorType)
    data = memoryview(value).tobytes()  # type: ignore[arg-type]
    return _shaped(np.frombuffer(data, tensor.dtype), tensor)


def elements(value: ir.Attribute) -> PyTree:
    """The array of a dense attribute."""
    tensor = type_of(value.type)
    assert isinstance(tensor, TensorType)
    try:
        array = np.array(value)
    except TypeError:  # dtypes that Python's buffers do not have
        return elements_of_text(str(value), tensor)
    return array.astype(tensor.dtype, copy=False)


def elements_of_text(text: str, tensor: TensorType) -> PyTree:
    """The array of `dense<[1.0, 2.0]> : tensor<2xbf16>`: numbers, or bytes in hexadecimal."""
    match = re.search(r"dense<(.*)>\s*:", text, re.DOTALL)
    assert match is not None, text[:80]
    body = match[1]
    if body.startswith('"0x'):
        return _shaped(_array_of_bytes(bytes.fromhex(body[3:-1]), tensor.dtype), tensor)
    literals = re.findall(r"\([^)]*\)|[^\[\],\s]+", body)
    numbers = [_literal(literal, tensor.dtype) for literal in literals]
    return _shaped(np.array(numbers, tensor.dtype).reshape(-1), tensor)


def _array_of_bytes(data: bytes, dtype: np.dtype) -> PyTree:
    return np.frombuffer(data, dtype)


def _literal(literal: str, dtype: np.dtype) -> PyTree:
    if literal.startswith("("):
        part = DTYPES["f32" if dtype == np.complex64 else "f64"]
        real, imaginary = (_literal(x.strip(), part) for x in literal[1:-1].split(","))
        number = np.zeros((), dtype)
        number.real, number.imag = real, imaginary
        return number
    if literal in ("true", "false"):
        return literal == "true"
    if literal.startswith("0x") and dtype.kind not in "iu":
        bits = int(literal, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(bits, dtype)[0]
    return int(literal) if re.fullmatch(r"-?\d+", literal) else float(literal)


def _shaped(flat: PyTree, tensor: TensorType) -> PyTree:
    shape = tuple(size for size in tensor.shape if size is not None)
    assert len(shape) == len(tensor.shape), tensor
    if flat.size == 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)


_PLAIN: Mapping[PyTree, Callable[[PyTree], PyTree]] = {
    ir.BoolAttr: lambda value: bool(value.value),
    ir.IntegerAttr: lambda value: int(value.value),
    ir.FloatAttr: lambda value: float(value.value),
    ir.StringAttr: lambda value: value.value,
    ir.FlatSymbolRefAttr: lambda value: value.value,
    ir.DenseBoolArrayAttr: tuple,
    ir.DenseI64ArrayAttr: tuple,
    ir.DenseI32ArrayAttr: tuple,
    ir.DenseI8ArrayAttr: tuple,
    ir.ArrayAttr: lambda value: tuple(attribute(item) for item in value),
    ir.DictAttr: lambda value: {item.name: attribute(item.attr) for item in value},
    ir.UnitAttr: lambda value: True,
    ir.DenseElementsAttr: elements,
    ir.DenseIntElementsAttr: elements,
    ir.DenseFPElementsAttr: elements,
}

_DOT = ("batching_dimensions", "contracting_dimensions")
_STRUCTURES: Mapping[str, tuple[Callable[[PyTree], PyTree], tuple[str, ...]]] = {
    "#stablehlo.dot<": (
        stablehlo.DotDimensionNumbers,
        tuple(f"{side}_{name}" for side in ("lhs", "rhs") for name in _DOT),
    ),
    "#stablehlo.conv<": (
        stablehlo.ConvDimensionNumbers,
        (
            *("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
            *("kernel_input_feature_dimension", "kernel_output_feature_dimension"),
            *("kernel_spatial_dimensions", "output_batch_dimension", "output_feature_dimension"),
            "output_spatial_dimensions",
        ),
    ),
    "#stablehlo.gather<": (
        stablehlo.GatherDimensionNumbers,
        (
            *("offset_dims", "collapsed_slice_dims", "operand_batching_dims"),
            *("start_indices_batching_dims", "start_index_map", "index_vector_dim"),
        ),
    ),
    "#stablehlo.scatter<": (
        stablehlo.ScatterDimensionNumbers,
        (
            *("update_window_dims", "inserted_window_dims", "input_batching_dims"),
            *("scatter_indices_batching_dims", "scattered_dims_to_operand_dims"),
            "index_vector_dim",
        ),
    ),
}
