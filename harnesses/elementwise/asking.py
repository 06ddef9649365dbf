"""Harnesses of one and of two arguments, over dtypes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from harnesses.elementwise.arguments import (
    Dtypes,
    Function,
    carried,
    complex_cases,
    complex_pairs,
    real_numbers,
    real_pairs,
    values_of,
)
from harnesses.harness import FLOAT8, Values, define, is_complex

# Where results of a dtype may differ by more than is usual.
_FEW_FLOAT8 = {dtype.name: 1 for dtype in FLOAT8}
ULPS: Mapping[str, Mapping[str, int]] = {
    # XLA composes these of several functions, and rounds to float8 after each.
    **dict.fromkeys(("acos", "acosh", "asin", "atanh"), _FEW_FLOAT8),
    # XLA takes exp(x - log 2), whose error grows with x; TensorFlow the C library's function.
    "cosh": {"float32": 8, "float64": 12, "complex64": 8, "complex128": 12},
    "sinh": {"float32": 8, "float64": 12, "complex64": 16, "complex128": 20},
    "cos": {"complex64": 8, "complex128": 12},
    "sin": {"complex64": 8, "complex128": 12},
    "tanh": {"complex64": 4, "complex128": 8},
    # Near zeros of the real part.
    "log": {"complex64": 10, "complex128": 6},
    "log2": {"complex64": 6, "complex128": 4},
    "log1p": {"complex64": 24, "complex128": 16},
    "logistic": {"bfloat16": 2, "float16": 1, "float32": 6, "complex64": 12, "complex128": 8},
    "integer_pow": {"complex64": 6, "complex128": 4},
    # The error of the angle, which the exponent multiplies.
    "pow": {"complex64": 64, "complex128": 64},
    "polynomial": {"float16": 2, "bfloat16": 2},
}


# Where flushing a subnormal argument to zero changes more than the last place of the result.
_DIFFER_AT_SUBNORMALS = ("atan2", "cbrt", "pow")


def unary(primitive: str, function: Function, dtypes: Dtypes, case: str = "", **rest: Any) -> None:
    """Harnesses of a function of one argument; `rest` is what `define` takes."""
    for dtype in dtypes:
        _define(primitive, function, dtype, case, _unary_arguments(primitive, dtype), rest)


def binary(primitive: str, function: Function, dtypes: Dtypes, case: str = "", **rest: Any) -> None:
    """As `unary`, of two arguments."""
    for dtype in dtypes:
        _define(primitive, function, dtype, case, _binary_arguments(primitive, dtype), rest)


def _unary_arguments(primitive: str, dtype: np.dtype) -> Mapping[str, list[Values]]:
    if is_complex(dtype):
        return {part: [Values(v, dtype)] for part, v in complex_cases(dtype).items()}
    return {"": [values_of(real_numbers(dtype, _takes_subnormals(primitive, dtype)), dtype)]}


def _binary_arguments(primitive: str, dtype: np.dtype) -> Mapping[str, list[Values]]:
    if is_complex(dtype):
        return complex_pairs(dtype)
    return {"": real_pairs(dtype, _takes_subnormals(primitive, dtype))}


def _takes_subnormals(primitive: str, dtype: np.dtype) -> bool:
    return primitive not in _DIFFER_AT_SUBNORMALS or dtype in FLOAT8


def _define(
    primitive: str,
    function: Function,
    dtype: np.dtype,
    case: str,
    arguments: Mapping[str, list[Values]],
    rest: Mapping[str, Any],
) -> None:
    ulps = ULPS.get(primitive, {}).get(dtype.name)
    for part, args in arguments.items():
        name = "_".join(filter(None, (case, part)))
        define(primitive, name, carried(dtype, function), args, dtype=dtype, ulps=ulps, **rest)
