"""Argument makers: what a harness feeds its function, described rather than stored.

A maker turns a random generator into one NumPy array. The generator is seeded from the harness's
name, so an argument is the same in every process, on every machine, in every run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from harnesses.harness.dtypes import is_complex, is_float, is_integer

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Arg:
    """What all makers share: the shape and dtype of the array that they make."""

    shape: Shape
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def make(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the array, of `self.shape` and `self.dtype`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Normal(Arg):
    """Standard normal values; for integers small ones around zero (from zero up if unsigned)."""

    def make(self, rng: np.random.Generator) -> np.ndarray:
        values: Any = rng.standard_normal(self.shape)
        if is_complex(self.dtype):
            values = values + 1j * rng.standard_normal(self.shape)
        elif is_integer(self.dtype):
            limits = ml_dtypes.iinfo(self.dtype)
            values = np.rint(4 * values)
            values = np.clip(np.abs(values) if limits.min == 0 else values, limits.min, limits.max)
        elif self.dtype.kind == "b":
            values = values > 0
        return np.asarray(values).astype(self.dtype)


@dataclass(frozen=True)
class Uniform(Arg):
    """Values between `low` and `high`; for complex dtypes in both parts."""

    low: float = 0.0
    high: float = 1.0

    def make(self, rng: np.random.Generator) -> np.ndarray:
        values = rng.uniform(self.low, self.high, self.shape)
        if is_complex(self.dtype):
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(values).astype(self.dtype)


@dataclass(frozen=True)
class Integers(Arg):
    """Whole numbers from `low` up to, not including, `high`; by default the whole range."""

    low: int | None = None
    high: int | None = None

    def make(self, rng: np.random.Generator) -> np.ndarray:
        # Bounds of a float dtype must be given; an integer dtype has bounds of its own.
        low = ml_dtypes.iinfo(self.dtype).min if self.low is None else self.low
        high = ml_dtypes.iinfo(self.dtype).max + 1 if self.high is None else self.high
        wide = np.uint64 if high > 2**63 else np.int64
        return np.asarray(rng.integers(int(low), int(high), self.shape, wide)).astype(self.dtype)


@dataclass(frozen=True)
class Bools(Arg):
    """Fair coins."""

    dtype: Any = bool

    def make(self, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.integers(0, 2, self.shape) == 1)


@dataclass(frozen=True)
class Fill(Arg):
    """One value everywhere."""

    value: Any = 0

    def make(self, rng: np.random.Generator) -> np.ndarray:
        return np.full(self.shape, np.array(self.value).astype(self.dtype))


class Values(Arg):
    """The given values themselves, repeated or cut to fill `shape` (default: their own shape)."""

    def __init__(self, values: Any, dtype: Any, shape: Shape | None = None):
        array = values if isinstance(values, np.ndarray) else np.array(values, dtype=dtype)
        super().__init__(array.shape if shape is None else shape, dtype)
        object.__setattr__(self, "_values", array.astype(self.dtype))

    def make(self, rng: np.random.Generator) -> np.ndarray:
        values: Any = vars(self)["_values"]
        return np.resize(values, self.shape)


def edge_values(dtype: Any) -> np.ndarray:
    """The values of `dtype` at which semantics differ, as a one-dimensional array.

    Floats: NaN, infinities, signed zeros, subnormals, the smallest and largest normal numbers,
    ones, halves and a few ordinary numbers, as far as the dtype has them. Integers: the ends of
    the range and the numbers around zero. Complex: every pair of the floats that matter as parts.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if is_complex(dtype):
        parts = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
        pairs = np.empty((parts.size, parts.size), dtype)
        pairs.real, pairs.imag = parts[:, None], parts[None, :]
        return pairs.ravel()
    if is_float(dtype):
        values = _float_edges(dtype).astype(dtype)
    else:
        limits = ml_dtypes.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        candidates = [low, low + 1, -2, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high]
        values = np.array([v for v in candidates if low <= v <= high], dtype=dtype)
    return _distinct_bits(values)


def close_integers(dtype: Any) -> np.ndarray:
    """Sixteen integers of which a float of as many bits tells few apart, in no order.

    They stand at both ends of the range and about the first whole number that such a float
    rounds; two of them are equal.
    """
    limits = np.iinfo(dtype)
    rounded = {4: 2**24, 8: 2**53}[np.dtype(dtype).itemsize]
    around = [rounded + 2, rounded, rounded + 1, rounded + 3, rounded + 1]
    high = [limits.max - n for n in (1, 3, 0, 2, 4)]
    low = [limits.min + n for n in (2, 0, 3, 1)]
    others = [limits.max // 2 + 1, limits.max // 2]
    return np.array([*high, *around, *low, *others], dtype)


def infinite_numbers(dtype: Any) -> np.ndarray:
    """The 16 complex numbers of infinite and finite parts, as a one-dimensional array."""
    parts = [np.inf, -np.inf, 1.0, 0.0]
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def without_subnormals(values: np.ndarray) -> np.ndarray:
    """The floats that are not subnormal, for where processors may take such for zero."""
    magnitude = np.abs(values.astype(np.float64))
    smallest = float(ml_dtypes.finfo(values.dtype).smallest_normal)
    return values[(magnitude == 0) | ~(magnitude < smallest)]


def edge_pairs(dtype: Any, others: Sequence[Any] | np.ndarray | None = None) -> list[Values]:
    """Two arguments that pair every edge value with every other (or with each of `others`)."""
    left = edge_values(dtype)
    right = left if others is None else np.array(others).astype(dtype)
    rows, columns = np.meshgrid(np.arange(left.size), np.arange(right.size), indexing="ij")
    return [Values(left[rows.ravel()], dtype), Values(right[columns.ravel()], dtype)]


def _float_edges(dtype: np.dtype) -> np.ndarray:
    limits = ml_dtypes.finfo(dtype)
    positive = [
        0.0,
        float(limits.smallest_subnormal),
        float(limits.smallest_normal) / 2,
        float(limits.smallest_normal),
        float(limits.eps),
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        float(limits.max) / 2,
        float(limits.max),
        np.inf,
    ]
    return np.array([*positive, *(-value for value in positive), np.nan])


def _distinct_bits(values: np.ndarray) -> np.ndarray:
    """Drops values that the dtype could not tell apart; 0.0 and -0.0 differ, so compare bits."""
    _, first = np.unique(values.view(f"V{values.dtype.itemsize}"), return_index=True)
    return values[np.sort(first)]
