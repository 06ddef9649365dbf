"""Arrays: the primitives that make, move, repeat, cut and choose elements and compute none.

Each primitive runs once on every dtype (`EVERY_DTYPE`); what its params do is shown on float32, and
where a dtype could make a difference on a few more.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    ALL,
    FLOATS,
    INT4,
    Bools,
    Integers,
    Normal,
    Values,
    define,
    edge_values,
    without_subnormals,
)

FLOAT32 = np.dtype(np.float32)
SOME = tuple(np.dtype(d) for d in (np.float32, np.int32, np.bool_))


def _define(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    *args: Any,
    dtype: Any = FLOAT32,
    params: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """`define` with shapes in place of arguments: each is one of normal values of `dtype`."""
    arguments = [Normal(arg, dtype) if isinstance(arg, tuple) else arg for arg in args]
    define(primitive, case, fun, arguments, dtype=dtype, params=params, **kwargs)


def _inside(dtype: np.dtype, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` on 4-bit integers that are made of int8 and become int8 again.

    TensorFlow hands 4-bit integers to compiled code wrongly, which `conversions` shows.
    """

    def on_int8(*args: Any) -> Any:
        converted = [lax.convert_element_type(a, dtype) if a.dtype == np.int8 else a for a in args]
        return jax.tree.map(lambda x: lax.convert_element_type(x, np.int8), fun(*converted))

    return on_int8


def _key_data(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` on arrays of typed PRNG keys, made of their uint32 data."""

    def on_data(*args: Any) -> Any:
        keys = [jax.random.wrap_key_data(a) if a.dtype == np.uint32 else a for a in args]
        return jax.tree.map(jax.random.key_data, fun(*keys))

    return on_data


# What runs on every dtype: (function, shapes); "bool" and "int32" stand for selectors.
EVERY_DTYPE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, 4, 3), (0, 2)), [(2, 3)]),
    "concatenate": (lambda x, y: lax.concatenate([x, y, x], 1), [(2, 3), (2, 1)]),
    "pad": (lambda x, v: lax.pad(x, v, [(1, 2, 0), (0, 1, 0)]), [(2, 3), ()]),
    "pad_interior": (lambda x, v: lax.pad(x, v, [(1, -1, 1), (-1, 2, 2)]), [(2, 3), ()]),
    "reshape": (lambda x: lax.reshape(x, (3, 4)), [(2, 6)]),
    "rev": (lambda x: lax.rev(x, (0, 2)), [(2, 3, 4)]),
    "select_n": (lax.select_n, [Bools((2, 3)), (2, 3), (2, 3)]),
    "select_n_of_three": (lax.select_n, [Integers((6,), np.int32, 0, 3), (6,), (6,), (6,)]),
    "slice": (lambda x: lax.slice(x, (1, 0), (3, 2)), [(4, 3)]),
    "slice_strided": (lambda x: lax.slice(x, (1, 0), (6, 3), (2, 3)), [(7, 4)]),
    "split": (lambda x: lax.split(x, (1, 3, 2), 1), [(2, 6)]),
    "squeeze": (lambda x: lax.squeeze(x, (0, 2)), [(1, 3, 1)]),
    "stack": (lambda x, y: jnp.stack([x, y, x], 1), [(2, 3), (2, 3)]),
    "tile": (lambda x: jnp.tile(x, (2, 3)), [(2, 2)]),
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), [(2, 3, 4)]),
    "unstack": (lambda x: jnp.unstack(x, axis=1), [(2, 3)]),
}


def _moved(shape: tuple[int, ...], dtype: np.dtype) -> Values:
    """Edge values, which may not change on the way: NaN, -0, the ends of integers."""
    values = edge_values(dtype)
    if dtype == jnp.bfloat16:
        # JAX's compiler for CPUs pads bfloat16 in float32, and flushes subnormal numbers there.
        values = without_subnormals(values)
    return Values(np.roll(values, -math.prod(shape)), dtype, shape)


for name, (fun, shapes) in EVERY_DTYPE.items():
    primitive = next(p for p in sorted(EVERY_DTYPE) if name.startswith(p))
    case = name[len(primitive) + 1 :]
    for dtype in ALL:
        args = [_moved(s, dtype) if isinstance(s, tuple) else s for s in shapes]
        define(primitive, case, fun, args, dtype=dtype)
    for dtype in INT4:
        args = [
            Integers(s, np.int8, *((0, 16) if dtype.name == "uint4" else (-8, 8)))
            if isinstance(s, tuple)
            else s
            for s in shapes
        ]
        define(primitive, case, _inside(dtype, fun), args, dtype=dtype)
    keys = [Integers((*s, 2), np.uint32) if isinstance(s, tuple) else s for s in shapes]
    if primitive != "pad":  # not of keys, in JAX
        define(primitive, f"{case}_keys".strip("_"), _key_data(fun), keys, dtype=np.uint32)

for dtype in ALL:
    if dtype != np.bool_:
        _define("iota", "", partial(lax.broadcasted_iota, dtype, (3, 4), 0), dtype=dtype)
        _define("iota", "long", partial(lax.iota, dtype, 300), dtype=dtype)
    # What an empty array holds is nobody's business: it has to be there, and not be chosen.
    _define(
        "empty", "", lambda x: jnp.where(False, lax.empty(x.shape, x.dtype), x), (2, 3), dtype=dtype
    )
    define(
        "full",
        "",
        lambda v: (lax.full((2, 3), v), lax.full((), v), jnp.full((2, 0), v)),
        [_moved((), dtype)],
        dtype=dtype,
    )


_SHAPES_OF_RESHAPE = {
    "flatten": ((2, 3, 2), (12,)),
    "to_scalar": ((1, 1), ()),
    "from_scalar": ((), (1, 1, 1)),
    "with_ones": ((2, 3), (2, 1, 3, 1)),
    "empty": ((0, 3), (3, 0, 2)),
    "same": ((2, 3), (2, 3)),
}
for case, (shape, new) in _SHAPES_OF_RESHAPE.items():
    _define("reshape", case, partial(lax.reshape, new_sizes=new), shape, params={"new_sizes": new})
for dimensions in [(1, 0), (0, 1)]:
    _define(
        "reshape",
        f"dimensions_{'_'.join(map(str, dimensions))}",
        partial(lax.reshape, new_sizes=(2, 6), dimensions=dimensions),
        (4, 3),
        params={"dimensions": dimensions},
    )

# (operand's shape, result's shape, broadcast_dimensions)
_BROADCASTS = {
    "scalar": ((), (2, 3), ()),
    "scalar_to_scalar": ((), (), ()),
    "scalar_to_ones": ((), (1, 1), ()),
    "leading": ((3,), (2, 3), (1,)),
    "trailing": ((2,), (2, 3), (0,)),
    "middle": ((2, 4), (2, 3, 4), (0, 2)),
    "one_expanded": ((2, 1, 4), (2, 3, 4), (0, 1, 2)),
    "leading_and_one_expanded": ((1, 4), (2, 3, 4), (1, 2)),
    "spread_and_one_expanded": ((2, 1), (2, 3, 4, 5), (0, 2)),
    "ones_in_front": ((2, 3), (1, 1, 2, 3), (2, 3)),
    "ones_behind": ((2, 3), (2, 3, 1), (0, 1)),
    "ones_around": ((2, 3), (1, 2, 1, 3, 1), (1, 3)),
    "nothing": ((2, 3), (2, 3), (0, 1)),
    "to_empty": ((1, 3), (0, 3), (0, 1)),
    "of_empty": ((0,), (2, 0), (1,)),
    "rank_9": ((2, 1, 2, 1, 2), (2, 2, 1, 2, 2, 2, 2, 2, 2), (0, 2, 4, 6, 8)),
}
for case, (shape, new, dimensions) in _BROADCASTS.items():
    _define(
        "broadcast_in_dim",
        case,
        partial(lax.broadcast_in_dim, shape=new, broadcast_dimensions=dimensions),
        shape,
        params={"shape": new, "broadcast_dimensions": dimensions},
    )

_PERMUTATIONS = {
    "identity": ((2, 3, 4), (0, 1, 2)),
    "matrix": ((2, 3), (1, 0)),
    "reversed": ((2, 3, 4), (2, 1, 0)),
    "scalar": ((), ()),
    "ones": ((1, 3, 1), (2, 1, 0)),
    "empty": ((0, 3), (1, 0)),
    "rank_10": ((2, 1) * 5, (9, 1, 8, 2, 7, 3, 6, 4, 5, 0)),
}
for case, (shape, permutation) in _PERMUTATIONS.items():
    _define(
        "transpose",
        case,
        partial(lax.transpose, permutation=permutation),
        shape,
        params={"permutation": permutation},
    )

for case, (shape, dimensions) in {
    "nothing": ((1, 2), ()),
    "all": ((1, 1), (0, 1)),
    "one_of_two": ((1, 3, 1), (2,)),
    "negative": ((2, 1), (-1,)),
    "empty": ((0, 1), (1,)),
}.items():
    _define(
        "squeeze",
        case,
        partial(lax.squeeze, dimensions=dimensions),
        shape,
        params={"dimensions": dimensions},
    )

for case, (shape, dimensions) in {
    "nothing": ((2, 3), ()),
    "first": ((3, 2), (0,)),
    "last": ((3, 2), (1,)),
    "all": ((2, 3, 2), (0, 1, 2)),
    "empty": ((0, 3), (0, 1)),
    "rank_9": ((2, 1, 3, 1, 2, 1, 2, 1, 2), (0, 2, 8)),
}.items():
    _define(
        "rev",
        case,
        partial(lax.rev, dimensions=dimensions),
        shape,
        params={"dimensions": dimensions},
    )

for case, (shapes, dimension) in {
    "one_operand": ([(2, 3)], 0),
    "first": ([(1, 2), (3, 2)], 0),
    "last": ([(2, 1), (2, 2), (2, 3)], 1),
    "with_empty": ([(2, 3), (0, 3), (1, 3)], 0),
    "all_empty": ([(0, 3), (0, 3)], 1),
    "many": ([(1, 2)] * 20, 0),
    "rank_9": ([(1,) * 7 + (2, 2)] * 2, 4),
}.items():
    _define(
        "concatenate",
        case,
        lambda *xs, dimension=dimension: lax.concatenate(xs, dimension),
        *shapes,
        params={"dimension": dimension},
    )
for axis in (0, 1, 2, -1):
    _define(
        "stack",
        f"axis_{axis}".replace("-", "minus_"),
        lambda *xs, axis=axis: jnp.stack(xs, axis),
        *[(2, 3)] * 2,
        params={"axis": axis},
    )
    _define(
        "unstack",
        f"axis_{axis}".replace("-", "minus_"),
        partial(jnp.unstack, axis=axis),
        (2, 3, 2),
        params={"axis": axis},
    )
_define("stack", "scalars", lambda *xs: jnp.stack(xs), (), (), ())
_define("stack", "one_operand", lambda x: jnp.stack([x]), (3,))
_define("stack", "equal_operands", lambda x: jnp.stack([x] * 3), (2, 2), dtype=np.uint16)
_define("stack", "empty", lambda x: jnp.stack([x, x]), (0, 2))
_define("unstack", "to_scalars", jnp.unstack, (3,))
_define("unstack", "none", lambda x: [x, *jnp.unstack(x)], (0, 2))

for case, (shape, sizes, axis) in {
    "equal": ((6, 2), (2, 2, 2), 0),
    "unequal": ((2, 6), (1, 5), 1),
    "one": ((3,), (3,), 0),
    "with_empty": ((4,), (0, 3, 0, 1), 0),
    "of_empty": ((0, 4), (1, 3), 1),
    "rank_9": ((1,) * 7 + (2, 3), (1, 2), 8),
}.items():
    _define(
        "split",
        case,
        partial(lax.split, sizes=sizes, axis=axis),
        shape,
        params={"sizes": sizes, "axis": axis},
    )

for case, (shape, reps) in {
    "nothing": ((2, 3), (1, 1)),
    "last": ((2, 3), (1, 2)),
    "more_dimensions": ((3,), (2, 1, 2)),
    "fewer_dimensions": ((2, 3), (2,)),
    "none": ((2, 3), (0, 2)),
    "scalar": ((), (3,)),
    "empty": ((0, 3), (2, 2)),
    "rank_9": ((1, 2) + (1,) * 7, (2, 1) + (1,) * 6 + (2,)),
}.items():
    _define("tile", case, partial(jnp.tile, reps=reps), shape, params={"reps": reps})

# (operand's shape, (low, high, interior) of each dimension)
_PADDINGS: dict[str, tuple[tuple[int, ...], list[tuple[int, int, int]]]] = {
    "nothing": ((2, 3), [(0, 0, 0), (0, 0, 0)]),
    "scalar": ((), []),
    "low": ((2, 3), [(2, 0, 0), (1, 0, 0)]),
    "high": ((2, 3), [(0, 2, 0), (0, 1, 0)]),
    "interior_only": ((3, 2), [(0, 0, 1), (0, 0, 3)]),
    "interior_of_one": ((1, 3), [(0, 0, 2), (0, 0, 0)]),
    "interior_of_empty": ((0, 3), [(0, 0, 2), (1, 1, 1)]),
    "interior_and_edges": ((3, 2), [(1, 2, 1), (2, 0, 2)]),
    "negative_low": ((4, 3), [(-2, 0, 0), (-1, 0, 0)]),
    "negative_high": ((4, 3), [(0, -2, 0), (0, -1, 0)]),
    "negative_both": ((5, 5), [(-1, -2, 0), (-2, -2, 0)]),
    "negative_and_positive": ((4, 3), [(-1, 2, 0), (2, -1, 0)]),
    "negative_into_interior": ((3, 4), [(-1, -1, 1), (-2, -2, 2)]),
    "negative_to_empty": ((3, 2), [(-1, -2, 0), (0, 0, 0)]),
    "negative_beyond_operand": ((2, 2), [(3, -4, 0), (-3, 4, 0)]),
    "of_empty": ((0, 2), [(2, 1, 0), (0, 1, 0)]),
    "negative_of_empty": ((0, 2), [(3, -1, 0), (0, 0, 0)]),
    "every_dimension_of_4": ((1, 2, 1, 2), [(1, 0, 0), (0, 1, 0), (1, 1, 0), (2, 0, 0)]),
    "every_second_of_8": ((1, 2) * 4, [(1, 0, 0), (0, 0, 0)] * 4),
    "interior_of_8": ((2, 1) * 4, [(0, 0, 1), (0, 0, 0)] * 4),
    "rank_9": ((1, 2, 1) * 3, [(1, 0, 0), (0, -1, 0), (0, 1, 0)] * 3),
}
for case, (shape, config) in _PADDINGS.items():
    _define(
        "pad",
        case,
        partial(lax.pad, padding_config=config),
        shape,
        (),
        params={"padding_config": config},
    )
for value in (np.nan, -np.inf, -0.0):
    _define(
        "pad",
        f"with_{value}".replace("-", "minus_").replace(".", "_"),
        lambda x, value=value: lax.pad(x, np.float32(value), [(1, 0, 1), (-1, 2, 0)]),
        (2, 3),
        params={"padding_value": value},
    )

# (operand's shape, start, limit, strides)
_SLICES = {
    "all": ((2, 3), (0, 0), (2, 3), None),
    "to_empty": ((2, 3), (1, 3), (1, 3), None),
    "of_empty": ((0, 3), (0, 1), (0, 2), None),
    "scalar": ((), (), (), None),
    "strides_of_1": ((4, 3), (1, 1), (3, 3), (1, 1)),
    "stride_does_not_divide": ((7,), (1,), (7,), (4,)),
    "stride_beyond_end": ((5, 2), (1, 0), (4, 2), (7, 1)),
    "strided_to_empty": ((5,), (2,), (2,), (3,)),
    "rank_8": ((2,) * 8, (1, 0) * 4, (2,) * 8, None),
    "rank_9": ((2, 1, 3) * 3, (1, 0, 0) * 3, (2, 1, 3) * 3, (1, 1, 2) * 3),
}
for case, (shape, start, limit, strides) in _SLICES.items():
    _define(
        "slice",
        case,
        partial(lax.slice, start_indices=start, limit_indices=limit, strides=strides),
        shape,
        params={"start_indices": start, "limit_indices": limit, "strides": strides},
    )

for dtype in SOME:
    for count in (1, 2, 4, 7):
        _define(
            "select_n",
            f"of_{count}",
            lax.select_n,
            # Selectors beyond both ends take the first and the last case.
            Integers((4, 5), np.int32, -2, count + 2),
            *[(4, 5)] * count,
            dtype=dtype,
            params={"cases": count},
        )
        _define(
            "select_n",
            f"of_{count}_by_scalar",
            lax.select_n,
            Values(count - 1, np.int32),
            *[(2, 3)] * count,
            dtype=dtype,
            params={"cases": count},
        )
    for predicate in (False, True):
        _define(
            "select_n",
            f"by_{predicate}".lower(),
            lax.select_n,
            Values(predicate, bool),
            (2, 3),
            (2, 3),
            dtype=dtype,
        )
    _define("select_n", "scalars", lax.select_n, Bools(()), (), (), dtype=dtype)
    _define("select_n", "empty", lax.select_n, Bools((0, 2)), (0, 2), (0, 2), dtype=dtype)
    _define(
        "select_n",
        "rank_9",
        lax.select_n,
        Bools((1, 2) * 4 + (1,)),
        *[(1, 2) * 4 + (1,)] * 2,
        dtype=dtype,
    )
_define("select_n", "of_one_by_bool", lax.select_n, Bools((3,)), (3,), params={"cases": 1})
_define(
    "select_n",
    "keeps_nan_out",
    lambda p, x: lax.select_n(p, x / 0, x),
    Bools((6,)),
    (6,),
)

# (shape, dimension); the first are small enough to be constants.
_IOTAS = {
    "scalar_like": ((1,), 0),
    "first": ((4, 2), 0),
    "last": ((2, 5), 1),
    "middle": ((2, 4, 3), 1),
    "empty": ((0, 3), 1),
    "along_empty": ((3, 0), 1),
    "wide": ((3, 200), 1),
    "tall": ((200, 3), 0),
    "short_side": ((100, 2), 1),
    "deep": ((2, 90, 2), 1),
}
for dtype in (np.int32, np.float32):
    for case, (shape, dimension) in _IOTAS.items():
        _define(
            "iota",
            case,
            partial(lax.broadcasted_iota, dtype, shape, dimension),
            dtype=dtype,
            params={"shape": shape, "dimension": dimension},
        )
# More numbers than the dtype has: integers wrap, floats round to even.
for dtype in (np.int8, np.uint8, np.float16, jnp.bfloat16):
    _define("iota", "beyond_dtype", partial(lax.iota, dtype, 3000), dtype=dtype)
for dtype in (np.int64, np.float64):
    _define("iota", "without_x64", partial(lax.iota, dtype, 5), dtype=dtype, x64=False)

# Public functions that trace to the primitives above: (function, shapes).
_FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "array_split": (lambda x: jnp.array_split(x, 3, 1), [(2, 7)]),
    "atleast_3d": (jnp.atleast_3d, [(2, 3)]),
    "block": (lambda x, y: jnp.block([[x, y], [y, x]]), [(2, 2), (2, 2)]),
    "broadcast_arrays": (lambda x, y: jnp.broadcast_arrays(x, y), [(2, 1), (3,)]),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (4, 2, 3)), [(2, 1)]),
    "column_stack": (lambda x, y: jnp.column_stack([x, y]), [(3,), (3, 2)]),
    "diagflat": (jnp.diagflat, [(2, 2)]),
    "dsplit": (lambda x: jnp.dsplit(x, 2), [(2, 1, 4)]),
    "dstack": (lambda x, y: jnp.dstack([x, y]), [(2, 3), (2, 3)]),
    "expand_dims": (lambda x: jnp.expand_dims(x, (0, 2)), [(2, 3)]),
    "flip": (jnp.flip, [(2, 3)]),
    "fliplr": (jnp.fliplr, [(2, 3)]),
    "flipud": (jnp.flipud, [(2, 3)]),
    "hsplit": (lambda x: jnp.hsplit(x, [1, 2]), [(2, 4)]),
    "hstack": (lambda x, y: jnp.hstack([x, y]), [(2, 1), (2, 2)]),
    "insert_axis_by_none": (lambda x: x[:, None, :, None], [(2, 3)]),
    "meshgrid": (lambda x, y: jnp.meshgrid(x, y, indexing="ij"), [(2,), (3,)]),
    "moveaxis": (lambda x: jnp.moveaxis(x, (0, 1), (-1, 0)), [(2, 3, 4)]),
    "pad_constant": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=1), [(2, 3)]),
    "pad_edge": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), mode="edge"), [(2, 3)]),
    "pad_reflect": (lambda x: jnp.pad(x, ((1, 0), (2, 1)), mode="reflect"), [(2, 3)]),
    "pad_symmetric": (lambda x: jnp.pad(x, ((1, 3), (2, 0)), mode="symmetric"), [(2, 3)]),
    "pad_wrap": (lambda x: jnp.pad(x, ((1, 3), (2, 0)), mode="wrap"), [(2, 3)]),
    "ravel": (jnp.ravel, [(2, 3)]),
    "repeat": (lambda x: jnp.repeat(x, 3, axis=1), [(2, 3)]),
    "repeat_flat": (lambda x: jnp.repeat(x, 2), [(2, 3)]),
    "roll": (lambda x: jnp.roll(x, 2, axis=1), [(2, 5)]),
    "roll_flat": (lambda x: jnp.roll(x, -4), [(2, 3)]),
    "roll_two_axes": (lambda x: jnp.roll(x, (1, -1), (0, 1)), [(3, 4)]),
    "rot90": (lambda x: (jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1)), [(2, 3)]),
    "swapaxes": (lambda x: jnp.swapaxes(x, 0, 2), [(2, 3, 4)]),
    "tril": (lambda x: jnp.tril(x, -1), [(3, 4)]),
    "triu": (lambda x: jnp.triu(x, 1), [(2, 3, 4)]),
    "vstack": (lambda x, y: jnp.vstack([x, y]), [(3,), (2, 3)]),
    "where": (lambda p, x, y: jnp.where(p, x, y), [Bools((2, 1)), (3,), ()]),
    "zeros_like": (lambda x: (jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 1)), [(2, 3)]),
}
for name, (fun, shapes) in _FUNCTIONS.items():
    for dtype in SOME:
        _define(name, "", fun, *shapes, dtype=dtype)

for dtype in (np.float32, np.int32, np.bool_, np.complex64):
    dtype = np.dtype(dtype)
    _define(
        "eye",
        "",
        lambda dtype=dtype: (jnp.eye(3, 4, 1, dtype), jnp.eye(2, dtype=dtype)),
        dtype=dtype,
    )
    _define(
        "tri",
        "",
        lambda dtype=dtype: (jnp.tri(3, 4, 1, dtype), jnp.tri(2, 2, -1, dtype)),
        dtype=dtype,
    )
for dtype in (np.float32, np.int32, np.complex64):
    # A product of complex numbers is two products and a sum, which may be fused.
    ulps = {"complex64": 2}
    _define("kron", "", jnp.kron, (2, 3), (3, 2), dtype=dtype, ulps=ulps)
    _define("kron", "vectors", jnp.kron, (3,), (2,), dtype=dtype, ulps=ulps)
for x64 in (False, True):
    case = "with_x64" if x64 else "without_x64"
    _define("arange", case, lambda: (jnp.arange(5), jnp.arange(5.0), jnp.arange(7, 1, -2)), x64=x64)
    _define("arange", f"fractional_{case}", lambda: jnp.arange(0.5, 3.0, 0.25), x64=x64)
    _define("linspace", case, lambda: jnp.linspace(0, 1, 5), x64=x64, ulps=1)
    _define(
        "linspace",
        f"open_{case}",
        lambda: jnp.linspace(-2, 3, 7, endpoint=False),
        x64=x64,
        ulps=2,
        scale="array",
    )
    _define("full", case, lambda: (jnp.full((2,), 3), jnp.zeros(2), jnp.ones((2, 1), int)), x64=x64)

# JAX fills the other branches of what it differentiates with it.
for dtype in FLOATS:
    define(
        "empty2",
        "",
        lambda x: jax.grad(lambda x: jnp.diagonal(x).sum())(x),
        [Normal((3, 3), dtype)],
        dtype=dtype,
    )
