"""The Schur decomposition and its eigenvectors: XLA does not compile TensorFlow's only op for them.

Francis's QR algorithm with double shifts, on batches: each matrix has a pointer `hi` to the end of
its unfinished part, and a round of the loop does the next step of each matrix. In a real matrix,
each complex pair of eigenvalues keeps a 2 x 2 block in LAPACK's standard form. See Golub and Van
Loan, "Matrix Computations", section 7.5, and LAPACK's hqr and lanv2.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.emit.compute_dtypes import COMPLEX, carrier_of
from jax2tf._src.lowering.emit.linalg_algorithms import Tensors, adjoint, reflected, reflector
from jax2tf._src.util.typing import Size

# LAPACK allows the same number of rounds for each eigenvalue; most need two or three.
_ROUNDS = 30
# After this number of rounds without an eigenvalue, the shifts change.
_PATIENCE = 10


def schur(a: tf.Tensor) -> Tensors:
    """A = Z T Z^H of matrices [b, n, n]: (t, z); T is triangular (if real: quasi-triangular)."""
    if a.shape[1] == 1:
        return a, ops.ones_like(a)
    if a.shape[1] is None:
        n = ops.shape(a)[1]
        t, z = _schur(_with_zeros(a))
        return t[:, :n, :n], z[:, :n, :n]
    return _schur(a)


def _with_zeros(a: tf.Tensor) -> tf.Tensor:
    """Appends a row and a column of zeros: eigenvalue 0 after the others.

    `_schur` needs at least two rows, and a matrix of unknown size may have one.
    """
    return ops.pad(a, [[0, 0], [0, 1], [0, 1]])


def _schur(a: tf.Tensor) -> Tensors:
    """Like `schur`, for at least two rows."""
    batch, n = ops.shape(a)[0], ops.shape(a)[1]
    first, last = ops.zeros([batch], tf.int32), ops.fill([batch], n - 1)
    h, z = _chase(a, _identity_like(a), first, last, last > 1, bulge=n)

    def unfinished(count: tf.Tensor, hi: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return ops.reduce_any(hi > 0) & (count < _ROUNDS * ops.maximum(n, 10))

    def work(
        count: tf.Tensor, hi: tf.Tensor, tries: tf.Tensor, h: tf.Tensor, z: tf.Tensor
    ) -> Tensors:
        h = _without_negligible(h)
        lo = _start_of_block(h, hi)
        large = hi - lo > 1
        h, z = _split_pair(h, z, lo, ops.equal(hi - lo, 1))
        column = _first_column(h, lo, hi, tries)
        h, z = _chase(h, z, lo, hi, large, bulge=3, start=column)
        return (
            count + 1,
            ops.where(large, hi, ops.maximum(lo - 1, 0)),
            ops.where(large, tries + 1, 0),
            h,
            z,
        )

    shapes = (tf.TensorShape([]), first.shape, first.shape, a.shape, a.shape)
    start = (0, last, first, h, z)
    *_, h, z = ops.while_loop(unfinished, work, start, shape_invariants=shapes)
    return _without_negligible(h), z


def eig(a: tf.Tensor) -> Tensors:
    """(eigenvalues, left eigenvectors, right eigenvectors), all complex; vectors of length one."""
    if a.shape[1] == 1:
        values = ops.cast(a, carrier_of(COMPLEX, a.dtype))
        return values[:, 0], ops.ones_like(values), ops.ones_like(values)
    if a.shape[1] is None:
        n = ops.shape(a)[1]
        values, left, right = _eig(_with_zeros(a))
        return values[:, :n], left[:, :n, :n], right[:, :n, :n]
    return _eig(a)


def _eig(a: tf.Tensor) -> Tensors:
    """Like `eig`, for at least two rows."""
    t, z = _schur(a)
    if not a.dtype.is_complex:
        t, z = _complex_form(t, z)
    values = ops.diag_part(t)
    right = ops.matmul(z, _eigenvectors_of_triangle(t))
    # Left eigenvectors are right eigenvectors of the adjoint; reversed, it is upper triangular.
    mirrored = ops.reverse(adjoint(t), [1, 2])
    left = ops.matmul(z, ops.reverse(_eigenvectors_of_triangle(mirrored), [1, 2]))
    left, right = _normalised(left), _normalised(right)
    if not a.dtype.is_complex:
        # Rounding leaves imaginary parts, but a real eigenvalue has real vectors.
        real = ops.equal(ops.imag(values), 0)[:, None, :]
        left, right = (ops.where(real, ops.cast(ops.real(v), v.dtype), v) for v in (left, right))
    return values, left, right


def _chase(
    h: tf.Tensor,
    z: tf.Tensor,
    lo: tf.Tensor,
    hi: tf.Tensor,
    chosen: tf.Tensor,
    *,
    bulge: Size,
    start: tf.Tensor | None = None,
) -> Tensors:
    """Makes the block [lo, hi] of the chosen matrices upper Hessenberg, with reflections of rows.

    A reflection covers `bulge` rows. With `start`, the first reflection maps the column `start` to
    the unit vector at `lo`. That makes a bulge, which the following reflections chase out.
    """
    n = ops.shape(h)[1]
    rows = ops.range(n)

    def step(k: tf.Tensor, h: tf.Tensor, z: tf.Tensor) -> Tensors:
        column = ops.gather(h, ops.maximum(k, 0), axis=2)
        if start is not None:
            column = ops.where((lo - 1 == k)[:, None], start, column)
        reach = ops.minimum(k + bulge, hi)[:, None]
        column = ops.where(rows <= reach, column, ops.zeros_like(column))
        v, tau, beta = reflector(column, k + 1)
        within = chosen & (k < hi - 1) & (k >= (lo if start is None else lo - 1))
        tau = ops.where(within, tau, ops.zeros_like(tau))
        h = reflected(h, v, ops.conj(tau))
        h = adjoint(reflected(adjoint(h), v, ops.conj(tau)))
        z = adjoint(reflected(adjoint(z), v, ops.conj(tau)))
        # The reflection makes these elements zero; rounding leaves small numbers.
        done = (within & (k >= lo))[:, None] & (rows > k) & (rows <= reach)
        kept = ops.where(rows == k + 1, beta[:, None], ops.zeros_like(column))
        cleared = ops.where(done, kept, ops.gather(h, ops.maximum(k, 0), axis=2))
        h = ops.where(rows == k, cleared[:, :, None], h)
        h.set_shape(a_shape)
        z.set_shape(a_shape)
        return k + 1, h, z

    a_shape = h.shape
    first = ops.constant(0 if start is None else -1)
    results: Tensors = ops.while_loop(lambda k, *_: k < n - 2, step, (first, h, z))[1:]
    return results


def _without_negligible(h: tf.Tensor) -> tf.Tensor:
    """Sets elements below the diagonal to zero if they are negligible beside their neighbours."""
    size = ops.abs(h)
    diagonal = _diagonal(size)
    # The first element has no predecessor. Its scale has no effect: its row has no element below
    # the diagonal.
    scale = diagonal + ops.concat([diagonal[:, :1], diagonal[:, :-1]], 1)
    scale = ops.where(ops.equal(scale, 0), ops.reduce_max(size, [1, 2])[:, None], scale)
    negligible = _diagonal(size, -1) <= _eps(size.dtype) * scale
    return ops.where(_is_diagonal(h, -1) & negligible[:, :, None], ops.zeros_like(h), h)


def _start_of_block(h: tf.Tensor, hi: tf.Tensor) -> tf.Tensor:
    """The start of the block that ends at `hi` and has no zero on its subdiagonal."""
    cut = ops.equal(_diagonal(h, -1), 0)
    starts = ops.range(ops.shape(h)[1])
    return ops.reduce_max(ops.where(cut & (starts <= hi[:, None]), starts, 0), 1)


def _first_column(h: tf.Tensor, lo: tf.Tensor, hi: tf.Tensor, tries: tf.Tensor) -> tf.Tensor:
    """The direction of (H - s1) (H - s2) e_lo; the shifts are eigenvalues of the last two rows."""
    # The scale keeps squares from overflow and underflow.
    h /= ops.cast(ops.reduce_max(ops.abs(h), [1, 2], keepdims=True), h.dtype)
    before = ops.maximum(hi - 1, 0)
    a, b, c, d = (_at(h, i, j) for i in (before, hi) for j in (before, hi))
    size = ops.abs(c) + ops.abs(_at(h, before, ops.maximum(hi - 2, 0)))
    unusual = ops.equal(tries % _PATIENCE, _PATIENCE - 1)
    total = ops.where(unusual, ops.cast(1.5 * size, h.dtype), a + d)
    product = ops.where(unusual, ops.cast(size * size, h.dtype), a * d - b * c)
    rows = ops.range(ops.shape(h)[1])
    column = ops.where((rows >= lo[:, None]) & (rows <= lo[:, None] + 1), _column(h, lo), 0)
    unit = ops.cast(rows == lo[:, None], h.dtype)
    square = ops.matvec(h, column)
    return square - total[:, None] * column + product[:, None] * unit


def _split_pair(h: tf.Tensor, z: tf.Tensor, lo: tf.Tensor, chosen: tf.Tensor) -> Tensors:
    """Makes the chosen 2 x 2 blocks at `lo` triangular, or standard if that is impossible.

    A standard block has equal diagonal elements: it is a complex pair of a real matrix.
    """
    hi = ops.minimum(lo + 1, ops.shape(h)[1] - 1)
    a, b, c, d = (_at(h, i, j) for i in (lo, hi) for j in (lo, hi))
    half = (a - d) / 2
    discriminant = half * half + b * c
    if h.dtype.is_complex:
        root = ops.sqrt(discriminant)
        root = ops.where(ops.real(ops.conj(half) * root) < 0, -root, root)
        triangular = chosen
        cosine, sine = half + root, c
    else:
        triangular = discriminant >= 0
        root = ops.sqrt(ops.where(triangular, discriminant, 0))
        # An eigenvector is (eigenvalue - d, c); the eigenvalue without cancellation is taken.
        cosine, sine = ops.where(half < 0, half - root, half + root), c
        angle = ops.atan2(-2 * half, b + c) / 2
        cosine = ops.where(triangular, cosine, ops.cos(angle))
        sine = ops.where(triangular, sine, ops.sin(angle))
    length = ops.sqrt(ops.square(ops.abs(cosine)) + ops.square(ops.abs(sine)))
    trivial = ~chosen | ops.equal(length, 0)
    length = ops.cast(ops.where(~trivial, length, 1), h.dtype)
    cosine = ops.where(~trivial, cosine / length, 1)
    sine = ops.where(~trivial, sine / length, 0)
    u = _rotation(h, lo, hi, cosine, sine, chosen)
    h = ops.matmul(ops.matmul(u, h, adjoint_a=True), u)
    rows = ops.range(ops.shape(h)[1])
    first, second = ((rows == i[:, None]) & chosen[:, None] for i in (lo, hi))
    cleared = second[:, :, None] & first[:, None, :] & triangular[:, None, None]
    h = ops.where(~cleared, h, 0)
    if not h.dtype.is_complex:
        mean = (_at(h, lo, lo) + _at(h, hi, hi)) / 2
        equal = (first | second) & ~triangular[:, None]
        h = ops.where(_is_diagonal(h) & equal[:, :, None], mean[:, None, None], h)
    return h, ops.matmul(z, u)


def _rotation(
    like: tf.Tensor,
    lo: tf.Tensor,
    hi: tf.Tensor,
    cosine: tf.Tensor,
    sine: tf.Tensor,
    chosen: tf.Tensor,
) -> tf.Tensor:
    """Unitary matrices with [[c, -conj(s)], [s, conj(c)]] in rows lo and hi, or the identity."""
    n = ops.shape(like)[1]
    u = _identity_like(like)
    places = {
        (0, 0): cosine,
        (0, 1): -ops.conj(sine),
        (1, 0): sine,
        (1, 1): ops.conj(cosine),
    }
    ends = [(ops.range(n) == i[:, None]) & chosen[:, None] for i in (lo, hi)]
    for (i, j), value in places.items():
        u = ops.where(ends[i][:, :, None] & ends[j][:, None, :], value[:, None, None], u)
    return u


def _complex_form(t: tf.Tensor, z: tf.Tensor) -> Tensors:
    """The complex triangular form of a real one; each pair has its upper eigenvalue first."""
    dtype = carrier_of(COMPLEX, t.dtype)
    above, below = (ops.diag_part(t, k=k) for k in (1, -1))
    pair = ops.not_equal(below, 0)
    imaginary = ops.where(pair, ops.sqrt(ops.abs(above)) * ops.sqrt(ops.abs(below)), 0)
    length = ops.where(pair, ops.sqrt(ops.square(imaginary) + ops.square(below)), 1)
    zero = ops.zeros_like(imaginary)
    cosine = ops.complex(zero, imaginary / length)
    sine = ops.complex(ops.where(pair, below / length, 0), zero)
    left, right = [[0, 0], [0, 1]], [[0, 0], [1, 0]]  # the first and the second of a pair
    diagonal = ops.pad(cosine, left) + ops.pad(ops.conj(cosine), right)
    alone = ~(ops.pad(pair, left) | ops.pad(pair, right))
    u = ops.diag(ops.where(~alone, diagonal, 1))
    u = ops.set_diag(u, -sine, k=1)
    u = ops.set_diag(u, sine, k=-1)
    t_complex, z_complex = ops.cast(t, dtype), ops.cast(z, dtype)
    triangle = ops.band_part(ops.matmul(ops.matmul(u, t_complex, adjoint_a=True), u), 0, -1)
    values = ops.complex(ops.diag_part(t), ops.pad(imaginary, left) - ops.pad(imaginary, right))
    return ops.set_diag(triangle, values), ops.matmul(z_complex, u)


def _eigenvectors_of_triangle(t: tf.Tensor) -> tf.Tensor:
    """The right eigenvectors of upper triangular matrices, by substitution, in columns."""
    n = ops.shape(t)[1]
    columns = ops.range(n)
    values = ops.diag_part(t)
    size = ops.reduce_max(ops.abs(t), [1, 2])
    smallest = ops.maximum(_eps(size.dtype) * size, _tiny(size.dtype))

    def step(i: tf.Tensor, x: tf.Tensor) -> Tensors:
        inner = ops.matmul(ops.gather(t, i, axis=1)[:, None, :], x)[:, 0, :]
        gap = values - ops.gather(values, i, axis=1)[:, None]
        near = ops.abs(gap) < smallest[:, None]
        gap = ops.where(near, ops.cast(smallest, t.dtype)[:, None], gap)
        row = ops.where(columns > i, inner / gap, ops.gather(x, i, axis=1))
        x = ops.where((columns == i)[:, None], row[:, None, :], x)
        # In a matrix with too few eigenvectors, the vectors grow with each step.
        largest = ops.reduce_max(ops.abs(x), 1, keepdims=True)
        return i - 1, ops.ensure_shape(x / ops.cast(ops.maximum(largest, 1), x.dtype), t.shape)

    start = (n - 1, ops.eye(n, batch_shape=[ops.shape(t)[0]], dtype=t.dtype))
    invariants = (tf.TensorShape([]), t.shape)
    return ops.while_loop(lambda i, _: i >= 0, step, start, shape_invariants=invariants)[1]


def _normalised(x: tf.Tensor) -> tf.Tensor:
    """Scales columns to length one, with a real largest element, like LAPACK's geev."""
    x /= ops.cast(ops.sqrt(ops.reduce_sum(ops.square(ops.abs(x)), 1, keepdims=True)), x.dtype)
    largest = ops.argmax(ops.abs(x), 1, output_type=tf.int32)
    element = ops.gather(ops.matrix_transpose(x), largest, batch_dims=2)[:, None, :]
    return x * ops.conj(element) / ops.cast(ops.abs(element), x.dtype)


# Some engine lacks ops for diagonals.


def _is_diagonal(h: tf.Tensor, k: int = 0) -> tf.Tensor:
    """The mask of the k-th diagonal, of shape [n, n]; -1 is the diagonal below the main one."""
    places = ops.range(ops.shape(h)[1])
    return ops.equal(places[:, None] + k, places)


def _diagonal(h: tf.Tensor, k: int = 0) -> tf.Tensor:
    """For each row, the element of the k-th diagonal or zero, of shape [b, n]."""
    return ops.reduce_sum(ops.where(_is_diagonal(h, k), h, ops.zeros_like(h)), 2)


def _identity_like(h: tf.Tensor) -> tf.Tensor:
    return ops.where(_is_diagonal(h), ops.ones_like(h), ops.zeros_like(h))


def _at(h: tf.Tensor, i: tf.Tensor, j: tf.Tensor) -> tf.Tensor:
    """The element (i, j) of each matrix."""
    column = _column(h, j)
    here = ops.range(ops.shape(h)[1]) == i[:, None]
    return ops.reduce_sum(ops.where(here, column, ops.zeros_like(column)), 1)


def _column(h: tf.Tensor, j: tf.Tensor) -> tf.Tensor:
    """The column j of each matrix, [b, n]; not by a gather, at which an engine ends the process."""
    here = ops.range(ops.shape(h)[1]) == j[:, None]
    return ops.reduce_sum(ops.where(here[:, None, :], h, ops.zeros_like(h)), 2)


def _eps(dtype: tf.DType) -> float:
    return float(np.finfo(dtype.as_numpy_dtype).eps)


def _tiny(dtype: tf.DType) -> float:
    return float(np.finfo(dtype.as_numpy_dtype).tiny)
