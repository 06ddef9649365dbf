"""The steps of random programs.

A kind makes a step for operands of a rank, or None where there is none for that rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

Draw = Callable[[st.SearchStrategy], Any]
Step = Callable[..., jax.Array]


def _of_any(*functions: Step) -> Callable[[Draw, int], Step]:
    return lambda draw, rank: draw(st.sampled_from(functions))


def _of_axis(*functions: Callable[..., jax.Array]) -> Callable[[Draw, int], Step | None]:
    def make(draw: Draw, rank: int) -> Step | None:
        if not rank:
            return None
        function, axis = draw(st.sampled_from(functions)), draw(st.integers(0, rank - 1))
        return lambda x, *others: _of_dtype(function(x, *others, axis), x.dtype)

    return make


def _of_dtype(x: jax.Array, dtype: Any) -> jax.Array:
    return x if jnp.issubdtype(x.dtype, np.inexact) else x.astype(dtype)


def _floats(x: jax.Array) -> jax.Array:
    return x if jnp.issubdtype(x.dtype, np.inexact) else (x % 7).astype(np.float32)


def _transpose(draw: Draw, rank: int) -> Step:
    permutation = draw(st.permutations(range(rank)))
    return lambda x: jnp.transpose(x, permutation)


def _reshape(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return lambda x: x.reshape(1, 1)
    axis = draw(st.integers(0, rank - 1))
    return draw(
        st.sampled_from(
            [
                lambda x: x.reshape(-1),
                lambda x: x.reshape(x.shape[axis], -1),
                lambda x: x.reshape(-1, x.shape[axis]),
                lambda x: x.reshape(int(np.prod(())), *x.shape),
                lambda x: jnp.expand_dims(x, axis),
                lambda x: x.reshape(*x.shape[:axis], 1, *x.shape[axis:]),
            ]
        )
    )


def _slice(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    axis, step = draw(st.integers(0, rank - 1)), draw(st.integers(1, 3))
    return draw(
        st.sampled_from(
            [
                lambda x: lax.slice_in_dim(x, 0, x.shape[axis], step, axis),
                lambda x: lax.slice_in_dim(x, x.shape[axis] // 2, x.shape[axis], step, axis),
                lambda x: lax.slice_in_dim(x, 0, (x.shape[axis] + 1) // 2, 1, axis),
                lambda x: lax.dynamic_slice_in_dim(
                    x, x.size % 5 - 1, (x.shape[axis] + 1) // 2, axis
                ),
                lambda x: lax.rev(x, [axis]),
                lambda x: jnp.roll(x, step - 2, axis),
            ]
        )
    )


def _pad(draw: Draw, rank: int) -> Step:
    amounts = st.tuples(st.integers(-1, 2), st.integers(0, 2), st.integers(0, 2))
    config = [draw(amounts) for _ in range(rank)]
    if draw(st.booleans()):
        return lambda x: lax.pad(x, x.dtype.type(5), config)
    return lambda x: lax.pad(x, x.dtype.type(5), [(0, d - 1, 0) for d in x.shape])


def _with_dimensions(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    axis = draw(st.integers(0, rank - 1))
    return draw(
        st.sampled_from(
            [
                lambda x: x + x.shape[axis],
                lambda x: x * lax.broadcasted_iota(np.int32, x.shape, axis),
                lambda x: jnp.arange(x.shape[axis]) - x.shape[axis] // 2,
                lambda x: jnp.array(x.shape) * 3,
                lambda x: jnp.full((x.shape[axis] + 2, 2), x.shape[axis]),
                lambda x: x + (x.shape[axis] - 7) // 3,
                lambda x: x + (x.shape[axis] - 7) % 3,
                lambda x: jnp.broadcast_to(x, (x.shape[axis], *x.shape)),
                lambda x: x + jnp.int32(jax.core.max_dim(x.shape[axis], 3)),
            ]
        )
    )


def _take(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    axis = draw(st.integers(0, rank - 1))
    return draw(
        st.sampled_from(
            [
                lambda x: jnp.take(x, jnp.arange(3) % x.shape[axis], axis=axis),
                lambda x: jnp.take(x, jnp.arange(x.shape[axis]) * 2, axis=axis, mode="clip"),
                lambda x: jnp.take(x, jnp.arange(4), axis=axis, mode="fill", fill_value=-1),
                lambda x: jnp.take_along_axis(x, jnp.abs(x) % x.shape[axis], axis),
                lambda x: lax.index_in_dim(x, -1, axis, keepdims=False),
                lambda x: x[jnp.abs(x) % x.shape[0]] if rank == 1 else x[::-1],
                lambda x: x.at[0].add(x[-1]),
                lambda x: x.at[jnp.arange(3)].set(7, mode="drop"),
            ]
        )
    )


def _loop(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    return draw(
        st.sampled_from(
            [
                lambda x: lax.scan(lambda c, row: (c + row, c - row), x[0] * 2, x)[1],
                lambda x: lax.fori_loop(0, x.shape[0], lambda i, y: y + i * x[i], x),
                lambda x: lax.while_loop(
                    lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + x), (0, x)
                )[1],
                lambda x: lax.cond(x.sum() > 0, lambda y: y + y.shape[0], lambda y: -y, x),
                lambda x: jax.vmap(lambda row: row * row.size + 1)(x),
                lambda x: lax.map(lambda row: jnp.flip(row) + 1 if row.ndim else row, x),
                lambda x: lax.associative_scan(jnp.add, x),
            ]
        )
    )


def _contract(draw: Draw, rank: int) -> Step | None:
    if rank < 1:
        return None
    contracted = draw(st.lists(st.integers(0, rank - 1), max_size=rank, unique=True))
    rest = [i for i in range(rank) if i not in contracted]
    batch = [i for i in rest if draw(st.booleans())]
    numbers = ((contracted, contracted), (batch, batch))
    return lambda x, y: lax.dot_general(x, y, numbers)


def _convolve(draw: Draw, rank: int) -> Step | None:
    if rank < 1:
        return None
    strides, padding = draw(st.integers(1, 2)), draw(st.sampled_from(["SAME", "VALID"]))
    width = draw(st.integers(1, 3))

    def convolve(x: jax.Array) -> jax.Array:
        rows = _floats(x).reshape(1, -1, x.shape[-1]) if rank > 1 else _floats(x)[None, None]
        kernel = jnp.arange(1, 1 + width, dtype=np.float32).reshape(1, 1, width)
        rows = jnp.moveaxis(rows, 0, 1)
        return lax.conv_general_dilated(rows, kernel, [strides], padding).astype(x.dtype)[:, 0]

    return convolve


def _pool(draw: Draw, rank: int) -> Step | None:
    if rank < 1:
        return None
    window, strides = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    reducer, start = draw(st.sampled_from([(lax.add, 0.0), (lax.max, -np.inf)]))
    of = (*[1] * (rank - 1), window), (*[1] * (rank - 1), strides)

    def pool(x: jax.Array) -> jax.Array:
        pooled = lax.reduce_window(_floats(x), np.float32(start), reducer, *of, padding)
        return jnp.maximum(pooled, -9).astype(x.dtype)

    return pool


def _scatter(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    axis, by = draw(st.integers(0, rank - 1)), draw(st.integers(1, 4))

    def rows(x: jax.Array) -> jax.Array:
        """Indices of rows, some of them twice and some out of bounds."""
        return jnp.arange(x.shape[0]) * by % (x.shape[0] + 1)

    def in_first(x: jax.Array) -> jax.Array:
        """The first half, at least one, of `axis`."""
        return lax.slice_in_dim(x, 0, (x.shape[axis] + 1) // 2, axis=axis)

    return draw(
        st.sampled_from(
            [
                lambda x: x.at[rows(x)].add(x),
                lambda x: x.at[rows(x)].min(x - 3),
                lambda x: x.at[rows(x)].max(x + x.shape[0], mode="clip"),
                lambda x: x.at[jnp.arange(x.shape[0])[::-1]].multiply(x[0]),
                lambda x: x.at[-1].set(x.shape[axis]),
                lambda x: x.at[..., x.shape[-1] // 2 :].add(by),
                lambda x: x.at[x.size % 3, ..., by].set(1, mode="drop"),
                lambda x: lax.dynamic_update_slice_in_dim(x, in_first(x) * 2, x.size % 4, axis),
                lambda x: jax.ops.segment_sum(x, rows(x) % 3, num_segments=3),
                lambda x: jax.ops.segment_max(x, rows(x), num_segments=x.shape[0]),
            ]
        )
    )


@jax.jit
def _layer(x: jax.Array, by: Any) -> jax.Array:
    return lax.scan(lambda c, row: (c + 1, row * c), jnp.int32(by).astype(x.dtype), x)[1] + x.size


def _call(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    by = draw(st.integers(0, 2))
    inner = jax.jit(lambda x: x + jnp.sum(x, 0) + x.shape[0])
    return draw(
        st.sampled_from(
            [
                lambda x: _layer(_layer(x, by), x.shape[0]),
                lambda x: inner(inner(x)) + inner(x),
                lambda x: jax.vmap(inner, by % rank, by % rank)(x) if rank > 1 else inner(x),
                lambda x: lax.switch(x.shape[0] % 3, [inner, jnp.negative, lambda y: y + by], x),
                lambda x: jax.checkpoint(inner)(x),
                lambda x: lax.fori_loop(0, x.shape[-1] % 3, lambda i, y: inner(y) + i, x),
                lambda x: lax.scan(lambda c, _: (inner(c), None), x, None, 2)[0],
                lambda x: lax.scan(lambda c, r: (c - r, c), x[0], x, reverse=True)[1],
                lambda x: lax.map(inner, x) if rank > 1 else x,
            ]
        )
    )


def _window(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    reducer, start = draw(st.sampled_from([(lax.add, 0), (lax.max, -99), (lax.min, 99)]))
    sizes, strides, base, window = (
        [draw(st.integers(1, most)) for _ in range(rank)] for most in (3, 2, 2, 2)
    )
    edges = st.tuples(st.integers(-1, 2), st.integers(0, 2))
    padding = draw(st.one_of(st.sampled_from(["SAME", "VALID"]), st.just([draw(edges)] * rank)))
    words = {"base_dilation": base, "window_dilation": window} if draw(st.booleans()) else {}
    return lambda x: lax.reduce_window(
        x, x.dtype.type(start), reducer, sizes, strides, padding, **words
    )


def _triangle(draw: Draw, rank: int) -> Step | None:
    if not rank:
        return None
    k = draw(st.integers(-1, 1))
    if rank == 1:
        return lambda x: jnp.diag(x, k)
    return draw(
        st.sampled_from(
            [
                lambda x: jnp.tril(x, k),
                lambda x: jnp.triu(x, k),
                lambda x: jnp.diagonal(x, k),
                lambda x: x * jnp.eye(*x.shape[-2:], k=k, dtype=x.dtype),
                lambda x: jnp.trace(x),
            ]
        )
    )


KINDS: dict[str, Callable[[Draw, int], Step | None]] = {
    "scatter": _scatter,
    "call": _call,
    "window": _window,
    "triangle": _triangle,
    "split": _of_axis(
        lambda x, axis: jnp.split(jnp.concatenate([x, x - 1], axis), 2, axis)[1],
        lambda x, axis: jnp.stack(jnp.split(jnp.stack([x, x - 1], axis), 2, axis)[1:] * 2, axis),
        lambda x, axis: jnp.unstack(jnp.stack([x, x - 1], axis), axis=axis)[1],
        lambda x, axis: lax.top_k(x, (x.shape[axis] + 1) // 2, axis=axis)[0],
        lambda x, axis: lax.top_k(x, x.shape[axis] // 2, axis=axis)[1],
    ),
    "clip": _of_axis(
        lambda x, axis: jnp.clip(x, -x.shape[axis], x.shape[axis]),
        lambda x, axis: jnp.where(lax.broadcasted_iota(np.int32, x.shape, axis) < 2, x, -x),
        lambda x, axis: x // x.shape[axis],
        lambda x, axis: x % (x.shape[axis] + 1),
        lambda x, axis: x + jax.random.randint(jax.random.key(axis), x.shape, 0, 9).astype(x.dtype),
        lambda x, axis: lax.select(x > x.shape[axis], x, jnp.full_like(x, axis)),
    ),
    "unary": _of_any(jnp.negative, jnp.abs, lambda x: x % 11, jnp.sign, lambda x: x ^ (x >> 1)),
    "binary": _of_any(jnp.add, jnp.multiply, jnp.maximum, lambda x, y: jnp.where(x > y, x, y - 1)),
    "outer": _of_any(lambda x: x[..., None] + x[..., None, :] if x.ndim else x),
    "transpose": _transpose,
    "reshape": _reshape,
    "reduce": _of_axis(jnp.sum, jnp.max, jnp.min, jnp.argmax, jnp.prod, jnp.any),
    "cumulative": _of_axis(
        jnp.cumsum,
        jnp.cumprod,
        lax.cummax,
        lambda x, axis: lax.cumsum(x, axis, reverse=True),
    ),
    "sort": _of_axis(
        jnp.sort,
        jnp.argsort,
        lambda x, axis: lax.top_k(jnp.moveaxis(x, axis, -1), 1)[1],
        lambda x, axis: lax.sort([x, x + 1], dimension=axis, num_keys=1)[1],
    ),
    "concatenate": _of_axis(
        lambda x, y, axis: jnp.concatenate([x, y + 1], axis),
        lambda x, y, axis: jnp.stack([x, y], axis),
    ),
    "repeat": _of_axis(
        lambda x, axis: jnp.repeat(x, 2, axis),
        lambda x, axis: jnp.concatenate([x, x[:1]]),
        lambda x, axis: jnp.tile(x, 2),
    ),
    "slice": _slice,
    "pad": _pad,
    "dimensions": _with_dimensions,
    "take": _take,
    "loop": _loop,
    "contract": _contract,
    "convolve": _convolve,
    "pool": _pool,
}
OF_TWO = frozenset({"binary", "concatenate", "contract"})
