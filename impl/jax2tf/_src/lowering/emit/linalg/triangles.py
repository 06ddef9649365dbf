"""Triangular and tridiagonal systems, Cholesky's and LU factors in JAX, column by column.

The functions are those of LAPACK's unblocked routines, for batches of matrices. See Golub and Van
Loan, "Matrix Computations", chapters 3 and 4. Each takes an equation and its operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.emit.linalg.matrices import (
    at,
    conjugate,
    diagonal_of,
    divided,
    loop,
    nan,
    numbers,
    quotient,
    real,
    sizes,
    swapped,
    with_element,
)
from jax2tf._src.util.typing import Dim, Param, PyTree

_Arrays = tuple[jax.Array, ...]


def cholesky(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    rows = numbers(a.shape[-1])

    def column(k: jax.Array, factor: jax.Array) -> jax.Array:
        row = conjugate(at(factor, k, -2))[..., None, :]
        rest = at(a, k, -1) - jnp.sum(factor * row, -1)
        pivot = jnp.sqrt(real(at(rest, k, -1)))[..., None].astype(a.dtype)
        below = jnp.where(rows > k, divided(rest, real(pivot)), jnp.zeros_like(rest))
        found = jnp.where(rows == k, pivot, below)
        return jnp.where(rows == k, found[..., :, None], factor)

    factor = loop(a.shape[-1], column, jnp.zeros_like(a))
    # If a pivot is not positive, the whole factor is NaN.
    positive = jnp.all(real(diagonal_of(factor)) > 0, -1)
    return [jnp.where(positive[..., None, None], factor, nan(a.dtype))]


def triangular_solve(eqn: jex_core.JaxprEqn, a: jax.Array, b: jax.Array) -> Sequence[jax.Array]:
    params = eqn.params
    transposed, left = params["transpose_a"], params["left_side"]
    if not left:
        # X op(A) = B is equivalent to op(A)^T X^T = B^T.
        b, transposed = jnp.swapaxes(b, -1, -2), not transposed
    a = jnp.swapaxes(a, -1, -2) if transposed else a
    a = conjugate(a) if params["conjugate_a"] else a
    lower = params["lower"] != transposed
    x = _forward(a, b, params["unit_diagonal"]) if lower else _backward(a, b, params)
    return [x if left else jnp.swapaxes(x, -1, -2)]


def _backward(a: jax.Array, b: jax.Array, params: Mapping[str, Param]) -> jax.Array:
    flipped = _forward(a[..., ::-1, ::-1], b[..., ::-1, :], params["unit_diagonal"])
    return flipped[..., ::-1, :]


def _forward(a: jax.Array, b: jax.Array, has_unit_diagonal: bool) -> jax.Array:
    """Solves a x = b for a lower triangular a."""
    rows = numbers(a.shape[-1])
    below = jnp.where(rows[:, None] > rows, a, jnp.zeros_like(a))
    diagonal = diagonal_of(a)

    def row(k: jax.Array, x: jax.Array) -> jax.Array:
        known = jnp.sum(at(below, k, -2)[..., :, None] * x, -2)
        found = at(b, k, -2) - known
        if not has_unit_diagonal:
            found = quotient(found, at(diagonal, k, -1)[..., None])
        return jnp.where(rows[:, None] == k, found[..., None, :], x)

    result: jax.Array = loop(a.shape[-1], row, jnp.zeros_like(b))
    return result


def lu(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Factorizes row by row with the largest pivot first, as LAPACK's getf2."""
    del eqn
    m, n = a.shape[-2:]
    rows, columns, size = numbers(m), numbers(n), jax.core.min_dim(m, n)

    def step(k: jax.Array, state: PyTree) -> PyTree:
        a, pivots, order = state
        lengths = sizes(at(a, k, -1))
        lengths = jnp.where(rows >= k, lengths, np.array(-1, lengths.dtype))
        pivot = lax.argmax(lengths, lengths.ndim - 1, np.int32)[..., None]
        is_here, is_pivot = rows == k, rows == pivot
        row, order_there = _sums(is_pivot[..., :, None], a, -2), _sums(is_pivot, order, -1)
        a = jnp.where(is_pivot[..., :, None], at(a, k, -2)[..., None, :], a)
        a = jnp.where(is_here[:, None], row[..., None, :], a)
        order = jnp.where(is_pivot, _sums(is_here, order, -1)[..., None], order)
        order = jnp.where(is_here, order_there[..., None], order)
        first = at(row, k, -1)[..., None]
        factors = quotient(at(a, k, -1), first)
        # A pivot of zero has only zeros below.
        factors = jnp.where(first != 0, factors, jnp.zeros_like(factors))[..., :, None]
        # Not a product with masked numbers: 0 * inf would make finished rows NaN.
        is_below = rows[:, None] > k
        a = jnp.where(is_below & (columns > k), a - factors * row[..., None, :], a)
        a = jnp.where(is_below & (columns == k), factors, a)
        return a, with_element(pivots, k, pivot), order

    batch = a.shape[:-2]
    start = a, jnp.zeros((*batch, size), np.int32), jnp.broadcast_to(rows, (*batch, m))
    results: Sequence[jax.Array] = loop(size, step, start)
    return results


def _sums(mask: jax.Array, x: jax.Array, axis: int) -> jax.Array:
    """Returns the sums of the elements of `x` where `mask` is true."""
    return jnp.sum(jnp.where(mask, x, jnp.zeros_like(x)), axis, dtype=x.dtype)


def lu_pivots_to_permutation(eqn: jex_core.JaxprEqn, pivots: jax.Array) -> Sequence[jax.Array]:
    """Returns the permutation of a list of row exchanges (LAPACK's ipiv)."""
    return [permutation_of(pivots, eqn.params["permutation_size"])]


def permutation_of(pivots: jax.Array, size: Dim) -> jax.Array:
    """Returns the numbers below `size` after the exchanges of each k with pivots[..., k]."""

    def step(k: jax.Array, order: jax.Array) -> jax.Array:
        return swapped(order, k, at(pivots, k, -1)[..., None].astype(np.int32))

    start = jnp.broadcast_to(numbers(size), (*pivots.shape[:-1], size))
    result: jax.Array = loop(pivots.shape[-1], step, start)
    return result


def tridiagonal_solve(
    eqn: jex_core.JaxprEqn, lower: jax.Array, diagonal: jax.Array, upper: jax.Array, rhs: jax.Array
) -> Sequence[jax.Array]:
    """Eliminates with partial pivoting, as LAPACK's gtsv. Singular matrices give NaN."""
    lower, diagonal, upper = (jnp.moveaxis(x, -1, 0) for x in (lower, diagonal, upper))
    rows = jnp.moveaxis(rhs, -2, 0)
    zero = jnp.zeros_like(diagonal[0])

    def eliminate(row: _Arrays, following: _Arrays) -> tuple[_Arrays, _Arrays]:
        """Returns the remaining row, the next pivot candidate, and the finished row of U."""
        d, u, b = row
        below, d_next, u_next, b_next = following
        swap = sizes(below) > sizes(d)
        pivot = jnp.where(swap, below, d)
        factor = jnp.where(swap, d, below) / jnp.where(pivot == 0, jnp.ones_like(pivot), pivot)
        first = jnp.where(swap, d_next, u)
        of_pivot = jnp.where(swap[..., None], b_next, b)
        rest = jnp.where(swap[..., None], b, b_next) - factor[..., None] * of_pivot
        row = (
            jnp.where(swap, u, d_next) - factor * first,
            jnp.where(swap, -factor * u_next, u_next),
            rest,
        )
        return row, (pivot, first, jnp.where(swap, u_next, zero), of_pivot)

    def substitute(solved: _Arrays, row: _Arrays) -> tuple[_Arrays, jax.Array]:
        pivot, first, second, b = row
        x, x_after = solved
        x = (b - first[..., None] * x - second[..., None] * x_after) / pivot[..., None]
        return (x, solved[0]), x

    first_row: _Arrays = (diagonal[0], upper[0], rows[0])
    following: _Arrays = (lower[1:], diagonal[1:], upper[1:], rows[1:])
    (pivot, _, b), done = lax.scan(eliminate, first_row, following)
    last = b / pivot[..., None]
    last_rows: _Arrays = (last, jnp.zeros_like(last))
    x = lax.scan(substitute, last_rows, done, reverse=True)[1]
    singular = jnp.any(done[0] == 0, 0) | (pivot == 0)
    x = jnp.moveaxis(jnp.concatenate([x, last[None]]), 0, -2)
    return [jnp.where(singular[..., None, None], nan(x.dtype), x)]
