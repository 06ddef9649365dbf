"""The Schur decomposition, and eigenvectors by it: TensorFlow's only op for them is not compiled.

Francis's QR algorithm with double shifts, on batches: every matrix of the batch has a pointer `hi`
to the end of the part that is still to be worked on, and each round of the loop does for each
matrix what is next there. A real matrix keeps blocks of two by two, in LAPACK's standard form, for
its complex pairs of eigenvalues. See Golub and Van Loan, "Matrix Computations", section 7.5, and
LAPACK's hqr and lanv2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from jax2tf.lowering.linalg_algorithms import Tensors, adjoint, reflected, reflector

# LAPACK gives up after as many rounds for each eigenvalue; most need two or three.
_ROUNDS = 30
# After so many rounds without an eigenvalue, other shifts may help.
_PATIENCE = 10


def schur(a: tf.Tensor) -> Tensors:
    """A = Z T Z^H of matrices [b, n, n]: (t, z), with T upper (if real: quasi-)triangular."""
    if a.shape[1] == 1:
        return a, tf.ones_like(a)
    if a.shape[1] is None:
        n = tf.shape(a)[1]
        t, z = _schur(_with_zeros(a))
        return t[:, :n, :n], z[:, :n, :n]
    return _schur(a)


def _with_zeros(a: tf.Tensor) -> tf.Tensor:
    """Matrices of unknown size, which may be 1, with the eigenvalue 0 after the others.

    What follows needs a second diagonal. A row and a column of zeros change nothing in the rest.
    """
    return tf.pad(a, [[0, 0], [0, 1], [0, 1]])


def _schur(a: tf.Tensor) -> Tensors:
    """As `schur`, of more than one row."""
    batch, n = tf.shape(a)[0], tf.shape(a)[1]
    identity = tf.eye(n, batch_shape=[batch], dtype=a.dtype)
    first, last = tf.zeros([batch], tf.int32), tf.fill([batch], n - 1)
    h, z = _chase(a, identity, first, last, last > 1, bulge=n)

    def unfinished(count: tf.Tensor, hi: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return tf.reduce_any(hi > 0) & (count < _ROUNDS * tf.maximum(n, 10))

    def work(
        count: tf.Tensor, hi: tf.Tensor, tries: tf.Tensor, h: tf.Tensor, z: tf.Tensor
    ) -> Tensors:
        h = _without_negligible(h)
        lo = _start_of_block(h, hi)
        large = hi - lo > 1
        h, z = _split_pair(h, z, lo, tf.equal(hi - lo, 1))
        column = _first_column(h, lo, hi, tries)
        h, z = _chase(h, z, lo, hi, large, bulge=3, start=column)
        return (
            count + 1,
            tf.where(large, hi, tf.maximum(lo - 1, 0)),
            tf.where(large, tries + 1, 0),
            h,
            z,
        )

    shapes = (tf.TensorShape([]), first.shape, first.shape, a.shape, a.shape)
    start = (0, last, first, h, z)
    *_, h, z = tf.while_loop(unfinished, work, start, shape_invariants=shapes)
    return _without_negligible(h), z


def eig(a: tf.Tensor) -> Tensors:
    """(eigenvalues, left eigenvectors, right eigenvectors), all complex, of length one."""
    if a.shape[1] == 1:
        values = tf.cast(a, _complex_dtype(a.dtype))
        return values[:, 0], tf.ones_like(values), tf.ones_like(values)
    if a.shape[1] is None:
        n = tf.shape(a)[1]
        values, left, right = _eig(_with_zeros(a))
        return values[:, :n], left[:, :n, :n], right[:, :n, :n]
    return _eig(a)


def _eig(a: tf.Tensor) -> Tensors:
    """As `eig`, of more than one row."""
    t, z = _schur(a)
    if not a.dtype.is_complex:
        t, z = _complex_form(t, z)
    values = tf.linalg.diag_part(t)
    right = tf.matmul(z, _eigenvectors_of_triangle(t))
    # Left eigenvectors are right ones of the adjoint, which is upper triangular back to front.
    mirrored = tf.reverse(adjoint(t), [1, 2])
    left = tf.matmul(z, tf.reverse(_eigenvectors_of_triangle(mirrored), [1, 2]))
    left, right = _normalised(left), _normalised(right)
    if not a.dtype.is_complex:
        # What rounding leaves of imaginary parts; a real eigenvalue has real vectors.
        real = tf.equal(tf.math.imag(values), 0)[:, None, :]
        left, right = (tf.where(real, tf.cast(tf.math.real(v), v.dtype), v) for v in (left, right))
    return values, left, right


def _chase(
    h: tf.Tensor,
    z: tf.Tensor,
    lo: tf.Tensor,
    hi: tf.Tensor,
    chosen: tf.Tensor,
    *,
    bulge: Any,
    start: tf.Tensor | None = None,
) -> Tensors:
    """Makes the block [lo, hi] of the chosen matrices upper Hessenberg, by reflections of rows.

    A reflection reaches over `bulge` rows. With `start`, the first one is that which takes this
    column to the unit vector at `lo`; it makes a bulge, and those that follow chase it out.
    """
    n = tf.shape(h)[1]
    rows = tf.range(n)

    def step(k: tf.Tensor, h: tf.Tensor, z: tf.Tensor) -> Tensors:
        column = tf.gather(h, tf.maximum(k, 0), axis=2)
        if start is not None:
            column = tf.where((lo - 1 == k)[:, None], start, column)
        reach = tf.minimum(k + bulge, hi)[:, None]
        column = tf.where(rows <= reach, column, tf.zeros_like(column))
        v, tau, beta = reflector(column, k + 1)
        within = chosen & (k < hi - 1) & (k >= (lo if start is None else lo - 1))
        tau = tf.where(within, tau, tf.zeros_like(tau))
        h = reflected(h, v, tf.math.conj(tau))
        h = adjoint(reflected(adjoint(h), v, tf.math.conj(tau)))
        z = adjoint(reflected(adjoint(z), v, tf.math.conj(tau)))
        # What the reflection is for: rounding leaves something where nothing should be.
        done = (within & (k >= lo))[:, None] & (rows > k) & (rows <= reach)
        kept = tf.where(rows == k + 1, beta[:, None], tf.zeros_like(column))
        cleared = tf.where(done, kept, tf.gather(h, tf.maximum(k, 0), axis=2))
        h = tf.where(rows == k, cleared[:, :, None], h)
        return k + 1, tf.ensure_shape(h, a_shape), tf.ensure_shape(z, a_shape)

    a_shape = h.shape
    first = tf.constant(0 if start is None else -1)
    return tf.while_loop(lambda k, *_: k < n - 2, step, (first, h, z))[1:]


def _without_negligible(h: tf.Tensor) -> tf.Tensor:
    """`h` with zeros below the diagonal where an element is nothing beside its neighbours."""
    size = tf.abs(h)
    diagonal = tf.linalg.diag_part(size)
    scale = diagonal[:, :-1] + diagonal[:, 1:]
    scale = tf.where(tf.equal(scale, 0), tf.reduce_max(size, [1, 2])[:, None], scale)
    below = tf.linalg.diag_part(h, k=-1)
    negligible = tf.abs(below) <= _eps(size.dtype) * scale
    return tf.linalg.set_diag(h, tf.where(negligible, tf.zeros_like(below), below), k=-1)


def _start_of_block(h: tf.Tensor, hi: tf.Tensor) -> tf.Tensor:
    """Where the block that ends at `hi` begins: with no zero below the diagonal in it."""
    cut = tf.equal(tf.linalg.diag_part(h, k=-1), 0)
    starts = tf.pad(cut, [[0, 0], [1, 0]], constant_values=True)
    rows = tf.range(tf.shape(h)[1])
    return tf.reduce_max(tf.where(starts & (rows <= hi[:, None]), rows, 0), 1)


def _first_column(h: tf.Tensor, lo: tf.Tensor, hi: tf.Tensor, tries: tf.Tensor) -> tf.Tensor:
    """The direction of (H - s1) (H - s2) e_lo; the shifts are eigenvalues of the last two rows."""
    # Scaled, so that squares neither overflow nor vanish.
    h /= tf.cast(tf.reduce_max(tf.abs(h), [1, 2], keepdims=True), h.dtype)
    before = tf.maximum(hi - 1, 0)
    a, b, c, d = (_at(h, i, j) for i in (before, hi) for j in (before, hi))
    size = tf.abs(c) + tf.abs(_at(h, before, tf.maximum(hi - 2, 0)))
    unusual = tf.equal(tries % _PATIENCE, _PATIENCE - 1)
    total = tf.where(unusual, tf.cast(1.5 * size, h.dtype), a + d)
    product = tf.where(unusual, tf.cast(size * size, h.dtype), a * d - b * c)
    rows = tf.range(tf.shape(h)[1])
    column = tf.gather(h, lo, axis=2, batch_dims=1)
    column = tf.where((rows >= lo[:, None]) & (rows <= lo[:, None] + 1), column, 0)
    unit = tf.cast(rows == lo[:, None], h.dtype)
    square = tf.linalg.matvec(h, column)
    return square - total[:, None] * column + product[:, None] * unit


def _split_pair(h: tf.Tensor, z: tf.Tensor, lo: tf.Tensor, chosen: tf.Tensor) -> Tensors:
    """Makes the chosen blocks at `lo`, of two by two, triangular, or standard where they cannot be.

    Standard is a block with two equal diagonal elements: a complex pair of a real matrix.
    """
    hi = tf.minimum(lo + 1, tf.shape(h)[1] - 1)
    a, b, c, d = (_at(h, i, j) for i in (lo, hi) for j in (lo, hi))
    half = (a - d) / 2
    discriminant = half * half + b * c
    if h.dtype.is_complex:
        root = tf.sqrt(discriminant)
        root = tf.where(tf.math.real(tf.math.conj(half) * root) < 0, -root, root)
        triangular = chosen
        cosine, sine = half + root, c
    else:
        triangular = discriminant >= 0
        root = tf.sqrt(tf.where(triangular, discriminant, 0))
        # An eigenvector is (eigenvalue - d, c); of the two, the one without cancellation.
        cosine, sine = tf.where(half < 0, half - root, half + root), c
        angle = tf.atan2(-2 * half, b + c) / 2
        cosine = tf.where(triangular, cosine, tf.cos(angle))
        sine = tf.where(triangular, sine, tf.sin(angle))
    length = tf.sqrt(tf.square(tf.abs(cosine)) + tf.square(tf.abs(sine)))
    trivial = ~chosen | tf.equal(length, 0)
    length = tf.cast(tf.where(~trivial, length, 1), h.dtype)
    cosine = tf.where(~trivial, cosine / length, 1)
    sine = tf.where(~trivial, sine / length, 0)
    u = _rotation(h, lo, hi, cosine, sine, chosen)
    h = tf.matmul(tf.matmul(u, h, adjoint_a=True), u)
    rows = tf.range(tf.shape(h)[1])
    first, second = ((rows == i[:, None]) & chosen[:, None] for i in (lo, hi))
    cleared = second[:, :, None] & first[:, None, :] & triangular[:, None, None]
    h = tf.where(~cleared, h, 0)
    if not h.dtype.is_complex:
        mean = (_at(h, lo, lo) + _at(h, hi, hi)) / 2
        equal = (first | second) & ~triangular[:, None]
        diagonal = tf.where(equal, mean[:, None], tf.linalg.diag_part(h))
        h = tf.linalg.set_diag(h, diagonal)
    return h, tf.matmul(z, u)


def _rotation(
    like: tf.Tensor,
    lo: tf.Tensor,
    hi: tf.Tensor,
    cosine: tf.Tensor,
    sine: tf.Tensor,
    chosen: tf.Tensor,
) -> tf.Tensor:
    """Unitary matrices with [[c, -conj(s)], [s, conj(c)]] in rows lo and hi, or the identity."""
    n = tf.shape(like)[1]
    u = tf.eye(n, batch_shape=[tf.shape(like)[0]], dtype=like.dtype)
    places = {
        (0, 0): cosine,
        (0, 1): -tf.math.conj(sine),
        (1, 0): sine,
        (1, 1): tf.math.conj(cosine),
    }
    ends = [(tf.range(n) == i[:, None]) & chosen[:, None] for i in (lo, hi)]
    for (i, j), value in places.items():
        u = tf.where(ends[i][:, :, None] & ends[j][:, None, :], value[:, None, None], u)
    return u


def _complex_form(t: tf.Tensor, z: tf.Tensor) -> Tensors:
    """The triangular complex form of a real one; of a pair the eigenvalue above the axis first."""
    dtype = _complex_dtype(t.dtype)
    above, below = (tf.linalg.diag_part(t, k=k) for k in (1, -1))
    pair = tf.not_equal(below, 0)
    imaginary = tf.where(pair, tf.sqrt(tf.abs(above)) * tf.sqrt(tf.abs(below)), 0)
    length = tf.where(pair, tf.sqrt(tf.square(imaginary) + tf.square(below)), 1)
    zero = tf.zeros_like(imaginary)
    cosine = tf.complex(zero, imaginary / length)
    sine = tf.complex(tf.where(pair, below / length, 0), zero)
    left, right = [[0, 0], [0, 1]], [[0, 0], [1, 0]]  # the first and the second of a pair
    diagonal = tf.pad(cosine, left) + tf.pad(tf.math.conj(cosine), right)
    alone = ~(tf.pad(pair, left) | tf.pad(pair, right))
    u = tf.linalg.diag(tf.where(~alone, diagonal, 1))
    u = tf.linalg.set_diag(u, -sine, k=1)
    u = tf.linalg.set_diag(u, sine, k=-1)
    t_complex, z_complex = tf.cast(t, dtype), tf.cast(z, dtype)
    triangle = tf.linalg.band_part(tf.matmul(tf.matmul(u, t_complex, adjoint_a=True), u), 0, -1)
    values = tf.complex(tf.linalg.diag_part(t), tf.pad(imaginary, left) - tf.pad(imaginary, right))
    return tf.linalg.set_diag(triangle, values), tf.matmul(z_complex, u)


def _eigenvectors_of_triangle(t: tf.Tensor) -> tf.Tensor:
    """The right eigenvectors of upper triangular matrices, by substitution, in columns."""
    n = tf.shape(t)[1]
    columns = tf.range(n)
    values = tf.linalg.diag_part(t)
    size = tf.reduce_max(tf.abs(t), [1, 2])
    smallest = tf.maximum(_eps(size.dtype) * size, _tiny(size.dtype))

    def step(i: tf.Tensor, x: tf.Tensor) -> Tensors:
        inner = tf.matmul(tf.gather(t, i, axis=1)[:, None, :], x)[:, 0, :]
        gap = values - tf.gather(values, i, axis=1)[:, None]
        near = tf.abs(gap) < smallest[:, None]
        gap = tf.where(near, tf.cast(smallest, t.dtype)[:, None], gap)
        row = tf.where(columns > i, inner / gap, tf.gather(x, i, axis=1))
        x = tf.where((columns == i)[:, None], row[:, None, :], x)
        # Vectors of a matrix with too few of them grow with each step.
        largest = tf.reduce_max(tf.abs(x), 1, keepdims=True)
        return i - 1, tf.ensure_shape(x / tf.cast(tf.maximum(largest, 1), x.dtype), t.shape)

    start = (n - 1, tf.eye(n, batch_shape=[tf.shape(t)[0]], dtype=t.dtype))
    invariants = (tf.TensorShape([]), t.shape)
    return tf.while_loop(lambda i, _: i >= 0, step, start, shape_invariants=invariants)[1]


def _normalised(x: tf.Tensor) -> tf.Tensor:
    """Columns of length one, the largest element of each real, as LAPACK's geev has them."""
    x /= tf.cast(tf.sqrt(tf.reduce_sum(tf.square(tf.abs(x)), 1, keepdims=True)), x.dtype)
    largest = tf.argmax(tf.abs(x), 1, output_type=tf.int32)
    element = tf.gather(tf.linalg.matrix_transpose(x), largest, batch_dims=2)[:, None, :]
    return x * tf.math.conj(element) / tf.cast(tf.abs(element), x.dtype)


def _at(h: tf.Tensor, i: tf.Tensor, j: tf.Tensor) -> tf.Tensor:
    """The element (i, j) of each matrix."""
    return tf.gather(tf.gather(h, i, axis=1, batch_dims=1), j, axis=1, batch_dims=1)


def _complex_dtype(dtype: tf.DType) -> tf.DType:
    return {tf.float32: tf.complex64, tf.float64: tf.complex128}.get(dtype, dtype)


def _eps(dtype: tf.DType) -> float:
    return float(np.finfo(dtype.as_numpy_dtype).eps)


def _tiny(dtype: tf.DType) -> float:
    return float(np.finfo(dtype.as_numpy_dtype).tiny)
