"""Kinds of values in random programs, and the steps from kinds to a kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from tests.impl.fuzzing.functions import THRESHOLD


@dataclasses.dataclass(frozen=True)
class Kind:
    """A step: the kinds of its operands, the kind of its result, and whether it takes parts."""

    operands: tuple[str, ...]
    result: str
    function: Callable[..., Any]
    takes_parts: bool = False


def both(one: Any, other: Any) -> Any:
    """One value that comes of two arguments, equal to each."""
    if jnp.issubdtype(one.dtype, np.inexact):
        return one / 2 + other / 2
    return one


def with_statics(value: Any, factor: Any, statics: dict[str, Any]) -> Any:
    """A value changed as static arguments say."""
    if not jnp.issubdtype(value.dtype, np.floating):
        return value
    if statics.get("how") == "sin":
        value = jnp.sin(value)
    if statics.get("flag") is not None:
        value = value / 2 if statics["flag"] else value + 0.25
    return value * (statics.get("n", 2) * 0.5) * jnp.asarray(factor / 2).astype(value.dtype)


def _keyed(draw: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _, key: draw(key)


def _of_both(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *operands: function(*operands)


def _small(i: Any, x: Any) -> Any:
    """A small number made of integers, in the dtype of `x`."""
    return (i.sum() % 7).astype(x.dtype)


def _int(x: Any) -> Any:
    return jnp.floor(x * 4 + THRESHOLD).astype(np.int32)


def _scan_of_keys(key: Any, length: int) -> Any:
    def step(key: Any, _: Any) -> Any:
        key, sub = random.split(key)
        return key, (sub, random.uniform(sub))

    last, (subs, _) = lax.scan(step, key, None, length=length)
    return last if not length else random.fold_in(subs[-1], length)


def _empty_scan_of_keys(key: Any) -> Any:
    keys = random.split(key, 3)[:0]
    # Of keys that a step gives as they came, JAX would give those that the scan was given.
    return lax.scan(lambda c, k: (c + 1, random.fold_in(k, 1)), jnp.uint32(0), keys)[1]


def _loop_of_keys(key: Any) -> Any:
    return lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, random.split(s[1])[0]), (0, key)
    )[1]


def _wrapped(raw: Any) -> Any:
    return random.wrap_key_data(raw)


STEPS: dict[str, Kind] = {
    "f": Kind(("float",), "float", lambda f, x: f(x), takes_parts=True),
    "f of a sum": Kind(("float", "float"), "float", lambda f, x, y: f(x + y / 2), takes_parts=True),
    "f of a half": Kind(("half",), "half", lambda f, x: f(x), takes_parts=True),
    "f per bool": Kind(
        ("float", "bool"), "float", lambda f, x, b: lax.cond(b.any(), f, jnp.sin, x), True
    ),
    "f closed over": Kind(
        ("float", "float"),
        "float",
        lambda f, x, y: lax.scan(lambda c, _: (f(c) + y.sum() / 8, None), x, None, length=2)[0],
        takes_parts=True,
    ),
    "f times n": Kind(
        ("float", "int"),
        "float",
        lambda f, x, n: lax.fori_loop(0, 2, lambda i, y: f(y) + i * _small(n, y) / 8, x),
        takes_parts=True,
    ),
    "product": Kind(("float", "float"), "float", _of_both(lambda x, y: x * y / 2)),
    "product of halves": Kind(("half", "half"), "half", _of_both(lambda x, y: x * y.sum() / 4)),
    "where": Kind(("bool", "float"), "float", _of_both(lambda b, x: jnp.where(b.any(), x, x / 2))),
    "int": Kind(("float",), "int", _of_both(_int)),
    "float of int": Kind(
        ("int", "float"), "float", _of_both(lambda i, x: x + jnp.sin(_small(i, x)))
    ),
    "arithmetic": Kind(("int", "int"), "int", _of_both(lambda i, j: (i * 3 - j.sum()) // 2 % 7)),
    "bits": Kind(("int",), "int", _of_both(lambda i: lax.population_count(~i) + (i << 1))),
    "sort": Kind(("int",), "int", _of_both(lambda i: jnp.argsort(-i, -1) if i.ndim else i)),
    "sum of ints": Kind(("int",), "int", _of_both(jnp.sum)),
    "compare": Kind(("float",), "bool", _of_both(lambda x: x > THRESHOLD)),
    "compare ints": Kind(("int", "int"), "bool", _of_both(lambda i, j: i >= j.sum())),
    "logic": Kind(("bool", "bool"), "bool", _of_both(lambda a, b: a ^ ~b.all())),
    "count": Kind(("bool",), "int", _of_both(lambda b: b.sum())),
    "complex": Kind(("float",), "complex", _of_both(lambda x: jnp.exp(1j * x))),
    "complex product": Kind(
        ("complex", "complex"), "complex", _of_both(lambda z, w: z * jnp.conj(w.sum()) / 4)
    ),
    "parts": Kind(
        ("complex", "float"), "float", _of_both(lambda z, x: x + (z.real * z.imag).sum() / 8)
    ),
    "uniform": Kind(
        ("key", "float"), "float", _of_both(lambda k, x: x * random.uniform(k, x.shape, x.dtype))
    ),
    "uniform of raw": Kind(
        ("raw key", "float"), "float", _of_both(lambda k, x: x + random.uniform(k, dtype=x.dtype))
    ),
    "bits of a key": Kind(("key",), "int", _keyed(lambda k: random.bits(k, (3,), np.uint32))),
    "split": Kind(("key",), "key", _keyed(lambda k: random.split(k, 2)[1])),
    "fold in": Kind(("key", "int"), "key", _of_both(lambda k, i: random.fold_in(k, i.sum() % 9))),
    "vmap over keys": Kind(
        ("key",),
        "int",
        _keyed(lambda k: jax.vmap(lambda k: random.randint(k, (), 0, 9))(random.split(k))),
    ),
    "scan of keys": Kind(("key",), "key", _keyed(lambda k: _scan_of_keys(k, 2))),
    "empty scan of keys": Kind(("key",), "keys", _keyed(_empty_scan_of_keys)),
    "loop of keys": Kind(("key",), "key", _keyed(_loop_of_keys)),
    "key per bool": Kind(
        ("key", "bool"),
        "key",
        _of_both(lambda k, b: lax.cond(b.any(), lambda k: k, lambda k: random.fold_in(k, 1), k)),
    ),
    "choose a key": Kind(
        ("key", "bool"), "key", _of_both(lambda k, b: jnp.where(b.all(), *random.split(k)))
    ),
    "wrap": Kind(("raw key",), "key", _keyed(_wrapped)),
    "unwrap": Kind(("key",), "raw key", _keyed(random.key_data)),
    "permutation": Kind(("key",), "int", _keyed(lambda k: random.permutation(k, 5))),
}
