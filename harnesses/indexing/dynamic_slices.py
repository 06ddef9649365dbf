"""Dynamic slices, read and written: starts are clamped so that the slice fits."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import ALL, FLOATS, INT4, INTEGERS, Normal, Values, define, edge_values
from harnesses.indexing import family

_F32, _I32 = np.dtype("float32"), np.dtype("int32")
_MATRIX = (5, 4)

_STARTS = {
    "inside": (1, 2),
    "at_the_beginning": (0, 0),
    "at_the_end": (3, 1),
    "above": (4, 100),
    "below": (-100, -9),
    "negative": (-2, -4),
    "least": (jnp.iinfo(_I32).min,) * 2,
    "greatest": (jnp.iinfo(_I32).max,) * 2,
}

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


@family.builder
def slices_of_every_dtype() -> None:
    """A slice of a matrix of every dtype, read and written."""
    start = Values(3, _I32)
    for dtype in (*ALL, *INT4):
        operand, update = Normal(_MATRIX, dtype), Normal((2, 3), dtype)
        define(
            "dynamic_slice",
            "",
            lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)),
            [operand, start],
            dtype=dtype,
        )
        define(
            "dynamic_update_slice",
            "",
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)),
            [operand, update, start],
            dtype=dtype,
        )


@family.builder
def starts_in_and_out_of_bounds() -> None:
    """Starts in bounds, at the ends and out of bounds; negative ones count from the end or not."""
    for name, place in _STARTS.items():
        starts = [Values(i, _I32) for i in place]
        for negative in (True, False):
            case = name if negative else f"{name}_not_from_the_end"
            define(
                "dynamic_slice",
                case,
                lambda x, i, j, negative=negative: lax.dynamic_slice(
                    x, (i, j), (2, 3), allow_negative_indices=negative
                ),
                [Normal(_MATRIX, _F32), *starts],
                dtype=_F32,
                params={"allow_negative_indices": negative},
            )
            define(
                "dynamic_update_slice",
                case,
                lambda x, u, i, j, negative=negative: lax.dynamic_update_slice(
                    x, u, (i, j), allow_negative_indices=negative
                ),
                [Normal(_MATRIX, _F32), Normal((2, 3), _F32), *starts],
                dtype=_F32,
                params={"allow_negative_indices": negative},
            )


@family.builder
def edges() -> None:
    """NaN, infinities and zeros of either sign, in what is sliced and in what is written."""
    for dtype in FLOATS:
        values = edge_values(dtype)
        operand, update = Values(values, dtype), Values(values[::-1][:-2], dtype)
        define(
            "dynamic_slice",
            "edges",
            lambda x: lax.dynamic_slice(x, (1,), (9,)),
            [operand],
            dtype=dtype,
        )
        define(
            "dynamic_update_slice",
            "edges",
            lambda x, u: lax.dynamic_update_slice(x, u, (1,)),
            [operand, update],
            dtype=dtype,
        )


@family.builder
def starts_of_every_integer_dtype() -> None:
    """Starts of every integer dtype: one in bounds, the largest and the least."""
    for start_dtype in INTEGERS:
        ends = jnp.iinfo(start_dtype)
        for name, place in {"inside": 2, "largest": ends.max, "least": ends.min}.items():
            case = f"start_{start_dtype.name}_{name}"
            start = Values(place, start_dtype)
            define(
                "dynamic_slice",
                case,
                lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
                [Normal((7,), _F32), start],
                dtype=_F32,
                params={"start_dtype": start_dtype.name},
            )
            define(
                "dynamic_update_slice",
                case,
                lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)),
                [Normal((7,), _F32), Normal((3,), _F32), start],
                dtype=_F32,
                params={"start_dtype": start_dtype.name},
            )


@family.builder
def sizes_of_slices() -> None:
    """Slices of each size of arrays of each rank, empty ones among them."""
    for name, (shape, sizes) in _SLICES.items():
        start_dtype = np.dtype("int8") if "int8" in name else _I32
        starts = [Values(min(i + 1, 1), start_dtype) for i in range(len(shape))]
        define(
            "dynamic_slice",
            name,
            lambda x, *i, sizes=sizes: lax.dynamic_slice(x, i, sizes),
            [Normal(shape, _F32), *starts],
            dtype=_F32,
            params={"slice_sizes": sizes},
        )
        define(
            "dynamic_update_slice",
            name,
            lambda x, u, *i: lax.dynamic_update_slice(x, u, i),
            [Normal(shape, _F32), Normal(sizes, _F32), *starts],
            dtype=_F32,
            params={"update_shape": sizes},
        )


@family.builder
def batched_slices() -> None:
    """Slices under vmap: of operands and starts, and of starts alone."""
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
