"""Linear algebra algorithms for which TensorFlow has no op, in ops that run in every mode.

All functions take batches: a matrix has the shape [b, m, n], a vector [b, n]. They are the textbook
algorithms of LAPACK's unblocked routines, with LAPACK's choices of sign, so that results agree
entry by entry. See Golub and Van Loan, "Matrix Computations", chapters 3, 5 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Dim

Tensors = tuple[tf.Tensor, ...]


@cached
def as_function(
    algorithm: Callable[..., Sequence[tf.Tensor]], compiled: bool
) -> Callable[..., Sequence[tf.Tensor]]:
    """Wraps an algorithm in a tf.function; eager TensorFlow would run its loops in Python.

    Args:
      algorithm: a function of tensors.
      compiled: whether XLA compiles it in every mode; otherwise only where its caller is compiled.
    """
    function: Callable[..., Sequence[tf.Tensor]] = tf.function(
        algorithm, autograph=False, jit_compile=compiled or None
    )
    return function


def lu(a: tf.Tensor) -> Tensors:
    """LU factorisation with partial pivoting: (lu, pivots, permutation), as LAPACK's getf2."""
    rows, columns = ops.range(ops.shape(a)[1]), ops.range(ops.shape(a)[2])
    rank = ops.minimum(ops.shape(a)[1], ops.shape(a)[2])
    # Not in the body: a length that the body captures is no compile-time constant for XLA.
    steps = ops.range(rank)

    def step(k: tf.Tensor, a: tf.Tensor, pivots: tf.Tensor, permutation: tf.Tensor) -> Tensors:
        size = ops.where(rows >= k, _abs1(ops.gather(a, k, axis=2)), -1)
        pivot_row = ops.argmax(size, axis=1, output_type=tf.int32)
        order = _swap(rows, k, pivot_row)
        # Swaps two rows; a gather of all rows would take longer.
        here, row = ops.gather(a, k, axis=1), ops.gather(a, pivot_row, batch_dims=1)
        a = ops.where((order == k)[:, :, None], here[:, None, :], a)
        a = ops.where((rows == k)[:, None], row[:, None, :], a)
        column = ops.gather(a, k, axis=2)
        pivot = ops.gather(row, k, axis=1)[:, None]
        factors = column / ops.where(ops.equal(pivot, 0), ops.ones_like(pivot), pivot)
        factors = ops.where(rows > k, factors, ops.zeros_like(factors))
        a -= factors[:, :, None] * ops.where(columns > k, row, ops.zeros_like(row))[:, None, :]
        below = (rows > k)[:, None] & (columns == k)[None, :]
        return (
            k + 1,
            ops.where(below, factors[:, :, None], a),
            ops.where(steps == k, pivot_row[:, None], pivots),
            ops.gather(permutation, order, batch_dims=1),
        )

    b = ops.shape(a)[0]
    start = (0, a, ops.zeros([b, rank], tf.int32), ops.broadcast_to(rows, [b, ops.size(rows)]))
    return _loop(rank, step, start)


def permutation_of(pivots: tf.Tensor, size: Dim) -> tf.Tensor:
    """The permutation that results from LU's row interchanges."""
    rows = ops.range(size)

    def step(k: tf.Tensor, permutation: tf.Tensor) -> Tensors:
        order = _swap(rows, k, ops.gather(pivots, k, axis=1))
        return k + 1, ops.gather(permutation, order, batch_dims=1)

    b = ops.shape(pivots)[0]
    return _loop(ops.shape(pivots)[1], step, (0, ops.broadcast_to(rows, [b, size])))[0]


def qr(a: tf.Tensor) -> Tensors:
    """Householder reflectors of A = Q R: (reflectors and R, taus), like LAPACK's geqr2."""
    a, taus, _ = _reflect_columns(a, pivoting=False)
    return a, taus


def pivoted_qr(a: tf.Tensor) -> Tensors:
    """Like `qr` of A P, where P orders columns by norm: (reflectors and R, taus, columns)."""
    return _reflect_columns(a, pivoting=True)


def qr_of_free_columns(a: tf.Tensor, pivots: tf.Tensor) -> Tensors:
    """Like LAPACK's geqp3: `pivoted_qr`, but columns whose pivot is not 0 stay in front.

    Returns (reflectors and R, columns counted from one, taus).
    """
    is_fixed = ops.not_equal(pivots, 0)
    count = ops.shape(a)[2]
    # Each fixed column is swapped with the first column that is not fixed.
    places = ops.cumsum(ops.cast(is_fixed, tf.int32), axis=1)
    order = permutation_of(ops.where(is_fixed, places - 1, ops.range(count)), count)
    a = ops.gather(a, order, axis=2, batch_dims=1)
    a, taus, moved = _reflect_columns(a, pivoting=True, n_fixed=places[:, -1:])
    return a, ops.gather(order, moved, batch_dims=1) + 1, taus


def _reflect_columns(a: tf.Tensor, pivoting: bool, n_fixed: tf.Tensor | int = 0) -> Tensors:
    """Returns reflectors, taus and column order; the first `n_fixed` columns of a matrix stay."""
    rows, columns = ops.range(ops.shape(a)[1]), ops.range(ops.shape(a)[2])
    rank = ops.minimum(ops.shape(a)[1], ops.shape(a)[2])

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor, order: tf.Tensor) -> Tensors:
        if pivoting:
            left = ops.where((rows >= k)[:, None], _squares(a), 0)
            norms = ops.where(columns >= k, ops.reduce_sum(left, 1), -1)
            is_next = ops.equal(columns, k) & (k < n_fixed)
            norms = ops.where(is_next, ops.constant(math.inf, norms.dtype), norms)
            swap = _swap(columns, k, ops.argmax(norms, axis=1, output_type=tf.int32))
            a = ops.gather(a, swap, axis=2, batch_dims=1)
            order = ops.gather(order, swap, batch_dims=1)
        v, tau, beta = reflector(ops.gather(a, k, axis=2), k)
        later = (columns > k)[None, None, :]
        a = ops.where(later, reflected(a, v, ops.conj(tau)), a)
        a = ops.where((columns == k)[None, None, :], _stored(a, v, beta, k), a)
        return k + 1, a, _with_element(taus, k, tau), order

    b = ops.shape(a)[0]
    start = (
        0,
        a,
        ops.zeros([b, rank], a.dtype),
        ops.broadcast_to(columns, [b, ops.size(columns)]),
    )
    return _loop(rank, step, start)


def hessenberg(a: tf.Tensor) -> Tensors:
    """Reflectors of A = Q H Q^H with H upper Hessenberg: (reflectors and H, taus), as gehd2."""
    columns = ops.range(ops.shape(a)[2])
    count = ops.shape(a)[1] - 1

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor) -> Tensors:
        v, tau, beta = reflector(ops.gather(a, k, axis=2), k + 1)
        column = _stored(a, v, beta, k + 1, at=k)
        later = (columns > k)[None, None, :]
        a = ops.where(later, adjoint(reflected(adjoint(a), v, ops.conj(tau))), a)
        a = ops.where(later, reflected(a, v, ops.conj(tau)), a)
        a = ops.where((columns == k)[None, None, :], column, a)
        return k + 1, a, _with_element(taus, k, tau)

    return _loop(count, step, (0, a, ops.zeros([ops.shape(a)[0], count], a.dtype)))


def tridiagonal(a: tf.Tensor) -> Tensors:
    """Reflectors of the Hermitian A = Q T Q^H, from its lower triangle: (reflectors and T, taus).

    As LAPACK's hetd2. The diagonal and the subdiagonal of the first result are T's.
    """
    strictly_lower = ops.band_part(a, -1, 0) - ops.band_part(a, 0, 0)
    columns = ops.range(ops.shape(a)[2])
    # Not every engine has ops for diagonals.
    is_diagonal = ops.equal(columns[:, None], columns)
    diagonal = ops.where(is_diagonal, ops.cast(ops.real(a), a.dtype), ops.zeros([], a.dtype))
    hermitian = strictly_lower + adjoint(strictly_lower) + diagonal
    count = ops.shape(a)[1] - 1

    def step(k: tf.Tensor, a: tf.Tensor, taus: tf.Tensor) -> Tensors:
        v, tau, beta = reflector(ops.gather(a, k, axis=2), k + 1)
        column = _stored(a, v, beta, k + 1, at=k)
        both = adjoint(reflected(adjoint(a), v, ops.conj(tau)))
        both = reflected(both, v, ops.conj(tau))
        # Rows up to k are finished; reflectors do not touch them.
        a = ops.where((columns > k)[None, None, :], both, a)
        a = ops.where((columns == k)[None, None, :], column, a)
        return k + 1, a, _with_element(taus, k, tau)

    a, taus = _loop(count, step, (0, hermitian, ops.zeros([ops.shape(a)[0], count], a.dtype)))
    return a, taus


def product_of_reflectors(a: tf.Tensor, taus: tf.Tensor) -> tf.Tensor:
    """The first columns of H_0 H_1 ... for the reflectors below the diagonal of `a`, like ungqr.

    The compact WY form I - V T V^H needs no loop. With D = diag(taus) and S the part of V^H V above
    the diagonal, T = (I + D S)^-1 D (Schreiber and Van Loan 1989).
    """
    m, n = ops.shape(a)[1], ops.shape(a)[2]
    v, t = _compact(a, taus)
    identity = ops.eye(m, n, batch_shape=[ops.shape(a)[0]], dtype=a.dtype)
    return identity - ops.matmul(v, ops.matmul(t, ops.matmul(v, identity, adjoint_a=True)))


def apply_reflectors(
    a: tf.Tensor, taus: tf.Tensor, c: tf.Tensor, left: bool, transpose: bool
) -> tf.Tensor:
    """Q C, Q^H C, C Q or C Q^H for the Q of `product_of_reflectors` with all its columns."""
    v, t = _compact(a, taus)
    if transpose:
        t = adjoint(t)
    if left:
        return c - ops.matmul(v, ops.matmul(t, ops.matmul(v, c, adjoint_a=True)))
    return c - ops.matmul(ops.matmul(ops.matmul(c, v), t), v, adjoint_b=True)


def _compact(a: tf.Tensor, taus: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """V and T of the compact WY form I - V T V^H."""
    v = a[:, :, : ops.shape(taus)[1]]
    v = ops.band_part(v, -1, 0)
    v = ops.set_diag(v, ops.ones_like(ops.diag_part(v)))
    inner = ops.matmul(v, v, adjoint_a=True)
    above = inner - ops.band_part(inner, -1, 0)
    system = ops.set_diag(taus[:, :, None] * above, ops.ones_like(taus))
    return v, ops.triangular_solve(system, ops.diag(taus), lower=False)


def solve_tridiagonal(
    lower: tf.Tensor, diagonal: tf.Tensor, upper: tf.Tensor, rhs: tf.Tensor
) -> tf.Tensor:
    """Gaussian elimination of a tridiagonal system with partial pivoting, like LAPACK's gtsv.

    Args:
      lower: shape [n, b], the first row unused.
      diagonal: shape [n, b].
      upper: shape [n, b], the last row unused.
      rhs: shape [n, b, k].

    Returns:
      The solution, of the shape of `rhs`; NaN for a matrix that is singular.
    """
    zero, zeros = ops.zeros_like(diagonal[0]), ops.zeros_like(rhs[0])

    def eliminate(row: Tensors, following: Tensors) -> Tensors:
        # `row` holds four results to keep and (d, u, b), the row to eliminate with.
        *_, d, u, b = row
        below, d_next, u_next, b_next = following
        swap = _abs1(below) > _abs1(d)
        pivot = ops.where(swap, below, d)
        safe = ops.where(ops.equal(pivot, 0), ops.ones_like(pivot), pivot)
        factor = ops.where(swap, d, below) / safe
        first = ops.where(swap, d_next, u)
        second = ops.where(swap, u_next, zero)
        b_pivot = ops.where(swap[:, None], b_next, b)
        return (
            pivot,
            first,
            second,
            b_pivot,
            ops.where(swap, u, d_next) - factor * first,
            ops.where(swap, -factor * u_next, u_next),
            ops.where(swap[:, None], b, b_next) - factor[:, None] * b_pivot,
        )

    def substitute(solved: Tensors, row: Tensors) -> Tensors:
        pivot, first, second, b = row
        x, x_after = solved
        return (b - first[:, None] * x - second[:, None] * x_after) / pivot[:, None], x

    start = (zero, zero, zero, zeros, diagonal[0], upper[0], rhs[0])
    rows = ops.scan(eliminate, (lower[1:], diagonal[1:], upper[1:], rhs[1:]), start)
    last = (rows[4][-1:], ops.zeros_like(upper[:1]), ops.zeros_like(upper[:1]), rows[6][-1:])
    rows = tuple(ops.concat(pair, 0) for pair in zip(rows[:4], last, strict=True))
    solution = ops.scan(substitute, rows, (zeros, zeros), reverse=True)[0]
    singular = ops.reduce_any(ops.equal(rows[0], 0), 0)[None, :, None]
    return ops.where(singular, nan_like(solution), solution)


def with_a_row_more(
    lower: tf.Tensor, diagonal: tf.Tensor, upper: tf.Tensor, rhs: tf.Tensor
) -> Tensors:
    """Appends the independent row x = 0 to a system for `solve_tridiagonal`."""
    zero = ops.zeros_like(diagonal[:1])
    return (
        ops.concat([lower, zero], 0),
        ops.concat([diagonal, ops.ones_like(zero)], 0),
        ops.concat([upper[:-1], zero, zero], 0),
        ops.concat([rhs, ops.zeros_like(rhs[:1])], 0),
    )


def eigh(a: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Eigenvalues (real) and eigenvectors of Hermitian matrices of any batch shape.

    TensorFlow's op is less exact than LAPACK, and has only single precision where it is compiled. A
    step of Newton's method follows: X E corrects the approximate eigenvectors X (Ogita and Aishima
    2018).
    """
    values, x = ops.eigh(a)
    # First of all: in compiled code the values are already real, whatever their dtype.
    values = ops.real(values)
    lower = ops.band_part(a, -1, 0)
    a = lower + adjoint(ops.band_part(a, -1, 0) - ops.band_part(a, 0, 0))
    inner = ops.matmul(x, ops.matmul(a, x), adjoint_a=True)
    x = _corrected(x, inner, values)
    return ops.reduce_sum(ops.real(ops.conj(x) * ops.matmul(a, x)), -2), x


def svd(a: tf.Tensor, full_matrices: bool, wide: bool | tf.Tensor) -> Tensors:
    """U, s and V^H of matrices of any batch shape, as (s, U, V^H).

    Args:
      a: matrices.
      full_matrices: whether U and V are square.
      wide: whether `a` has more columns than rows; a tensor if that is known only at run time.
    """

    def of_wide(a: tf.Tensor) -> Tensors:
        s, u, vh = _tall_svd(adjoint(a), full_matrices)
        return s, adjoint(vh), adjoint(u)

    if isinstance(wide, bool):
        return of_wide(a) if wide else _tall_svd(a, full_matrices)
    # In compiled code, both branches see the same shape: the wrong branch gets the square part of
    # `a`, and returns the shapes of the right one.
    m, n = ops.shape(a)[-2], ops.shape(a)[-1]
    k = ops.minimum(m, n)

    def wide_branch() -> Tensors:
        s, u, vh = of_wide(a[..., :k, :])
        return s, _enlarged(u, m, m if full_matrices else k), vh

    def tall_branch() -> Tensors:
        s, u, vh = _tall_svd(a[..., :k], full_matrices)
        return s, u, _enlarged(vh, n if full_matrices else k, n)

    return tuple(ops.cond(wide, wide_branch, tall_branch))


def _enlarged(a: tf.Tensor, m: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Appends rows and columns of zeros, to the shape [..., m, n]."""
    below, behind = m - ops.shape(a)[-2], n - ops.shape(a)[-1]
    return ops.pad(a, [[0, 0]] * (a.shape.rank - 2) + [[0, below], [0, behind]])


def _tall_svd(a: tf.Tensor, full_matrices: bool) -> Tensors:
    """(s, U, V^H) of matrices with at least as many rows as columns.

    TensorFlow's Svd gives approximate right singular vectors; compiled, it has no complex numbers,
    for which `_right_vectors` replaces it. A step of Newton's method as in `eigh` follows, and then
    the QR factors of A V = U diag(s).
    """
    v = _right_vectors(a) if a.dtype.is_complex else ops.svd(a)[2]
    image = ops.matmul(a, v)
    inner = ops.matmul(image, image, adjoint_a=True)
    v = _corrected(v, inner, ops.real(ops.diag_part(inner)))
    q, r = ops.qr(ops.matmul(a, v), full_matrices=full_matrices)
    diagonal = ops.diag_part(r)
    s = ops.abs(diagonal)
    # The diagonal of Householder's R is real with either sign; LAPACK's s is not negative.
    negative = ops.real(diagonal) < 0
    vh = adjoint(ops.where(negative[..., None, :], -v, v))
    return s, q, vh


def _right_vectors(a: tf.Tensor) -> tf.Tensor:
    """Approximate right singular vectors of matrices with at least as many rows as columns.

    The n largest eigenvalues of [[0, R], [R^H, 0]] are the singular values, and their eigenvectors
    are [u; v] / sqrt(2). Eigenvectors of zero are mixed; QR completes the others to a basis.
    """
    n = ops.shape(a)[-1]
    vectors = ops.eigh(_jordan_wielandt(ops.qr(a)[1]))[1]
    return ops.qr(ops.reverse(vectors[..., n:, n:], [-1]))[0]


def _jordan_wielandt(r: tf.Tensor) -> tf.Tensor:
    zero = ops.zeros_like(r)
    upper, lower = ops.concat([zero, r], -1), ops.concat([adjoint(r), zero], -1)
    return ops.concat([upper, lower], -2)


def _corrected(x: tf.Tensor, inner: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Corrects orthonormal `x` to eigenvectors; `inner` is the matrix in the basis `x`."""
    gap = values[..., None, :] - values[..., :, None]
    gap = ops.cast(ops.where(ops.equal(gap, 0), ops.ones_like(gap) * math.inf, gap), x.dtype)
    # For eigenvalues too close to separate, any basis is right; a large step would spoil it.
    step = inner / gap
    step = ops.where(ops.abs(step) < 0.1, step, ops.zeros_like(step))
    step -= ops.band_part(step, 0, 0)
    q, r = ops.qr(x + ops.matmul(x, step))
    diagonal = ops.diag_part(r)
    return q * ops.sign(diagonal)[..., None, :] if not x.dtype.is_complex else q


def nan_like(x: tf.Tensor) -> tf.Tensor:
    """A scalar NaN of the dtype of `x`, in both parts if it is complex."""
    nan = float("nan")
    return ops.constant(complex(nan, nan) if x.dtype.is_complex else nan, x.dtype)


def _loop(count: tf.Tensor, step: Callable[..., Tensors], start: Tensors) -> Tensors:
    """Applies `step` `count` times to (0, ...), and drops the counter."""

    def body(*state: tf.Tensor) -> Tensors:
        following = step(*state)
        for before, after in zip(state[1:], following[1:], strict=True):
            # A broadcast against a range of unknown length loses the static shape.
            after.set_shape(before.shape)
        return following

    result: Tensors = ops.while_loop(lambda k, *_: k < count, body, start)[1:]
    return result


def reflector(x: tf.Tensor, k: tf.Tensor) -> Tensors:
    """The reflector I - tau v v^H whose adjoint maps x[:, k:] to beta e_k: (v, tau, beta).

    Like LAPACK's larfg: v is 1 at k; beta is real, with the opposite sign of x[:, k].
    """
    rows = ops.range(ops.shape(x)[1])
    alpha = ops.gather(x, k, axis=1)
    tail = ops.where(rows > k, x, ops.zeros_like(x))
    tail_square = ops.reduce_sum(_squares(tail), 1)
    real = ops.real(alpha)
    norm = ops.sqrt(_squares(alpha) + tail_square)
    beta = ops.where(real >= 0, -norm, norm)
    trivial = ops.equal(tail_square, 0)
    if x.dtype.is_complex:
        trivial &= ops.equal(ops.imag(alpha), 0)
    beta = ops.cast(ops.where(trivial, real, beta), x.dtype)
    one = ops.ones_like(alpha)
    tau = (beta - alpha) / ops.where(trivial, one, beta)
    tau = ops.where(trivial, ops.zeros_like(tau), tau)
    v = tail / ops.where(trivial, one, alpha - beta)[:, None]
    return ops.where(rows == k, one[:, None], v), tau, beta


def reflected(a: tf.Tensor, v: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
    """(I - tau v v^H) A."""
    inner = ops.matmul(v[:, :, None], a, adjoint_a=True)
    return a - (tau[:, None] * v)[:, :, None] * inner


def _stored(
    a: tf.Tensor, v: tf.Tensor, beta: tf.Tensor, k: tf.Tensor, at: tf.Tensor | None = None
) -> tf.Tensor:
    """The column `at` (default k) of `a` with beta at k and v below, of shape [b, m, 1]."""
    rows = ops.range(ops.shape(a)[1])
    column = ops.gather(a, k if at is None else at, axis=2)
    column = ops.where(rows > k, v, column)
    return ops.where(rows == k, beta[:, None], column)[:, :, None]


def _with_element(x: tf.Tensor, k: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    return ops.where(ops.range(ops.shape(x)[1]) == k, value[:, None], x)


def _swap(positions: tf.Tensor, k: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """For each batch element, the positions with k and `other` swapped."""
    other = other[:, None]
    return ops.where(positions == k, other, ops.where(positions == other, k, positions))


def adjoint(a: tf.Tensor) -> tf.Tensor:
    return ops.matrix_transpose(a, conjugate=a.dtype.is_complex)


def _squares(x: tf.Tensor) -> tf.Tensor:
    """|x|^2."""
    if x.dtype.is_complex:
        return ops.square(ops.real(x)) + ops.square(ops.imag(x))
    return ops.square(x)


def _abs1(x: tf.Tensor) -> tf.Tensor:
    """The magnitude by which LAPACK chooses pivots: |Re x| + |Im x|."""
    if x.dtype.is_complex:
        return ops.abs(ops.real(x)) + ops.abs(ops.imag(x))
    return ops.abs(x)
