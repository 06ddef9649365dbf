"""Dynamic slices, read and written: starts are clamped so that the slice fits."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import ALL, INT4, INTEGERS, Normal, Values, define

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
    _ends = jnp.iinfo(_index_dtype)
    for _name, _place in {"inside": 2, "largest": _ends.max, "least": _ends.min}.items():
        _case = f"start_{_index_dtype.name}_{_name}"
        _start = Values(_place, _index_dtype)
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
