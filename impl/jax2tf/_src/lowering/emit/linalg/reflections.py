"""Householder reflections in JAX: QR factors, products with them, Hessenberg and tridiagonal forms.

The functions are those of LAPACK's unblocked routines, with its signs, for batches of matrices. See
Golub and Van Loan, "Matrix Computations", chapters 5, 7 and 8. Each takes an equation and its
operands. A product of reflections stands here in two forms: `product_of_reflections` and
`applied_reflections` have no loop but solve a triangular system, which LiteRT, ONNX and OpenVINO
can only do in a loop; for them `householder_product` and `ormqr` apply one reflection after the
other. With 64 columns in a graph of TensorFlow's kernels, the loop takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src.lowering.emit.linalg.matrices import (
    adjoint,
    at,
    conjugate,
    diagonal_of,
    is_diagonal,
    loop,
    numbers,
    product,
    real,
    reflected_from_right,
    reflection,
    reflector,
    squared_sizes,
    with_element,
)
from jax2tf._src.lowering.emit.linalg.triangles import permutation_of
from jax2tf._src.util.typing import PyTree

_Three = tuple[jax.Array, jax.Array, jax.Array]


def qr(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns Q, R and, with pivoting, the order of the columns; Q is made in the same loop."""
    q, r, order = reflected(a, eqn.params["pivoting"])
    size = a.shape[-2] if eqn.params["full_matrices"] else min(a.shape[-2:])
    factors = [q[..., :, :size], r[..., :size, :]]
    return [*factors, order] if eqn.params["pivoting"] else factors


def reflected(a: jax.Array, pivoting: bool = False) -> _Three:
    """Returns the unitary factor, the triangle and the column order, by Householder reflections."""
    m, n = a.shape[-2:]
    q = jnp.broadcast_to(is_diagonal(m).astype(a.dtype), (*a.shape[:-2], m, m))
    order = jnp.broadcast_to(numbers(n), (*a.shape[:-2], n))

    def step(k: jax.Array, state: PyTree) -> PyTree:
        q, r, order = state
        if pivoting:
            r, order = _with_largest_first(r, order, k, np.int32(0))
        v, tau, _ = reflector(at(r, k, -1), k)
        return reflected_from_right(q, v, tau), r - reflection(r, v, conjugate(tau)), order

    q, r, order = loop(min(m, n), step, (q, a, order))
    return q, _triangle(r), order


def pivoted_qr(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns the results of `qr` with pivoting; Q is made after the loop."""
    m, n = a.shape[-2:]
    stored, taus, order = _reduced_columns(a, np.int32(0))
    size = m if eqn.params["full_matrices"] else jax.core.min_dim(m, n)
    missing = jax.core.max_dim(m - n, 0) if eqn.params["full_matrices"] else 0
    widths = [(0, 0)] * (a.ndim - 1) + [(0, missing)]
    q = _product(jnp.pad(stored, widths)[..., :size], taus)
    return [q, _triangle(stored[..., :size, :]), order]


def geqrf(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns the triangle with the reflections below it, and their factors tau."""
    del eqn
    return _reduced_columns(a)[:2]


def geqp3(eqn: jex_core.JaxprEqn, a: jax.Array, pivots: jax.Array) -> Sequence[jax.Array]:
    """Returns the results of `geqrf` with pivoting, and the columns counted from one.

    Columns whose pivot is not 0 stay in front.
    """
    del eqn
    count = a.shape[-1]
    is_fixed = pivots != 0
    # Each fixed column is exchanged with the first column that is not fixed.
    places = jnp.cumsum(is_fixed, -1, dtype=np.int32)
    order = permutation_of(jnp.where(is_fixed, places - 1, numbers(count)), count)
    a = jnp.take_along_axis(a, order[..., None, :], -1)
    a, taus, moved = _reduced_columns(a, places[..., -1:])
    return [a, jnp.take_along_axis(order, moved, -1) + 1, taus]


def _reduced_columns(a: jax.Array, n_fixed: ArrayLike | None = None) -> _Three:
    """Returns the triangle with the reflections below it, their factors, and the column order.

    With `n_fixed`, the columns after the first `n_fixed` are put in order by their lengths.
    """
    rows, columns = (numbers(size) for size in a.shape[-2:])
    batch = a.shape[:-2]
    size = jax.core.min_dim(*a.shape[-2:])

    def step(k: jax.Array, state: PyTree) -> PyTree:
        a, taus, order = state
        if n_fixed is not None:
            a, order = _with_largest_first(a, order, k, n_fixed)
        v, tau, _ = reflector(at(a, k, -1), k)
        a = a - reflection(a, v, conjugate(tau), columns >= k)
        is_stored = (rows[:, None] > k) & (columns == k)
        return jnp.where(is_stored, v[..., :, None], a), with_element(taus, k, tau), order

    order = jnp.broadcast_to(columns, (*batch, a.shape[-1]))
    reduced: _Three = loop(size, step, (a, jnp.zeros((*batch, size), a.dtype), order))
    return reduced


def _with_largest_first(
    r: jax.Array, order: jax.Array, k: jax.Array, n_fixed: ArrayLike
) -> tuple[jax.Array, jax.Array]:
    """Moves the longest of the columns from `k` on to the place `k`, unless that one is fixed."""
    rows, columns = numbers(r.shape[-2]), numbers(r.shape[-1])
    left = jnp.where(rows[:, None] >= k, r, jnp.zeros_like(r))
    lengths = jnp.sum(squared_sizes(left), -2)
    lengths = jnp.where(columns >= k, lengths, np.array(-1, lengths.dtype))
    largest = lax.argmax(lengths, lengths.ndim - 1, np.int32)[..., None]
    if np.ndim(n_fixed):
        largest = jnp.where(k < n_fixed, k, largest)
    exchanged = jnp.where(columns == k, largest, jnp.where(columns == largest, k, columns))
    r = jnp.take_along_axis(r, exchanged[..., None, :], -1)
    return r, jnp.take_along_axis(order, exchanged, -1)


def _triangle(r: jax.Array) -> jax.Array:
    rows, columns = (numbers(size) for size in r.shape[-2:])
    return jnp.where(rows[:, None] <= columns, r, jnp.zeros_like(r))


def product_of_reflections(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array
) -> Sequence[jax.Array]:
    """Returns the first columns of H_0 H_1 ... for the reflections below the diagonal of `a`."""
    del eqn
    return [_product(a, taus)]


def applied_reflections(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array, c: jax.Array
) -> Sequence[jax.Array]:
    """Returns Q C, Q^H C, C Q or C Q^H for the Q of `product_of_reflections` with all columns."""
    v, t = _compact(a, taus)
    t = adjoint(t) if eqn.params["transpose"] else t
    if eqn.params["left"]:
        return [c - product(v, product(t, product(adjoint(v), c)))]
    return [c - product(product(product(c, v), t), adjoint(v))]


def _product(a: jax.Array, taus: jax.Array) -> jax.Array:
    v, t = _compact(a, taus)
    m, n = a.shape[-2:]
    identity = (numbers(m)[:, None] == numbers(n)).astype(a.dtype)
    return identity - product(v, product(t, adjoint(v[..., :n, :])))


def _compact(a: jax.Array, taus: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns V and T of the compact form I - V T V^H (Schreiber and Van Loan 1989).

    With D = diag(taus) and S the part of V^H V above the diagonal, T is (I + D S)^-1 D.
    """
    count = taus.shape[-1]
    rows, columns = numbers(a.shape[-2])[:, None], numbers(count)
    a = a[..., :count]
    v = jnp.where(rows > columns, a, (rows == columns).astype(a.dtype))
    system = taus[..., :, None] * product(adjoint(v), v)
    diagonal = jnp.where(is_diagonal(count), taus[..., None], jnp.zeros_like(system))
    t = lax.linalg.triangular_solve(system, diagonal, left_side=True, unit_diagonal=True)
    return v, t


def householder_product(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array
) -> Sequence[jax.Array]:
    """Returns the result of `product_of_reflections`, by a loop."""
    del eqn
    identity = np.eye(*a.shape[-2:], dtype=a.dtype)
    product = _applied(a, taus, jnp.broadcast_to(identity, a.shape), from_last=True, to_all=False)
    return [product]


def ormqr(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array, c: jax.Array
) -> Sequence[jax.Array]:
    """Returns the result of `applied_reflections`, by a loop."""
    left, transpose = eqn.params["left"], eqn.params["transpose"]
    # For complex numbers, the transpose is Q^H.
    taus = conjugate(taus) if transpose else taus
    if left:
        return [_applied(a, taus, c, from_last=not transpose)]
    # C Q equals (Q^T C^T)^T.
    product = _applied(conjugate(a), taus, jnp.swapaxes(c, -1, -2), from_last=transpose)
    return [jnp.swapaxes(product, -1, -2)]


def _applied(
    a: jax.Array, taus: jax.Array, c: jax.Array, from_last: bool, to_all: bool = True
) -> jax.Array:
    """Applies the reflections below the triangle of `a` to `c` one after the other.

    Without `to_all`, a reflection changes only its own column of `c` and those after it. The other
    columns have zeros in its rows, and a NaN in the reflection would spread to them.
    """
    rows, count = numbers(a.shape[-2]), taus.shape[-1]

    def step(i: jax.Array, c: jax.Array) -> PyTree:
        k = count - 1 - i if from_last else i
        column = at(a, k, -1)
        below = jnp.where(rows > k, column, jnp.zeros_like(column))
        v = jnp.where(rows == k, jnp.ones_like(column), below)
        columns = None if to_all else numbers(c.shape[-1]) >= k
        return c - reflection(c, v, at(taus, k, -1)[..., None], columns)

    result: jax.Array = loop(count, step, c)
    return result


def hessenberg(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Reduces A = Q H Q^H to upper Hessenberg H: (reflectors and H, taus), as LAPACK's gehd2."""
    del eqn
    return _reduced(a)


def tridiagonal(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Reduces a Hermitian A = Q T Q^H: (reflectors, diagonals of T, taus), as LAPACK's hetd2."""
    size, zeros = a.shape[-1], jnp.zeros_like(a)
    rows, columns = numbers(size)[:, None], numbers(size)

    def turned(x: jax.Array, *axes: int) -> jax.Array:
        # For the upper triangle, LAPACK does the same with rows and columns in reverse order.
        return x if eqn.params["lower"] else lax.rev(x, [x.ndim + axis for axis in axes])

    triangle = turned(a, -2, -1)
    strict = jnp.where(rows > columns, triangle, zeros)
    diagonal = jnp.where(is_diagonal(size), real(triangle).astype(a.dtype), zeros)
    reduced, taus = _reduced(strict + adjoint(strict) + diagonal)
    below = jnp.sum(jnp.where(is_diagonal(size, -1), reduced, zeros), -2)[..., :-1]
    return [
        turned(jnp.where(rows >= columns, reduced, triangle), -2, -1),
        turned(real(diagonal_of(reduced)), -1),
        turned(real(below), -1),
        turned(taus, -1),
    ]


def _reduced(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Makes Q^H A Q zero two rows below the diagonal, where reflectors are stored; and taus."""
    places = numbers(a.shape[-1])
    count = a.shape[-1] - 1

    def step(k: jax.Array, state: PyTree) -> PyTree:
        a, taus = state
        column = at(a, k, -1)
        v, tau, beta = reflector(column, k + 1)
        column = jnp.where(places == k + 1, beta, jnp.where(places > k + 1, v, column))
        both = reflected_from_right(a, v, tau)
        both = both - reflection(both, v, conjugate(tau))
        # The columns up to k are finished; the reflectors do not change them.
        a = jnp.where(places == k, column[..., :, None], jnp.where(places > k, both, a))
        return a, with_element(taus, k, tau)

    start = a, jnp.zeros((*a.shape[:-2], count), a.dtype)
    is_done = isinstance(count, int) and count == 0
    result: tuple[jax.Array, jax.Array] = start if is_done else loop(count, step, start)
    return result
