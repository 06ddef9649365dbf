"""Every primitive of arrays on every dtype: edge values, which may not change on the way."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arrays import family
from harnesses.arrays.normal import define_normal
from harnesses.harness import (
    ALL,
    INT4,
    Bools,
    Integers,
    Values,
    define,
    edge_values,
    without_subnormals,
)


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


def _moved(shape: tuple[int, ...], dtype: np.dtype, start: int | None = None) -> Values:
    """Edge values from one on, which may not change on the way: NaN, -0, the ends of integers."""
    values = edge_values(dtype)
    if dtype == jnp.bfloat16:
        # JAX's compiler for CPUs pads bfloat16 in float32, and flushes subnormal numbers there.
        values = without_subnormals(values)
    return Values(np.roll(values, -(math.prod(shape) if start is None else start)), dtype, shape)


@family.builder
def primitives_on_every_dtype() -> None:
    """Each primitive on every dtype, on 4-bit integers and on typed PRNG keys."""
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


@family.builder
def arrays_from_nothing() -> None:
    """`iota`, `empty` and `full` of every dtype."""
    for dtype in ALL:
        if dtype != np.bool_:
            define_normal("iota", "", partial(lax.broadcasted_iota, dtype, (3, 4), 0), dtype=dtype)
            define_normal("iota", "long", partial(lax.iota, dtype, 300), dtype=dtype)
        # What an empty array holds is nobody's business: it has to be there, and not be chosen.
        define_normal(
            "empty",
            "",
            lambda x: jnp.where(False, lax.empty(x.shape, x.dtype), x),
            (2, 3),
            dtype=dtype,
        )
        define(
            "full",
            "",
            lambda v: (lax.full((2, 3), v), lax.full((), v), jnp.full((2, 0), v)),
            [_moved((), dtype)],
            dtype=dtype,
        )


# Some operands of `EVERY_DTYPE` are too small to hold every edge value.
_N = max(edge_values(dtype).size for dtype in ALL)
EVERY_EDGE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, _N), (1,)), [(_N,)]),
    "concatenate": (lambda *xs: lax.concatenate(xs, 0), [(_N,)] * 4),
    "pad": (
        lambda x, v: [lax.pad(x[i : i + 1], v[i], [(1, 2, 0)]) for i in range(_N)],
        [(_N,), (_N,)],
    ),
    "select_n": (lax.select_n, [Integers((4 * _N,), np.int32, 0, 3), *[(4 * _N,)] * 3]),
    "squeeze": (lambda x: lax.squeeze(x, (0, 2)), [(1, _N, 1)]),
    "stack": (lambda *xs: jnp.stack(xs, 1), [(_N,)] * 4),
    "tile": (lambda x: jnp.tile(x, (2, 3)), [(2, _N)]),
    "unstack": (lambda x: jnp.unstack(x, axis=1), [(2, _N)]),
}
_SHOWN = ("bfloat16", "float32", "int8", "uint32", "complex64", "bool")


@family.builder
def every_edge_value() -> None:
    """Every edge value of a dtype through every operand."""
    for primitive, (fun, shapes) in EVERY_EDGE.items():
        for dtype in (dtype for dtype in ALL if dtype.name in _SHOWN):
            # Each operand begins with another value, so that they are not the same.
            args = [
                _moved(shape, dtype, start=start) if isinstance(shape, tuple) else shape
                for start, shape in enumerate(shapes)
            ]
            define(primitive, "edges", fun, args, dtype=dtype)
