"""Identities, which have to let every bit through."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from harnesses.elementwise import family
from harnesses.harness import ALL, Values, define, edge_values

_IDENTITIES = {
    "copy": jnp.copy,
    "device_put": lambda x: jax.jit(jax.device_put)(x),
    "name": lambda x: checkpoint_name(x, "a name"),
    "optimization_barrier": lambda x: lax.optimization_barrier((x, {"y": x[:2]})),
    "stop_gradient": lax.stop_gradient,
}


@family.builder
def identities_of_every_dtype() -> None:
    """Each identity at the edges of every dtype, to the last bit."""
    for primitive, function in _IDENTITIES.items():
        for dtype in ALL:
            values = [Values(edge_values(dtype), dtype)]
            define(primitive, "", function, values, dtype=dtype, ulps=0)
