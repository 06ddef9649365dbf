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
from harnesses.indexing.windows import MODES, WINDOWS, Window, column

_F32, _I32 = np.dtype("float32"), np.dtype("int32")


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


for _name in WINDOWS:
    for _mode in MODES:
        _define(_name, _mode, _F32)

for _dtype in (*ALL, *INT4):
    for _name, _mode in (("rows", "clip"), ("rows", "fill"), ("windows_2d", "fill")):
        if _dtype != _F32:  # It is among the windows above.
            _define(_name, _mode, _dtype)

_ROWS = WINDOWS["rows"]
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
        [Normal(_ROWS.shape, _F32), Values(column(0, 1, 4), _I32)],
        dtype=_F32,
        params={"mode": _mode, "indices_are_sorted": True, "unique_indices": True},
    )
define(
    "gather",
    "int8_indices_of_many",
    _gather(Window((300,), None, (1,), collapsed=(0,)), mode="clip"),
    [Normal((300,), _F32), Values(column(0, 127, -128), np.int8)],
    dtype=_F32,
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
