"""Helpers for linear algebra on matrices and vectors, which use only slices, masks and sums.

Sizes may be symbolic. Every target has these ops; OpenVINO ends the process at some gathers.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jax2tf._src.util.typing import Array, Dim, PyTree


def loop(count: Dim, step: Callable[[jax.Array, PyTree], PyTree], start: PyTree) -> PyTree:
    """Returns the state after `step(k, state)` for each k below `count`, an int32."""
    return lax.fori_loop(np.int32(0), int32(count), step, start)


def int32(size: Dim) -> ArrayLike:
    """Returns a size as an int32 scalar; that of a known size is a constant."""
    return np.int32(size) if isinstance(size, int) else jnp.asarray(size).astype(np.int32)


def conjugate(x: jax.Array) -> jax.Array:
    """Returns complex conjugates; real numbers stay."""
    return lax.conj(x) if jnp.iscomplexobj(x) else x


def adjoint(x: jax.Array) -> jax.Array:
    """Returns the conjugate transposes."""
    return conjugate(jnp.swapaxes(x, -1, -2))


def real(x: jax.Array) -> jax.Array:
    """Returns the real parts; real numbers stay."""
    return x.real if jnp.iscomplexobj(x) else x


def sizes(x: jax.Array) -> jax.Array:
    """Returns |Re x| + |Im x|, the size by which LAPACK compares pivots."""
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def squared_sizes(x: jax.Array) -> jax.Array:
    """Returns |x|**2, without computing a root."""
    return x.real * x.real + x.imag * x.imag if jnp.iscomplexobj(x) else x * x


def divided(x: jax.Array, divisor: ArrayLike) -> jax.Array:
    """Returns `x` divided by real numbers; complex division has many operations more."""
    if not jnp.iscomplexobj(x):
        return x / divisor
    return lax.complex(x.real / divisor, x.imag / divisor)


def quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns x / y for finite numbers.

    Complex numbers are divided by the size of `y` first, so that no square overflows. JAX's
    division has C99's results for infinities, for which a graph needs 150 operations.
    """
    if not jnp.iscomplexobj(x):
        return x / y
    size = sizes(y)
    unit = divided(y, size)
    return divided(divided(x, size) * lax.conj(unit), squared_sizes(unit))


def numbers(size: Dim) -> jax.Array:
    """Returns the int32 numbers 0, 1, 2 ..."""
    return lax.broadcasted_iota(np.int32, (size,), 0)


def at(x: jax.Array, k: ArrayLike, axis: int) -> jax.Array:
    """Returns x[..., k] along an axis; `k` is a scalar."""
    return lax.dynamic_index_in_dim(
        x, k, x.ndim + axis, keepdims=False, allow_negative_indices=False
    )


def diagonal_of(a: jax.Array) -> jax.Array:
    """Returns the main diagonals, [..., min(m, n)]."""
    size = jax.core.min_dim(*a.shape[-2:])
    square = a[..., :size, :size]
    return jnp.sum(jnp.where(is_diagonal(size), square, np.zeros((), a.dtype)), -1)


def is_diagonal(size: Dim, k: int = 0) -> Array:
    """Returns the mask of a square matrix's k-th diagonal; a positive k is above the main one."""
    if isinstance(size, int):
        return np.eye(size, k=k, dtype=bool)
    return numbers(size)[:, None] + np.int32(k) == numbers(size)


def identity_like(a: jax.Array) -> jax.Array:
    """Returns identities of the shape and dtype of square matrices."""
    return jnp.broadcast_to(jnp.asarray(is_diagonal(a.shape[-1]), a.dtype), a.shape)


def with_element(x: jax.Array, k: ArrayLike, value: jax.Array) -> jax.Array:
    """Replaces element k along the last axis of `x`."""
    return jnp.where(numbers(x.shape[-1]) == k, value, x)


def swapped(x: jax.Array, i: ArrayLike, j: ArrayLike) -> jax.Array:
    """Exchanges the elements `i` and `j` of the last axis of `x`."""
    places = numbers(x.shape[-1])
    at_i, at_j = (
        jnp.sum(jnp.where(places == k, x, jnp.zeros_like(x)), -1, keepdims=True, dtype=x.dtype)
        for k in (i, j)
    )
    return jnp.where(places == i, at_j, jnp.where(places == j, at_i, x))


def reflector(x: jax.Array, k: ArrayLike) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns v and tau of the reflector I - tau v v^H, and beta; each is a row.

    The adjoint of the reflector makes element `k` of `x` beta, makes later elements zero, and keeps
    earlier ones. As in LAPACK's larfg, v[k] is 1, and beta is real with the opposite sign of x[k].
    """
    rows = numbers(x.shape[-1])
    first = at(x, k, -1)[..., None]
    rest = jnp.where(rows > k, x, jnp.zeros_like(x))
    largest = jnp.max(_largest_parts(rest), -1, keepdims=True)
    # The scale makes squares neither too large nor too small.
    scale = jnp.maximum(jnp.maximum(_largest_parts(first), largest), np.finfo(x.dtype).tiny)
    first, rest = divided(first, scale), divided(rest, scale)
    is_done = largest == 0
    if jnp.iscomplexobj(x):
        is_done &= first.imag == 0
    norm = jnp.sqrt(squared_sizes(first) + jnp.sum(squared_sizes(rest), -1, keepdims=True))
    beta = jnp.where(first.real < 0, norm, -norm).astype(x.dtype)
    beta = jnp.where(is_done, first, beta)
    one = jnp.ones_like(beta)
    tau = divided(beta - first, real(jnp.where(beta == 0, one, beta)))
    divisor = jnp.where(is_done, one, first - beta)
    if jnp.iscomplexobj(x):
        # The scale makes the square safe, so that `quotient` need not scale it again.
        v = rest * divided(lax.conj(divisor), squared_sizes(divisor))
    else:
        v = rest / divisor
    return jnp.where(rows == k, one, v), tau, beta * scale.astype(x.dtype)


def _largest_parts(x: jax.Array) -> jax.Array:
    if not jnp.iscomplexobj(x):
        return jnp.abs(x)
    return jnp.maximum(jnp.abs(x.real), jnp.abs(x.imag))


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Returns the matrix product in the full precision of the dtype."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def reflection(
    a: jax.Array, v: jax.Array, tau: jax.Array, columns: jax.Array | None = None
) -> jax.Array:
    """Returns tau v v^H a, which a reflection subtracts from `a`; zero outside of `columns`."""
    change = (tau * v)[..., :, None] * product(conjugate(v)[..., None, :], a)
    return change if columns is None else jnp.where(columns, change, jnp.zeros_like(change))


def reflected_from_right(a: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    """Returns A (I - tau v v^H)."""
    products = product(a, v[..., :, None])
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
