"""Linear algebra: factorisations, eigenvalues, solves.

If TensorFlow has the op, the rule adds JAX's details (which triangle, the result of a failure). The
other primitives use the algorithms of `linalg_algorithms`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import linalg_algorithms as algorithms
from jax2tf._src.lowering.emit import linalg_schur as schur
from jax2tf._src.lowering.emit.linalg_algorithms import nan_like
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Dim, Param, Shape


@register("cholesky")
def _cholesky(ctx: Context, a: tf.Tensor) -> tf.Tensor:
    factor = ops.cholesky(a)
    # If a pivot is not positive, the whole result is NaN; kernels differ in how much they set.
    positive = ops.reduce_all(ops.real(ops.diag_part(factor)) > 0, -1)
    return ops.where(positive[..., None, None], factor, nan_like(factor))


@register("cholesky_update")
def _cholesky_update(ctx: Context, r: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    # R is upper triangular: R^T R + w w^T = L L^T. The QR factor of [R; w^T] is L^T up to signs.
    factor = ops.qr(ops.concat([r, w[..., None, :]], -2))[1]
    sign = ops.where(ops.diag_part(factor) < 0, -1, 1)
    return factor * ops.cast(sign, factor.dtype)[..., None]


@register("triangular_solve")
def _triangular_solve(
    ctx: Context,
    a: tf.Tensor,
    b: tf.Tensor,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> tf.Tensor:
    dtype = b.dtype
    if dtype.size == 2:
        a, b = ops.cast(a, tf.float32), ops.cast(b, tf.float32)
    if unit_diagonal:
        a = ops.set_diag(a, ops.ones_like(ops.diag_part(a)))
    if not left_side:
        # X op(A) = B is op(A)^T X^T = B^T.
        b = ops.matrix_transpose(b)
        transpose_a = not transpose_a
    if a.dtype.is_complex and conjugate_a != transpose_a:
        # TensorFlow can only transpose and conjugate together.
        a = ops.conj(a)
    x = ops.triangular_solve(a, b, lower=lower, adjoint=transpose_a)
    return ops.cast(x if left_side else ops.matrix_transpose(x), dtype)


@register("lu")
def _lu(ctx: Context, a: tf.Tensor) -> list[tf.Tensor]:
    if 0 in a.shape[-2:]:
        pivots, permutation = (ctx.shape(aval.shape) for aval in ctx.avals_out[1:])
        rows = ops.broadcast_to(ops.range(a.shape[-2]), permutation)
        return [ops.identity(a), ops.zeros(pivots, tf.int32), rows]
    return _batched(ctx, algorithms.lu, a)


@register("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(
    ctx: Context, pivots: tf.Tensor, *, permutation_size: Dim
) -> tf.Tensor:
    size = ops.convert_to_tensor(ctx.dim(permutation_size))
    flat = _merge_batch(pivots, pivots.shape.rank - 1)
    permutation_of = algorithms.as_function(algorithms.permutation_of, ctx.wants("XlaLaunch"))
    return ctx.reshaped(permutation_of(flat, size), ctx.avals_out[0].shape)


@register("qr")
def _qr(
    ctx: Context, a: tf.Tensor, *, pivoting: bool, full_matrices: bool, use_magma: Param
) -> list[tf.Tensor]:
    del use_magma  # It selects a GPU library.
    if 0 in a.shape[-2:]:
        # For an empty matrix, the first factor is the identity; the permutation is never written.
        q, r, *columns = (ctx.shape(aval.shape) for aval in ctx.avals_out)
        shape = ctx.avals_out[0].shape
        if dims.is_static(shape):
            # Not tf.eye, whose op not every engine has.
            one_matrix = np.eye(*shape[-2:], dtype=a.dtype.as_numpy_dtype)
            identity = ctx.constant(np.broadcast_to(one_matrix, shape))
        else:
            identity = ops.broadcast_to(ops.eye(q[-2], q[-1], dtype=a.dtype), q)
        return [identity, ops.zeros(r, a.dtype), *(ops.zeros(c, tf.int32) for c in columns)]
    if not pivoting:
        return list(ops.qr(a, full_matrices=full_matrices))
    m, n = ctx.avals_in[0].shape[-2:]
    reflectors, taus, columns = _batched(ctx, algorithms.pivoted_qr, a)
    missing = ctx.dim(jax.core.max_dim(m - n, 0)) if full_matrices else 0
    size = ctx.dim(m if full_matrices else jax.core.min_dim(m, n))
    padded = ops.pad(reflectors, [[0, 0]] * (a.shape.rank - 1) + [[0, missing]])
    q = _batched(ctx, algorithms.product_of_reflectors, padded[..., :size], taus)[0]
    return [q, ops.band_part(reflectors[..., :size, :], 0, -1), columns]


@register("geqrf")
def _geqrf(ctx: Context, a: tf.Tensor) -> list[tf.Tensor]:
    return _batched(ctx, algorithms.qr, a)


@register("geqp3")
def _geqp3(ctx: Context, a: tf.Tensor, pivots: tf.Tensor, *, use_magma: Param) -> list[tf.Tensor]:
    del use_magma  # It selects a GPU library.
    if 0 in a.shape[-2:]:
        taus = ctx.shape(ctx.avals_out[2].shape)
        return [ops.identity(a), ops.identity(pivots), ops.zeros(taus, a.dtype)]
    return _batched(ctx, algorithms.qr_of_free_columns, a, pivots)


@register("householder_product")
def _householder_product(ctx: Context, a: tf.Tensor, taus: tf.Tensor) -> tf.Tensor:
    return _batched(ctx, algorithms.product_of_reflectors, a, taus)[0]


@register("ormqr")
def _ormqr(
    ctx: Context, a: tf.Tensor, taus: tf.Tensor, c: tf.Tensor, *, left: bool, transpose: bool
) -> tf.Tensor:
    return _batched(ctx, _application(left, transpose), a, taus, c)[0]


@cached
def _application(left: bool, transpose: bool) -> Callable[..., tf.Tensor]:
    return functools.partial(algorithms.apply_reflectors, left=left, transpose=transpose)


@register("hessenberg")
def _hessenberg(ctx: Context, a: tf.Tensor) -> list[tf.Tensor]:
    return _batched(ctx, algorithms.hessenberg, a)


@register("tridiagonal")
def _tridiagonal(ctx: Context, a: tf.Tensor, *, lower: bool) -> list[tf.Tensor]:
    # For the upper triangle, LAPACK does the same with rows and columns reversed.
    def reverse(x: tf.Tensor, *axes: int) -> tf.Tensor:
        if lower:
            return x
        # See the quirk "one_reverse_at_a_time".
        return functools.reduce(lambda x, axis: ops.reverse(x, [axis]), axes, x)

    triangle = reverse(a, -2, -1)
    reduced, taus = _batched(ctx, algorithms.tridiagonal, triangle)
    reflectors = ops.where(_lower_triangle(a), reduced, triangle)
    # Sums extract the diagonals, because not every engine has ops for diagonals.
    places = ops.range(ops.shape(a)[-1])
    zero = ops.zeros([], a.dtype)
    diagonal = ops.where(ops.equal(places[:, None], places), reduced, zero)
    diagonal = ops.real(ops.reduce_sum(diagonal, -1))
    off_diagonal = ops.where(ops.equal(places[:, None], places + 1), reduced, zero)
    off_diagonal = ops.real(ops.reduce_sum(off_diagonal, -2))[..., :-1]
    return [
        reverse(reflectors, -2, -1),
        reverse(diagonal, -1),
        reverse(off_diagonal, -1),
        reverse(taus, -1),
    ]


def _lower_triangle(a: tf.Tensor) -> tf.Tensor:
    n = ops.range(ops.shape(a)[-1])
    return n[:, None] >= n[None, :]


@register("tridiagonal_solve")
def _tridiagonal_solve(
    ctx: Context,
    lower: tf.Tensor,
    diagonal: tf.Tensor,
    upper: tf.Tensor,
    rhs: tf.Tensor,
    *,
    perturb_singular: bool = False,
) -> tf.Tensor:
    if perturb_singular:
        raise ctx.unsupported("singular systems are not perturbed", "leave perturb_singular out")
    count = rhs.shape.rank - 2
    bands = [ops.transpose(_merge_batch(x, count)) for x in (lower, diagonal, upper)]
    system = (*bands, ops.transpose(_merge_batch(rhs, count), [1, 0, 2]))
    solve = algorithms.as_function(algorithms.solve_tridiagonal, ctx.wants("XlaLaunch"))
    if rhs.shape[-2] in (None, 1):
        # An additional row x = 0, because a loop over the rows after the first must not be empty.
        solution = solve(*algorithms.with_a_row_more(*system))[:-1]
    else:
        solution = solve(*system)
    return ctx.reshaped(ops.transpose(solution, [1, 0, 2]), ctx.avals_out[0].shape)


@register("eigh")
def _eigh(
    ctx: Context,
    a: tf.Tensor,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Param,
) -> list[tf.Tensor]:
    del sort_eigenvalues, algorithm  # TensorFlow always sorts, by its own algorithm.
    a = a if lower else ops.matrix_transpose(a, conjugate=a.dtype.is_complex)
    values, vectors = _if_finite(algorithms.eigh, a)
    start, end = subset_by_index or (0, a.shape[-1])
    return [vectors[..., start:end], values[..., start:end]]


@register("svd")
def _svd(
    ctx: Context,
    a: tf.Tensor,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Param = None,
) -> list[tf.Tensor]:
    del algorithm  # TensorFlow has its own algorithm.

    wide = _is_wide(ctx, ctx.avals_in[0].shape)

    def svd(a: tf.Tensor) -> list[tf.Tensor]:
        if compute_uv:
            return list(algorithms.svd(a, full_matrices, wide))
        return [algorithms.svd(a, full_matrices=False, wide=wide)[0]]

    results = _if_finite(svd, a)
    if subset_by_index:
        start, end = subset_by_index
        results = [results[0][..., start:end], *results[1:]]
        if compute_uv:
            results[1:] = [results[1][..., start:end], results[2][..., start:end, :]]
    return results


def _is_wide(ctx: Context, shape: Shape) -> bool | tf.Tensor:
    """Whether matrices have more columns than rows; a tensor if that is known only at run time."""
    m, n = shape[-2:]
    larger = jax.core.max_dim(m, n)
    if larger in (m, n):
        return bool(larger != m)
    return ops.less(ctx.dim(m), ctx.dim(n))


@register("eig")
def _eig(
    ctx: Context,
    a: tf.Tensor,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool = False,
    implementation: Param = None,
    use_magma: Param = None,
) -> list[tf.Tensor]:
    del enable_eigvec_derivs, implementation, use_magma  # They concern derivatives and the library.

    def eig(a: tf.Tensor) -> list[tf.Tensor]:
        values, left, right = _batched(ctx, schur.eig, a)
        lefts, rights = [left] * compute_left_eigenvectors, [right] * compute_right_eigenvectors
        return [values, *lefts, *rights]

    return _if_finite(eig, a)


@register("schur")
def _schur(
    ctx: Context,
    a: tf.Tensor,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: Param,
) -> list[tf.Tensor]:
    if sort_eig_vals or select_callable is not None:
        raise ctx.unsupported("eigenvalues are not sorted", "leave sort_eig_vals out")
    factors = _if_finite(lambda a: _batched(ctx, schur.schur, a), a)
    return factors[: 1 + compute_schur_vectors]


@register("symmetric_product")
def _symmetric_product(
    ctx: Context, a: tf.Tensor, c: tf.Tensor, *, alpha: float, beta: float
) -> tf.Tensor:
    product = ops.matmul(a, a, transpose_b=True)
    return ops.cast(alpha, a.dtype) * product + ops.cast(beta, a.dtype) * c


def _if_finite(
    factorise: Callable[[tf.Tensor], Sequence[tf.Tensor]], a: tf.Tensor
) -> list[tf.Tensor]:
    """The factors of the matrices in `a`; NaN, instead of an error, if a matrix is not finite."""
    finite = ops.reduce_all(ops.equal(a - a, 0), [-2, -1], keepdims=True)
    results = factorise(ops.where(finite, a, ops.zeros_like(a)))
    return [
        ops.where(finite if r.shape.rank == a.shape.rank else finite[..., 0], r, nan_like(r))
        for r in results
    ]


def _batched(
    ctx: Context, algorithm: Callable[..., Sequence[tf.Tensor]], *args: tf.Tensor
) -> list[tf.Tensor]:
    """Applies an algorithm for one batch dimension to arrays with any number of batch dimensions.

    The first argument is a matrix; its leading dimensions are those that all arguments have.
    """
    count = args[0].shape.rank - 2
    batch = _shape(args[0])[:count]
    flat = [_merge_batch(a, count) for a in args]
    results = algorithms.as_function(algorithm, ctx.wants("XlaLaunch"))(*flat)
    if isinstance(results, tf.Tensor):
        results = (results,)
    return [ops.reshape(r, [*batch, *_shape(r)[1:]]) for r in results]


def _merge_batch(a: tf.Tensor, count: int) -> tf.Tensor:
    """Merges the first `count` dimensions of `a`."""
    shape = _shape(a)
    # Not -1, which cannot be inferred without elements.
    return ops.reshape(a, [functools.reduce(operator.mul, shape[:count], 1), *shape[count:]])


def _shape(a: tf.Tensor) -> list[Dim]:
    """The dimensions of `a`, as ints if they are static."""
    dynamic = () if a.shape.is_fully_defined() else ops.unstack(ops.shape(a))
    return [d if d is not None else dynamic[i] for i, d in enumerate(a.shape)]
