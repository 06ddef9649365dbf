"""Calls: the primitives that hold a jaxpr and run it once (jit, remat, custom derivatives)."""

import jax
import jax.numpy as jnp

from harnesses.harness import FLOATS, INTS, Normal, define

for dtype in (*FLOATS, *INTS):
    define(
        "jit",
        "",
        lambda x: jax.jit(lambda y: y + y)(x) - x,
        [Normal((2, 3), dtype)],
        dtype=dtype,
    )

for dtype in FLOATS:
    define(
        "remat",
        "",
        jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
        [Normal((2, 3), dtype)],
        dtype=dtype,
    )

define(
    "jit",
    "exact",
    jax.jit(lambda x: x),
    [Normal((2, 3), "float32")],
    dtype="float32",
    ulps=0,
)
