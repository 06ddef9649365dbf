"""Steps of random programs for engines on which engines went wrong: what a converter folds away.

Loops that move or overwrite what they carry by ops that change nothing, axes of one element,
numbers that were bools, and choices whose other side is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.impl.fuzzing.engine_steps import STEPS, Steps

_INFINITY = np.float32(np.inf)

# Each gives its operand, an array of a dimension.
_IDENTITIES: dict[str, Callable[..., Any]] = {
    "a power of one": lambda x: lax.integer_pow(x, 1),
    "ones": lambda x: x * jnp.ones(x.shape),
    "zeros": lambda x: x + jnp.zeros(x.shape),
    "negative zeros": lambda x: x + jnp.full(x.shape[:1], -0.0)[..., None].reshape(-1),
    "less zeros": lambda x: x - jnp.zeros(x.shape),
    "over ones": lambda x: x / jnp.ones(x.shape),
    "a product of zeros": lambda x: (
        x - jnp.zeros(x.shape)[..., None] @ np.ones((1, 1), np.float32)[0]
    ),
    "a maximum": lambda x: jnp.maximum(x, -_INFINITY),
    "a slice of all": lambda x: lax.dynamic_slice(x, (0,) * x.ndim, x.shape),
    "an update of all": lambda x: lax.dynamic_update_slice(jnp.zeros(x.shape), x, (0,) * x.ndim),
    "a sum of one": lambda x: x[None].sum(0),
    "a reverse of one": lambda x: x[None][::-1][0],
    "a choice": lambda x: jnp.where(True, x, 0),
    "parts": lambda x: jnp.concatenate([x, x[:0]]),
    "a shared function": jax.jit(lambda x: x / 1),
    "two signs": lambda x: lax.neg(lax.neg(x)),
}


def _moving(identity: Callable[..., Any]) -> Callable[..., Any]:
    def step(i: Any, carry: Any) -> Any:
        return carry[0] * 0.5 + carry[1], identity(carry[0])

    return lambda x: lax.fori_loop(0, 3, step, (x, jnp.cos(x)))[1]


def _guarded(condition: Any, x: Any) -> Any:
    return jnp.where(condition, x, jnp.log(-jnp.abs(x) - 1))


_shared = jax.jit(_guarded)
_table = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def _windows(x: Any, padding: Any, stride: int = 1) -> Any:
    """The array plus the sum of what windows see along its first dimension, which may be open."""
    rows = jnp.reshape(x, (1, x.shape[0], -1))
    kernel = np.ones((2, rows.shape[-1], 2), np.float32) / 8
    layout = ("NHC", "HIO", "NHC")
    return (
        x
        + lax.conv_general_dilated(rows, kernel, (stride,), padding, dimension_numbers=layout).sum()
    )


@jax.jit
def _summed_up(x: Any) -> Any:
    """A layer with a loop that gives something at each step; called twice, it is a function."""
    sums = lax.scan(lambda c, row: (c * 0.5 + row, c * row), x[0], x)[1]
    return jnp.tanh(sums * 0.5 + x)


_EDGES: Steps = {
    "layers with lists": ("F", "f", lambda x: _summed_up(_summed_up(x))),
    "windows that may not fit": ("F", "f", lambda x: _windows(x, "VALID")),
    "windows of padded rows": ("F", "f", lambda x: _windows(x, [(2, 0)])),
    "windows of cut rows": ("F", "f", lambda x: _windows(x, [(-1, 1)], 2)),
    "windows from below": ("F", "f", lambda x: _windows(x, "SAME_LOWER", 2)),
    **{f"carry moved by {name}": ("F", "f", _moving(f)) for name, f in _IDENTITIES.items()},
    "carry overwritten whole": (
        "FI",
        "f",
        lambda x, i: lax.fori_loop(
            0,
            i.sum() % 2,
            lambda k, y: lax.dynamic_update_slice(y, jnp.cos(x) * k, (0,) * x.ndim),
            x,
        ),
    ),
    "carry times zero": (
        "I",
        "i",
        lambda i: lax.fori_loop(0, i.sum() % 3, lambda k, y: y * 0 + k, i),
    ),
    "carried zero": (
        "F",
        "f",
        lambda x: lax.fori_loop(
            0, 3, lambda k, c: (c[0] + c[1], c[0] + c[2], c[2]), (x, x / 2, jnp.zeros(x.shape))
        )[0],
    ),
    "reverse along one": ("i", "i", lambda i: jnp.flip(i[..., None], -1)),
    "reverse along one and more": ("I", "i", lambda i: jnp.flip(i[None], (0, 1))),
    "reverse along one in front": ("f", "f", lambda x: jnp.flip(x[None], 0)[0]),
    "sort of one": ("I", "i", lambda i: jnp.sort(i[:, None], 1, descending=True)),
    "cummax of one": ("I", "i", lambda i: lax.cummax(i[None], 0, reverse=True)),
    "argmax of one": ("I", "i", lambda i: jnp.argmax(i[..., None], -1)),
    "top_k of one": ("F", "f", lambda x: lax.top_k(jnp.nan_to_num(x)[..., None], 1)[0]),
    "roll of one": ("I", "i", lambda i: jnp.roll(i[None], 1, 0)),
    "gather of one": ("I", "i", lambda i: i[:, None][:, np.array([0])]),
    "bool as an index": ("b", "f", lambda b: _table[0][b.astype(np.int32)]),
    "bool as a row": ("b", "f", lambda b: jnp.asarray(_table)[b.any().astype(np.int32)]),
    "bool in a shared function": (
        "b",
        "f",
        lambda b: (lambda pick: pick(b.astype(np.int32)) + pick((~b).astype(np.int32)))(
            jax.jit(lambda i: jnp.asarray(_table)[0][i])
        ),
    ),
    "remainder of a bool": ("b", "i", lambda b: b.astype(np.int32) % 2),
    "quotient of a bool": ("b", "i", lambda b: b.astype(np.int32) // 2),
    "sign of a bool": ("b", "b", lambda b: b.astype(np.float32) < 0),
    "heaviside of a bool": ("b", "f", lambda b: jnp.heaviside(b, 0.5)),
    "guarded": ("bf", "f", lambda b, x: _guarded(b.all(), x)),
    "guarded in a shared function": (
        "bf",
        "f",
        lambda b, x: _shared(b.any(), x) + _shared(b.any(), x / 2),
    ),
    "guarded by a constant": (
        "f",
        "f",
        lambda x: _shared(jnp.array(True), x) + _shared(jnp.array(True), x / 2),
    ),
    "guarded in a loop": (
        "f",
        "f",
        lambda x: lax.fori_loop(0, 2, lambda k, y: _shared(k >= 0, y) / 2, x),
    ),
    "guarded in a branch": (
        "bf",
        "f",
        lambda b, x: lax.cond(b.any(), lambda x: _guarded(x.sum() != 7, x), lambda x: x, x),
    ),
    "guarded variance": (
        "F",
        "f",
        lambda x: jax.vmap(lambda r: jnp.tanh(r * jnp.var(r, keepdims=True)))(x),
    ),
}

ALL_STEPS: Steps = STEPS | _EDGES
