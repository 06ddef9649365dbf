"""Each collective over each choice of a mesh's axes, and inside of each transformation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from harnesses.harness import Normal, define
from harnesses.sharding import family
from harnesses.sharding.meshes import on_each, rows_over

Axes = str | tuple[str, ...]
Exchange = Callable[[Any, Axes], Any]


def _next(axes: Axes) -> list[tuple[int, int]]:
    count = lax.axis_size(axes)
    return [(i, (i + 1) % count) for i in range(count)]


def _reversed(x: Any, axes: Axes) -> Any:
    return lax.pshuffle(x, axes, list(range(lax.axis_size(axes)))[::-1])


def _in_parts(x: Any, axes: Axes) -> Any:
    return x.reshape(x.shape[0], lax.axis_size(axes), -1)


def _varying(x: Any, axes: Axes) -> Any:
    return lax.pcast(lax.psum(x, axes), axes, to="varying") * x


# By primitive and case: what a device does with its rows, over these axes.
_EXCHANGES: dict[tuple[str, str], Exchange] = {
    ("psum", ""): lax.psum,
    ("pmean", ""): lax.pmean,
    ("pmax", ""): lax.pmax,
    ("pmin", ""): lax.pmin,
    ("ppermute", ""): lambda x, axes: lax.ppermute(x, axes, _next(axes)),
    ("pshuffle", ""): _reversed,
    ("pswapaxes", ""): lambda x, axes: lax.pswapaxes(_in_parts(x, axes), axes, 1),
    ("all_gather", ""): lax.all_gather,
    ("all_gather", "tiled"): lambda x, axes: lax.all_gather(x, axes, axis=1, tiled=True),
    ("all_to_all", ""): lambda x, axes: lax.all_to_all(_in_parts(x, axes), axes, 1, 0),
    ("all_to_all", "tiled"): lambda x, axes: lax.all_to_all(x, axes, 1, 0, tiled=True),
    ("psum_scatter", ""): lambda x, axes: lax.psum_scatter(
        _in_parts(x, axes), axes, scatter_dimension=1
    ),
    ("psum_scatter", "tiled"): lambda x, axes: lax.psum_scatter(
        x, axes, scatter_dimension=1, tiled=True
    ),
    ("axis_index", ""): lambda x, axes: x * lax.axis_index(axes),
    ("pvary", ""): _varying,
}

# JAX takes a permutation only over axes in the order of the mesh.
_IN_ORDER = frozenset({"ppermute", "pshuffle"})
# JAX has no derivative of the first two, and its transpose of the last has another shape.
_NOT_DIFFERENTIABLE = frozenset({("pmax", ""), ("pmin", ""), ("all_to_all", "")})

# The mesh, and the axes of the collective.
_AXES: dict[str, tuple[str, Axes]] = {
    "of_2x4": ("2x4", "b"),
    "turned": ("2x4", ("b", "a")),
    "of_two": ("2x2x2", ("a", "c")),
    "of_three": ("2x2x2", ("a", "b", "c")),
    "of_one_device": ("8x1", "b"),
    "beside_one_device": ("8x1", ("a", "b")),
}
_ROWS = [Normal((16, 32), jnp.float32)]
_Each = Callable[[Any], Any]


def _over(exchange: Exchange, axes: Axes) -> _Each:
    return lambda x: exchange(x, axes)


def _define(primitive: str, *case: str, fun: Callable[..., Any], **settings: Any) -> None:
    name = "_".join(filter(None, case))
    define(primitive, name, fun, _ROWS, dtype=np.float32, scale="array", **settings)


@family.builder
def collectives_over_axes_of_a_mesh() -> None:
    """Each collective over each choice of a mesh's axes."""
    for (primitive, form), exchange in _EXCHANGES.items():
        for case, (mesh, axes) in _AXES.items():
            if case == "turned" and primitive in _IN_ORDER:
                continue
            rows = rows_over(mesh)
            fun = on_each(_over(exchange, axes), mesh, rows, rows)
            _define(primitive, form, case, fun=fun, params={"axes": axes})


def _scanned(each: _Each) -> _Each:
    def step(carry: Any, _: None) -> tuple[Any, Any]:
        return jnp.sin(carry), each(carry)

    return lambda x: lax.scan(step, x, None, length=3)[1].sum(0)


def _branching(each: _Each) -> _Each:
    # The same on all devices: else some would wait for the others.
    def chosen(x: Any) -> Any:
        return lax.cond(lax.pmax(x.max(), ("a", "b")) > 0, each, lambda x: each(x * 2), x)

    return chosen


def _counting(each: _Each) -> _Each:
    def step(_: Any, x: Any) -> Any:
        y = each(x)
        return x + 0.1 * y.mean()

    return lambda x: lax.fori_loop(0, 3, step, x)


def _nested(each: _Each) -> _Each:
    """A collective over "a" in a program of the devices of "b", inside of one of those of "a"."""
    return lambda x: jax.shard_map(each, in_specs=P(None, "b"), out_specs=P("b"), axis_names={"b"})(
        x
    )


def _loss(each: _Each) -> _Each:
    return jax.grad(lambda x: jnp.sum(jnp.sin(each(x)) ** 2))


# Within the program of a device.
_WITHIN: dict[str, Callable[[_Each], _Each]] = {
    "jit": lambda each: lambda x: jax.jit(each)(x) + jax.jit(each)(x),
    # Not of x and -x, whose sums cancel but for the order in which devices add.
    "vmap": lambda each: lambda x: jax.vmap(each)(jnp.stack([x, x / 2], 1).swapaxes(0, 1)).sum(0),
    "scan": _scanned,
    "cond": _branching,
    "fori_loop": _counting,
}
_GRADIENTS_WITHIN: dict[str, Callable[[_Each], _Each]] = {
    "remat": lambda each: _loss(jax.checkpoint(each)),
    "grad_within": _loss,
}
_MESH = "4x2"
_BY_BOTH = rows_over(_MESH)


def _weights(y: Any) -> Any:
    return (1 + jnp.cos(jnp.arange(y.size, dtype=y.dtype)) / 2).reshape(y.shape)


def _vjp(mapped: _Each) -> _Each:
    def backward(x: Any) -> Any:
        y, pullback = jax.vjp(mapped, x)
        return pullback(_weights(y))

    return backward


# Around the program of the whole mesh.
_AROUND: dict[str, Callable[[_Each], _Each]] = {
    "vmap_around": lambda mapped: lambda x: jax.vmap(mapped)(jnp.stack([x, -x])),
}
_DERIVATIVES_AROUND: dict[str, Callable[[_Each], _Each]] = {
    "vjp": _vjp,
    "jvp": lambda mapped: lambda x: jax.jvp(mapped, (x,), (_weights(x),)),
}


@family.builder
def collectives_in_transformations() -> None:
    """Each collective inside of each transformation, and in programs of some axes of a mesh."""
    for (primitive, form), exchange in _EXCHANGES.items():
        each = _over(exchange, "a")
        differentiable = (primitive, form) not in _NOT_DIFFERENTIABLE
        for case, transform in (_WITHIN | (_GRADIENTS_WITHIN if differentiable else {})).items():
            fun = on_each(transform(each), _MESH, _BY_BOTH, _BY_BOTH)
            _define(primitive, form, case, fun=fun)
        for case, transform in (_AROUND | (_DERIVATIVES_AROUND if differentiable else {})).items():
            fun = transform(on_each(each, _MESH, _BY_BOTH, _BY_BOTH))
            _define(primitive, form, case, fun=fun)
        fun = on_each(each, _MESH, _BY_BOTH, _BY_BOTH, check_vma=False)
        _define(primitive, form, "unchecked", fun=fun)
        # The axis "b" is left to the compiler, or to a program inside of this one.
        fun = on_each(each, _MESH, P("a"), P("a"), axis_names={"a"})
        _define(primitive, form, "partly_manual", fun=fun)
        fun = on_each(_nested(each), _MESH, P("a"), P("a"), axis_names={"a"})
        _define(primitive, form, "nested", fun=fun)
