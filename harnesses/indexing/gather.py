"""`gather` by its own params: each window in each mode, then dtypes, indices, and vmap."""

from collections.abc import Callable
from typing import Any

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
    Normal,
    Values,
    define,
)
from harnesses.indexing import family
from harnesses.indexing.windows import MODES, WINDOWS, Window, column

_F32, _I32 = np.dtype("float32"), np.dtype("int32")
_ROWS = WINDOWS["rows"]


def _gather(window: Window, **params: Any) -> Callable[..., jax.Array]:
    return lambda x, i: lax.gather(x, i, window.gather(), window.sizes, **params)


def _define(name: str, mode: str, dtype: np.dtype) -> None:
    window = WINDOWS[name]
    define(
        "gather",
        f"{name}_{mode}",
        _gather(window, mode=mode),
        [Normal(window.shape, dtype), Values(window.indices, _I32)],
        dtype=dtype,
        params={"mode": mode},
    )


@family.builder
def each_window_in_each_mode() -> None:
    """Each window in each mode, of float32."""
    for name in WINDOWS:
        for mode in MODES:
            _define(name, mode, _F32)


@family.builder
def windows_of_every_dtype() -> None:
    """Rows and larger windows of operands of every dtype."""
    for dtype in (*ALL, *INT4):
        for name, mode in (("rows", "clip"), ("rows", "fill"), ("windows_2d", "fill")):
            if dtype != _F32:  # It is among the windows above.
                _define(name, mode, dtype)
    for dtype in (*INT2, *FLOAT4):
        define(
            "gather",
            "rows_clip",
            _gather(_ROWS, mode="clip"),
            [Normal(_ROWS.shape, dtype), Values(_ROWS.indices, _I32)],
            dtype=dtype,
        )


@family.builder
def values_for_places_out_of_bounds() -> None:
    """A fill value of every dtype, for rows that are out of bounds."""
    for dtype in (*NUMERIC, *BOOL):
        define(
            "gather",
            "fill_value",
            _gather(_ROWS, mode="fill", fill_value=True if dtype.kind == "b" else 7),
            [Normal(_ROWS.shape, dtype), Values(_ROWS.indices, _I32)],
            dtype=dtype,
            params={"fill_value": 7},
        )


@family.builder
def indices_of_every_dtype() -> None:
    """Indices of every integer dtype, its largest and least among them."""
    for index_dtype in INTEGERS:
        limits = jnp.iinfo(index_dtype)
        places = np.array([0, 3, 5, limits.max, limits.min], index_dtype)[:, None]
        for mode in MODES:
            define(
                "gather",
                f"indices_{index_dtype.name}_{mode}",
                _gather(_ROWS, mode=mode),
                [Normal(_ROWS.shape, _F32), Values(places, index_dtype)],
                dtype=_F32,
                params={"mode": mode, "indices_dtype": index_dtype.name},
            )


@family.builder
def indices_of_special_kinds() -> None:
    """Indices that are sorted and unique, and int8 ones into an axis longer than int8 reaches."""
    for mode in MODES:
        define(
            "gather",
            f"sorted_and_unique_{mode}",
            _gather(_ROWS, mode=mode, indices_are_sorted=True, unique_indices=True),
            [Normal(_ROWS.shape, _F32), Values(column(0, 1, 4), _I32)],
            dtype=_F32,
            params={"mode": mode, "indices_are_sorted": True, "unique_indices": True},
        )
    define(
        "gather",
        "int8_indices_of_many",
        _gather(Window((300,), None, (1,), collapsed=(0,)), mode="clip"),
        [Normal((300,), _F32), Values(column(0, 127, -128), np.int8)],
        dtype=_F32,
    )


@family.builder
def gathers_under_vmap() -> None:
    """Gathers under vmap, which gives them batching dimensions."""
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
    for dtype in (*COMPLEX, *FLOAT8[:1]):
        define(
            "gather",
            "vmap_both",
            jax.vmap(lambda x, i: x[i]),
            [Normal((3, 5, 2), dtype), Values([[1, -2], [9, 0], [4, 4]], _I32)],
            dtype=dtype,
        )
