"""Shardings over the devices of a mesh, and programs of each device.

The mesh has one device, as a machine may: what is asked is that values stay what they are, and that
programs of each device are refused. Meshes of more devices are in tests/impl/test_sharding.py.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from harnesses.harness import Bools, Integers, Normal, define

_AXIS = "devices"
_ROWS = PartitionSpec(_AXIS, None)


def _mesh(axis_type: AxisType = AxisType.Auto) -> Mesh:
    # Made where a harness runs: before, no device may have been chosen.
    return jax.make_mesh((1,), (_AXIS,), axis_types=(axis_type,), devices=jax.devices()[:1])


def _constrained(x: Any) -> Any:
    return lax.with_sharding_constraint(x, NamedSharding(_mesh(), _ROWS)) + x


def _partly_constrained(x: Any) -> Any:
    spec = PartitionSpec(_AXIS, PartitionSpec.UNCONSTRAINED)
    return lax.with_sharding_constraint(x, NamedSharding(_mesh(), spec)) + x


def _jitted(x: Any) -> Any:
    sharding = NamedSharding(_mesh(), _ROWS)
    return jax.jit(lambda x: x + x, in_shardings=sharding, out_shardings=sharding)(x)


def _resharded(x: Any) -> Any:
    return jax.reshard(x, NamedSharding(_mesh(AxisType.Explicit), _ROWS))


for maker, dtype in (
    (Normal, jnp.float32),
    (Normal, jnp.bfloat16),
    (Normal, jnp.complex64),
    (Integers, jnp.int32),
    (Bools, jnp.bool_),
):
    arg = [maker((4, 3)) if maker is Bools else maker((4, 3), dtype)]
    define("sharding_constraint", "", _constrained, arg, dtype=dtype)
    define("jit", "shardings", _jitted, arg, dtype=dtype)
    define("reshard", "", _resharded, arg, dtype=dtype)

_FLOATS = [Normal((4, 3), jnp.float32)]
define("sharding_constraint", "partly", _partly_constrained, _FLOATS, dtype=np.float32)
define(
    "jax.lax.with_sharding_constraint",
    "",
    lambda x: lax.with_sharding_constraint({"x": x}, NamedSharding(_mesh(), _ROWS)),
    _FLOATS,
    dtype=np.float32,
)


def _on_each(function: Callable[..., Any]) -> Callable[..., Any]:
    def fun(x: Any) -> Any:
        mapped = jax.shard_map(
            function, mesh=_mesh(), in_specs=_ROWS, out_specs=_ROWS, check_vma=False
        )
        return mapped(x)

    return fun


_COLLECTIVES: dict[str, Callable[..., Any]] = {
    "all_gather": lambda x: lax.all_gather(x, _AXIS, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, _AXIS, 0, 0, tiled=True),
    "axis_index": lambda x: x + lax.axis_index(_AXIS),
    "pmax": lambda x: lax.pmax(x, _AXIS),
    "pmin": lambda x: lax.pmin(x, _AXIS),
    "ppermute": lambda x: lax.ppermute(x, _AXIS, [(0, 0)]),
    "psum": lambda x: lax.psum(x, _AXIS),
}

define("shard_map", "", _on_each(jnp.sin), _FLOATS, dtype=np.float32)
for name, collective in _COLLECTIVES.items():
    define(name, "", _on_each(collective), _FLOATS, dtype=np.float32)
define("pmap", "", lambda x: jax.pmap(jnp.sin)(x), [Normal((1, 3), jnp.float32)], dtype=np.float32)
