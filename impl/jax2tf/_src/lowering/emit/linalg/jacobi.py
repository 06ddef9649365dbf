"""Eigenvalues and singular values in JAX, by Jacobi's rotations of all disjoint pairs at once.

See Golub and Van Loan, "Matrix Computations", chapter 8. `by_ops` has TensorFlow's kernels for
targets that have them: XLA's loops take 10 to 200 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.emit.linalg.matrices import (
    adjoint,
    conjugate,
    diagonal_of,
    divided,
    identity_like,
    is_diagonal,
    nan_unless_finite,
    numbers,
    real,
    squared_sizes,
)
from jax2tf._src.lowering.emit.linalg.reflections import reflected
from jax2tf._src.util.typing import PyTree

# Jacobi's rotations usually converge in a fraction of these sweeps.
_SWEEPS = 20


def eigh(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    size = a.shape[-1]
    half = np.tril if eqn.params["lower"] else np.triu
    kept = jnp.where(half(np.ones((size, size), bool)), a, jnp.zeros_like(a))
    diagonal = jnp.where(is_diagonal(size), conjugate(a), jnp.zeros_like(a))
    symmetric = kept + adjoint(kept) - diagonal

    def turned(state: PyTree, rotation: jax.Array) -> PyTree:
        matrix, vectors = state
        matrix = adjoint(rotation) @ matrix @ rotation
        return divided(matrix + adjoint(matrix), 2), vectors @ rotation

    matrix, vectors = _rotated((symmetric, identity_like(a)), turned, lambda state: state[0])
    values = real(diagonal_of(matrix))
    order = jnp.argsort(values, -1)
    first, last = eqn.params["subset_by_index"] or (0, size)
    values = jnp.take_along_axis(values, order, -1)[..., first:last]
    vectors = jnp.take_along_axis(vectors, order[..., None, :], -1)[..., first:last]
    return nan_unless_finite(symmetric, vectors, values)


def svd(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    params = eqn.params
    m, n = a.shape[-2:]
    tall = a if m >= n else adjoint(a)
    first, last = params["subset_by_index"] or (0, min(m, n))
    if not params["compute_uv"]:
        _, lengths, order = _orthogonal_columns(tall, ())
        return nan_unless_finite(a, jnp.take_along_axis(lengths, order, -1)[..., first:last])
    u, s, v = _tall_svd(tall)
    if not params["full_matrices"]:
        u = u[..., :, : min(m, n)]
    left, right = (u, v) if m >= n else (v, u)
    if params["subset_by_index"]:
        s, left, right = (x[..., first:last] for x in (s, left, right))
    return nan_unless_finite(a, s, left, adjoint(right))


def _tall_svd(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns all left vectors, the singular values in falling order, and the right vectors."""
    size = a.shape[-1]
    v = jnp.broadcast_to(is_diagonal(size).astype(a.dtype), (*a.shape[:-2], size, size))
    found, lengths, order = _orthogonal_columns(a, (v,))
    columns, v = (jnp.take_along_axis(x, order[..., None, :], -1) for x in found)
    # The unitary factor has vectors also for columns that are zero.
    u, r, _ = reflected(columns)
    signs = jnp.where(real(diagonal_of(r)) < 0, np.array(-1, a.dtype), np.array(1, a.dtype))
    rest = jnp.ones((*a.shape[:-2], a.shape[-2] - size), a.dtype)
    u = u * jnp.concatenate([signs, rest], -1)[..., None, :]
    return u, jnp.take_along_axis(lengths, order, -1), v


def _orthogonal_columns(
    a: jax.Array, vectors: tuple[jax.Array, ...]
) -> tuple[Sequence[jax.Array], jax.Array, jax.Array]:
    """Returns `a` and `vectors` after one-sided rotations, column lengths, their falling order."""
    # The scale makes squares neither too large nor too small.
    scale = jnp.max(jnp.abs(a), (-1, -2), keepdims=True)
    scale = jnp.where(scale == 0, jnp.ones_like(scale), scale)

    def turned(state: PyTree, rotation: jax.Array) -> PyTree:
        return tuple(x @ rotation for x in state)

    def products(state: PyTree) -> jax.Array:
        result: jax.Array = adjoint(state[0]) @ state[0]
        return result

    columns, *turned_vectors = _rotated((divided(a, scale), *vectors), turned, products)
    lengths = jnp.sqrt(jnp.sum(squared_sizes(columns), -2))
    return (columns, *turned_vectors), lengths * scale[..., 0], jnp.argsort(-lengths, -1)


def _rotated(
    state: PyTree,
    turned: Callable[[PyTree, jax.Array], PyTree],
    matrix_of: Callable[[PyTree], jax.Array],
) -> PyTree:
    """Applies Jacobi's rotations until the Hermitian matrix of the state is diagonal.

    Args:
      turned: gets a state and a product of rotations; returns the rotated state.
      matrix_of: returns the matrix of a state.
    """
    size = matrix_of(state).shape[-1]
    if size == 1:
        return state
    partners = _partners(size)
    steps = len(partners)
    eps = np.finfo(matrix_of(state).dtype).eps

    def is_on(loop: PyTree) -> PyTree:
        k, state = loop
        matrix = matrix_of(state)
        diagonal = jnp.abs(diagonal_of(matrix))
        largest = jnp.sqrt(diagonal[..., :, None]) * jnp.sqrt(diagonal[..., None, :])
        sizes = jnp.abs(matrix)
        off = jnp.where(is_diagonal(size), jnp.zeros_like(sizes), sizes)
        return (k < _SWEEPS * steps) & jnp.any(off > eps * largest + np.finfo(off.dtype).tiny)

    def turn(loop: PyTree) -> PyTree:
        k, state = loop
        return k + 1, turned(state, _rotation(matrix_of(state), jnp.asarray(partners)[k % steps]))

    return lax.while_loop(is_on, turn, (np.int32(0), state))[1]


def _partners(size: int) -> np.ndarray:
    """Pairs the numbers as in a tournament. A number without a partner in a round is its own."""
    even = size + size % 2
    ring, rounds = list(range(1, even)), []
    for _ in range(even - 1):
        players = [0, *ring]
        partner = np.arange(size)
        for p, q in zip(players[: even // 2], players[: even // 2 - 1 : -1], strict=True):
            if max(p, q) < size:
                partner[[p, q]] = q, p
        rounds.append(partner)
        ring = ring[1:] + ring[:1]
    return np.array(rounds, np.int32)


def _rotation(a: jax.Array, partner: jax.Array) -> jax.Array:
    """Returns the product of rotations of disjoint pairs; each makes its element of `a` zero."""
    places = numbers(a.shape[-1])
    zero = jnp.zeros_like(a)
    is_pair = partner[:, None] == places
    diagonal = real(diagonal_of(a))
    of_partner = jnp.sum(jnp.where(is_pair, diagonal[..., None, :], real(zero)), -1)
    element = jnp.sum(jnp.where(is_pair, a, zero), -1)
    phase = None
    if jnp.iscomplexobj(a):
        # The rotation is computed for the element's size and then turned by the element's angle.
        length = jnp.abs(element)
        phase = divided(element, jnp.where(length == 0, jnp.ones_like(length), length))
        element = length
    rests = (element == 0) | (partner == places)
    safe = jnp.where(rests, jnp.ones_like(element), element)
    slope = (of_partner - diagonal) / (2 * safe)
    # One number of a pair turns forward, the other turns back.
    forward = jnp.where(slope == 0, places < partner, slope > 0)
    size = jnp.abs(slope)
    tangent = 1 / (size + jnp.sqrt(1 + size * size))
    tangent = jnp.where(rests, jnp.zeros_like(size), jnp.where(forward, tangent, -tangent))
    cosine = 1 / jnp.sqrt(1 + tangent * tangent)
    sine = tangent * cosine if phase is None else tangent * cosine * phase
    turned = jnp.where(is_pair, sine[..., :, None], zero)
    return jnp.where(is_diagonal(a.shape[-1]), cosine[..., :, None].astype(a.dtype), turned)
