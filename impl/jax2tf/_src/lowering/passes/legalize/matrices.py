"""Helpers for linear algebra on matrices and vectors, which use only masks and sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike


def conjugate(x: jax.Array) -> jax.Array:
    """Returns complex conjugates; real numbers stay."""
    return lax.conj(x) if jnp.iscomplexobj(x) else x


def adjoint(x: jax.Array) -> jax.Array:
    """Returns the conjugate transposes."""
    return conjugate(jnp.swapaxes(x, -1, -2))


def squared_sizes(x: jax.Array) -> jax.Array:
    """Returns |x|**2, without computing a root."""
    return x.real * x.real + x.imag * x.imag if jnp.iscomplexobj(x) else x * x


def numbers(size: int) -> jax.Array:
    """Returns the int32 numbers 0, 1, 2 ..."""
    return lax.iota(np.int32, size)


def at(x: jax.Array, k: ArrayLike, axis: int) -> jax.Array:
    """Returns x[..., k] along an axis, by a mask and a sum."""
    places = numbers(x.shape[axis])
    chosen = places[:, None] == k if axis == -2 else places == k
    return jnp.sum(jnp.where(chosen, x, jnp.zeros_like(x)), axis)


def diagonal_of(a: jax.Array) -> jax.Array:
    """Returns the main diagonals, [..., min(m, n)]."""
    size = min(a.shape[-2:])
    return jnp.sum(jnp.where(is_diagonal(size), a[..., :size, :size], np.zeros((), a.dtype)), -1)


def is_diagonal(size: int, k: int = 0) -> np.ndarray:
    """Returns the mask of a square matrix's k-th diagonal; a positive k is above the main one."""
    return np.eye(size, k=k, dtype=bool)


def with_element(x: jax.Array, k: ArrayLike, value: jax.Array) -> jax.Array:
    """Replaces element k along the last axis of `x`."""
    return jnp.where(numbers(x.shape[-1]) == k, value, x)


def reflector(x: jax.Array, k: ArrayLike) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns v and tau of the reflector I - tau v v^H, and beta; each is a row.

    The adjoint of the reflector makes element `k` of `x` beta, makes later elements zero, and keeps
    earlier ones. As in LAPACK's larfg, v[k] is 1, and beta is real with the opposite sign of x[k].
    """
    rows = numbers(x.shape[-1])
    x = jnp.where(rows >= k, x, np.zeros((), x.dtype))
    first = at(x, k, -1)[..., None]
    rest = jnp.where(rows > k, x, jnp.zeros_like(x))
    scale = jnp.max(jnp.abs(x), -1, keepdims=True)
    is_done = jnp.max(jnp.abs(rest), -1, keepdims=True) == 0
    if jnp.iscomplexobj(x):
        is_done &= first.imag == 0
    scale = jnp.where(scale == 0, jnp.ones_like(scale), scale)
    norm = scale * jnp.sqrt(jnp.sum(squared_sizes(x / scale), -1, keepdims=True))
    beta = jnp.where(first.real < 0, norm, -norm).astype(x.dtype)
    one = jnp.ones_like(beta)
    v = jnp.where(rows == k, one, rest / jnp.where(is_done, one, first - beta))
    tau = (beta - first) / jnp.where(is_done, one, beta)
    beta = jnp.where(is_done, first, beta)
    return v, jnp.where(is_done, jnp.zeros_like(tau), tau), beta


def reflection(a: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    """Returns tau v v^H a, which a reflection subtracts from `a`."""
    products = jnp.sum(conjugate(v)[..., :, None] * a, -2)[..., None, :]
    return (tau * v)[..., :, None] * products


def reflected_from_right(a: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    """Returns A (I - tau v v^H)."""
    products = jnp.sum(a * v[..., None, :], -1)[..., :, None]
    return a - products * (tau * conjugate(v))[..., None, :]


def nan(dtype: np.dtype) -> np.ndarray:
    """Returns NaN; a complex NaN has NaN in both parts."""
    is_complex = np.issubdtype(dtype, np.complexfloating)
    return np.array(complex(np.nan, np.nan) if is_complex else np.nan, dtype)


def nan_unless_finite(a: jax.Array, *results: jax.Array) -> list[jax.Array]:
    """Returns the results, with NaN for each matrix of `a` that is not finite."""
    finite = jnp.all(jnp.isfinite(a), (-1, -2))
    masks = (finite.reshape(*finite.shape, *[1] * (x.ndim - finite.ndim)) for x in results)
    return [jnp.where(mask, x, nan(x.dtype)) for mask, x in zip(masks, results, strict=True)]
