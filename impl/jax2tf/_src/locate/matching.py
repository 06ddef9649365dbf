"""Which tensor inside a file is which result of JAX, found by the numbers.

A file that holds the program as it should has each result of JAX among its tensors, unless an op
computes several equations at once. The names of these tensors then tell the results in a file of
the same program that has an error.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.locate import exactness
from jax2tf._src.locate.program import Program, Values, as_numpy

# The largest difference of a tensor to the result that it is, in units of the largest element.
_NEAR = 1e-3
# Differences below this are those of rounding: the tensor that is free is taken.
_ROUNDING = 3e-6
# Elements that are compared first.
_SAMPLED = 16
# The orders of dimensions that converters choose for windows and matrices.
_ORDERS: Mapping[int, tuple[tuple[int, ...], ...]] = {
    2: ((1, 0),),
    3: ((0, 2, 1),),
    4: ((0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 1, 3, 2)),
    5: ((0, 4, 1, 2, 3), (0, 2, 3, 4, 1)),
}


@dataclasses.dataclass(frozen=True)
class Place:
    """The tensor that holds a result.

    Attributes:
      name: its name in the file.
      order: the dimensions of the tensor in the order of the result's; None for the same order.
    """

    name: str
    order: tuple[int, ...] | None = None

    def read(self, tensor: np.ndarray, like: np.ndarray) -> np.ndarray | None:
        """The result that the tensor holds; None if it has another size."""
        if tensor.size != like.size:
            return None
        if self.order is not None:
            if tensor.ndim != len(self.order):
                return None
            tensor = tensor.transpose(self.order)
        return tensor.reshape(like.shape)


def places(program: Program, tensors: Mapping[str, np.ndarray]) -> dict[jex_core.Var, Place]:
    """The tensor of each result, for those that have one.

    Args:
      program: the program.
      tensors: the tensors in a file by name, in the order in which they are made.
    """
    by_size: dict[int, _Candidates] = collections.defaultdict(_Candidates)
    for name, tensor in tensors.items():
        if _tells(tensor):
            by_size[tensor.size].add(name, tensor)
    found: dict[jex_core.Var, Place] = {}
    used: set[str] = set()
    for v in program.readable():
        expected = as_numpy(program.reference[v])
        if expected.size not in by_size or not _tells(expected):
            continue
        place = _place(expected, by_size[expected.size].near(expected), used)
        if place is not None:
            found[v] = place
            used.add(place.name)
    return found


class _Candidates:
    """Tensors of one size in all orders of their dimensions, with some elements of each."""

    def __init__(self) -> None:
        self._ways: list[tuple[Place, np.ndarray]] = []
        self._sampled: np.ndarray | None = None

    def add(self, name: str, tensor: np.ndarray) -> None:
        """Adds a tensor."""
        self._sampled = None
        for order in (None, *_ORDERS.get(tensor.ndim, ())):
            array = tensor if order is None else tensor.transpose(order)
            self._ways.append((Place(name, order), array))

    def near(self, expected: np.ndarray) -> list[tuple[Place, np.ndarray]]:
        """The tensors whose sampled elements are near to those of a result."""
        if self._sampled is None:
            self._sampled = np.stack([_sample(array) for _, array in self._ways])
        wanted = _sample(expected)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(self._sampled - wanted)
        same = (self._sampled == wanted) | (np.isnan(self._sampled) & np.isnan(wanted))
        off = np.where(same, 0.0, np.where(np.isnan(off), np.inf, off)).max(-1)
        indices = np.flatnonzero(off <= _NEAR * _largest(expected)).tolist()
        return [self._ways[i] for i in indices if self._is_like(i, expected)]

    def _is_like(self, index: int, expected: np.ndarray) -> bool:
        place, array = self._ways[index]
        # A tensor may have the elements in another shape; in another order only in the same one.
        is_in_order = place.order is None or array.shape == expected.shape
        return is_in_order and _same_kind(array, expected)


def _sample(array: np.ndarray) -> np.ndarray:
    """Some elements, in their order."""
    step = max(1, array.size // _SAMPLED)
    if array.flags.c_contiguous:
        return exactness.wide(array.reshape(-1)[::step])
    return exactness.wide(array.flat[::step])


def read(
    program: Program, found: Mapping[jex_core.Var, Place], tensors: Mapping[str, np.ndarray]
) -> Values:
    """The results in a file whose tensors have the names of another one."""
    values: Values = {}
    for v, place in found.items():
        if place.name in tensors:
            like = as_numpy(program.reference[v])
            array = place.read(tensors[place.name], like)
            if array is not None and _same_kind(array, like):
                values[v] = array.astype(like.dtype)
    return values


def _tells(array: np.ndarray) -> bool:
    """Whether the elements tell one array from another."""
    if array.size == 0:
        return False
    if array.size == 1:
        return exactness.is_inexact(array.dtype) and float(np.real(array.reshape(()))) not in (
            -1,
            0,
            1,
            2,
        )
    flat = array.reshape(-1)
    return bool(np.any(flat != flat[0]))


def _same_kind(x: np.ndarray, y: np.ndarray) -> bool:
    return exactness.is_inexact(x.dtype) == exactness.is_inexact(y.dtype) and (
        (x.dtype == bool) == (y.dtype == bool)
    )


def _place(
    expected: np.ndarray, candidates: Sequence[tuple[Place, np.ndarray]], used: set[str]
) -> Place | None:
    """The nearest of the tensors that are near enough: a free one before one that is used."""
    fits: list[tuple[float, bool, Place]] = []
    for place, array in candidates:
        if fits and fits[-1][2].name == place.name:
            continue
        distance = _relative(array.reshape(expected.shape), expected)
        if distance is not None and distance <= _NEAR:
            fits.append((max(distance, _ROUNDING), place.name in used, place))
    return min(fits, key=lambda fit: fit[:2])[2] if fits else None


def _relative(x: np.ndarray, expected: np.ndarray) -> float | None:
    """The largest difference relative to the largest element; None if it is too large."""
    if not exactness.is_inexact(expected.dtype):
        return 0.0 if np.array_equal(x, expected) else None
    off = float(np.max(exactness.error(x, expected), initial=0.0))
    largest = _largest(expected)
    return off / largest if largest else (0.0 if off == 0 else None)


def _largest(expected: np.ndarray) -> float:
    """The largest finite element's size."""
    if not exactness.is_inexact(expected.dtype):
        return 0.0
    sizes = np.abs(exactness.wide(expected))
    return float(np.max(sizes[np.isfinite(sizes)], initial=0.0))
