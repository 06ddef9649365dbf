"""Indexing: what is read or written at places known only at run time.

`gather` and the dynamic slices by their own params first, each shape of window in each mode, with
indices out of bounds on both sides; then the functions that users reach them by. `scatter` is a
family of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INTEGERS,
    NUMERIC,
    Arg,
    Bools,
    Fill,
    Integers,
    Normal,
    Uniform,
    Values,
    define,
)

_F32, _I32 = np.dtype("float32"), np.dtype("int32")
_MATRIX, _CUBE = (5, 4), (3, 4, 5)

# Dynamic slices: starts are clamped so that the slice fits.

_STARTS = {
    "inside": (1, 2),
    "at_the_end": (3, 1),
    "above": (4, 100),
    "below": (-100, -9),
    "negative": (-2, -4),
}

for _dtype in (*ALL, *INT4):
    _operand, _update = Normal(_MATRIX, _dtype), Normal((2, 3), _dtype)
    _start = Values(3, _I32)
    define(
        "dynamic_slice",
        "",
        lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)),
        [_operand, _start],
        dtype=_dtype,
    )
    define(
        "dynamic_update_slice",
        "",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)),
        [_operand, _update, _start],
        dtype=_dtype,
    )

for _name, _place in _STARTS.items():
    _starts = [Values(i, _I32) for i in _place]
    for _negative in (True, False):
        _case = _name if _negative else f"{_name}_not_from_the_end"
        define(
            "dynamic_slice",
            _case,
            lambda x, i, j, negative=_negative: lax.dynamic_slice(
                x, (i, j), (2, 3), allow_negative_indices=negative
            ),
            [Normal(_MATRIX, _F32), *_starts],
            dtype=_F32,
            params={"allow_negative_indices": _negative},
        )
        define(
            "dynamic_update_slice",
            _case,
            lambda x, u, i, j, negative=_negative: lax.dynamic_update_slice(
                x, u, (i, j), allow_negative_indices=negative
            ),
            [Normal(_MATRIX, _F32), Normal((2, 3), _F32), *_starts],
            dtype=_F32,
            params={"allow_negative_indices": _negative},
        )

for _index_dtype in INTEGERS:
    for _name, _largest in {"inside": 2, "largest": jnp.iinfo(_index_dtype).max}.items():
        _case = f"start_{_index_dtype.name}_{_name}"
        _start = Values(_largest, _index_dtype)
        define(
            "dynamic_slice",
            _case,
            lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
            [Normal((7,), _F32), _start],
            dtype=_F32,
            params={"start_dtype": _index_dtype.name},
        )
        define(
            "dynamic_update_slice",
            _case,
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)),
            [Normal((7,), _F32), Normal((3,), _F32), _start],
            dtype=_F32,
            params={"start_dtype": _index_dtype.name},
        )

# name: shape, sizes
_SLICES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "scalar": ((), ()),
    "whole": ((2, 3), (2, 3)),
    "rows": ((5, 4), (2, 4)),
    "columns": ((5, 4), (5, 1)),
    "element": ((5, 4), (1, 1)),
    "nothing_of_something": ((5, 4), (0, 2)),
    "nothing_of_nothing": ((0, 4), (0, 2)),
    "cube": ((3, 4, 5), (2, 1, 5)),
    "int8_start_of_many": ((300,), (3,)),
}
for _name, (_shape, _sizes) in _SLICES.items():
    _start_dtype = np.dtype("int8") if "int8" in _name else _I32
    _starts = [Values(min(i + 1, 1), _start_dtype) for i in range(len(_shape))]
    define(
        "dynamic_slice",
        _name,
        lambda x, *i, sizes=_sizes: lax.dynamic_slice(x, i, sizes),
        [Normal(_shape, _F32), *_starts],
        dtype=_F32,
        params={"slice_sizes": _sizes},
    )
    define(
        "dynamic_update_slice",
        _name,
        lambda x, u, *i: lax.dynamic_update_slice(x, u, i),
        [Normal(_shape, _F32), Normal(_sizes, _F32), *_starts],
        dtype=_F32,
        params={"update_shape": _sizes},
    )

define(
    "dynamic_slice",
    "batched",
    jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 4))),
    [Normal((3, *_MATRIX), _F32), Values([-9, 1, 9], _I32)],
    dtype=_F32,
)
define(
    "dynamic_slice",
    "batched_starts",
    jax.vmap(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (None, 0, 0)),
    [Normal(_MATRIX, _F32), Values([-9, 1, 9], _I32), Values([0, 9, 1], _I32)],
    dtype=_F32,
)
define(
    "dynamic_update_slice",
    "batched",
    jax.vmap(lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0))),
    [Normal((3, *_MATRIX), _F32), Normal((3, 2, 4), _F32), Values([-9, 1, 9], _I32)],
    dtype=_F32,
)
define(
    "dynamic_update_slice",
    "batched_starts",
    jax.vmap(lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), (None, None, 0)),
    [Normal(_MATRIX, _F32), Normal((2, 4), _F32), Values([-9, 1, 9], _I32)],
    dtype=_F32,
)


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


def _column(*places: int) -> np.ndarray:
    return np.array(places)[:, None]


# Index vectors in bounds, beyond either end, just beyond, and twice the same.
_LINE = _column(1, -1, 0, 4, 5, 1, -100, 100)
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
    "whole": Window((3, 4), _column(0, 1, -1), (3, 4), offset=(1, 2)),
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


def _gather(window: Window, **params: Any) -> Callable[..., jax.Array]:
    return lambda x, i: lax.gather(x, i, window.gather(), window.sizes, **params)


for _name, _window in WINDOWS.items():
    for _mode in MODES:
        define(
            "gather",
            f"{_name}_{_mode}",
            _gather(_window, mode=_mode),
            [Normal(_window.shape, _F32), Values(_window.indices, _I32)],
            dtype=_F32,
            params={"mode": _mode},
        )

_ROWS = WINDOWS["rows"]
for _dtype in (*ALL, *INT4):
    for _name, _mode in (("rows", "clip"), ("rows", "fill"), ("windows_2d", "fill")):
        if _dtype != _F32:  # It is among the windows above.
            _window = WINDOWS[_name]
            define(
                "gather",
                f"{_name}_{_mode}",
                _gather(_window, mode=_mode),
                [Normal(_window.shape, _dtype), Values(_window.indices, _I32)],
                dtype=_dtype,
                params={"mode": _mode},
            )
for _dtype in (*INT2, *FLOAT4):
    define(
        "gather",
        "rows_clip",
        _gather(_ROWS, mode="clip"),
        [Normal(_ROWS.shape, _dtype), Values(_ROWS.indices, _I32)],
        dtype=_dtype,
    )
for _dtype in (*NUMERIC, *BOOL):
    define(
        "gather",
        "fill_value",
        _gather(_ROWS, mode="fill", fill_value=True if _dtype.kind == "b" else 7),
        [Normal(_ROWS.shape, _dtype), Values(_ROWS.indices, _I32)],
        dtype=_dtype,
        params={"fill_value": 7},
    )
for _index_dtype in INTEGERS:
    _limits = jnp.iinfo(_index_dtype)
    _places = np.array([0, 3, 5, _limits.max, _limits.min], _index_dtype)[:, None]
    for _mode in MODES:
        define(
            "gather",
            f"indices_{_index_dtype.name}_{_mode}",
            _gather(_ROWS, mode=_mode),
            [Normal(_ROWS.shape, _F32), Values(_places, _index_dtype)],
            dtype=_F32,
            params={"mode": _mode, "indices_dtype": _index_dtype.name},
        )
for _mode in MODES:
    define(
        "gather",
        f"sorted_and_unique_{_mode}",
        _gather(_ROWS, mode=_mode, indices_are_sorted=True, unique_indices=True),
        [Normal(_ROWS.shape, _F32), Values(_column(0, 1, 4), _I32)],
        dtype=_F32,
        params={"mode": _mode, "indices_are_sorted": True, "unique_indices": True},
    )
define(
    "gather",
    "int8_indices_of_many",
    _gather(Window((300,), None, (1,), collapsed=(0,)), mode="clip"),
    [Normal((300,), _F32), Values(_column(0, 127, -128), np.int8)],
    dtype=_F32,
)

# jax.numpy's indexing.

_AT = {
    "integer": lambda x, i: x[i[0]],
    "two_integers": lambda x, i: x[i[0], i[1]],
    "integer_and_slice": lambda x, i: x[:, i[0]],
    "slice": lambda x, i: x[1:3],
    "slice_of_last": lambda x, i: x[..., 1:],
    "stride": lambda x, i: x[::2],
    "backwards": lambda x, i: x[::-1],
    "backwards_by_two": lambda x, i: x[:, ::-2],
    "array": lambda x, i: x[i],
    "array_of_columns": lambda x, i: x[:, i],
    "array_of_last": lambda x, i: x[..., i],
    "two_arrays": lambda x, i: x[i, i],
    "outer_arrays": lambda x, i: x[i[:, None], i],
    "arrays_apart": lambda x, i: x[i, :, i],
    "array_and_integer": lambda x, i: x[i, 1],
    "array_and_stride": lambda x, i: x[i, ::2],
    "new_axis": lambda x, i: x[i, None, :],
    "constant_array": lambda x, i: x[np.array([0, -1, 1])],
    "constant_mask": lambda x, i: x[np.array([True, False, True])],
    "scalar_array": lambda x, i: x[i[1]][i[0]],
    "tuple_of_arrays": lambda x, i: x[(i, i[::-1])],
    "nothing": lambda x, i: x[i[:0]],
    "grid": lambda x, i: x[jnp.ix_(i, i[:2])],
}
for _name, _fun in _AT.items():
    define(
        "getitem",
        _name,
        _fun,
        [Normal(_CUBE, _F32), Values([1, -2, 0, 7, -9], _I32)],
        dtype=_F32,
    )
for _mode in ("clip", "fill", "drop", "promise_in_bounds"):
    define(
        "at_get",
        _mode,
        lambda x, i, mode=_mode: x.at[i].get(mode=mode),
        [Normal(_MATRIX, _F32), Values([1, -2, 0, 7, -9], _I32)],
        dtype=_F32,
        params={"mode": _mode},
    )
define(
    "at_get",
    "fill_value",
    lambda x, i: x.at[:, i].get(mode="fill", fill_value=-1, wrap_negative_indices=False),
    [Normal(_MATRIX, _F32), Values([1, -2, 0, 7, -9], _I32)],
    dtype=_F32,
)

# Functions that read by index.

_INDICES = Values([[1, -2, 0], [7, 3, -9]], _I32)
for _dtype in (*NUMERIC, *BOOL):
    define(
        "take",
        "rows",
        lambda x, i: jnp.take(x, i, axis=0),
        [Normal(_MATRIX, _dtype), _INDICES],
        dtype=_dtype,
    )
    define(
        "take_along_axis",
        "rows",
        lambda x, i: jnp.take_along_axis(x, i, axis=1),
        [Normal(_MATRIX, _dtype), Integers((5, 2), _I32, -4, 4)],
        dtype=_dtype,
    )
for _mode in ("clip", "fill", "wrap"):
    for _axis in (None, 0, 1, -1):
        define(
            "take",
            f"axis_{_axis}_{_mode}",
            lambda x, i, axis=_axis, mode=_mode: jnp.take(x, i, axis=axis, mode=mode),
            [Normal(_MATRIX, _F32), _INDICES],
            dtype=_F32,
            params={"axis": _axis, "mode": _mode},
        )
for _mode in ("clip", "fill", "promise_in_bounds"):
    for _axis in (0, 1, 2, None):
        _shape = {0: (6, 4, 5), 1: (3, 2, 5), 2: (3, 4, 1), None: (7,)}[_axis]
        define(
            "take_along_axis",
            f"axis_{_axis}_{_mode}",
            lambda x, i, axis=_axis, mode=_mode: jnp.take_along_axis(x, i, axis=axis, mode=mode),
            [Normal(_CUBE, _F32), Integers(_shape, _I32, -8, 8)],
            dtype=_F32,
            params={"axis": _axis, "mode": _mode},
        )
define(
    "take_along_axis",
    "broadcast",
    lambda x, i: jnp.take_along_axis(x, i, axis=1),
    [Normal((3, 4, 5), _F32), Integers((3, 2, 1), _I32, 0, 4)],
    dtype=_F32,
)
define(
    "index_take",
    "",
    lambda x, i, j: lax.index_take(x, jnp.stack([i, j]), (0, 2)),
    [Normal(_CUBE, _F32), Values([0, 2], _I32), Values([4, 1], _I32)],
    dtype=_F32,
)
define(
    "embedding",
    "",
    lambda table, tokens: table[tokens] * 2,
    [Normal((11, 4), _F32), Integers((2, 3), _I32, 0, 11)],
    dtype=_F32,
)

# Public functions: name, case, function, arguments.
_NUMBERS, _SORTED = Normal((9,), _F32), Values(np.linspace(-2, 2, 6), _F32)
_COUNTS = Integers((9,), _I32, 0, 5)
_PUBLIC: list[tuple[str, str, Callable[..., Any], list[Arg]]] = [
    ("choose", "clip", lambda i, x: jnp.choose(i, x, mode="clip"), [_COUNTS, Normal((3, 9), _F32)]),
    ("choose", "wrap", lambda i, x: jnp.choose(i, x, mode="wrap"), [_COUNTS, Normal((3, 9), _F32)]),
    ("select", "", lambda c, x: jnp.select([c, x > 0], [x, -x], 3), [Bools((9,)), _NUMBERS]),
    (
        "compress",
        "size",
        lambda c, x: jnp.compress(c, x, axis=0, size=3, fill_value=7),
        [Bools((5,)), Normal(_MATRIX, _F32)],
    ),
    ("extract", "size", lambda c, x: jnp.extract(c, x, size=6), [Bools((9,)), _NUMBERS]),
    ("nonzero", "size", lambda x: jnp.nonzero(x, size=4), [Integers((3, 3), _I32, 0, 2)]),
    (
        "nonzero",
        "fill_value",
        lambda x: jnp.nonzero(x, size=9, fill_value=(-1, -2)),
        [Integers((3, 3), _I32, 0, 2)],
    ),
    ("flatnonzero", "size", lambda x: jnp.flatnonzero(x, size=4), [Bools((7,))]),
    ("argwhere", "size", lambda x: jnp.argwhere(x, size=4), [Bools((3, 3))]),
    ("where", "size", lambda x: jnp.where(x, size=4, fill_value=-1), [Bools((3, 3))]),
    ("unique", "size", lambda x: jnp.unique(x, size=5), [_COUNTS]),
    (
        "unique",
        "all_results",
        lambda x: jnp.unique(x, True, True, True, size=6, fill_value=9),
        [_COUNTS],
    ),
    ("unique", "axis", lambda x: jnp.unique(x, axis=0, size=4), [Integers((4, 2), _I32, 0, 2)]),
    ("unique_all", "size", lambda x: tuple(jnp.unique_all(x, size=6)), [_COUNTS]),
    ("unique_counts", "size", lambda x: tuple(jnp.unique_counts(x, size=6)), [_COUNTS]),
    ("unique_inverse", "size", lambda x: tuple(jnp.unique_inverse(x, size=6)), [_COUNTS]),
    ("unique_values", "size", lambda x: jnp.unique_values(x, size=6), [_COUNTS]),
    ("union1d", "size", lambda x, y: jnp.union1d(x, y, size=8), [_COUNTS, _COUNTS]),
    ("setdiff1d", "size", lambda x, y: jnp.setdiff1d(x, y, size=4), [_COUNTS, Fill((1,), _I32, 3)]),
    ("setxor1d", "size", lambda x, y: jnp.setxor1d(x, y, size=6), [_COUNTS, Fill((1,), _I32, 3)]),
    ("intersect1d", "size", lambda x, y: jnp.intersect1d(x, y, size=4), [_COUNTS, _COUNTS]),
    ("isin", "", jnp.isin, [Normal((3, 4), _I32), Values([1, 2, -4], _I32)]),
    ("isin", "invert", lambda x, y: jnp.isin(x, y, invert=True), [_COUNTS, Values([1, 2], _I32)]),
    ("digitize", "", jnp.digitize, [_NUMBERS, _SORTED]),
    ("digitize", "right", lambda x, b: jnp.digitize(x, b, right=True), [_SORTED, _SORTED]),
    ("digitize", "decreasing", lambda x, b: jnp.digitize(x, b[::-1]), [_NUMBERS, _SORTED]),
    ("bincount", "length", lambda x: jnp.bincount(x, length=4), [_COUNTS]),
    ("bincount", "weights", lambda x, w: jnp.bincount(x, w, length=6), [_COUNTS, _NUMBERS]),
    ("histogram", "", lambda x: jnp.histogram(x, bins=4), [_NUMBERS]),
    ("histogram", "bins", lambda x, b: jnp.histogram(x, b), [_NUMBERS, _SORTED]),
    (
        "histogram",
        "density",
        lambda x, w: jnp.histogram(x, 3, (-1, 1), weights=w, density=True),
        [_NUMBERS, Uniform((9,), _F32)],
    ),
    ("histogram2d", "", lambda x, y: jnp.histogram2d(x, y, bins=3), [_NUMBERS, _NUMBERS]),
    ("histogramdd", "", lambda x: jnp.histogramdd(x, bins=3)[0], [Normal((9, 3), _F32)]),
    ("histogram_bin_edges", "", lambda x: jnp.histogram_bin_edges(x, bins=5), [_NUMBERS]),
    ("interp", "", jnp.interp, [_NUMBERS, _SORTED, Normal((6,), _F32)]),
    (
        "interp",
        "left_right",
        lambda x, xp, fp: jnp.interp(x, xp, fp, left=-1, right="extrapolate"),
        [_NUMBERS, _SORTED, Normal((6,), _F32)],
    ),
    (
        "interp",
        "period",
        lambda x, xp, fp: jnp.interp(x, xp, fp, period=3),
        [_NUMBERS, _SORTED, Normal((6,), _F32)],
    ),
    (
        "searchsorted",
        "scan",
        lambda a, v: jnp.searchsorted(a, v, method="scan"),
        [_SORTED, _NUMBERS],
    ),
    (
        "searchsorted",
        "scan_unrolled",
        lambda a, v: jnp.searchsorted(a, v, method="scan_unrolled"),
        [_SORTED, _NUMBERS],
    ),
    (
        "searchsorted",
        "sort_right",
        lambda a, v: jnp.searchsorted(a, v, side="right", method="sort"),
        [_SORTED, _SORTED],
    ),
    (
        "searchsorted",
        "compare_all",
        lambda a, v: jnp.searchsorted(a, v, method="compare_all"),
        [_SORTED, _NUMBERS],
    ),
    (
        "searchsorted",
        "sorter",
        lambda a, v: jnp.searchsorted(a, v, sorter=jnp.argsort(a)),
        [_NUMBERS, _NUMBERS],
    ),
    ("delete", "index", lambda x: jnp.delete(x, 2, axis=0), [Normal(_MATRIX, _F32)]),
    (
        "delete",
        "indices",
        lambda x, i: jnp.delete(x, i, assume_unique_indices=True),
        [_NUMBERS, Values([1, 7, -4], _I32)],
    ),
    ("insert", "", lambda x, i: jnp.insert(x, i, 5), [_NUMBERS, Values([1, 7, 7], _I32)]),
    ("roll", "traced_shift", lambda x, k: jnp.roll(x, k), [_NUMBERS, Values(4, _I32)]),
    (
        "roll",
        "traced_shifts",
        lambda x, k: jnp.roll(x, k, (0, 1)),
        [Normal(_MATRIX, _F32), Values([2, -1], _I32)],
    ),
    (
        "ravel_multi_index",
        "clip",
        lambda i, j: jnp.ravel_multi_index((i, j), (3, 4), mode="clip"),
        [Normal((6,), _I32), Normal((6,), _I32)],
    ),
    (
        "ravel_multi_index",
        "wrap",
        lambda i, j: jnp.ravel_multi_index((i, j), (3, 4), mode="wrap", order="F"),
        [Normal((6,), _I32), Normal((6,), _I32)],
    ),
    ("unravel_index", "", lambda i: jnp.unravel_index(i, (3, 4)), [Integers((6,), _I32, -3, 20)]),
    (
        "apply_along_axis",
        "",
        lambda x: jnp.apply_along_axis(jnp.cumsum, 0, x),
        [Normal((3, 2), _F32)],
    ),
    (
        "piecewise",
        "",
        lambda x: jnp.piecewise(x, [x < -1, x > 1], [-1, lambda v: v * v, 0]),
        [_NUMBERS],
    ),
    (
        "dynamic_index_in_dim",
        "",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
        [Normal(_MATRIX, _F32), Values(-2, _I32)],
    ),
    (
        "dynamic_slice_in_dim",
        "",
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1),
        [Normal(_MATRIX, _F32), Values(3, _I32)],
    ),
    (
        "dynamic_update_slice_in_dim",
        "",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, axis=1),
        [Normal(_MATRIX, _F32), Normal((5, 2), _F32), Values(3, _I32)],
    ),
    (
        "dynamic_update_index_in_dim",
        "",
        lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, axis=0),
        [Normal(_MATRIX, _F32), Normal((4,), _F32), Values(-1, _I32)],
    ),
    ("diagonal_indices", "", lambda x: x[jnp.diag_indices_from(x)], [Normal((4, 4), _F32)]),
    ("tril_indices", "", lambda x: x[jnp.tril_indices_from(x)], [Normal((4, 4), _F32)]),
    (
        "map_coordinates",
        "linear",
        lambda x, c: jax.scipy.ndimage.map_coordinates(x, [c, c], order=1, mode="nearest"),
        [Normal(_MATRIX, _F32), Uniform((6,), _F32, -1, 6)],
    ),
    (
        "map_coordinates",
        "wrap_nearest",
        lambda x, c: jax.scipy.ndimage.map_coordinates(x, [c, c], order=0, mode="wrap"),
        [Normal(_MATRIX, _F32), Uniform((6,), _F32, -1, 6)],
    ),
]
_COMPUTING = ("bincount", "histogram", "interp", "map_coordinates", "apply_along", "piecewise")
for _function, _case, _fun, _args in _PUBLIC:
    define(
        _function,
        _case,
        _fun,
        _args,
        dtype=_args[0].dtype,
        ulps=8 if _function.startswith(_COMPUTING) else None,
    )

# vmap gives batching dimensions.

define(
    "gather",
    "vmap_both",
    jax.vmap(lambda x, i: x[i]),
    [Normal((3, 5, 2), _F32), Values([[1, -2], [9, 0], [4, 4]], _I32)],
    dtype=_F32,
)
define(
    "gather",
    "vmap_twice",
    jax.vmap(jax.vmap(lambda x, i: x[i, i[::-1]], (0, None)), (1, 0)),
    [Normal((2, 3, 5, 4), _F32), Values([[1, -2], [9, 0], [3, 3]], _I32)],
    dtype=_F32,
)
define(
    "gather",
    "vmap_indices",
    jax.vmap(lambda x, i: jnp.take(x, i, axis=1), (None, 1), 2),
    [Normal((5, 4), _F32), Values([[1, -2], [9, 0], [3, 3]], _I32)],
    dtype=_F32,
)
define(
    "gather",
    "vmap_operand",
    jax.vmap(lambda x, i: x[i], (2, None), 1),
    [Normal((5, 4, 3), _F32), Values([1, -2, 9], _I32)],
    dtype=_F32,
)
for _dtype in (*COMPLEX, *FLOAT8[:1]):
    define(
        "gather",
        "vmap_both",
        jax.vmap(lambda x, i: x[i]),
        [Normal((3, 5, 2), _dtype), Values([[1, -2], [9, 0], [4, 4]], _I32)],
        dtype=_dtype,
    )
