"""How far off a result may be: what its primitive and its operands' last bits explain."""

from __future__ import annotations

from collections.abc import Container, Sequence

import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.locate.program import Program, Values, as_numpy, operands_of, results_of
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.util.typing import Array

# Errors that engines make, in units in the last place of each element. Moving elements is exact,
# and sums are made in another order.
_MOVES, _ARITHMETIC, _FLOATS = 0.0, 4.0, 64.0
# The share of the largest element below which an element's own size does not count.
_FLOOR = 0.02
# Random changes of operands by their last bits; the number of tries.
_TRIES = 2
TIMES = 8.0


def ulps_of(primitive: jex_core.Primitive) -> float:
    """The units in the last place by which engines may be off for a primitive."""
    if primitive in traits.MOVES or primitive in traits.IDENTITY:
        return _MOVES
    return _ARITHMETIC if primitive in traits.ARITHMETIC else _FLOATS


def is_inexact(dtype: np.dtype) -> bool:
    """Whether a dtype has floating-point or complex numbers."""
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def wide(array: np.ndarray) -> np.ndarray:
    """The numbers as float64 or complex128."""
    is_complex = jnp.issubdtype(array.dtype, jnp.complexfloating)
    return np.asarray(array).astype(np.complex128 if is_complex else np.float64)


def unlike(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where one array has a NaN or an infinity and the other has another number."""
    a, e = wide(actual), wide(expected)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    return ~(same | (np.isfinite(a) & np.isfinite(e)))


def error(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The absolute difference of each element; infinite for another NaN or infinity."""
    if not is_inexact(expected.dtype):
        return np.asarray(actual != expected).astype(np.float64)
    a, e = wide(actual), wide(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - e)
    finite = np.isfinite(a) & np.isfinite(e)
    return np.where(finite, difference, np.where(unlike(actual, expected), np.inf, 0.0))


def allowed(primitive: jex_core.Primitive, expected: np.ndarray) -> np.ndarray:
    """The error of each element that the primitive explains, if its operands are exact."""
    if not is_inexact(expected.dtype):
        return np.zeros(expected.shape)
    sizes = np.abs(wide(expected))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    floor = _FLOOR * float(sizes.max(initial=0.0))
    step = float(jnp.finfo(expected.dtype).eps)
    tiny = float(jnp.finfo(expected.dtype).tiny)
    return ulps_of(primitive) * step * np.maximum(sizes, floor) + tiny


def _last_bits(expected: np.ndarray) -> np.ndarray:
    sizes = np.abs(wide(expected))
    return float(jnp.finfo(expected.dtype).eps) * np.where(np.isfinite(sizes), sizes, 0.0)


def ratio(actual: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> float:
    """The largest error in units of its tolerance; above 1 it is not explained."""
    off = error(actual, expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is near to an overflow may overflow on one side.
        is_explained = (off == 0) | np.isinf(tolerance)
        ratios = np.where(is_explained, 0.0, off / tolerance)
    return float(np.max(ratios, initial=0.0))


def conditioning(
    eqn: jex_core.JaxprEqn,
    operands: Sequence[Array],
    expected: Sequence[np.ndarray],
    spreads: Sequence[np.ndarray | float],
) -> list[np.ndarray]:
    """The changes of results when each operand changes by its last bit and its own spread.

    The changes are random, so that a tolerance is `TIMES` as large.
    """
    rng = np.random.default_rng(0)
    changes = [np.zeros(e.shape) for e in expected]
    if not any(map(_can_change, operands)):
        return changes
    for _ in range(_TRIES):
        moved = [_moved(x, s, rng) for x, s in zip(operands, spreads, strict=True)]
        results = [as_numpy(r) for r in results_of(eqn, moved)]
        for i, (result, e) in enumerate(zip(results, expected, strict=True)):
            changes[i] = np.maximum(changes[i], error(result, e))
    return [_smoothed(change) for change in changes]


def _can_change(operand: Array) -> bool:
    return hasattr(operand, "dtype") and is_inexact(operand.dtype)


def _smoothed(change: np.ndarray) -> np.ndarray:
    """The changes, none much below the others: a random change may miss an element."""
    finite = change[np.isfinite(change)]
    return np.maximum(change, float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0)


def _moved(operand: Array, spread: np.ndarray | float, rng: np.random.Generator) -> Array:
    if not _can_change(operand):
        return operand
    array = as_numpy(operand)
    step = float(jnp.finfo(array.dtype).eps)
    x = wide(array)
    with np.errstate(invalid="ignore", over="ignore"):
        size = step * np.where(np.isfinite(x), np.abs(x), 0.0) + spread
        return np.asarray(x + rng.choice([-1.0, 1.0], array.shape) * size).astype(array.dtype)


class Spreads:
    """The uncertainty of results that cannot be read, found when it is asked for."""

    def __init__(self, program: Program, expected: Values, read: Container[jex_core.Var]) -> None:
        self._expected = expected
        self._read = read
        self._equations = program.equations
        self._made_by = {v: i for i, eqn in enumerate(self._equations) for v in eqn.outvars}
        self._known: dict[jex_core.Var, np.ndarray | float] = {}

    def of_operands(self, eqn: jex_core.JaxprEqn) -> list[np.ndarray | float]:
        """The uncertainty of each operand of an equation; 0 for one that was read or given."""
        for index in sorted(self.unread_before(eqn)):
            self._find(self._equations[index])
        return [
            0.0 if isinstance(v, jex_core.Literal) else self._known.get(v, 0.0) for v in eqn.invars
        ]

    def unread_before(self, eqn: jex_core.JaxprEqn) -> set[int]:
        """The equations between this one and results that were read."""
        found: set[int] = set()
        waiting = [eqn]
        while waiting:
            for v in jaxprs.variables(waiting.pop().invars):
                index = self._made_by.get(v)
                if index is not None and v not in self._read and index not in found:
                    found.add(index)
                    waiting.append(self._equations[index])
        return found

    def _find(self, eqn: jex_core.JaxprEqn) -> None:
        if eqn.outvars[0] in self._known:
            return
        expected = [as_numpy(self._expected[v]) for v in eqn.outvars]
        spreads = [
            0.0 if isinstance(v, jex_core.Literal) else self._known.get(v, 0.0) for v in eqn.invars
        ]
        changes = conditioning(eqn, operands_of(eqn, self._expected), expected, spreads)
        for v, change, e in zip(eqn.outvars, changes, expected, strict=True):
            known = change + _last_bits(e) if is_inexact(e.dtype) else 0.0
            self._known[v] = 0.0 if v in self._read else known
