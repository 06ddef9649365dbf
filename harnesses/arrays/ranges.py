"""Arrays made of nothing: `iota`, and what jax.numpy makes of it."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arrays import family
from harnesses.arrays.normal import define_normal

# (shape, dimension); the first are small enough to be constants.
_IOTAS = {
    "scalar_like": ((1,), 0),
    "first": ((4, 2), 0),
    "last": ((2, 5), 1),
    "middle": ((2, 4, 3), 1),
    "empty": ((0, 3), 1),
    "along_empty": ((3, 0), 1),
    "wide": ((3, 200), 1),
    "row": ((1, 200), 1),
    "tall": ((200, 3), 0),
    "short_side": ((100, 2), 1),
    "deep": ((2, 90, 2), 1),
}


@family.builder
def iotas() -> None:
    """`iota` along each dimension, beyond what its dtype holds, and without 64 bits."""
    for dtype in (np.int32, np.float32):
        for case, (shape, dimension) in _IOTAS.items():
            define_normal(
                "iota",
                case,
                partial(lax.broadcasted_iota, dtype, shape, dimension),
                dtype=dtype,
                params={"shape": shape, "dimension": dimension},
            )
    # More numbers than the dtype has: integers wrap, floats round to even.
    for dtype in (np.int8, np.uint8, np.float16, jnp.bfloat16):
        define_normal("iota", "beyond_dtype", partial(lax.iota, dtype, 3000), dtype=dtype)
    for dtype in (np.int64, np.float64):
        define_normal("iota", "without_x64", partial(lax.iota, dtype, 5), dtype=dtype, x64=False)


@family.builder
def triangles() -> None:
    """`eye` and `tri` of a few dtypes."""
    for dtype in (np.float32, np.int32, np.bool_, np.complex64):
        dtype = np.dtype(dtype)
        define_normal(
            "eye",
            "",
            lambda dtype=dtype: (jnp.eye(3, 4, 1, dtype), jnp.eye(2, dtype=dtype)),
            dtype=dtype,
        )
        define_normal(
            "tri",
            "",
            lambda dtype=dtype: (jnp.tri(3, 4, 1, dtype), jnp.tri(2, 2, -1, dtype)),
            dtype=dtype,
        )


@family.builder
def ranges_with_and_without_x64() -> None:
    """Arrays whose dtype depends on whether 64-bit dtypes are enabled."""
    for x64 in (False, True):
        case = "with_x64" if x64 else "without_x64"
        define_normal(
            "arange", case, lambda: (jnp.arange(5), jnp.arange(5.0), jnp.arange(7, 1, -2)), x64=x64
        )
        define_normal("arange", f"fractional_{case}", lambda: jnp.arange(0.5, 3.0, 0.25), x64=x64)
        define_normal("linspace", case, lambda: jnp.linspace(0, 1, 5), x64=x64, ulps=1)
        define_normal(
            "linspace",
            f"open_{case}",
            lambda: jnp.linspace(-2, 3, 7, endpoint=False),
            x64=x64,
            ulps=2,
            scale="array",
        )
        define_normal(
            "full", case, lambda: (jnp.full((2,), 3), jnp.zeros(2), jnp.ones((2, 1), int)), x64=x64
        )
