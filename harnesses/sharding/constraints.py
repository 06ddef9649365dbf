"""Shardings over the devices of a mesh: values stay what they are.

The mesh has one device, as a machine may. What XlaSharding ops a larger one leaves in a graph is
asked in tests/impl/test_sharding.py.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from harnesses.harness import Bools, Integers, Normal, define
from harnesses.sharding import family

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


@family.builder
def constraints_of_each_dtype() -> None:
    """Constraints, shardings of a jitted function's arguments and reshards, of each dtype."""
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


@family.builder
def partial_constraints_and_trees() -> None:
    """A constraint that leaves a dimension open, and one of a pytree."""
    floats = [Normal((4, 3), jnp.float32)]
    define("sharding_constraint", "partly", _partly_constrained, floats, dtype=np.float32)
    define(
        "jax.lax.with_sharding_constraint",
        "",
        lambda x: lax.with_sharding_constraint({"x": x}, NamedSharding(_mesh(), _ROWS)),
        floats,
        dtype=np.float32,
    )
