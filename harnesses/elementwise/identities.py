"""Identities, which have to let every bit through."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.experimental.xla_metadata import set_xla_metadata

from harnesses.elementwise import family
from harnesses.harness import ALL, Values, define, edge_values


@custom_partitioning
def _partitioned(x: jax.Array) -> jax.Array:
    return x


_partitioned.def_partition(
    infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
    partition=lambda mesh, args, result: (mesh, lambda x: x, result.sharding, (args[0].sharding,)),
    sharding_rule="i -> i",
)


def _inspected(x: jax.Array) -> jax.Array:
    jax.debug.inspect_array_sharding(x, callback=lambda sharding: None)
    return x


_IDENTITIES = {
    "copy": jnp.copy,
    "custom_partitioning": _partitioned,
    "device_put": lambda x: jax.jit(jax.device_put)(x),
    "inspect_sharding": _inspected,
    "layout_constraint": lambda x: with_layout_constraint(x, Layout(major_to_minor=(0,))),
    "name": lambda x: checkpoint_name(x, "a name"),
    "optimization_barrier": lambda x: lax.optimization_barrier((x, {"y": x[:2]})),
    "stop_gradient": lax.stop_gradient,
    "xla_metadata_value": lambda x: set_xla_metadata(x, key="value"),
}


@family.builder
def identities_of_every_dtype() -> None:
    """Each identity at the edges of every dtype, to the last bit."""
    for primitive, function in _IDENTITIES.items():
        for dtype in ALL:
            values = [Values(edge_values(dtype), dtype)]
            define(primitive, "", function, values, dtype=dtype, ulps=0)
