"""Programs of each device: shard_map and pmap with their options, inside of other functions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from harnesses.harness import Bools, Integers, Normal, define
from harnesses.sharding import family
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


def _noise_by_rbg(x: Any) -> Any:
    """JAX's vmap of XLA's generator draws for all from one key; each device draws from its own."""
    key = jax.random.fold_in(jax.random.key(0, impl="rbg"), lax.axis_index(("a", "b")))
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
    "random_rbg": (_noise_by_rbg, _WHOLE, _WHOLE, {}),
    "custom_jvp": (jax.nn.relu, _WHOLE, _WHOLE, {}),
}


@family.builder
def programs_of_shard_map() -> None:
    """`shard_map` with its options, of programs with loops, derivatives and random numbers."""
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


# How an array is split, and joined again.
_SPECS: dict[str, tuple[str, Any, Any]] = {
    "rows": ("4x2", P("a"), P("a")),
    "columns": ("4x2", P(None, "a"), P(None, "a")),
    "rows_of_columns": ("4x2", P("a"), P(None, "a")),
    "turned_axes": ("4x2", P("b", "a"), P("a", "b")),
    "in_a_tuple": ("4x2", P(("a", "b")), P(None, ("b", "a"))),
    "of_three": ("2x2x2", P(("c", "a"), "b"), P("b", ("a", "c"))),
    "of_some": ("2x2x2", P("c"), P("c", ("b", "a"))),
    "with_one_device": ("8x1", P("a", "b"), P("b", "a")),
    "on_one_device": ("1", P("a"), P(None, "a")),
    "repeated": ("4x2", P(), P("a", "b")),
}


@family.builder
def specs_of_shard_map() -> None:
    """Arrays of each dtype, split and joined again as each pair of specs says."""
    for case, (mesh, given, made) in _SPECS.items():
        for dtype in (jnp.float32, jnp.bfloat16, jnp.int8, jnp.bool_, jnp.complex64):
            define(
                "shard_map",
                f"specs_{case}",
                on_each(lambda x: x[..., ::-1], mesh, given, made),
                [Bools((16, 32)) if dtype is jnp.bool_ else Normal((16, 32), dtype)],
                dtype=dtype,
                params={"mesh": mesh, "in_specs": str(given), "out_specs": str(made)},
            )


def _in_parts(x: Any) -> Any:
    return x.reshape(8, -1, *x.shape[1:])


def _devices() -> list[Any]:
    return list(mesh_of("8").devices.flat)


def _pmapped(fun: Any, **options: Any) -> Any:
    def on_devices(x: Any, *rest: Any) -> Any:
        mapped = jax.pmap(fun, axis_name="i", devices=_devices(), **options)
        return mapped(_in_parts(x), *rest)

    return on_devices


def _mapped_along_columns(x: Any) -> Any:
    mapped = jax.pmap(lambda x: x * 2, in_axes=1, out_axes=1, devices=_devices())
    return mapped(x[:, :8])


def _trees(x: Any) -> Any:
    def each(tree: Any, scale: Any) -> Any:
        return {"sum": lax.psum(tree["x"], "i"), "scaled": (tree["y"] * scale,)}

    mapped = jax.pmap(
        each,
        axis_name="i",
        in_axes=({"x": 0, "y": 1}, None),
        out_axes={"sum": None, "scaled": (1,)},
        devices=_devices(),
    )
    return mapped({"x": _in_parts(x), "y": x[:, :8]}, 3.0)


def _differentiated(x: Any) -> Any:
    mapped = _pmapped(lambda x: jnp.sin(x) * lax.pmean(x, "i"))
    return jax.grad(lambda x: jnp.sum(mapped(x) ** 2))(x)


def _stepping(w: Any, x: Any) -> Any:
    def step(w: Any, x: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - 0.1 * lax.pmean(gradient, "i"), lax.pmean(loss, "i")

    mapped = jax.pmap(step, "i", in_axes=(None, 0), out_axes=None, devices=_devices())
    return mapped(w, _in_parts(x))


_PMAPPED: dict[str, Any] = {
    "": _pmapped(jnp.sin),
    "psum": _pmapped(lambda x: x - lax.psum(x, "i")),
    "out_axes": _pmapped(lambda x: (x * 2, lax.pmean(x, "i")), out_axes=(1, None)),
    "axis_size": _pmapped(lambda x: x * lax.axis_index("i"), axis_size=8),
    "in_and_out_axes": _mapped_along_columns,
    "of_trees": _trees,
    "jit": jax.jit(_pmapped(lambda x: lax.ppermute(x, "i", _ROUND))),
    "donated": _pmapped(lambda x: x + 1, donate_argnums=0),
    "groups": _pmapped(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 6, 7], [2, 3, 4, 5]])),
    "scan": _pmapped(
        lambda x: lax.scan(lambda c, _: (lax.ppermute(c, "i", _ROUND), c), x, None, length=2)
    ),
    "vmap": _pmapped(jax.vmap(lambda x: lax.pmax(x, "i") - x)),
    "grad": _differentiated,
    "random": _pmapped(
        lambda x: x + jax.random.normal(jax.random.fold_in(jax.random.key(1), lax.axis_index("i")))
    ),
}


@family.builder
def programs_of_pmap() -> None:
    """`pmap` with its options, of collectives, and inside of other functions."""
    for case, fun in _PMAPPED.items():
        define("pmap", case, fun, [_FLOATS], dtype=np.float32, scale="array")


@family.builder
def arguments_of_pmap() -> None:
    """`pmap` of two arguments: one static, or one that each device has whole."""
    # The second argument is a number that the program is made for.
    static = _pmapped(lambda x, n: x * n + lax.axis_size("i"), static_broadcasted_argnums=1)
    define("pmap", "static", lambda x: static(x, 3), [_FLOATS], dtype=np.float32, scale="array")
    define(
        "pmap",
        "step",
        _stepping,
        [Normal((32, 4), jnp.float32), _FLOATS],
        dtype=np.float32,
        scale="array",
    )
    define(
        "pmap",
        "in_axes",
        _pmapped(lambda x, y: x * y, in_axes=(0, None)),
        [Integers((16, 32), jnp.int32), Integers((2, 32), jnp.int32)],
        dtype=np.int32,
    )
