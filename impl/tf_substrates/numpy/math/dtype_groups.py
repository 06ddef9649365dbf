"""The dtypes that operations take, and results in the dtype of an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

REAL_FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATS = REAL_FLOATS + COMPLEX
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
REALS = REAL_FLOATS + INTEGERS
NUMBERS = FLOATS + INTEGERS
BOOL = ("bool",)
ANY = (*NUMBERS, *BOOL, "string")


def like(result: Any, x: Any) -> Any:
    """The result in the dtype of an operand: NumPy and SciPy widen some."""
    return result if result.dtype == x.dtype else result.astype(x.dtype)


def widened(function: Callable, *arrays: Any) -> Any:
    """A function of float32 and float64 for the 16-bit floats too."""
    if arrays[0].dtype.itemsize > 2:
        return like(xp.asarray(function(*arrays)), arrays[0])
    return like(xp.asarray(function(*(a.astype(np.float32) for a in arrays))), arrays[0])
