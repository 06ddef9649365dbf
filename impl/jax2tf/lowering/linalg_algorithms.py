"""Algorithms of linear algebra for which TensorFlow has no op, in ops that run in every mode.

All of them work on batches: a matrix argument has shape [b, m, n], a vector [b, n]. They are the
textbook algorithms behind LAPACK's unblocked routines, with LAPACK's choices of sign, so that
results are comparable entry by entry. See Golub and Van Loan, "Matrix Computations", chapters 3, 5
and 8.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

Tensors = tuple[tf.Tensor, ...]


@functools.cache
def as_function(algorithm: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    """An algorithm as one TensorFlow function: eager TensorFlow would run its loops in Python.

    Args:
      algorithm: a function of tensors.
      compiled: whether XLA compiles it in every mode; otherwise only where its caller is compiled.
    """
    return tf.function(algorithm, autograph=False, jit_compile=compiled or None)


def lu(a: tf.Tensor) -> Tensors:
    """LU factorisation with partial pivoting: (lu, pivots, permutation), as LAPACK's getf2."""
    rows, columns = tf.range(tf.shape(a)[1]), tf.range(tf.shape(a)[2])
    rank = tf.minimum(tf.shape(a)[1], tf.shape(a)[2])
    # Made out here: XLA sees no compile-time constant in a length that a loop's body captures.
    steps = tf.range(rank)

    def step(k: tf.Tensor, a: tf.Tensor, pivots: tf.Tensor, permutation: tf.Tensor) -> Tensors:
        size = tf.where(rows >= k, _abs1(tf.gather(a, k, axis=2)), -1)
        pivot_row = tf.argmax(size, axis=1, output_type=tf.int32)
        order = _swap(rows, k, pivot_row)
        a = tf.gather(a, order, batch_dims=1)
        column, row = tf.gather(a, k, axis=2), tf.gather(a, k, axis=1)
        pivot = tf.gather(row, k, axis=1)[:, None]
        factors = column / tf.where(tf.equal(pivot, 0), tf.ones_like(pivot), pivot)
        factors = tf.where(rows > k, factors, tf.zeros_like(factors))
        a -= factors[:, :, None] * tf.where(columns > k, row, tf.zeros_like(row))[:, None, :]
        below = (rows > k)[:, None] & (columns == k)[None, :]
        return (
            k + 1,
            tf.where(below, factors[:, :, None], a),
            tf.where(steps == k, pivot_row[:, None], pivots),
            tf.gather(permutation, order, batch_dims=1),
        )

    b = tf.shape(a)[0]
    start = (0, a, tf.zeros([b, rank], tf.int32), tf.broadcast_to(rows, [b, tf.size(rows)]))
    return _loop(rank, step, start)


def permutation_of(pivots: tf.Tensor, size: Any) -> tf.Tensor:
    """The permutation that LU's row interchanges amount to."""
    rows = tf.range(size)

    def step(k: tf.Tensor, permutation: tf.Tensor) -> Tensors:
        order = _swap(rows, k, tf.gather(pivots, k, axis=1))
        return k + 1, tf.gather(permutation, order, batch_dims=1)

    b = tf.shape(pivots)[0]
    return _loop(tf.shape(pivots)[1], step, (0, tf.broadcast_to(rows, [b, size])))[0]


def qr(a: tf.Tensor) -> Tensors:
    """Householder reflectors of A = Q R: (reflectors and R, taus), as LAPACK's geqr2."""
    a, taus, _ = _reflect_columns(a, pivoting=False)
    return a, taus


def pivoted_qr(a: tf.Tensor) -> Tensors:
    """As `qr` of A P, with the columns of P chosen by norm: (reflectors and R, taus, columns)."""
    return _reflect_columns(a, pivoting=True)


def _reflect_columns(a: tf.Tensor, pivoting: bool) -> Tensors:
    rows, columns = tf.range(tf.shape(a)[1]), tf.range(tf.shape(a)[2])
    rank = tf.minimum(tf.shape(a)[1], tf.shape(a)[2])

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor, order: tf.Tensor) -> Tensors:
        if pivoting:
            left = tf.where((rows >= k)[:, None], _squares(a), 0)
            norms = tf.where(columns >= k, tf.reduce_sum(left, 1), -1)
            swap = _swap(columns, k, tf.argmax(norms, axis=1, output_type=tf.int32))
            a = tf.gather(a, swap, axis=2, batch_dims=1)
            order = tf.gather(order, swap, batch_dims=1)
        v, tau, beta = reflector(tf.gather(a, k, axis=2), k)
        later = (columns > k)[None, None, :]
        a = tf.where(later, reflected(a, v, tf.math.conj(tau)), a)
        a = tf.where((columns == k)[None, None, :], _stored(a, v, beta, k), a)
        return k + 1, a, _with_element(taus, k, tau), order

    b = tf.shape(a)[0]
    start = (
        0,
        a,
        tf.zeros([b, rank], a.dtype),
        tf.broadcast_to(columns, [b, tf.size(columns)]),
    )
    return _loop(rank, step, start)


def hessenberg(a: tf.Tensor) -> Tensors:
    """Reflectors of A = Q H Q^H with H upper Hessenberg: (reflectors and H, taus), as gehd2."""
    columns = tf.range(tf.shape(a)[2])
    count = tf.shape(a)[1] - 1

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor) -> Tensors:
        v, tau, beta = reflector(tf.gather(a, k, axis=2), k + 1)
        column = _stored(a, v, beta, k + 1, at=k)
        later = (columns > k)[None, None, :]
        a = tf.where(later, adjoint(reflected(adjoint(a), v, tf.math.conj(tau))), a)
        a = tf.where(later, reflected(a, v, tf.math.conj(tau)), a)
        a = tf.where((columns == k)[None, None, :], column, a)
        return k + 1, a, _with_element(taus, k, tau)

    return _loop(count, step, (0, a, tf.zeros([tf.shape(a)[0], count], a.dtype)))


def tridiagonal(a: tf.Tensor) -> Tensors:
    """Reflectors of the Hermitian A = Q T Q^H, from its lower triangle: (reflectors and T, taus).

    As LAPACK's hetd2. The diagonal and the subdiagonal of the first result are T's.
    """
    strictly_lower = tf.linalg.band_part(a, -1, 0) - tf.linalg.band_part(a, 0, 0)
    diagonal = tf.cast(tf.math.real(tf.linalg.diag_part(a)), a.dtype)
    hermitian = strictly_lower + adjoint(strictly_lower) + tf.linalg.diag(diagonal)
    columns = tf.range(tf.shape(a)[2])
    count = tf.shape(a)[1] - 1

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor) -> Tensors:
        v, tau, beta = reflector(tf.gather(a, k, axis=2), k + 1)
        column = _stored(a, v, beta, k + 1, at=k)
        both = adjoint(reflected(adjoint(a), v, tf.math.conj(tau)))
        both = reflected(both, v, tf.math.conj(tau))
        # Rows up to k hold what is done with; reflectors have no part in them.
        a = tf.where((columns > k)[None, None, :], both, a)
        a = tf.where((columns == k)[None, None, :], column, a)
        return k + 1, a, _with_element(taus, k, tau)

    a, taus = _loop(count, step, (0, hermitian, tf.zeros([tf.shape(a)[0], count], a.dtype)))
    return a, taus


def product_of_reflectors(a: tf.Tensor, taus: tf.Tensor) -> tf.Tensor:
    """The first columns of H_0 H_1 ... for the reflectors below the diagonal of `a`, as ungqr.

    By the compact WY form I - V T V^H, which costs no loop: with D = diag(taus) and S the part of
    V^H V above the diagonal, T = (I + D S)^-1 D (Schreiber and Van Loan 1989).
    """
    m, n = tf.shape(a)[1], tf.shape(a)[2]
    v, t = _compact(a, taus)
    identity = tf.eye(m, n, batch_shape=[tf.shape(a)[0]], dtype=a.dtype)
    return identity - tf.matmul(v, tf.matmul(t, tf.matmul(v, identity, adjoint_a=True)))


def apply_reflectors(
    a: tf.Tensor, taus: tf.Tensor, c: tf.Tensor, left: bool, transpose: bool
) -> tf.Tensor:
    """Q C, Q^H C, C Q or C Q^H for the Q of `product_of_reflectors` with all its columns."""
    v, t = _compact(a, taus)
    if transpose:
        t = adjoint(t)
    if left:
        return c - tf.matmul(v, tf.matmul(t, tf.matmul(v, c, adjoint_a=True)))
    return c - tf.matmul(tf.matmul(tf.matmul(c, v), t), v, adjoint_b=True)


def _compact(a: tf.Tensor, taus: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """V and T of I - V T V^H."""
    v = a[:, :, : tf.shape(taus)[1]]
    v = tf.linalg.band_part(v, -1, 0)
    v = tf.linalg.set_diag(v, tf.ones_like(tf.linalg.diag_part(v)))
    inner = tf.matmul(v, v, adjoint_a=True)
    above = inner - tf.linalg.band_part(inner, -1, 0)
    system = tf.linalg.set_diag(taus[:, :, None] * above, tf.ones_like(taus))
    return v, tf.linalg.triangular_solve(system, tf.linalg.diag(taus), lower=False)


def solve_tridiagonal(
    lower: tf.Tensor, diagonal: tf.Tensor, upper: tf.Tensor, rhs: tf.Tensor
) -> tf.Tensor:
    """Gaussian elimination with partial pivoting of a tridiagonal system, as LAPACK's gtsv.

    Args:
      lower: shape [n, b], the first row unused.
      diagonal: shape [n, b].
      upper: shape [n, b], the last row unused.
      rhs: shape [n, b, k].

    Returns:
      The solution, of the shape of `rhs`; NaN for a matrix that is singular.
    """
    zero, zeros = tf.zeros_like(diagonal[0]), tf.zeros_like(rhs[0])

    def eliminate(row: Tensors, following: Tensors) -> Tensors:
        # `row` is (_, _, _, _, d, u, b): an eliminated row to keep, and one to eliminate with.
        *_, d, u, b = row
        below, d_next, u_next, b_next = following
        swap = _abs1(below) > _abs1(d)
        pivot = tf.where(swap, below, d)
        safe = tf.where(tf.equal(pivot, 0), tf.ones_like(pivot), pivot)
        factor = tf.where(swap, d, below) / safe
        first = tf.where(swap, d_next, u)
        second = tf.where(swap, u_next, zero)
        b_pivot = tf.where(swap[:, None], b_next, b)
        return (
            pivot,
            first,
            second,
            b_pivot,
            tf.where(swap, u, d_next) - factor * first,
            tf.where(swap, -factor * u_next, u_next),
            tf.where(swap[:, None], b, b_next) - factor[:, None] * b_pivot,
        )

    def substitute(solved: Tensors, row: Tensors) -> Tensors:
        pivot, first, second, b = row
        x, x_after = solved
        return (b - first[:, None] * x - second[:, None] * x_after) / pivot[:, None], x

    start = (zero, zero, zero, zeros, diagonal[0], upper[0], rhs[0])
    rows = tf.scan(eliminate, (lower[1:], diagonal[1:], upper[1:], rhs[1:]), start)
    last = (rows[4][-1:], tf.zeros_like(upper[:1]), tf.zeros_like(upper[:1]), rows[6][-1:])
    rows = tuple(tf.concat(pair, 0) for pair in zip(rows[:4], last, strict=True))
    solution = tf.scan(substitute, rows, (zeros, zeros), reverse=True)[0]
    singular = tf.reduce_any(tf.equal(rows[0], 0), 0)[None, :, None]
    return tf.where(singular, nan_like(solution), solution)


def with_a_row_more(
    lower: tf.Tensor, diagonal: tf.Tensor, upper: tf.Tensor, rhs: tf.Tensor
) -> Tensors:
    """The system of `solve_tridiagonal` with x = 0 as one more row, which nothing else reads."""
    zero = tf.zeros_like(diagonal[:1])
    return (
        tf.concat([lower, zero], 0),
        tf.concat([diagonal, tf.ones_like(zero)], 0),
        tf.concat([upper[:-1], zero, zero], 0),
        tf.concat([rhs, tf.zeros_like(rhs[:1])], 0),
    )


def eigh(a: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Eigenvalues, which are real, and eigenvectors of Hermitian matrices of any batch shape.

    A step of Newton's method follows TensorFlow's op, which is less exact than LAPACK, and stops at
    single precision where it is compiled: E is its correction X E of approximate eigenvectors X
    (Ogita and Aishima 2018).
    """
    values, x = tf.linalg.eigh(a)
    # At once: in compiled code the values are real already, whatever their dtype claims.
    values = tf.math.real(values)
    lower = tf.linalg.band_part(a, -1, 0)
    a = lower + adjoint(tf.linalg.band_part(a, -1, 0) - tf.linalg.band_part(a, 0, 0))
    inner = tf.matmul(x, tf.matmul(a, x), adjoint_a=True)
    x = _corrected(x, inner, values)
    return tf.reduce_sum(tf.math.real(tf.math.conj(x) * tf.matmul(a, x)), -2), x


def svd(a: tf.Tensor, full_matrices: bool, wide: bool | tf.Tensor) -> Tensors:
    """U, s and V^H of matrices of any batch shape, as (s, U, V^H).

    Args:
      a: matrices.
      full_matrices: whether U and V are square.
      wide: whether `a` has more columns than rows; a tensor where only the run can tell.
    """

    def of_wide(a: tf.Tensor) -> Tensors:
        s, u, vh = _tall_svd(adjoint(a), full_matrices)
        return s, adjoint(vh), adjoint(u)

    if isinstance(wide, bool):
        return of_wide(a) if wide else _tall_svd(a, full_matrices)
    # Compiled, both branches see the shape that there is: the wrong one gets what is square of it,
    # and gives shapes as the right one.
    m, n = tf.shape(a)[-2], tf.shape(a)[-1]
    k = tf.minimum(m, n)

    def wide_branch() -> Tensors:
        s, u, vh = of_wide(a[..., :k, :])
        return s, _enlarged(u, m, m if full_matrices else k), vh

    def tall_branch() -> Tensors:
        s, u, vh = _tall_svd(a[..., :k], full_matrices)
        return s, u, _enlarged(vh, n if full_matrices else k, n)

    return tuple(tf.cond(wide, wide_branch, tall_branch))


def _enlarged(a: tf.Tensor, m: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Matrices with zeros behind, of shape [..., m, n]."""
    below, behind = m - tf.shape(a)[-2], n - tf.shape(a)[-1]
    return tf.pad(a, [[0, 0]] * (a.shape.rank - 2) + [[0, below], [0, behind]])


def _tall_svd(a: tf.Tensor, full_matrices: bool) -> Tensors:
    """(s, U, V^H) of matrices with at least as many rows as columns.

    Approximate right singular vectors, a step of Newton's method as in `eigh`, and the QR factors
    of A V = U diag(s). TensorFlow's op gives those vectors; compiled, it knows no complex numbers.
    """
    v = _right_vectors(a) if a.dtype.is_complex else tf.linalg.svd(a)[2]
    image = tf.matmul(a, v)
    inner = tf.matmul(image, image, adjoint_a=True)
    v = _corrected(v, inner, tf.math.real(tf.linalg.diag_part(inner)))
    q, r = tf.linalg.qr(tf.matmul(a, v), full_matrices=full_matrices)
    diagonal = tf.linalg.diag_part(r)
    s = tf.abs(diagonal)
    # Householder's R has a real diagonal of either sign, and LAPACK's s is not negative.
    negative = tf.math.real(diagonal) < 0
    vh = adjoint(tf.where(negative[..., None, :], -v, v))
    return s, q, vh


def _right_vectors(a: tf.Tensor) -> tf.Tensor:
    """Approximate right singular vectors of matrices with at least as many rows as columns.

    The eigenvectors of [[0, R], [R^H, 0]] for its n largest eigenvalues, the singular values, are
    [u; v] / sqrt(2). Those of zero are mixed, and QR completes what is left to a basis.
    """
    n = tf.shape(a)[-1]
    vectors = tf.linalg.eigh(_jordan_wielandt(tf.linalg.qr(a)[1]))[1]
    return tf.linalg.qr(tf.reverse(vectors[..., n:, n:], [-1]))[0]


def _jordan_wielandt(r: tf.Tensor) -> tf.Tensor:
    zero = tf.zeros_like(r)
    upper, lower = tf.concat([zero, r], -1), tf.concat([adjoint(r), zero], -1)
    return tf.concat([upper, lower], -2)


def _corrected(x: tf.Tensor, inner: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Orthonormal vectors `x` made to diagonalise, where `inner` is the matrix in their basis."""
    gap = values[..., None, :] - values[..., :, None]
    gap = tf.cast(tf.where(tf.equal(gap, 0), tf.ones_like(gap) * math.inf, gap), x.dtype)
    # Among values too close to tell apart any basis does; a large step would find none.
    step = inner / gap
    step = tf.where(tf.abs(step) < 0.1, step, tf.zeros_like(step))
    step -= tf.linalg.band_part(step, 0, 0)
    q, r = tf.linalg.qr(x + tf.matmul(x, step))
    diagonal = tf.linalg.diag_part(r)
    return q * tf.sign(diagonal)[..., None, :] if not x.dtype.is_complex else q


def nan_like(x: tf.Tensor) -> tf.Tensor:
    """NaN of a real or complex dtype, in both parts, as a scalar."""
    nan = float("nan")
    return tf.constant(complex(nan, nan) if x.dtype.is_complex else nan, x.dtype)


def _loop(count: tf.Tensor, step: Callable[..., Tensors], start: Tensors) -> Tensors:
    """Applies `step` `count` times to (0, ...) and drops the counter."""

    def body(*state: tf.Tensor) -> Tensors:
        following = step(*state)
        for before, after in zip(state[1:], following[1:], strict=True):
            # A broadcast against a range of unknown length loses what is known of the shape.
            after.set_shape(before.shape)
        return following

    return tf.while_loop(lambda k, *_: k < count, body, start)[1:]


def reflector(x: tf.Tensor, k: tf.Tensor) -> Tensors:
    """The reflector I - tau v v^H whose adjoint takes x[:, k:] to beta e_k: (v, tau, beta).

    As LAPACK's larfg: v is 1 at k, beta real and of the sign opposite to x[:, k].
    """
    rows = tf.range(tf.shape(x)[1])
    alpha = tf.gather(x, k, axis=1)
    tail = tf.where(rows > k, x, tf.zeros_like(x))
    tail_square = tf.reduce_sum(_squares(tail), 1)
    real = tf.math.real(alpha)
    norm = tf.sqrt(_squares(alpha) + tail_square)
    beta = tf.where(real >= 0, -norm, norm)
    trivial = tf.equal(tail_square, 0)
    if x.dtype.is_complex:
        trivial &= tf.equal(tf.math.imag(alpha), 0)
    beta = tf.cast(tf.where(trivial, real, beta), x.dtype)
    one = tf.ones_like(alpha)
    tau = (beta - alpha) / tf.where(trivial, one, beta)
    tau = tf.where(trivial, tf.zeros_like(tau), tau)
    v = tail / tf.where(trivial, one, alpha - beta)[:, None]
    return tf.where(rows == k, one[:, None], v), tau, beta


def reflected(a: tf.Tensor, v: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
    """(I - tau v v^H) A."""
    inner = tf.matmul(v[:, :, None], a, adjoint_a=True)
    return a - (tau[:, None] * v)[:, :, None] * inner


def _stored(
    a: tf.Tensor, v: tf.Tensor, beta: tf.Tensor, k: tf.Tensor, at: tf.Tensor | None = None
) -> tf.Tensor:
    """The column of `a` at `at` (default k) with beta at k and v below, as shape [b, m, 1]."""
    rows = tf.range(tf.shape(a)[1])
    column = tf.gather(a, k if at is None else at, axis=2)
    column = tf.where(rows > k, v, column)
    return tf.where(rows == k, beta[:, None], column)[:, :, None]


def _with_element(x: tf.Tensor, k: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.range(tf.shape(x)[1]) == k, value[:, None], x)


def _swap(positions: tf.Tensor, k: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """For each batch element the positions with k and `other` exchanged."""
    other = other[:, None]
    return tf.where(positions == k, other, tf.where(positions == other, k, positions))


def adjoint(a: tf.Tensor) -> tf.Tensor:
    return tf.linalg.matrix_transpose(a, conjugate=a.dtype.is_complex)


def _squares(x: tf.Tensor) -> tf.Tensor:
    """|x|^2."""
    if x.dtype.is_complex:
        return tf.square(tf.math.real(x)) + tf.square(tf.math.imag(x))
    return tf.square(x)


def _abs1(x: tf.Tensor) -> tf.Tensor:
    """The size by which LAPACK chooses pivots: |Re x| + |Im x|."""
    if x.dtype.is_complex:
        return tf.abs(tf.math.real(x)) + tf.abs(tf.math.imag(x))
    return tf.abs(x)
