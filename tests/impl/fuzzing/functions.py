"""Random functions of one array of floats, nested in JAX's transformations.

A function keeps shape and dtype, and maps numbers of about [-2, 2] to such numbers, so that its
derivatives are well conditioned too. Where it decides by a number, it does so at THRESHOLD, which
no computation here gives: rounding then changes no decision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from tests.impl.fuzzing import foreign

Fun = Callable[[jax.Array], jax.Array]
THRESHOLD = 0.37

# More than what becomes a variable in a Module, and views of it that end in different numbers. Sums
# of 200 of its elements are exact.
LARGE = (np.arange(20_000, dtype=np.float32) - 10_000) / 2**14
VIEWS = (LARGE, LARGE[:18_000], LARGE.reshape(200, 100), LARGE.reshape(100, 200).T, LARGE[::-1])
SMALL_VIEWS = (LARGE[:9], LARGE[:6].reshape(2, 3), LARGE[:9].reshape(3, 3).T, LARGE[8::-1])


def _captured(*views: Any) -> Fun:
    """Several arrays that are captured, each with a number of its own at its end."""
    return lambda x: x - sum(jnp.asarray(v)[-1].sum().astype(x.dtype) / 64 for v in views) / 8


def _sum_of(x: jax.Array) -> jax.Array:
    return x.sum() / max(x.size, 1)


def _matrix(x: jax.Array) -> jax.Array:
    n = x.shape[-1]
    return x @ (jnp.arange(n * n, dtype=x.dtype).reshape(n, n) / (2 * n * n))


_shared = jax.jit(lambda x: jnp.sin(x) - jnp.cos(x * x / 2) / 2 + _sum_of(x))

# Continuous functions, also where half precision rounds otherwise.
SMOOTH: dict[str, Fun] = {
    "sin": jnp.sin,
    "square": lambda x: x * x / 2,
    "weak": lambda x: 0.5 * x + 1,
    "sum": lambda x: x - _sum_of(x),
    "flip": lambda x: jnp.flip(x) - x / 2,
    "iota": lambda x: x + lax.broadcasted_iota(x.dtype, x.shape, x.ndim - 1) / 4 if x.ndim else x,
    "shared twice": lambda x: _shared(x) / 2 + _shared(x / 2) / 2,
    "array": lambda x: (
        x * jnp.array([0.5, -1.5, 1.0], x.dtype)[: x.shape[-1] if x.ndim else 1].sum()
    ),
}
OTHERS: dict[str, Fun] = {
    "where": lambda x: jnp.where(x > THRESHOLD, x, x / 2),
    "clip": lambda x: jnp.clip(x, -1.3, 1.3),
    "relu": lambda x: jax.nn.relu(x - THRESHOLD),
    "gelu": jax.nn.gelu,
    "softmax": lambda x: jax.nn.softmax(x, -1) if x.ndim else x,
    "cumsum": lambda x: jnp.cumsum(x, -1) / 2 if x.ndim else x,
    "matrix": lambda x: _matrix(x) if x.ndim else x,
    "take": lambda x: x[..., np.arange(x.shape[-1])[::-1] // 2] if x.ndim and x.size else x,
    "scatter": lambda x: x.at[..., 0].add(x[..., -1]) / 2 if x.ndim else x,
    "stop": lambda x: x + lax.stop_gradient(jnp.sin(x)),
    "solve": lambda x: lax.custom_linear_solve(
        lambda y: 2 * y, x, lambda _, b: b / 2, symmetric=True
    ),
    "root": lambda x: (
        lax.custom_root(
            lambda y: 2 * y - jnp.sin(x),
            x,
            lambda _, y: jnp.sin(x) / 2 + 0 * y,
            lambda g, y: y / g(jnp.ones_like(y)),
        )
        if not x.ndim
        else x
    ),
    **{f"views {i}": _captured(*VIEWS[i : i + 2]) for i in range(len(VIEWS))},
    "small views": _captured(*SMALL_VIEWS),
    **foreign.FUNCTIONS,
}


def _scan(g: Fun, n: int) -> Fun:
    def scan(x: jax.Array) -> jax.Array:
        last, all_ = lax.scan(lambda c, _: (g(c), c), x, None, length=n)
        return last + all_.sum(0) / 4

    return scan


def _scan_rows(g: Fun, n: int) -> Fun:
    def scan(x: jax.Array) -> jax.Array:
        if not x.ndim:
            return g(x)
        start = (jnp.zeros(x.shape[1:], x.dtype), jnp.int32(0))
        _, rows = lax.scan(
            lambda c, row: ((g(c[0] / 2 + row), c[1] + 1), c[0] + row), start, x, reverse=n % 2 == 1
        )
        return rows / 2

    return scan


def _cond(g: Fun, n: int) -> Fun:
    def cond(x: jax.Array) -> jax.Array:
        if n < 2:
            return lax.cond(_sum_of(x) > THRESHOLD, g, lambda x: x / 2, x)
        index = (_sum_of(x) > THRESHOLD).astype(np.int32) + n - 2
        return lax.switch(index, [g, jnp.sin, lambda x: g(x) / 2], x)

    return cond


def _custom_jvp(g: Fun, n: int) -> Fun:
    """With a derivative that is not g's own."""
    function = jax.custom_jvp(g)

    @function.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y, dy = jax.jvp(g, primals, tangents)
        return y, dy * 2

    return function


def _custom_vjp(g: Fun, n: int) -> Fun:
    """With a derivative that is not g's own; some have a loop of unknown length in it."""

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def function(k: int, x: jax.Array, step: jax.Array) -> Any:
        return g(x), step + k

    def forward(k: int, x: jax.Array, step: jax.Array) -> Any:
        return function(k, x, step), (x, step)

    def backward(k: int, residuals: Any, cotangents: Any) -> Any:
        x, step = residuals
        (dx,) = jax.vjp(g, x)[1](cotangents[0])
        if n > 1:
            _, dx = lax.while_loop(
                lambda s: s[0] < k, lambda s: (s[0] + 1, s[1] / 2 + dx), (step, dx)
            )
        return dx / k, np.zeros((), jax.dtypes.float0)

    function.defvjp(forward, backward)
    return lambda x: function(n + 1, x, jnp.int32(0))[0]


def _while(g: Fun, n: int) -> Fun:
    """A loop of unknown length, whose gradient is that of one step."""

    @jax.custom_vjp
    def function(x: jax.Array) -> jax.Array:
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, g(s[1])), (0, x))[1]

    function.defvjp(lambda x: (function(x), x), lambda x, ct: jax.vjp(g, x)[1](ct))
    return function


def _custom_gradient(g: Fun, n: int) -> Fun:
    return jax.custom_gradient(lambda x: (g(x), lambda ct: ct * jnp.cos(x)))


def _twice(g: Fun, n: int) -> Fun:
    """One jitted function that is called again, with another shape too."""
    jitted = jax.jit(g, inline=n == 3)
    return lambda x: jitted(x) / 2 + jitted(x / 2) / 4 + jitted(x[None])[0] / 4


def _static(g: Fun, n: int) -> Fun:
    jitted = jax.jit(
        lambda x, n, how, times=2: g(x) * n / 2 if how == "g" else x * times,
        static_argnums=1,
        static_argnames="how",
    )
    return lambda x: jitted(x, n, how="g") / 2 + jitted(x, n, how="x") / 4


def _vmap(g: Fun, n: int) -> Fun:
    def vmap(x: jax.Array) -> jax.Array:
        axis = n % 2 - 1 if x.ndim else None
        return jax.vmap(g, axis, axis)(x) if x.ndim and x.shape[axis] else g(x)

    return vmap


def _vmap_of_two(g: Fun, n: int) -> Fun:
    return lambda x: jax.vmap(lambda a, b: g(a) * b, (0, None))(jnp.stack([x, x / 2]), x)[n % 2] / 2


def _hvp(g: Fun, n: int) -> Fun:
    gradient = jax.grad(lambda x: g(x).sum())
    return lambda x: jax.jvp(gradient, (x,), (jnp.ones_like(x),))[1] / 8


def _linear(g: Fun, n: int) -> Fun:
    def linear(x: jax.Array) -> jax.Array:
        y, tangents = jax.linearize(g, x)
        (transposed,) = jax.linear_transpose(tangents, x)(jnp.ones_like(y))
        return y / 2 + tangents(jnp.sin(x)) / 8 + transposed / 8

    return linear


def _with_tree(g: Fun, n: int) -> Fun:
    """Through jit and remat as a tree with None, an empty tuple and a Partial."""
    jitted = jax.jit(lambda tree: {"y": tree["f"](tree["x"][0]), "nothing": (tree["none"], ())})
    half = jax.tree_util.Partial(lambda k, x: g(x) * k, 0.5)
    return lambda x: jax.checkpoint(jitted)({"x": [x], "none": None, "f": half})["y"]


# What has a derivative in every order and direction ...
WRAPPERS: dict[str, Callable[[Fun, int], Fun]] = {
    "jit": lambda g, n: jax.jit(g),
    "twice": _twice,
    "static": _static,
    "tree": _with_tree,
    "vmap": _vmap,
    "vmap of two": _vmap_of_two,
    "scan": _scan,
    "scan rows": _scan_rows,
    "fori": lambda g, n: lambda x: lax.fori_loop(0, n, lambda i, y: g(y) + i / 8, x),
    "map": lambda g, n: lambda x: lax.map(g, x) if x.ndim else g(x),
    "checkpoint": lambda g, n: jax.checkpoint(g, policy=jax.checkpoint_policies.dots_saveable),
    "custom_jvp": _custom_jvp,
    "grad": lambda g, n: jax.grad(lambda x: g(x).sum() / 2),
    "hvp": _hvp,
    "linear": _linear,
    "jvp": lambda g, n: lambda x: jax.jvp(g, (x,), (x / 2,))[1] / 2,
    "barrier": lambda g, n: lambda x: lax.optimization_barrier((g(x), x))[0],
}
# ... where half precision decides the same, and where JAX has reverse mode alone.
DECISIONS = {"cond": _cond}
REVERSE = {"custom_vjp": _custom_vjp, "while": _while, "custom_gradient": _custom_gradient}
ALL = {**WRAPPERS, **DECISIONS, **REVERSE}
LEAVES = {**SMOOTH, **OTHERS}
# Forward mode comes in these, and cannot be asked of what has reverse mode alone.
_FORWARD = {"hvp", "linear", "jvp"}


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One function of the tables; `inner` is what a transformation is made of."""

    name: str
    n: int = 0
    inner: tuple[Part, ...] = ()

    def __call__(self, x: jax.Array) -> jax.Array:
        return ALL[self.name](chain(self.inner), self.n)(x) if self.inner else LEAVES[self.name](x)

    def __repr__(self) -> str:
        return f"{self.name}{self.n}{list(self.inner)}" if self.inner else self.name


def chain(parts: tuple[Part, ...]) -> Fun:
    """The parts one after another, the first one first."""

    def run(x: jax.Array) -> jax.Array:
        x = jnp.asarray(x)  # an array that is captured may be NumPy's
        for part in parts:
            x = part(x).astype(x.dtype)
        return x

    return run


@st.composite
def parts(
    draw: Any,
    *,
    half: bool = False,
    reverse: bool = True,
    depth: int = 2,
    among: Sequence[str] = tuple(ALL | LEAVES),
) -> tuple[Part, ...]:
    """A chain of parts.

    Args:
      half: whether it is of numbers of half precision.
      reverse: whether it may hold what has reverse mode alone.
      depth: how deep transformations are nested.
      among: among which transformations and functions they are.
    """
    leaves = [n for n in (SMOOTH if half else LEAVES) if n in among] or sorted(SMOOTH)
    wrappers = WRAPPERS | ({} if half else DECISIONS) | (REVERSE if reverse else {})
    possible = [n for n in wrappers if n in among]
    chosen = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        if not depth or not possible or draw(st.integers(0, 2)) == 0:
            chosen.append(Part(draw(st.sampled_from(leaves))))
            continue
        name = draw(st.sampled_from(possible))
        reversed_too = reverse and name not in _FORWARD
        inner = parts(half=half, reverse=reversed_too, depth=depth - 1, among=among)
        chosen.append(Part(name, draw(st.integers(0, 3)), draw(inner)))
    return tuple(chosen)
