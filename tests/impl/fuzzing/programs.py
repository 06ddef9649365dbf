"""Random programs over random symbolic shapes.

A program is a list of steps over a growing list of arrays of one dtype. int32 makes every
comparison exact: what is wrong in a shape, an index or an order is wrong by a whole number. Steps
that TensorFlow has for floats alone (convolution, pooling) then go through small whole floats.

A step is chosen while the shapes are symbolic, and JAX itself says whether it fits (a step that it
refuses is left out); it is then the same function for every size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import export, lax

Draw = Callable[[st.SearchStrategy], Any]
Step = Callable[..., jax.Array]

SPECS = ("b", "b, 3", "2, b", "a, b", "b, a, 2", "2*b", "b, b", "b + 1, a", "3", "2, 3")
SIZES = st.fixed_dictionaries({"a": st.integers(1, 4), "b": st.integers(1, 5)})


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A step, the arrays that it takes, and its words."""

    step: Step
    operands: tuple[int, ...]
    words: str

    def __repr__(self) -> str:
        return f"{self.words}{self.operands}"


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays of the shapes that `specs` tell; it gives the array of each step."""

    specs: tuple[str, ...]
    steps: tuple[Chosen, ...]
    dtype: Any

    def __call__(self, *args: Any) -> list[jax.Array]:
        values = [jnp.asarray(a) for a in args]
        for chosen in self.steps:
            values.append(chosen.step(*(values[i] for i in chosen.operands)))
        return values[len(args) :]

    def shapes(self, sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """The shapes of the arguments where variables have these sizes."""
        return [tuple(eval(f"({spec},)", {}, sizes)) for spec in self.specs]

    def arguments(self, sizes: dict[str, int]) -> list[np.ndarray]:
        """Arguments of these shapes."""
        rng = np.random.default_rng(sum(sizes.values()))
        return [rng.integers(-9, 10, shape).astype(self.dtype) for shape in self.shapes(sizes)]


@st.composite
def programs(draw: Draw, max_steps: int = 6, dtype: Any = np.int32) -> Program:
    """A program of steps that have results of one dtype, and take them."""
    specs = tuple(draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=2)))
    scope = export.SymbolicScope()
    avals = [
        jax.ShapeDtypeStruct(export.symbolic_shape(spec, scope=scope), dtype) for spec in specs
    ]
    steps = []
    for _ in range(draw(st.integers(1, max_steps))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        operand = draw(st.integers(0, len(avals) - 1))
        partners = [i for i, aval in enumerate(avals) if aval.shape == avals[operand].shape]
        operands = (operand,) if kind not in OF_TWO else (operand, draw(st.sampled_from(partners)))
        step = KINDS[kind](draw, len(avals[operand].shape))
        if step is None:
            continue
        try:
            aval = jax.eval_shape(step, *(avals[i] for i in operands))
        except Exception:  # whatever JAX says of a step that does not fit symbolic shapes
            continue
        # Repeating and joining multiply sizes; what is measured is shapes, not speed.
        if aval.dtype == dtype and len(aval.shape) <= 4 and len(str(aval.shape)) < 60:
            steps.append(Chosen(step, operands, kind))
            avals.append(jax.ShapeDtypeStruct(aval.shape, dtype))
    return Program(specs, tuple(steps), dtype)


# --- Kinds of steps ---------------------------------------------------------------------------
#
# A kind makes a step for operands of a rank, or None where there is none for that rank.


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


KINDS: dict[str, Callable[[Draw, int], Step | None]] = {
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
