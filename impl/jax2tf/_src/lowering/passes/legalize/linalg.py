"""Computes linear algebra by products, sums and loops, for targets without ops for it.

The algorithms are from Golub and Van Loan, "Matrix Computations", for batches of matrices.
Triangular factors are computed column by column, with LAPACK's choice of signs. Eigenvalues and
singular values are computed by Jacobi's rotations of all disjoint pairs at once (chapter 8).
Elements are selected by a mask and a sum, which every target has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src.lowering.passes.legalize import schur
from jax2tf._src.lowering.passes.legalize.matrices import (
    adjoint,
    at,
    conjugate,
    diagonal_of,
    is_diagonal,
    nan,
    nan_unless_finite,
    numbers,
    reflected_from_right,
    reflection,
    reflector,
    squared_sizes,
    with_element,
)
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import by_primitive
from jax2tf._src.util.typing import Param, PyTree, aval_of

Function = Callable[..., Sequence[jax.Array]]
_Arrays = tuple[jax.Array, ...]

_DTYPES = frozenset(map(np.dtype, ("float32", "float64", "int32")))
# Jacobi's rotations usually converge in a fraction of these sweeps.
_SWEEPS = 20


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for an equation of linear algebra that the target lacks, or None."""
    found = _FUNCTIONS.get(eqn.primitive)
    if found is None:
        return None
    op, function = found
    aval = aval_of(eqn.invars[0])
    is_lacking = aval.dtype in _DTYPES and not target.takes(op, str(aval.dtype))
    # The bands of a matrix are vectors; their other dimensions are a batch.
    sizes = aval.shape[-1:] if function is _tridiagonal_solve else aval.shape[-2:]
    sizes = (*sizes, eqn.params.get("permutation_size", 1))
    is_known = all(isinstance(d, int) and d > 0 for d in sizes)
    if not is_lacking or not is_known or _is_refused(eqn):
        return None
    return _nothing if 0 in aval.shape else function


def of_complex(eqn: jex_core.JaxprEqn) -> Function | None:
    """Returns the function for an equation of complex matrices of known sizes, or None."""
    function = _OF_COMPLEX.get(eqn.primitive)
    aval = aval_of(eqn.invars[0])
    # Real matrices have complex eigenvalues, too.
    is_complex = jnp.issubdtype(aval.dtype, np.complexfloating) or function is schur.eig
    is_known = all(isinstance(d, int) for d in aval.shape[-2:])
    if function is None or not is_complex or not is_known or _is_refused(eqn):
        return None
    return _nothing if 0 in aval.shape else function


def _is_refused(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the primitive's own rule refuses the equation, because it perturbs or sorts."""
    params = eqn.params
    is_sorted = params.get("sort_eig_vals", False) or params.get("select_callable") is not None
    return bool(is_sorted or params.get("perturb_singular", False))


def _nothing(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Returns the results of empty matrices. Loops over them end the process of some engines."""
    avals = [aval_of(v) for v in eqn.outvars]
    results = [jnp.zeros(aval.shape, aval.dtype) for aval in avals]
    # The orthogonal factor of an empty matrix is the identity, and so is its permutation.
    if eqn.primitive is lax.linalg.qr_p:
        results[0] = jnp.broadcast_to(np.eye(*avals[0].shape[-2:]), avals[0].shape)
        results[0] = results[0].astype(avals[0].dtype)
    if eqn.primitive is lax.linalg.lu_p:
        results[-1] = jnp.broadcast_to(numbers(avals[-1].shape[-1]), avals[-1].shape)
    return results


def _real(x: jax.Array) -> jax.Array:
    return x.real if jnp.iscomplexobj(x) else x


def _cholesky(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    rows = numbers(a.shape[-1])

    def column(k: ArrayLike, factor: jax.Array) -> jax.Array:
        row = conjugate(at(factor, k, -2))[..., None, :]
        rest = at(a, k, -1) - jnp.sum(factor * row, -1)
        pivot = jnp.sqrt(at(rest, k, -1).real)[..., None].astype(a.dtype)
        below = jnp.where(rows > k, rest / pivot, jnp.zeros_like(rest))
        found = jnp.where(rows == k, pivot, below)
        return jnp.where(rows == k, found[..., :, None], factor)

    factor = lax.fori_loop(0, a.shape[-1], column, jnp.zeros_like(a))
    # If a pivot is not positive, the whole factor is NaN.
    positive = jnp.all(diagonal_of(factor).real > 0, -1)
    return [jnp.where(positive[..., None, None], factor, nan(a.dtype))]


def _triangular_solve(eqn: jex_core.JaxprEqn, a: jax.Array, b: jax.Array) -> Sequence[jax.Array]:
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

    def row(k: ArrayLike, x: jax.Array) -> jax.Array:
        known = jnp.sum(at(below, k, -2)[..., :, None] * x, -2)
        found = at(b, k, -2) - known
        if not has_unit_diagonal:
            found = found / at(diagonal, k, -1)[..., None]
        return jnp.where(rows[:, None] == k, found[..., None, :], x)

    result: jax.Array = lax.fori_loop(0, a.shape[-1], row, jnp.zeros_like(b))
    return result


def _lu(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Factorizes row by row with the largest pivot first, as LAPACK's getf2."""
    m, n = a.shape[-2:]
    rows, columns, size = numbers(m), numbers(n), min(m, n)

    def step(k: ArrayLike, state: PyTree) -> PyTree:
        a, pivots, order = state
        lengths = _lengths(at(a, k, -1))
        lengths = jnp.where(rows >= k, lengths, np.array(-1, lengths.dtype))
        pivot = jnp.argmax(lengths, -1).astype(np.int32)[..., None]
        a = jnp.swapaxes(_swapped(jnp.swapaxes(a, -1, -2), k, pivot[..., None]), -1, -2)
        row = at(a, k, -2)
        first = at(row, k, -1)[..., None]
        factors = at(a, k, -1) / jnp.where(first == 0, jnp.ones_like(first), first)
        factors = jnp.where(rows > k, factors, jnp.zeros_like(factors))[..., :, None]
        right = jnp.where(columns > k, row, jnp.zeros_like(row))[..., None, :]
        below = (rows[:, None] > k) & (columns == k)
        a = jnp.where(below, factors, a - factors * right)
        pivots = jnp.where(numbers(size) == k, pivot, pivots)
        return a, pivots, _swapped(order, k, pivot)

    batch = a.shape[:-2]
    start = a, jnp.zeros((*batch, size), np.int32), jnp.broadcast_to(rows, (*batch, m))
    results: Sequence[jax.Array] = lax.fori_loop(0, size, step, start)
    return results


def _lengths(x: jax.Array) -> jax.Array:
    """Returns the sizes by which LAPACK compares pivots."""
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def _swapped(x: jax.Array, i: ArrayLike, j: ArrayLike) -> jax.Array:
    """Exchanges the elements `i` and `j` of the last axis of `x`."""
    places = numbers(x.shape[-1])
    at_i, at_j = (
        jnp.sum(jnp.where(places == k, x, jnp.zeros_like(x)), -1, keepdims=True, dtype=x.dtype)
        for k in (i, j)
    )
    return jnp.where(places == i, at_j, jnp.where(places == j, at_i, x))


def _permutation(eqn: jex_core.JaxprEqn, pivots: jax.Array) -> Sequence[jax.Array]:
    """Returns the permutation of a list of row exchanges (LAPACK's ipiv)."""
    places = numbers(eqn.params["permutation_size"])
    start = jnp.broadcast_to(places, (*pivots.shape[:-1], places.size))

    def step(k: ArrayLike, order: jax.Array) -> PyTree:
        other = jnp.sum(jnp.where(numbers(pivots.shape[-1]) == k, pivots, 0), -1, keepdims=True)
        return _swapped(order, k, other.astype(np.int32))

    return [lax.fori_loop(0, pivots.shape[-1], step, start)]


def _qr(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    q, r, order = _reflected(a, eqn.params["pivoting"])
    size = a.shape[-2] if eqn.params["full_matrices"] else min(a.shape[-2:])
    factors = [q[..., :, :size], r[..., :size, :]]
    return [*factors, order] if eqn.params["pivoting"] else factors


def _reflected(a: jax.Array, pivoting: bool = False) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the unitary factor, the triangle and the column order, by Householder reflections."""
    m, n = a.shape[-2:]
    rows, columns = numbers(m), numbers(n)
    q = jnp.broadcast_to(is_diagonal(m).astype(a.dtype), (*a.shape[:-2], m, m))
    order = jnp.broadcast_to(columns, (*a.shape[:-2], n))

    def step(k: ArrayLike, state: PyTree) -> PyTree:
        q, r, order = state
        if pivoting:
            r, order = _with_largest_first(r, order, k)
        v, tau, _ = reflector(at(r, k, -1), k)
        return reflected_from_right(q, v, tau), r - reflection(r, v, conjugate(tau)), order

    q, r, order = lax.fori_loop(0, min(m, n), step, (q, a, order))
    return q, jnp.where(rows[:, None] <= columns, r, jnp.zeros_like(r)), order


def _with_largest_first(
    r: jax.Array, order: jax.Array, k: ArrayLike
) -> tuple[jax.Array, jax.Array]:
    """Moves the longest of the columns from `k` on to the place `k`."""
    rows, columns = numbers(r.shape[-2]), numbers(r.shape[-1])
    left = jnp.where(rows[:, None] >= k, r, jnp.zeros_like(r))
    lengths = jnp.sum(squared_sizes(left), -2)
    lengths = jnp.where(columns >= k, lengths, np.array(-1, lengths.dtype))
    largest = jnp.argmax(lengths, -1)[..., None].astype(np.int32)
    swapped = jnp.where(columns == k, largest, jnp.where(columns == largest, k, columns))
    r = jnp.take_along_axis(r, swapped[..., None, :], -1)
    return r, jnp.take_along_axis(order, swapped, -1)


def _geqrf(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns the triangle with the reflections below it, and their factors tau."""
    rows, columns = (numbers(size) for size in a.shape[-2:])
    size = min(a.shape[-2:])

    def step(k: ArrayLike, state: PyTree) -> PyTree:
        a, taus = state
        v, tau, _ = reflector(at(a, k, -1), k)
        left = jnp.where(columns >= k, a, jnp.zeros_like(a))
        a = a - reflection(left, v, conjugate(tau))
        is_stored = (rows[:, None] > k) & (columns == k)
        a = jnp.where(is_stored, v[..., :, None], a)
        return a, with_element(taus, k, tau)

    results: Sequence[jax.Array] = lax.fori_loop(
        0, size, step, (a, jnp.zeros((*a.shape[:-2], size), a.dtype))
    )
    return results


def _householder_product(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array
) -> Sequence[jax.Array]:
    identity = np.eye(*a.shape[-2:], dtype=a.dtype)
    product = _applied(a, taus, jnp.broadcast_to(identity, a.shape), from_last=True, to_all=False)
    return [product]


def _ormqr(
    eqn: jex_core.JaxprEqn, a: jax.Array, taus: jax.Array, c: jax.Array
) -> Sequence[jax.Array]:
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

    def step(i: ArrayLike, c: jax.Array) -> PyTree:
        k = count - 1 - i if from_last else i
        column = at(a, k, -1)
        below = jnp.where(rows > k, column, jnp.zeros_like(column))
        v = jnp.where(rows == k, jnp.ones_like(column), below)
        change = reflection(c, v, at(taus, k, -1)[..., None])
        if not to_all:
            change = jnp.where(numbers(c.shape[-1]) >= k, change, jnp.zeros_like(change))
        return c - change

    result: jax.Array = lax.fori_loop(0, count, step, c)
    return result


def _eigh(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    size = a.shape[-1]
    half = np.tril if eqn.params["lower"] else np.triu
    kept = jnp.where(half(np.ones((size, size), bool)), a, jnp.zeros_like(a))
    diagonal = jnp.where(is_diagonal(size), conjugate(a), jnp.zeros_like(a))
    symmetric = kept + adjoint(kept) - diagonal

    def turned(state: PyTree, rotation: jax.Array) -> PyTree:
        matrix, vectors = state
        matrix = adjoint(rotation) @ matrix @ rotation
        return (matrix + adjoint(matrix)) / 2, vectors @ rotation

    vectors = jnp.broadcast_to(is_diagonal(size).astype(a.dtype), a.shape)
    matrix, vectors = _rotated((symmetric, vectors), turned, lambda state: state[0])
    values = _real(diagonal_of(matrix))
    order = jnp.argsort(values, -1)
    first, last = eqn.params["subset_by_index"] or (0, size)
    values = jnp.take_along_axis(values, order, -1)[..., first:last]
    vectors = jnp.take_along_axis(vectors, order[..., None, :], -1)[..., first:last]
    return nan_unless_finite(a, vectors, values)


def _svd(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
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
    u, r, _ = _reflected(columns)
    signs = jnp.where(_real(diagonal_of(r)) < 0, np.array(-1, a.dtype), np.array(1, a.dtype))
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

    columns, *turned_vectors = _rotated((a / scale, *vectors), turned, products)
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
    diagonal = _real(diagonal_of(a))
    of_partner = jnp.sum(jnp.where(is_pair, diagonal[..., None, :], _real(zero)), -1)
    element = jnp.sum(jnp.where(is_pair, a, zero), -1)
    phase = None
    if jnp.iscomplexobj(a):
        # The rotation is computed for the element's size and then turned by the element's angle.
        length = jnp.abs(element)
        phase = element / jnp.where(length == 0, jnp.ones_like(length), length)
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


def _tridiagonal_solve(
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
        swap = _lengths(below) > _lengths(d)
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


# The functions, each with TensorFlow's op for the primitive.
_BY_NAME: dict[str, tuple[str, Function]] = {
    "cholesky": ("Cholesky", _cholesky),
    "eigh": ("SelfAdjointEigV2", _eigh),
    "geqrf": ("Qr", _geqrf),
    "householder_product": ("Qr", _householder_product),
    "lu": ("Lu", _lu),
    "lu_pivots_to_permutation": ("Lu", _permutation),
    "ormqr": ("Qr", _ormqr),
    "qr": ("Qr", _qr),
    "svd": ("Svd", _svd),
    "triangular_solve": ("MatrixTriangularSolve", _triangular_solve),
    "tridiagonal_solve": ("TridiagonalSolve", _tridiagonal_solve),
}
_FUNCTIONS = by_primitive(_BY_NAME)
# The functions for complex matrices.
_OF_COMPLEX: dict[jex_core.Primitive, Function] = {
    **{primitive: function for primitive, (_, function) in _FUNCTIONS.items()},
    lax.linalg.eig_p: schur.eig,
    lax.linalg.hessenberg_p: schur.hessenberg,
    lax.linalg.schur_p: schur.schur,
    lax.linalg.tridiagonal_p: schur.tridiagonal,
}
