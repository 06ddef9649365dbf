"""Linear algebra: factorisations, eigenvalues, solves.

If TensorFlow has the op, the rule adds JAX's details (which triangle, the result of a failure). The
other primitives use the algorithms of `emit.linalg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.equation_jaxprs import jaxpr_of
from jax2tf._src.lowering.emit.linalg import by_ops, reflections, schur, triangles
from jax2tf._src.lowering.emit.linalg.by_ops import nan_like
from jax2tf._src.lowering.emit.linalg.empty import empty_results
from jax2tf._src.lowering.registry import Lowered, register
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Param, Shape


@register("cholesky")
def _cholesky(ctx: Context, a: Tensor) -> Tensor:
    factor = ops.cholesky(a)
    # If a pivot is not positive, the whole result is NaN; kernels differ in how much they set.
    positive = ops.reduce_all(ops.real(ops.diag_part(factor)) > 0, -1)
    return ops.where(positive[..., None, None], factor, nan_like(factor))


@register("cholesky_update")
def _cholesky_update(ctx: Context, r: Tensor, w: Tensor) -> Tensor:
    # R is upper triangular: R^T R + w w^T = L L^T. The QR factor of [R; w^T] is L^T up to signs.
    factor = ops.qr(ops.concat([r, w[..., None, :]], -2))[1]
    sign = ops.where(ops.diag_part(factor) < 0, -1, 1)
    return factor * ops.cast(sign, factor.dtype)[..., None]


@register("triangular_solve")
def _triangular_solve(
    ctx: Context,
    a: Tensor,
    b: Tensor,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Tensor:
    dtype = b.dtype
    if dtype.size == 2:
        a, b = ops.cast(a, dtypes.float32), ops.cast(b, dtypes.float32)
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
def _lu(ctx: Context, a: Tensor) -> Lowered:
    return _by(triangles.lu, ctx, a)


@register("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(ctx: Context, pivots: Tensor, *, permutation_size: Dim) -> Lowered:
    return _by(triangles.lu_pivots_to_permutation, ctx, pivots)


@register("qr")
def _qr(
    ctx: Context, a: Tensor, *, pivoting: bool, full_matrices: bool, use_magma: Param
) -> Lowered:
    del use_magma  # It selects a GPU library.
    if pivoting:
        return _by(reflections.pivoted_qr, ctx, a)
    if 0 in a.shape[-2:]:
        return _by(empty_results, ctx, a)
    return list(ops.qr(a, full_matrices=full_matrices))


@register("geqrf")
def _geqrf(ctx: Context, a: Tensor) -> Lowered:
    return _by(reflections.geqrf, ctx, a)


@register("geqp3")
def _geqp3(ctx: Context, a: Tensor, pivots: Tensor, *, use_magma: Param) -> Lowered:
    del use_magma  # It selects a GPU library.
    return _by(reflections.geqp3, ctx, a, pivots)


@register("householder_product")
def _householder_product(ctx: Context, a: Tensor, taus: Tensor) -> Lowered:
    return _by(reflections.product_of_reflections, ctx, a, taus)


@register("ormqr")
def _ormqr(
    ctx: Context, a: Tensor, taus: Tensor, c: Tensor, *, left: bool, transpose: bool
) -> Lowered:
    return _by(reflections.applied_reflections, ctx, a, taus, c)


@register("hessenberg")
def _hessenberg(ctx: Context, a: Tensor) -> Lowered:
    return _by(reflections.hessenberg, ctx, a)


@register("tridiagonal")
def _tridiagonal(ctx: Context, a: Tensor, *, lower: bool) -> Lowered:
    return _by(reflections.tridiagonal, ctx, a)


@register("tridiagonal_solve")
def _tridiagonal_solve(ctx: Context, *system: Tensor, perturb_singular: bool = False) -> Lowered:
    if perturb_singular:
        raise ctx.unsupported("singular systems are not perturbed", "leave perturb_singular out")
    return _by(triangles.tridiagonal_solve, ctx, *system)


@register("eigh")
def _eigh(
    ctx: Context,
    a: Tensor,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Param,
) -> list[Tensor]:
    del sort_eigenvalues, algorithm  # TensorFlow always sorts, by its own algorithm.
    a = a if lower else ops.matrix_transpose(a, conjugate=a.dtype.is_complex)
    # JAX reads one triangle: a NaN in the other one changes nothing.
    values, vectors = _if_finite(by_ops.eigh, ops.band_part(a, -1, 0))
    start, end = subset_by_index or (0, a.shape[-1])
    return [vectors[..., start:end], values[..., start:end]]


@register("svd")
def _svd(
    ctx: Context,
    a: Tensor,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Param = None,
) -> list[Tensor]:
    del algorithm  # TensorFlow has its own algorithm.

    wide = _is_wide(ctx, ctx.avals_in[0].shape)

    def svd(a: Tensor) -> list[Tensor]:
        if compute_uv:
            return list(by_ops.svd(a, full_matrices, wide))
        return [by_ops.svd(a, full_matrices=False, wide=wide)[0]]

    results = _if_finite(svd, a)
    if subset_by_index:
        start, end = subset_by_index
        results = [results[0][..., start:end], *results[1:]]
        if compute_uv:
            results[1:] = [results[1][..., start:end], results[2][..., start:end, :]]
    return results


def _is_wide(ctx: Context, shape: Shape) -> bool | Tensor:
    """Whether matrices have more columns than rows; a tensor if that is known only at run time."""
    m, n = shape[-2:]
    larger = jax.core.max_dim(m, n)
    if larger in (m, n):
        return bool(larger != m)
    return ops.less(ctx.dim(m), ctx.dim(n))


@register("eig")
def _eig(
    ctx: Context,
    a: Tensor,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool = False,
    implementation: Param = None,
    use_magma: Param = None,
) -> Lowered:
    del enable_eigvec_derivs, implementation, use_magma  # They concern derivatives and the library.
    return _by(schur.eig, ctx, a)


@register("schur")
def _schur(
    ctx: Context,
    a: Tensor,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: Param,
) -> Lowered:
    if sort_eig_vals or select_callable is not None:
        raise ctx.unsupported("eigenvalues are not sorted", "leave sort_eig_vals out")
    return _by(schur.schur, ctx, a)


@register("symmetric_product")
def _symmetric_product(ctx: Context, a: Tensor, c: Tensor, *, alpha: float, beta: float) -> Tensor:
    product = ops.matmul(a, a, transpose_b=True)
    return ops.cast(alpha, a.dtype) * product + ops.cast(beta, a.dtype) * c


def _if_finite(factorise: Callable[[Tensor], Sequence[Tensor]], a: Tensor) -> list[Tensor]:
    """The factors of the matrices in `a`; NaN, instead of an error, if a matrix is not finite."""
    finite = ops.reduce_all(ops.equal(a - a, 0), [-2, -1], keepdims=True)
    results = factorise(ops.where(finite, a, ops.zeros_like(a)))
    return [
        ops.where(finite if r.shape.rank == a.shape.rank else finite[..., 0], r, nan_like(r))
        for r in results
    ]


def _by(algorithm: Callable[..., Sequence[jax.Array]], ctx: Context, *operands: Tensor) -> Lowered:
    """Lowers an equation by an algorithm in JAX, as one function of the graph.

    Eager TensorFlow would run loops in Python. Where XLA is at hand, it compiles the function even
    if the caller is not compiled.
    """
    eqn = ctx.eqn
    if any(0 in aval.shape for aval in ctx.avals_in):
        algorithm = empty_results
    jaxpr = ctx.traced("linalg", lambda: jaxpr_of(eqn, algorithm, {}))
    results = ctx.function(
        (algorithm, *sorted(eqn.params.items())),
        lambda inner, *xs: inner.inline(jaxpr, *xs),
        *operands,
        jit_compile=ctx.wants("XlaLaunch") or None,
    )
    return results if eqn.primitive.multiple_results else results[0]
