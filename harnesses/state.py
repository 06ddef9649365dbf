"""Mutable references: made, read, written, passed into jitted functions and loops."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import FLOATS, INTS, Family, Normal, define

family = Family("state")


def _read_and_write(x: Any) -> Any:
    ref = jax.new_ref(x)
    ref[0] = ref[1] + 1
    return ref[...], ref[2]


def _swap(x: Any) -> Any:
    ref = jax.new_ref(x)
    old = ref[...]
    ref[...] = old[::-1]
    return old, ref[...]


@jax.jit
def _write_inside(ref: Any, x: Any) -> Any:
    ref[1] = x
    return ref[2] * 2


def _argument_of_jit(x: Any) -> Any:
    ref = jax.new_ref(x)
    result = _write_inside(ref, x[0] * 3)
    return result, ref[...]


def _in_scan(x: Any) -> Any:
    ref = jax.new_ref(jnp.zeros_like(x))

    def step(carry: Any, i: Any) -> Any:
        ref[i] = carry + x[i]
        return carry + ref[i], ref[...]

    carry, history = lax.scan(step, x[0], jnp.arange(x.shape[0]))
    return carry, history, ref[...]


def _in_while(x: Any) -> Any:
    ref = jax.new_ref(x)

    def body(i: Any) -> Any:
        ref[0] = ref[0] + 1
        return i + 1

    lax.while_loop(lambda i: i < 3, body, 0)
    return ref[...]


def _in_cond(x: Any) -> Any:
    ref = jax.new_ref(x)

    def write() -> None:
        ref[0] = ref[1]

    lax.cond(x[0] > x[1], write, lambda: None)
    return ref[...]


def _gradient(x: Any) -> Any:
    def loss(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[0] = ref[1] * ref[2]
        return jnp.sum(ref[...] ** 2)

    return jax.grad(loss)(x)


_CASES: dict[str, tuple[str, Callable[..., Any]]] = {
    "read_and_write": ("get", _read_and_write),
    "swap_all": ("swap", _swap),
    "argument_of_jit": ("new_ref", _argument_of_jit),
    "in_scan": ("swap", _in_scan),
    "in_while": ("swap", _in_while),
    "in_cond": ("swap", _in_cond),
    "slice": ("swap", lambda x: _written(x, np.s_[1:3], lambda v: v * 2)),
    "gather": ("swap", lambda x: _written(x, jnp.array([2, 0]), lambda v: v + 1)),
    "add": ("swap", lambda x: _written(x, np.s_[...], lambda v: v + v)),
}


def _written(x: Any, where: Any, new: Callable[[Any], Any]) -> Any:
    ref = jax.new_ref(x)
    ref[where] = new(ref[where])
    return ref[...]


@family.builder
def references() -> None:
    """References to floats and integers: read, written, differentiated and frozen."""
    for case, (primitive, fun) in _CASES.items():
        for dtype in (*FLOATS, *INTS):
            define(primitive, case, fun, [Normal((4,), dtype)], dtype=dtype)
    for dtype in FLOATS:
        define("new_ref", "gradient", _gradient, [Normal((4,), dtype)], dtype=dtype)
    define(
        "freeze",
        "",
        lambda x: jax.freeze(jax.new_ref(x)),
        [Normal((4,), np.float32)],
        dtype=np.float32,
    )


_TOKENS: dict[str, Callable[..., Any]] = {
    "create_token": lambda x: (lax.create_token(x), x)[1],
    "after_all": lambda x: (lax.after_all(lax.create_token(x)), x)[1],
}


@family.builder
def tokens() -> None:
    """Tokens, which order effects and hold no value."""
    for primitive, fun in _TOKENS.items():
        define(primitive, "", fun, [Normal((4,), np.float32)], dtype=np.float32)
