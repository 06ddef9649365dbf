"""The functions that users read by index with: of jax.numpy, jax.lax and jax.scipy.ndimage."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    BOOL,
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
from harnesses.indexing import family

_F32, _I32 = np.dtype("float32"), np.dtype("int32")
_MATRIX, _CUBE = (5, 4), (3, 4, 5)

# What stands between the brackets of jax.numpy's indexing.
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
_INDICES = Values([[1, -2, 0], [7, 3, -9]], _I32)


@family.builder
def places_in_brackets() -> None:
    """Indexing by brackets, as jax.numpy has it."""
    for name, fun in _AT.items():
        define(
            "getitem",
            name,
            fun,
            [Normal(_CUBE, _F32), Values([1, -2, 0, 7, -9], _I32)],
            dtype=_F32,
        )


@family.builder
def modes_of_at_get() -> None:
    """`x.at[...].get` in each mode, and with a fill value."""
    for mode in ("clip", "fill", "drop", "promise_in_bounds"):
        define(
            "at_get",
            mode,
            lambda x, i, mode=mode: x.at[i].get(mode=mode),
            [Normal(_MATRIX, _F32), Values([1, -2, 0, 7, -9], _I32)],
            dtype=_F32,
            params={"mode": mode},
        )
    define(
        "at_get",
        "fill_value",
        lambda x, i: x.at[:, i].get(mode="fill", fill_value=-1, wrap_negative_indices=False),
        [Normal(_MATRIX, _F32), Values([1, -2, 0, 7, -9], _I32)],
        dtype=_F32,
    )


@family.builder
def rows_taken_of_every_dtype() -> None:
    """Rows of a matrix of every dtype, taken whole or along an axis."""
    for dtype in (*NUMERIC, *BOOL):
        define(
            "take",
            "rows",
            lambda x, i: jnp.take(x, i, axis=0),
            [Normal(_MATRIX, dtype), _INDICES],
            dtype=dtype,
        )
        define(
            "take_along_axis",
            "rows",
            lambda x, i: jnp.take_along_axis(x, i, axis=1),
            [Normal(_MATRIX, dtype), Integers((5, 2), _I32, -4, 4)],
            dtype=dtype,
        )


@family.builder
def axes_and_modes_of_take() -> None:
    """`take` and `take_along_axis` over each axis, in each mode."""
    for mode in ("clip", "fill", "wrap"):
        for axis in (None, 0, 1, -1):
            define(
                "take",
                f"axis_{axis}_{mode}",
                lambda x, i, axis=axis, mode=mode: jnp.take(x, i, axis=axis, mode=mode),
                [Normal(_MATRIX, _F32), _INDICES],
                dtype=_F32,
                params={"axis": axis, "mode": mode},
            )
    for mode in ("clip", "fill", "promise_in_bounds"):
        for axis in (0, 1, 2, None):
            shape = {0: (6, 4, 5), 1: (3, 2, 5), 2: (3, 4, 1), None: (7,)}[axis]
            define(
                "take_along_axis",
                f"axis_{axis}_{mode}",
                lambda x, i, axis=axis, mode=mode: jnp.take_along_axis(x, i, axis=axis, mode=mode),
                [Normal(_CUBE, _F32), Integers(shape, _I32, -8, 8)],
                dtype=_F32,
                params={"axis": axis, "mode": mode},
            )


@family.builder
def single_uses() -> None:
    """Broadcast indices of `take_along_axis`, `index_take`, and an embedding of tokens."""
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


@family.builder
def public_functions() -> None:
    """The public functions of the table above; those that compute have a tolerance."""
    for function, case, fun, args in _PUBLIC:
        define(
            function,
            case,
            fun,
            args,
            dtype=args[0].dtype,
            ulps=8 if function.startswith(_COMPUTING) else None,
        )
