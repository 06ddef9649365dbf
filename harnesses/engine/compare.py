"""Compares a result with JAX's: tree, dtype, shape, and values in ULPs.

An ULP is the distance from a number to the next one of its dtype, so one tolerance serves numbers
of every size. Three conventions make the measure total:

- NaN and the infinities agree with themselves alone; anything else is infinitely far away.
- A zero of the wrong sign is one ULP away.
- Up to the smallest normal number an ULP is that number itself: XLA and TensorFlow are both free
  to flush subnormal numbers to zero, and such a difference is below one ULP.
"""

from dataclasses import dataclass
from typing import Any

import jax
import ml_dtypes
import numpy as np

from harnesses.harness import Harness, is_complex, is_float


@dataclass(frozen=True)
class Comparison:
    """How far a result is from JAX's: the error in ULPs (None: not comparable) and what is wrong.

    `tolerance` is the one of the leaf that is furthest beyond it; `problem` is None if all agree.
    """

    ulps: float | None
    tolerance: float
    problem: str | None


def severity(comparison: Comparison) -> tuple[bool, float]:
    """The order of comparisons: the worse one is larger."""
    return comparison.problem is not None, comparison.ulps or 0.0


def compare(harness: Harness, args: tuple, expected: Any, actual: Any) -> Comparison:
    """Compares `actual`, a pytree of NumPy arrays, with `expected`, JAX's own result."""
    should: Any = jax.tree.structure(expected)
    tree: Any = jax.tree.structure(actual)
    if tree != should:
        return Comparison(None, 0, f"the result's tree is {tree}, but should be {should}")
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(actual)]
    leaves = list(zip(names, jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True))
    for name, e, a in leaves:
        for what in ("dtype", "shape"):
            if getattr(a, what) != getattr(e, what):
                problem = f"result{name}.{what}={getattr(a, what)}, "
                return Comparison(None, 0, problem + f"but should be {getattr(e, what)}")
    if harness.check is not None:
        tolerance = max((harness.tolerance(e.dtype) for _, e, _ in leaves), default=0)
        ulps = float(harness.check(args, expected, actual))
        problem = f"{harness.name}'s check measures {ulps:g} ULPs; {_allowed(tolerance)}"
        return Comparison(ulps, tolerance, None if ulps <= tolerance else problem)
    comparisons = [_compare_values(harness, name, e, a) for name, e, a in leaves]
    return max(comparisons, key=_excess, default=Comparison(0.0, 0, None))


def ulp_errors(expected: np.ndarray, actual: np.ndarray, scale: str = "element") -> np.ndarray:
    """How many ULPs each element of `actual` is away from `expected`, as float64.

    Both have one shape and one dtype. `scale` "element" takes the ULP at each expected element,
    "array" the one at the largest finite magnitude of `expected`. For complex numbers the ULP is
    that of the parts' dtype at the magnitude. Integers and bools count in ones.
    """
    if is_complex(expected.dtype):
        with np.errstate(all="ignore"):
            unit = _unit(np.abs(expected), _parts_dtype(expected.dtype), scale)
            return np.maximum(
                _float_errors(expected.real, actual.real, unit),
                _float_errors(expected.imag, actual.imag, unit),
            )
    if is_float(expected.dtype):
        with np.errstate(all="ignore"):
            wide_expected, wide_actual = expected.astype(np.float64), actual.astype(np.float64)
            unit = _unit(np.abs(wide_expected), expected.dtype, scale)
            return _float_errors(wide_expected, wide_actual, unit)
    # Large integers can differ and be the same float64; such a pair still differs by one.
    distance = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
    return np.where(expected == actual, 0.0, np.maximum(distance, 1.0))


def _compare_values(
    harness: Harness, name: str, expected: np.ndarray, actual: np.ndarray
) -> Comparison:
    tolerance = harness.tolerance(expected.dtype)
    if expected.tobytes() == actual.tobytes():
        return Comparison(0.0, tolerance, None)
    errors = ulp_errors(expected, actual, harness.scale)
    if "any_zero_sign" in harness.tags:
        errors = np.where((expected == 0) & (actual == 0), 0.0, errors)
    ulps = float(errors.max(initial=0.0))
    if ulps <= tolerance:
        return Comparison(ulps, tolerance, None)
    index = np.unravel_index(errors.argmax(), errors.shape)
    where = tuple(int(i) for i in index)
    problem = (
        f"result{name} is {ulps:.6g} ULPs of {expected.dtype.name} away at {where}: "
        f"{actual[index]!s}, but should be {expected[index]!s}; {_allowed(tolerance)} "
        f"({int((errors > tolerance).sum())} of {errors.size} elements beyond it)"
    )
    return Comparison(ulps, tolerance, problem)


def _allowed(tolerance: float) -> str:
    return f"{tolerance:g} ULPs are allowed"


def _excess(comparison: Comparison) -> float:
    assert comparison.ulps is not None
    return comparison.ulps - comparison.tolerance


def _float_errors(expected: np.ndarray, actual: np.ndarray, unit: np.ndarray) -> np.ndarray:
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    finite = np.isfinite(expected) & np.isfinite(actual)
    distance = np.abs(expected.astype(np.float64) - actual.astype(np.float64)) / unit
    errors = np.where(same, 0.0, np.where(finite, distance, np.inf))
    wrong_zero = (expected == 0) & (actual == 0) & (np.signbit(expected) != np.signbit(actual))
    return np.where(wrong_zero, 1.0, errors)


def _unit(magnitude: np.ndarray, dtype: np.dtype, scale: str) -> np.ndarray:
    """The size of one ULP of `dtype` at each magnitude."""
    limits = ml_dtypes.finfo(dtype)
    smallest, eps = float(limits.smallest_normal), float(limits.eps)
    magnitude = np.asarray(magnitude, np.float64)
    if scale == "array":
        magnitude = np.asarray(magnitude[np.isfinite(magnitude)].max(initial=0.0))
    _, exponent = np.frexp(magnitude)
    return np.where(magnitude <= smallest, smallest, np.ldexp(eps, exponent - 1))


def _parts_dtype(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype
