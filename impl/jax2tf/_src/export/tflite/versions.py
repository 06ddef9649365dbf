"""The versions of LiteRT's ops, and the version of LiteRT that a file needs.

Both tables hold what files of TensorFlow's converter say of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax2tf._src.export.tflite.model import Op

# The first version of an op that takes a dtype, as operand or result; 1 where none is named.
_OF_DTYPES: Mapping[str, Mapping[str, int]] = {
    "ABS": {"int32": 5},
    "ADD": {"int64": 4},
    "ARG_MAX": {"bool": 3},
    "ARG_MIN": {"bool": 3},
    "CAST": {
        **dict.fromkeys(("int64", "uint32"), 2),
        **dict.fromkeys(("int8", "int16", "uint8"), 3),
        **dict.fromkeys(("uint16",), 4),
        **dict.fromkeys(("float16", "float64"), 5),
        **dict.fromkeys(("bfloat16",), 7),
    },
    "CONCATENATION": {"int16": 3},
    "GATHER": {"int8": 2, "bool": 3, "int16": 4},
    "MUL": {"int64": 5},
    "PADV2": {"bool": 5},
    "REVERSE_V2": {"bool": 2},
    "SIGN": {"int32": 2},
    "SLICE": {"int8": 2},
    "STRIDED_SLICE": {"bool": 3, "uint32": 7},
    "SUB": {"int64": 4},
    "TRANSPOSE": {"bool": 3},
}

# The versions of ops that compute with integers of 8 bits in full-integer files.
OF_INTEGERS: Mapping[str, int] = {
    **dict.fromkeys(
        (
            *("ABS", "ADD", "ARG_MAX", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONCATENATION", "EQUAL"),
            *("DEQUANTIZE", "EXP", "GATHER", "GELU", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOG"),
            *("LOGISTIC", "LOG_SOFTMAX", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MINIMUM", "MUL"),
            *("PADV2", "REDUCE_MAX", "REDUCE_MIN", "RSQRT", "SLICE", "SOFTMAX", "SPLIT"),
            *("SQUARED_DIFFERENCE", "STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE"),
        ),
        2,
    ),
    **dict.fromkeys(("BROADCAST_TO", "CONV_2D", "DEPTHWISE_CONV_2D", "FILL"), 3),
    **dict.fromkeys(("RESIZE_BILINEAR", "REVERSE_V2", "TILE"), 3),
    "FULLY_CONNECTED": 4,
}

# The first version that takes arrays of more than four dimensions.
_OF_FIVE_DIMENSIONS = {"PADV2": 4, "STRIDED_SLICE": 4, "TRANSPOSE": 4}

# The oldest LiteRT that has an op in a version; all have an op that is not named.
_RUNTIMES: Mapping[tuple[str, int], tuple[int, int]] = {
    **dict.fromkeys((("CONV_2D", 1), ("GATHER", 1), ("TRANSPOSE", 1)), (1, 6)),
    **dict.fromkeys((("PADV2", 1), ("SIN", 1), ("STRIDED_SLICE", 1)), (1, 9)),
    **dict.fromkeys((("POW", 1), ("SUM", 1)), (1, 10)),
    ("REDUCE_PROD", 1): (1, 11),
    **{
        (code, 1): (1, 14)
        for code in (
            *("ABS", "COS", "EQUAL", "EXP", "FLOOR_DIV", "GATHER_ND", "GREATER_EQUAL", "LESS"),
            *("LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_OR", "LOGISTIC", "MAXIMUM", "MINIMUM"),
            *("NEG", "NOT_EQUAL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REVERSE_V2"),
            *("SELECT", "SLICE", "SQUARE", "SUB", "UNPACK"),
        )
    },
    **{(code, 1): (1, 15) for code in ("IF", "LOGICAL_NOT")},
    **{
        (code, 1): (2, 2)
        for code in ("DIV", "FLOOR", "PACK", "RELU", "SCATTER_ND", "SELECT_V2", "WHILE")
    },
    ("REVERSE_V2", 2): (2, 2),
    **dict.fromkeys((("BATCH_MATMUL", 1), ("TRANSPOSE", 4)), (2, 3)),
    **dict.fromkeys((("CUMSUM", 1), ("FLOOR_MOD", 1), ("SUB", 4), ("TRANSPOSE", 3)), (2, 4)),
    **dict.fromkeys(
        (("BROADCAST_TO", 2), ("GATHER", 5), ("IMAG", 1), ("REAL", 1), ("SQRT", 1)), (2, 5)
    ),
    **{(code, 1): (2, 6) for code in ("GREATER", "REDUCE_ALL", "RSQRT")},
    ("CAST", 3): (2, 8),
    **dict.fromkeys((("ARG_MAX", 3), ("CAST", 4), ("DYNAMIC_UPDATE_SLICE", 1)), (2, 9)),
    **dict.fromkeys((("ATAN2", 1), ("UNSORTED_SEGMENT_MAX", 1)), (2, 10)),
    **dict.fromkeys((("GELU", 1), ("MUL", 5), ("SIGN", 1), ("UNSORTED_SEGMENT_MIN", 1)), (2, 11)),
    **dict.fromkeys((("ABS", 5), ("CAST", 5)), (2, 12)),
    **{(code, 1): (2, 13) for code in ("BITCAST", "BITWISE_XOR", "RIGHT_SHIFT")},
    ("CAST", 7): (2, 20),
    # With integers of 8 bits.
    **{
        (code, 2): (1, 14)
        for code in (
            *("ADD", "ARG_MAX", "AVERAGE_POOL_2D", "CONCATENATION", "DEQUANTIZE", "LOGISTIC"),
            *("LOG_SOFTMAX", "MAX_POOL_2D", "MEAN", "MUL", "PADV2", "REDUCE_MAX", "REDUCE_MIN"),
            *("SLICE", "SOFTMAX", "SPLIT", "STRIDED_SLICE", "SUB"),
        )
    },
    **dict.fromkeys((("CONV_2D", 3), ("DEPTHWISE_CONV_2D", 3), ("FULLY_CONNECTED", 4)), (1, 14)),
    **dict.fromkeys((("LESS", 2), ("RESIZE_BILINEAR", 3), ("TRANSPOSE_CONV", 2)), (2, 2)),
    **dict.fromkeys((("BATCH_MATMUL", 2), ("FULLY_CONNECTED", 5), ("SUM", 2), ("TANH", 2)), (2, 3)),
    **dict.fromkeys((("ABS", 2), ("CONV_2D", 5)), (2, 4)),
    ("DEPTHWISE_CONV_2D", 6): (2, 3),
    **dict.fromkeys((("BATCH_MATMUL", 4), ("EQUAL", 2), ("GATHER", 2), ("RSQRT", 2)), (2, 5)),
    **dict.fromkeys((("REVERSE_V2", 3), ("SQUARED_DIFFERENCE", 2)), (2, 5)),
    **dict.fromkeys((("BROADCAST_TO", 3), ("CONV_2D", 6), ("FILL", 3), ("TILE", 3)), (2, 9)),
    **dict.fromkeys((("GELU", 2), ("TRANSPOSE", 2)), (2, 9)),
    ("GREATER_EQUAL", 2): (2, 11),
    **dict.fromkeys((("EXP", 2), ("MINIMUM", 2)), (2, 12)),
    **dict.fromkeys((("LESS_EQUAL", 2), ("LOG", 2), ("MAXIMUM", 2)), (2, 15)),
    ("FULLY_CONNECTED", 12): (2, 17),
}
_OLDEST_RUNTIME = (1, 5)


def version_of(op: Op) -> int:
    """The version of an op that has this use."""
    values = [x for x in (*op.operands, *op.results) if x is not None]
    first = {"BROADCAST_TO": 2}.get(op.code, 1)
    table = _OF_DTYPES.get(op.code, {})
    found = [first, *(table.get(x.dtype.name, 1) for x in values)]
    if any(x.shape is not None and len(x.shape) > 4 for x in values):
        found.append(_OF_FIVE_DIMENSIONS.get(op.code, 1))
    if op.code == "GATHER" and op.options["batchDims"]:
        found.append(5)
    if op.code == "FULLY_CONNECTED" and op.options["keepNumDims"]:
        found.append(5)
    return max(found)


RUNTIME = "min_runtime_version"


def metadata_of(codes: Iterable[tuple[str, int]]) -> Mapping[str, bytes]:
    """The oldest LiteRT that has these versions of ops, as the file says it."""
    major, minor = max((_RUNTIMES.get(code, _OLDEST_RUNTIME) for code in codes), default=(1, 5))
    return {RUNTIME: f"{major}.{minor}.0".encode().ljust(16, b"\0")}


def numbers_of(version: bytes) -> tuple[int, ...]:
    """The numbers of the version of a LiteRT, as a file says it."""
    return tuple(map(int, version.rstrip(b"\0").split(b".")))
