"""The windows of gathers and scatters, with indices out of bounds on both sides."""

from typing import Any, NamedTuple

import numpy as np
from jax import lax


class Window(NamedTuple):
    """Where the windows of a gather or scatter lie; dimension numbers as in jax.lax.gather."""

    shape: tuple[int, ...]
    indices: Any
    sizes: tuple[int, ...]
    offset: tuple[int, ...] = ()
    collapsed: tuple[int, ...] = ()
    index_map: tuple[int, ...] = (0,)
    batching: tuple[int, ...] = ()
    indices_batching: tuple[int, ...] = ()

    def gather(self) -> lax.GatherDimensionNumbers:
        """The dimension numbers for a gather."""
        return lax.GatherDimensionNumbers(
            self.offset, self.collapsed, self.index_map, self.batching, self.indices_batching
        )

    def scatter(self) -> lax.ScatterDimensionNumbers:
        """The dimension numbers for a scatter."""
        return lax.ScatterDimensionNumbers(
            self.offset, self.collapsed, self.index_map, self.batching, self.indices_batching
        )

    def updates(self) -> tuple[int, ...]:
        """The shape that a gather gives and a scatter takes; JAX says it too, in milliseconds."""
        dropped = (*self.collapsed, *self.batching)
        windows = (size for axis, size in enumerate(self.sizes) if axis not in dropped)
        places = np.shape(self.indices)[:-1]
        rank = len(places) + len(self.offset)
        rest = iter(places)
        return tuple(next(windows if axis in self.offset else rest) for axis in range(rank))


def column(*places: int) -> np.ndarray:
    """Index vectors of one coordinate each."""
    return np.array(places)[:, None]


# Index vectors in bounds, beyond either end, just beyond, and twice the same.
_LINE = column(1, -1, 0, 4, 5, 1, -100, 100)
_PAIRS = np.array([[1, 2], [0, -1], [5, 0], [4, 3], [1, 2], [-1, 4], [3, 1]])

WINDOWS = {
    "elements": Window((5,), _LINE, (1,), collapsed=(0,)),
    "rows": Window((5, 4), _LINE, (1, 4), offset=(1,), collapsed=(0,)),
    "columns": Window((4, 5), _LINE, (4, 1), offset=(0,), collapsed=(1,), index_map=(1,)),
    "columns_last": Window((4, 5), _LINE, (4, 1), offset=(1,), collapsed=(1,), index_map=(1,)),
    "points": Window((5, 4), _PAIRS, (1, 1), collapsed=(0, 1), index_map=(0, 1)),
    "points_swapped": Window((4, 5), _PAIRS, (1, 1), collapsed=(0, 1), index_map=(1, 0)),
    "lines_of_a_cube": Window(
        (5, 4, 3), _PAIRS, (1, 1, 3), offset=(1,), collapsed=(0, 1), index_map=(0, 1)
    ),
    "outer_points": Window(
        (5, 3, 4), _PAIRS, (1, 3, 1), offset=(1,), collapsed=(0, 2), index_map=(0, 2)
    ),
    "rows_kept": Window((5, 4), _LINE, (1, 4), offset=(1, 2)),
    "windows": Window((5,), _LINE, (2,), offset=(1,)),
    "windows_first": Window((5,), _LINE, (2,), offset=(0,)),
    "windows_2d": Window((5, 4), _PAIRS, (2, 3), offset=(1, 2), index_map=(0, 1)),
    "windows_2d_apart": Window((5, 4), _PAIRS, (2, 3), offset=(0, 2), index_map=(0, 1)),
    "windows_of_rows": Window((5, 4), _LINE, (2, 4), offset=(1, 2)),
    "part_of_rows": Window((5, 4), _LINE, (1, 2), offset=(1,), collapsed=(0,)),
    "whole": Window((3, 4), column(0, 1, -1), (3, 4), offset=(1, 2)),
    "whole_dimension": Window((5, 4), _PAIRS, (1, 4), (1,), (0,), index_map=(0, 1)),
    "one_window": Window((5, 4), np.array([2, 1]), (2, 3), (0, 1), index_map=(0, 1)),
    "one_element": Window((5, 4), np.array([2, 1]), (1, 1), (), (0, 1), index_map=(0, 1)),
    "one_window_out_of_bounds": Window((5, 4), np.array([4, 1]), (2, 3), (0, 1), (), (0, 1)),
    "indices_2d": Window((5, 4), _LINE.reshape(2, 4, 1), (1, 4), (2,), (0,)),
    "indices_around_rows": Window((5, 4), _LINE.reshape(2, 4, 1), (1, 4), (1,), (0,)),
    "batching": Window(
        (3, 5),
        np.array([[1, -1], [0, 5], [4, 1]])[..., None],
        (1, 1),
        collapsed=(1,),
        index_map=(1,),
        batching=(0,),
        indices_batching=(0,),
    ),
    "batching_last": Window(
        (5, 3),
        np.array([[1, -1, 2], [0, 5, 4]])[..., None],
        (1, 1),
        collapsed=(0,),
        batching=(1,),
        indices_batching=(1,),
    ),
    "batching_windows": Window(
        (3, 5, 4),
        np.array([[1, -1], [0, 5], [3, 1]])[..., None],
        (1, 2, 4),
        offset=(1, 3),
        index_map=(1,),
        batching=(0,),
        indices_batching=(0,),
    ),
    "batching_twice": Window(
        (2, 5, 3),
        np.array([[[1], [0]], [[-1], [4]], [[5], [2]]]),
        (1, 1, 1),
        collapsed=(1,),
        index_map=(1,),
        batching=(0, 2),
        indices_batching=(1, 0),
    ),
    "no_indices": Window((5, 4), np.zeros((0, 1), int), (1, 4), offset=(1,), collapsed=(0,)),
    "no_coordinates": Window((5, 4), np.zeros((3, 0), int), (1, 4), (1,), (0,), index_map=()),
    "empty_windows": Window((5, 4), _LINE, (0, 4), offset=(1, 2)),
}
MODES = ("clip", "fill", "promise_in_bounds")
