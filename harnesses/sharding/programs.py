"""Programs of each device: shard_map and pmap with their options, inside of other functions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from harnesses.harness import Integers, Normal, define
from harnesses.sharding.meshes import mesh_of, on_each

_ROUND = [(i, (i + 1) % 8) for i in range(8)]
_FLOATS = Normal((16, 32), jnp.float32)
_WHOLE = P("a", "b")


def _ring(x: Any) -> Any:
    count = lax.axis_size("a")
    perm = [(i, (i + 1) % count) for i in range(count)]
    return lax.ppermute(x, "a", perm)


def _scanned(x: Any) -> Any:
    return lax.scan(lambda c, _: (_ring(c) * 0.5 + lax.psum(c, "b"), c.sum(0)), x, None, length=3)


def _choosing(x: Any) -> Any:
    return lax.cond(lax.axis_index("a") > 1, jnp.sin, lambda x: x + 1, x)


def _until_large(x: Any) -> Any:
    def small(x: Any) -> Any:
        return lax.psum(jnp.abs(x).sum(), ("a", "b")) < 1e4

    return lax.while_loop(small, lambda x: x * 2, x)


def _nested(x: Any) -> Any:
    inner = jax.shard_map(
        lambda y: lax.psum(y, "b") + lax.axis_index("a"),
        in_specs=P(None, "b"),
        out_specs=P(),
        axis_names={"b"},
    )
    return inner(x)


def _noise(x: Any) -> Any:
    key = jax.random.fold_in(jax.random.key(0), lax.axis_index("a"))
    return x + jax.random.uniform(key, x.shape)


_jitted = jax.jit(lambda x: jnp.tanh(lax.pmean(x, "a")) * x)

_CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "": (jnp.sin, _WHOLE, _WHOLE, {}),
    "no_specs": (lambda x: x * 2, P(), P(), {}),
    "turned": (lambda x: x.sum(0), P(("b", "a")), P(("a", "b")), {}),
    "joined": (lambda x: x.T, P(None, ("a", "b")), P(("a", "b")), {}),
    "unchecked": (lambda x: x + lax.psum(x, "a"), P("a"), P("a"), {"check_vma": False}),
    "replicated_unchecked": (lambda x: lax.pmax(x, "a"), P("a"), P(), {"check_vma": False}),
    "partly_manual": (lambda x: lax.psum(x, "a"), P("a"), P(), {"axis_names": {"a"}}),
    "nested": (_nested, P("a"), P("a"), {"axis_names": {"a"}}),
    "scan": (_scanned, _WHOLE, (_WHOLE, P(None, ("a", "b"))), {}),
    "cond": (_choosing, _WHOLE, _WHOLE, {}),
    "while": (_until_large, _WHOLE, _WHOLE, {}),
    "remat": (jax.checkpoint(lambda x: jnp.sin(lax.psum(x, "a")) * x), _WHOLE, _WHOLE, {}),
    "jit": (lambda x: _jitted(_jitted(x)), _WHOLE, _WHOLE, {}),
    "grad": (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), _WHOLE, _WHOLE, {}),
    "vmap": (jax.vmap(lambda x: x - lax.pmean(x, "a")), _WHOLE, _WHOLE, {}),
    "random": (_noise, P("a"), P("a"), {}),
    "custom_jvp": (jax.nn.relu, _WHOLE, _WHOLE, {}),
}
for case, (program, given, made, options) in _CASES.items():
    fun = on_each(program, "4x2", given, made, **options)
    define("shard_map", case, fun, [_FLOATS], dtype=np.float32, scale="array")

define(
    "shard_map",
    "two_arguments",
    on_each(lambda x, w: lax.psum(x @ w, "b"), "4x2", (P("a", "b"), P("b")), P("a")),
    [_FLOATS, Normal((32, 4), jnp.float32)],
    dtype=np.float32,
    scale="array",
)


def _pmapped(fun: Any, **options: Any) -> Any:
    def on_devices(x: Any, *rest: Any) -> Any:
        devices = list(mesh_of("8").devices.flat)
        mapped = jax.pmap(fun, axis_name="i", devices=devices, **options)
        return mapped(x.reshape(len(devices), -1, *x.shape[1:]), *rest)

    return on_devices


_PMAPPED: dict[str, Any] = {
    "": _pmapped(jnp.sin),
    "psum": _pmapped(lambda x: x - lax.psum(x, "i")),
    "out_axes": _pmapped(lambda x: (x * 2, lax.pmean(x, "i")), out_axes=(1, None)),
    "axis_size": _pmapped(lambda x: x * lax.axis_index("i")),
    "static": _pmapped(lambda x, n: x * n + lax.axis_size("i"), static_broadcasted_argnums=1),
}
for case, fun in _PMAPPED.items():
    called = (lambda x, fun=fun: fun(x, 3)) if case == "static" else fun
    define("pmap", case, called, [_FLOATS], dtype=np.float32, scale="array")
define(
    "pmap",
    "in_axes",
    _pmapped(lambda x, y: x * y, in_axes=(0, None)),
    [Integers((16, 32), jnp.int32), Integers((2, 32), jnp.int32)],
    dtype=np.int32,
)
