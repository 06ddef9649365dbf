"""Quotients by known numbers, which XLA computes as products with the inverse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jax2tf._src.lowering.context import Context
from jax2tf._src.util.tensors import Tensor


def divided(x: jax.Array, *, divisor: ArrayLike) -> jax.Array:
    """The pattern: a quotient by a literal."""
    return x / divisor


def quotient(ctx: Context, x: Tensor, divisor: np.ndarray) -> Tensor:
    """The product with the inverse, if that is a normal number: rounded as XLA rounds it."""
    del ctx
    with np.errstate(all="ignore"):
        inverse = np.asarray(1, divisor.dtype) / divisor
    is_normal = jnp.finfo(divisor.dtype).tiny <= min(abs(inverse), abs(divisor))
    return x * inverse if is_normal and np.isfinite(inverse) else x / divisor
