"""Public functions that trace to the primitives of arrays."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.arrays import family
from harnesses.arrays.normal import SOME, define_normal
from harnesses.harness import FLOATS, Bools, Normal, define

# (function, shapes)
_FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "array_split": (lambda x: jnp.array_split(x, 3, 1), [(2, 7)]),
    "atleast_3d": (jnp.atleast_3d, [(2, 3)]),
    "block": (lambda x, y: jnp.block([[x, y], [y, x]]), [(2, 2), (2, 2)]),
    "broadcast_arrays": (lambda x, y: jnp.broadcast_arrays(x, y), [(2, 1), (3,)]),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (4, 2, 3)), [(2, 1)]),
    "column_stack": (lambda x, y: jnp.column_stack([x, y]), [(3,), (3, 2)]),
    "diagflat": (jnp.diagflat, [(2, 2)]),
    "dsplit": (lambda x: jnp.dsplit(x, 2), [(2, 1, 4)]),
    "dstack": (lambda x, y: jnp.dstack([x, y]), [(2, 3), (2, 3)]),
    "expand_dims": (lambda x: jnp.expand_dims(x, (0, 2)), [(2, 3)]),
    "flip": (jnp.flip, [(2, 3)]),
    "fliplr": (jnp.fliplr, [(2, 3)]),
    "flipud": (jnp.flipud, [(2, 3)]),
    "hsplit": (lambda x: jnp.hsplit(x, [1, 2]), [(2, 4)]),
    "hstack": (lambda x, y: jnp.hstack([x, y]), [(2, 1), (2, 2)]),
    "insert_axis_by_none": (lambda x: x[:, None, :, None], [(2, 3)]),
    "meshgrid": (lambda x, y: jnp.meshgrid(x, y, indexing="ij"), [(2,), (3,)]),
    "moveaxis": (lambda x: jnp.moveaxis(x, (0, 1), (-1, 0)), [(2, 3, 4)]),
    "pad_constant": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=1), [(2, 3)]),
    "pad_edge": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), mode="edge"), [(2, 3)]),
    "pad_reflect": (lambda x: jnp.pad(x, ((1, 0), (2, 1)), mode="reflect"), [(2, 3)]),
    "pad_symmetric": (lambda x: jnp.pad(x, ((1, 3), (2, 0)), mode="symmetric"), [(2, 3)]),
    "pad_wrap": (lambda x: jnp.pad(x, ((1, 3), (2, 0)), mode="wrap"), [(2, 3)]),
    "ravel": (jnp.ravel, [(2, 3)]),
    "repeat": (lambda x: jnp.repeat(x, 3, axis=1), [(2, 3)]),
    "repeat_flat": (lambda x: jnp.repeat(x, 2), [(2, 3)]),
    "roll": (lambda x: jnp.roll(x, 2, axis=1), [(2, 5)]),
    "roll_flat": (lambda x: jnp.roll(x, -4), [(2, 3)]),
    "roll_two_axes": (lambda x: jnp.roll(x, (1, -1), (0, 1)), [(3, 4)]),
    "rot90": (lambda x: (jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1)), [(2, 3)]),
    "swapaxes": (lambda x: jnp.swapaxes(x, 0, 2), [(2, 3, 4)]),
    "tril": (lambda x: jnp.tril(x, -1), [(3, 4)]),
    "triu": (lambda x: jnp.triu(x, 1), [(2, 3, 4)]),
    "vstack": (lambda x, y: jnp.vstack([x, y]), [(3,), (2, 3)]),
    "where": (lambda p, x, y: jnp.where(p, x, y), [Bools((2, 1)), (3,), ()]),
    "zeros_like": (lambda x: (jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 1)), [(2, 3)]),
}


@family.builder
def public_functions() -> None:
    """Each function on a few dtypes."""
    for name, (fun, shapes) in _FUNCTIONS.items():
        for dtype in SOME:
            define_normal(name, "", fun, *shapes, dtype=dtype)


@family.builder
def kronecker_products() -> None:
    """`kron` of matrices and of vectors."""
    for dtype in (np.float32, np.int32, np.complex64):
        # A product of complex numbers is two products and a sum, which may be fused.
        ulps = {"complex64": 2}
        define_normal("kron", "", jnp.kron, (2, 3), (3, 2), dtype=dtype, ulps=ulps)
        define_normal("kron", "vectors", jnp.kron, (3,), (2,), dtype=dtype, ulps=ulps)


@family.builder
def gradients_with_empty_arrays() -> None:
    """`empty2`, with which JAX fills the other branches of what it differentiates."""
    for dtype in FLOATS:
        define(
            "empty2",
            "",
            lambda x: jax.grad(lambda x: jnp.diagonal(x).sum())(x),
            [Normal((3, 3), dtype)],
            dtype=dtype,
        )
