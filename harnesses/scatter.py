"""Scatter: elements written, or combined with updates, at places known only at run time.

The windows are those of the family indexing. Indices repeat: JAX combines such updates in order on
a CPU, and in no defined order on a GPU.
"""

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
    FLOATS,
    INT4,
    INTEGERS,
    NUMERIC,
    Arg,
    Bools,
    Family,
    Fill,
    Integers,
    Normal,
    Values,
    define,
    edge_pairs,
    infinite_numbers,
    is_complex,
    is_float,
)
from harnesses.indexing.windows import MODES, WINDOWS, Window

family = Family("scatter")

_F32, _I32 = np.dtype("float32"), np.dtype("int32")

_SCATTERS: dict[str, Callable[..., jax.Array]] = {
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-sub": lax.scatter_sub,
    "scatter-mul": lax.scatter_mul,
    "scatter-min": lax.scatter_min,
    "scatter-max": lax.scatter_max,
}
# Sums and products of repeated indices are rounded step by step, here as in JAX.
_EXACT = 0


def _tags(name: str, dtype: np.dtype) -> tuple[str, ...]:
    """ "ordered" where it matters which of the updates of one element comes first."""
    if name in ("scatter-add", "scatter-sub", "scatter-mul"):
        matters = is_float(dtype) or is_complex(dtype)
    else:
        matters = name == "scatter"
    return ("ordered",) if matters else ()


def _scatter(name: str, window: Window, **params: Any) -> Callable[..., jax.Array]:
    return lambda x, i, u: _SCATTERS[name](x, i, u, window.scatter(), **params)


def _args(window: Window, dtype: Any, index_dtype: Any = _I32) -> list[Arg]:
    return [
        Normal(window.shape, dtype),
        Values(window.indices, index_dtype),
        Normal(window.updates(), dtype),
    ]


@family.builder
def every_window() -> None:
    """Each window: scatter and scatter-add in every mode, the others in one."""
    for shape_name, window in WINDOWS.items():
        for name, modes in {
            "scatter": MODES,
            "scatter-add": MODES,
            "scatter-sub": ("fill",),
            "scatter-mul": ("fill",),
            "scatter-min": ("clip",),
            "scatter-max": ("fill",),
        }.items():
            for mode in modes:
                define(
                    name,
                    f"{shape_name}_{mode}",
                    _scatter(name, window, mode=mode),
                    _args(window, _F32),
                    dtype=_F32,
                    params={"mode": mode},
                    ulps=_EXACT,
                    tags=_tags(name, _F32),
                )


_ROWS = WINDOWS["rows"]


@family.builder
def every_dtype() -> None:
    """Windows of other dtypes than float32."""
    for dtype in (*ALL, *INT4):
        for name in _SCATTERS:
            if dtype != _F32 and not (dtype in BOOL and name in list(_SCATTERS)[1:4]):
                define(
                    name,
                    "rows_fill",
                    _scatter(name, _ROWS, mode="fill"),
                    _args(_ROWS, dtype),
                    dtype=dtype,
                    params={"mode": "fill"},
                    ulps=_EXACT if not is_complex(dtype) else 4,
                    tags=_tags(name, dtype),
                )
        if dtype != _F32:
            define(
                "scatter",
                "windows_2d_clip",
                _scatter("scatter", WINDOWS["windows_2d"], mode="clip"),
                _args(WINDOWS["windows_2d"], dtype),
                dtype=dtype,
                params={"mode": "clip"},
                tags=_tags("scatter", dtype),
            )


@family.builder
def dtypes_of_indices() -> None:
    """Indices of each integer dtype, the ends of its range among them."""
    for index_dtype in INTEGERS:
        limits = jnp.iinfo(index_dtype)
        places = np.array([0, 3, 5, limits.max, limits.min, 3], index_dtype)[:, None]
        window = _ROWS._replace(indices=places)
        for mode in MODES:
            define(
                "scatter-add",
                f"indices_{index_dtype.name}_{mode}",
                _scatter("scatter-add", window, mode=mode),
                _args(window, _F32, index_dtype),
                dtype=_F32,
                params={"mode": mode, "indices_dtype": index_dtype.name},
                ulps=_EXACT,
                tags=_tags("scatter-add", _F32),
            )


@family.builder
def sorted_and_unique_indices() -> None:
    """Indices of which JAX is told that they are sorted and unique."""
    for name in _SCATTERS:
        window = _ROWS._replace(indices=np.array([[0], [2], [4]]))
        define(
            name,
            "sorted_and_unique",
            _scatter(name, window, indices_are_sorted=True, unique_indices=True),
            _args(window, _F32),
            dtype=_F32,
            params={"indices_are_sorted": True, "unique_indices": True},
            ulps=_EXACT,
        )


@family.builder
def edge_values_combined() -> None:
    """Which NaN, zero or end of the range wins: each pair of edge values is one element."""
    for dtype in (*FLOATS, *INTEGERS):
        for name in ("scatter-min", "scatter-max", "scatter-add", "scatter-mul"):
            left, right = edge_pairs(dtype)
            window = Window(left.shape, np.arange(left.shape[0])[:, None], (1,), collapsed=(0,))
            define(
                name,
                "edges",
                _scatter(name, window),
                [left, Values(window.indices, _I32), right],
                dtype=dtype,
            )


@family.builder
def complex_extrema() -> None:
    """Minima and maxima of complex numbers, infinite ones among them."""
    for dtype in COMPLEX:
        numbers = infinite_numbers(dtype)
        left, right = Values(numbers, dtype), Values(np.roll(numbers, 3), dtype)
        window = Window(left.shape, np.arange(left.shape[0])[:, None], (1,), collapsed=(0,))
        for name in ("scatter-min", "scatter-max"):
            define(
                name,
                "infinity",
                _scatter(name, window),
                [left, Values(window.indices, _I32), right],
                dtype=dtype,
            )
            define(
                name,
                "windows_2d_clip",
                _scatter(name, WINDOWS["windows_2d"], mode="clip"),
                _args(WINDOWS["windows_2d"], dtype),
                dtype=dtype,
            )


# scatter_apply: any function of the element; the updates have a shape and no value.
_APPLIED: dict[str, Callable[[jax.Array], jax.Array]] = {
    "double": lambda x: x * 2,
    "sin": jnp.sin,
    "constant": lambda x: jnp.full_like(x, 3),
    "conditional": lambda x: jnp.where(x > 0, x - 1, 7 * x),
}


@family.builder
def functions_of_an_element() -> None:
    """scatter_apply of several functions, in several windows."""
    for apply_name, function in _APPLIED.items():
        for shape_name in ("rows", "elements", "windows_2d", "batching"):
            window = WINDOWS[shape_name]
            define(
                "scatter_apply",
                f"{apply_name}_{shape_name}",
                lambda x, i, window=window, function=function: lax.scatter_apply(
                    x, i, function, window.scatter(), update_shape=window.updates()
                ),
                _args(window, _F32)[:2],
                dtype=_F32,
                ulps=4 if apply_name == "sin" else _EXACT,
            )


@family.builder
def doubled_elements() -> None:
    """scatter_apply of every dtype: numbers are doubled, bools negated."""
    for dtype in (*NUMERIC, *BOOL):
        define(
            "scatter_apply",
            "rows_clip",
            lambda x, i: lax.scatter_apply(
                x,
                i,
                jnp.logical_not if x.dtype == bool else lambda v: v + v,
                _ROWS.scatter(),
                update_shape=_ROWS.updates(),
                mode="clip",
            ),
            _args(_ROWS, dtype)[:2],
            dtype=dtype,
        )


_AT: dict[str, Callable[[jax.Array, jax.Array, jax.Array], Any]] = {
    "integer": lambda x, i, u: x.at[i[0]].set(u[0]),
    "two_integers": lambda x, i, u: x.at[i[0], i[1]].add(5),
    "slice": lambda x, i, u: x.at[1:3].set(7),
    "slice_add": lambda x, i, u: x.at[:, 1:].add(x[:, :3]),
    "slice_mul": lambda x, i, u: x.at[1:4, 2].mul(u[0, :3]),
    "stride": lambda x, i, u: x.at[::2].set(u[:3]),
    "backwards": lambda x, i, u: x.at[::-1].add(u),
    "everything": lambda x, i, u: x.at[...].set(u),
    "array": lambda x, i, u: x.at[i].add(u),
    "array_of_columns": lambda x, i, u: x.at[:, i].add(1),
    "array_of_columns_set": lambda x, i, u: x.at[:, i[:2]].set(u[:, :2]),
    "two_arrays": lambda x, i, u: x.at[i, i].set(u[0, 0]),
    "outer_arrays": lambda x, i, u: x.at[i[:, None], i].max(u[0, 0]),
    "array_and_slice": lambda x, i, u: x.at[i, 1:3].min(u[:, 1:3]),
    "constant_mask": lambda x, i, u: x.at[np.array([True, False, True, True, False])].mul(2),
    "scalar": lambda x, i, u: x.at[i].set(0),
    "nothing": lambda x, i, u: x.at[i[:0]].set(1),
    "divide": lambda x, i, u: x.at[i].divide(u),
    "power": lambda x, i, u: x.at[i[:3]].power(2),
    "subtract": lambda x, i, u: x.at[i].subtract(u),
    "apply": lambda x, i, u: x.at[i].apply(jnp.exp),
    "other_dtype": lambda x, i, u: x.at[i].add(jnp.arange(4)),
    "sorted_unique": lambda x, i, u: x.at[jnp.arange(3)].set(
        u[:3], indices_are_sorted=True, unique_indices=True
    ),
    "one_hot": lambda x, i, u: jnp.zeros((5, 5)).at[jnp.arange(5), i].set(1),
}


@family.builder
def updates_at() -> None:
    """The property `.at` of arrays: its kinds of indices, and its methods."""
    for name, fun in _AT.items():
        define(
            "at",
            name,
            fun,
            [Normal((5, 4), _F32), Values([1, -2, 0, 7, -9], _I32), Normal((5, 4), _F32)],
            dtype=_F32,
            ulps={"divide": 1, "apply": 4}.get(name, _EXACT),
        )


@family.builder
def modes_of_updates_at() -> None:
    """The methods of `.at` in each mode for indices out of bounds."""
    for mode in ("clip", "drop", "fill", "promise_in_bounds"):
        for method in ("set", "add", "multiply", "min", "max", "subtract"):
            define(
                f"at_{method}",
                mode,
                lambda x, i, u, mode=mode, method=method: getattr(x.at[i, 1:], method)(
                    u, mode=mode
                ),
                [Normal((5, 4), _F32), Values([1, -2, 0, 7, 1], _I32), Normal((5, 3), _F32)],
                dtype=_F32,
                params={"mode": mode},
                ulps=_EXACT,
                tags=() if method in ("min", "max") else ("ordered",),
            )


_SEGMENTS = Values([0, 2, 2, -1, 0, 9, 1, 2], _I32)
_DATA = Normal((8, 3), _F32)

# Functions that write by index: name, case, function, arguments.
_PUBLIC: list[tuple[str, str, Callable[..., Any], list[Arg]]] = [
    (
        "put_along_axis",
        "rows",
        lambda x, i, u: jnp.put_along_axis(x, i, u, axis=0, inplace=False),
        [Normal((5, 4), _F32), Integers((2, 4), _I32, 0, 5), Normal((2, 4), _F32)],
    ),
    (
        "put_along_axis",
        "flat",
        lambda x, i, u: jnp.put_along_axis(x, i, u, axis=None, inplace=False),
        [Normal((5, 4), _F32), Values([0, 19, -1], _I32), Normal((3,), _F32)],
    ),
    (
        "put",
        "clip",
        lambda x, i, u: jnp.put(x, i, u, mode="clip", inplace=False),
        [Normal((5, 4), _F32), Values([1, 3, 99], _I32), Normal((3,), _F32)],
    ),
    (
        "put",
        "wrap",
        lambda x, i, u: jnp.put(x, i, u, mode="wrap", inplace=False),
        [Normal((5, 4), _F32), Values([1, 3, 99], _I32), Normal((2,), _F32)],
    ),
    (
        "place",
        "",
        lambda x, c, u: jnp.place(x, c, u, inplace=False),
        [Normal((5, 4), _F32), Bools((5, 4)), Normal((3,), _F32)],
    ),
    (
        "fill_diagonal",
        "",
        lambda x: jnp.fill_diagonal(x, 3, inplace=False),
        [Normal((4, 4), _F32)],
    ),
    ("one_hot", "", lambda i: jax.nn.one_hot(i, 4), [Values([0, 3, -1, 4], _I32)]),
    (
        "segment_sum",
        "sorted",
        lambda x, s: jax.ops.segment_sum(x, jnp.sort(s), 4, indices_are_sorted=True),
        [_DATA, Integers((8,), _I32, 0, 4)],
    ),
    (
        "segment_sum",
        "clip",
        lambda x, s: jax.ops.segment_sum(x, s, 4, mode="clip"),
        [_DATA, _SEGMENTS],
    ),
    (
        "segment_sum",
        "buckets",
        lambda x, s: jax.ops.segment_sum(x, s, 4, bucket_size=3),
        [_DATA, _SEGMENTS],
    ),
]


@family.builder
def public_functions() -> None:
    """Functions of JAX that write by index."""
    for name, case, fun, args in _PUBLIC:
        define(name, case, fun, args, dtype=args[0].dtype, ulps=_EXACT)


@family.builder
def segment_reductions() -> None:
    """Reductions of segments, of rows in float32 and of elements in three other dtypes."""
    elements = [Normal((8,), np.dtype(name)) for name in ("int32", "bfloat16", "uint8")]
    for name in ("segment_sum", "segment_prod", "segment_min", "segment_max"):
        for data in (_DATA, *elements):
            define(
                name,
                "",
                lambda x, s, name=name: getattr(jax.ops, name)(x, s, 4),
                [data, _SEGMENTS],
                dtype=data.dtype,
                ulps=_EXACT,
            )


_BATCHES = {
    "both": (0, 0, 0),
    "operand": (2, None, None),
    "indices": (None, 0, None),
    "updates": (None, None, 1),
}


@family.builder
def batching_dimensions() -> None:
    """Updates under vmap, which gives batching dimensions."""
    for name, axes in _BATCHES.items():
        shapes = [(5, 2), (4,), (4, 2)]
        batched = [
            shape if axis is None else (*shape[:axis], 3, *shape[axis:])
            for shape, axis in zip(shapes, axes, strict=True)
        ]
        define(
            "scatter-add",
            f"vmap_{name}",
            jax.vmap(lambda x, i, u: x.at[i].add(u), axes),
            [Normal(batched[0], _F32), Integers(batched[1], _I32, -7, 7), Normal(batched[2], _F32)],
            dtype=_F32,
            ulps=_EXACT,
        )
        define(
            "scatter",
            f"vmap_{name}",
            jax.vmap(lambda x, i, u: x.at[i].set(u), axes),
            [
                Normal(batched[0], _F32),
                Values(np.resize([1, -9, 4, 7], batched[1]), _I32),
                Normal(batched[2], _F32),
            ],
            dtype=_F32,
        )
    define(
        "scatter_apply",
        "vmap",
        jax.vmap(lambda x, i: x.at[i].apply(lambda v: v + 1)),
        [Normal((3, 5), _F32), Integers((3, 4), _I32, -7, 7)],
        dtype=_F32,
        ulps=_EXACT,
    )


@family.builder
def gradients_of_gathers() -> None:
    """The gradients of a gather and of a dynamic_slice, which scatter."""
    define(
        "scatter-add",
        "gradient_of_gather",
        jax.grad(lambda x, i: jnp.sum(jnp.take(x, i, axis=0, mode="fill", fill_value=0) ** 2)),
        [Normal((5, 4), _F32), Values([[1, -2, 0], [7, 1, -9]], _I32)],
        dtype=_F32,
        ulps=_EXACT,
    )
    define(
        "scatter-add",
        "gradient_of_dynamic_slice",
        jax.grad(lambda x, i: jnp.sum(lax.dynamic_slice(x, (i,), (3,)) ** 3)),
        [Normal((7,), _F32), Fill((), _I32, 9)],
        dtype=_F32,
        ulps=4,
    )


@family.builder
def empty_arrays() -> None:
    """Empty updates, and an empty operand."""
    define(
        "scatter",
        "empty_updates",
        lambda x, u: x.at[jnp.zeros((0,), int)].set(u),
        [Normal((5, 4), _F32), Normal((0, 4), _F32)],
        dtype=_F32,
    )
    define(
        "scatter-add",
        "empty_operand",
        lambda x, i, u: x.at[i].add(u),
        [Normal((0, 4), _F32), Values([0, 1], _I32), Normal((2, 4), _F32)],
        dtype=_F32,
    )
