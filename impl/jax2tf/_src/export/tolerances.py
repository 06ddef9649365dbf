"""The deviation of results from those of JAX, and its default tolerances."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np


class Precision(enum.Enum):
    """The precision of a file, which depends on the options of its format."""

    FULL = "full"
    FLOAT16_WEIGHTS = "float16 weights"
    INTEGER_WEIGHTS = "8-bit weights"
    FOUR_BIT_WEIGHTS = "4-bit weights"
    INTEGER = "8-bit weights and activations"

    @property
    def is_quantised(self) -> bool:
        """Whether numbers have 8 bits or fewer."""
        return self in _QUANTISED_TOLERANCES


# Tolerances in units of the largest element of an output, for functions of many layers. An engine
# adds in another order than XLA, and has its own exp and tanh.
_TOLERANCE_BY_BITS = {64: 1e-9, 32: 1e-4}
_FLOAT16_TOLERANCE = 1e-2
_BFLOAT16_TOLERANCE = 5e-2
_FLOAT8_TOLERANCE = 0.3
# The root mean square of the difference, in units of the root mean square of the result.
_QUANTISED_TOLERANCES = {
    Precision.INTEGER_WEIGHTS: 0.1,
    Precision.FOUR_BIT_WEIGHTS: 0.3,
    Precision.INTEGER: 0.2,
}


def tolerance_of(precision: Precision, dtypes: Iterable[np.dtype], output: np.dtype) -> float:
    """The default tolerance of an output.

    Args:
      precision: the precision of the file.
      dtypes: the dtypes of parameters, inputs and outputs; the least exact one counts.
      output: the dtype of the output. Integers and booleans should be equal, unless the file is
        less exact than the function.
    """
    if precision is Precision.FULL and not jnp.issubdtype(output, jnp.inexact):
        return 0.0
    if precision.is_quantised:
        return _QUANTISED_TOLERANCES[precision]
    inexact = [np.dtype(d) for d in dtypes if jnp.issubdtype(d, jnp.inexact)]
    least = max(map(_of_dtype, inexact), default=0.0)
    return max(least, _FLOAT16_TOLERANCE) if precision is Precision.FLOAT16_WEIGHTS else least


def _of_dtype(dtype: np.dtype) -> float:
    bits = jnp.finfo(dtype).bits
    if bits < 16:
        return _FLOAT8_TOLERANCE
    if bits == 16:
        return _FLOAT16_TOLERANCE if dtype == np.float16 else _BFLOAT16_TOLERANCE
    return _TOLERANCE_BY_BITS[bits]


def largest_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference; infinite if NaN or an infinity is in only one array."""
    a, e = _wide(actual), _wide(expected)
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        # Large integers that differ may be equal as float64; they differ by at least 1.
        differs = bool(np.any(np.asarray(actual != expected)))
        return max(1.0, float(np.abs(a - e).max())) if differs else 0.0
    finite = np.isfinite(a) & np.isfinite(e)
    same = np.array_equal(a[~finite], e[~finite], equal_nan=True)
    return float(np.abs(a[finite] - e[finite]).max(initial=0.0)) if same else float("inf")


def deviation(actual: np.ndarray, expected: np.ndarray, precision: Precision) -> float:
    """The deviation of a result from JAX's, which is compared with the tolerance.

    For floating-point numbers it is the largest difference, in units of JAX's largest finite
    element. In files of 8 bits or fewer it is the root mean square of the difference, in units of
    the root mean square of JAX's result. For integers and booleans it is the share of elements that
    differ.
    """
    difference = largest_difference(actual, expected)
    if difference == 0 or difference == float("inf"):
        return difference
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        return float(np.mean(np.asarray(actual != expected)))
    a, e = _wide(actual), _wide(expected)
    finite = np.isfinite(e)
    if not precision.is_quantised:
        return difference / (float(np.abs(e[finite]).max(initial=0.0)) or 1.0)
    size = float(np.sqrt(np.mean(np.abs(e[finite]) ** 2)))
    return float(np.sqrt(np.mean(np.abs(a[finite] - e[finite]) ** 2))) / (size or 1.0)


def measured(dtype: np.dtype, precision: Precision) -> str:
    """The measure that `deviation` uses, in words."""
    if not jnp.issubdtype(dtype, jnp.inexact):
        return "share of elements that differ"
    if precision.is_quantised:
        return "root mean square of the difference, relative to that of JAX's result"
    return "largest difference, relative to JAX's largest element"


def _wide(array: np.ndarray) -> np.ndarray:
    is_complex = jnp.issubdtype(array.dtype, jnp.complexfloating)
    return array.astype(np.complex128 if is_complex else np.float64)
