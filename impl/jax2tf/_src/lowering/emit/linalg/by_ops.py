"""Eigenvalues and singular values by TensorFlow's kernels, with the corrections that they need.

The other algorithms of this package are in JAX. These two have a second form there, `jacobi`, for
engines without the kernels. XLA's loops for them take 10 to 200 times as long.
"""

from __future__ import annotations

import math

from jax2tf._src import ops
from jax2tf._src.util.tensors import Tensor

Tensors = tuple[Tensor, ...]


def eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (real) and eigenvectors of Hermitian matrices, given by their lower triangles.

    TensorFlow's op is less exact than LAPACK, and has only single precision where it is compiled. A
    step of Newton's method follows: X E corrects the approximate eigenvectors X (Ogita and Aishima
    2018).
    """
    values, x = ops.eigh(a)
    # First of all: in compiled code the values are already real, whatever their dtype.
    values = ops.real(values)
    a += adjoint(a - ops.band_part(a, 0, 0))
    inner = ops.matmul(x, ops.matmul(a, x), adjoint_a=True)
    x = _corrected(x, inner, values)
    return ops.reduce_sum(ops.real(ops.conj(x) * ops.matmul(a, x)), -2), x


def svd(a: Tensor, full_matrices: bool, wide: bool | Tensor) -> Tensors:
    """U, s and V^H of matrices of any batch shape, as (s, U, V^H).

    Args:
      a: matrices.
      full_matrices: whether U and V are square.
      wide: whether `a` has more columns than rows; a tensor if that is known only at run time.
    """

    def of_wide(a: Tensor) -> Tensors:
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


def _enlarged(a: Tensor, m: Tensor, n: Tensor) -> Tensor:
    """Appends rows and columns of zeros, to the shape [..., m, n]."""
    below, behind = m - ops.shape(a)[-2], n - ops.shape(a)[-1]
    return ops.pad(a, [[0, 0]] * (a.shape.rank - 2) + [[0, below], [0, behind]])


def _tall_svd(a: Tensor, full_matrices: bool) -> Tensors:
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


def _right_vectors(a: Tensor) -> Tensor:
    """Approximate right singular vectors of matrices with at least as many rows as columns.

    The n largest eigenvalues of [[0, R], [R^H, 0]] are the singular values, and their eigenvectors
    are [u; v] / sqrt(2). Eigenvectors of zero are mixed; QR completes the others to a basis.
    """
    n = ops.shape(a)[-1]
    vectors = ops.eigh(_jordan_wielandt(ops.qr(a)[1]))[1]
    return ops.qr(ops.reverse(vectors[..., n:, n:], [-1]))[0]


def _jordan_wielandt(r: Tensor) -> Tensor:
    zero = ops.zeros_like(r)
    upper, lower = ops.concat([zero, r], -1), ops.concat([adjoint(r), zero], -1)
    return ops.concat([upper, lower], -2)


def _corrected(x: Tensor, inner: Tensor, values: Tensor) -> Tensor:
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


def nan_like(x: Tensor) -> Tensor:
    """A scalar NaN of the dtype of `x`, in both parts if it is complex."""
    nan = float("nan")
    return ops.constant(complex(nan, nan) if x.dtype.is_complex else nan, x.dtype)


def adjoint(a: Tensor) -> Tensor:
    return ops.matrix_transpose(a, conjugate=a.dtype.is_complex)
