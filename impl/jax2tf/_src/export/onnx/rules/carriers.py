"""Ops that move elements, for dtypes of which ONNX Runtime has no kernel.

The elements move in another dtype, which holds each of them: the casts there and back are exact. A
Cast between int64 and uint64 wraps around, so that int64 carries uint64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.writer import Writer, onnx_dtype

_NARROW = {"int16": "int32", "uint16": "int32", "bfloat16": "float32"}

# By the op of ONNX: the dtypes that it lacks, with those that carry them. ONNX Runtime makes
# float32 of float16 where it lacks that.
CARRIERS: Mapping[str, Mapping[str, str]] = {
    "Expand": {"bfloat16": "float32"},
    "Pad": _NARROW,
    "Tile": {"bfloat16": "float32"},
    "Trilu": {
        **_NARROW,
        "int8": "int32",
        "uint8": "int32",
        "uint32": "int64",
        "uint64": "int64",
        "float16": "float32",
    },
    "Where": {**_NARROW, "bool": "uint8", "uint64": "int64"},
}


def carried(
    w: Writer,
    op: str,
    dtype: np.dtype | None,
    function: Callable[..., ir.Value],
    *values: ir.Value,
) -> ir.Value:
    """`function` of the values in the dtype that carries theirs in this op."""
    carrier = CARRIERS[op].get(str(dtype))
    if carrier is None or dtype is None:
        return function(*values)
    to = onnx_dtype(np.dtype(carrier))
    result = function(*(w.op("Cast", x, to=to) for x in values))
    return w.op("Cast", result, to=onnx_dtype(dtype))


def chosen(
    w: Writer, dtype: np.dtype | None, condition: ir.Value, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Where of arrays of any dtype."""
    return carried(w, "Where", dtype, lambda x, y: w.op("Where", condition, x, y), x, y)
