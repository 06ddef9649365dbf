"""Linear algebra: ops of StableHLO, and the calls of LAPACK that JAX writes for the CPU."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step
from jax2tf._src.stablehlo.registry import Rule, reads, reads_custom_call
from jax2tf._src.stablehlo.rules.decompositions import is_qr
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

_LETTERS = "sdcz"
(_geqrf_p,) = named("geqrf")
(_geqp3_p,) = named("geqp3")


def _lapack(*routines: str) -> Callable[[Rule], Rule]:
    """The targets of routines: lapack_spotrf_ffi, lapack_dpotrf_ffi, ... and blas_strsm."""
    return reads_custom_call(*(f"lapack_{routine}_ffi" for routine in routines))


def _each(routine: str) -> list[str]:
    return [f"{letter}{routine}" for letter in _LETTERS]


def status(x: Array) -> Array:
    """The status 0 of a routine, one for each matrix. JAX's functions write NaN where a routine
    fails, so that a caller who looks at the status gets the same.
    """
    return jnp.zeros(x.shape[:-2], jnp.int32)


def _char(code: int) -> str:
    return chr(code)


@reads("stablehlo.cholesky")
def _cholesky(step: Step, x: Array, *, lower: bool = False) -> Array:
    triangle = lax.linalg.cholesky(x if lower else _transposed(x), symmetrize_input=False)
    return triangle if lower else _transposed(triangle)


def _transposed(x: Array) -> Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


@reads("stablehlo.triangular_solve")
def _triangular_solve(
    step: Step,
    a: Array,
    b: Array,
    *,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: str,
) -> Array:
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a != "NO_TRANSPOSE",
        conjugate_a=transpose_a == "ADJOINT",
        unit_diagonal=unit_diagonal,
    )


@_lapack(*_each("potrf"))
def _potrf(step: Step, x: Array, *, uplo: int) -> list[Array]:
    if _char(uplo) == "L":
        return [lax.linalg.cholesky(x, symmetrize_input=False), status(x)]
    return [_transposed(lax.linalg.cholesky(_transposed(x), symmetrize_input=False)), status(x)]


@_lapack(*_each("getrf"))
def _getrf(step: Step, x: Array) -> list[Array]:
    factors, pivots, _ = lax.linalg.lu(x)
    return [factors, pivots + 1, status(x)]  # LAPACK counts from one


@_lapack(*_each("geqrf"))
def _geqrf(step: Step, x: Array) -> list[Array]:
    return [None, None] if is_qr(step, x) else list(_geqrf_p.bind(x))


@_lapack(*_each("geqp3"))
def _geqp3(step: Step, x: Array, pivots: Array) -> list[Array]:
    factors, places, coefficients = _geqp3_p.bind(x, pivots, use_magma=None)
    return [factors, places, coefficients]


@_lapack("sorgqr", "dorgqr", "cungqr", "zungqr")
def _orgqr(step: Step, x: Array, coefficients: Array) -> Array:
    return lax.linalg.householder_product(x, coefficients)


@_lapack("ssyevd", "dsyevd", "cheevd", "zheevd")
def _syevd(step: Step, x: Array, *, uplo: int, mode: int = ord("V")) -> list[Array]:
    vectors, values = lax.linalg.eigh(
        x, lower=_char(uplo) == "L", symmetrize_input=False, sort_eigenvalues=False
    )
    return [vectors, values, status(x)]


@_lapack(*_each("gesdd"))
def _gesdd(step: Step, x: Array, *, mode: int) -> list[Array]:
    """Modes: A all vectors, S as many as singular values, N none."""
    if _char(mode) == "N":
        (values,) = (lax.linalg.svd(x, compute_uv=False),)
        batch = x.shape[:-2]
        empty = [jnp.zeros((*batch, *t.shape[-2:]), t.dtype) for t in step.types[2:4]]
        return [x, values, *empty, status(x)]
    left, values, right = lax.linalg.svd(x, full_matrices=_char(mode) == "A")
    return [x, values, left, right, status(x)]


@_lapack("sgesvd", "dgesvd", "cgesvd", "zgesvd")
def _gesvd(step: Step, x: Array, *, mode: int) -> list[Array]:
    return _gesdd(step, x, mode=mode)


def _eigen(step: Step, x: Array, has_left: bool, has_right: bool) -> tuple[Array, list[Array]]:
    """The eigenvalues, and the eigenvectors of both sides; zeros where they are not asked for."""
    values, *found = lax.linalg.eig(
        x, compute_left_eigenvectors=has_left, compute_right_eigenvectors=has_right
    )
    shape, vectors = x.shape, iter(found)
    sides = [
        next(vectors) if has else jnp.zeros(shape, values.dtype) for has in (has_left, has_right)
    ]
    return values, sides


@_lapack("sgeev", "dgeev")
def _geev(step: Step, x: Array, *, compute_left: int, compute_right: int) -> list[Array]:
    values, vectors = _eigen(step, x, _char(compute_left) == "V", _char(compute_right) == "V")
    return [lax.real(values), lax.imag(values), *vectors, status(x)]


@_lapack("cgeev", "zgeev")
def _geev_complex(step: Step, x: Array, *, compute_left: int, compute_right: int) -> list[Array]:
    values, vectors = _eigen(step, x, _char(compute_left) == "V", _char(compute_right) == "V")
    return [values, *vectors, status(x)]


@_lapack(*_each("gees"))
def _gees(step: Step, x: Array, *, mode: int, sort: int) -> list[Array]:
    if _char(sort) != "N":
        raise step.refused("it sorts eigenvalues by a function", "use jax.lax.linalg.schur")
    triangle, vectors = lax.linalg.schur(x)
    diagonal = jnp.diagonal(triangle, axis1=-2, axis2=-1)
    is_complex = jnp.issubdtype(x.dtype, jnp.complexfloating)
    values = [diagonal] if is_complex else [diagonal, jnp.zeros_like(diagonal)]
    return [triangle, vectors, *values, status(x), status(x)]


@_lapack(*_each("gehrd"))
def _gehrd(step: Step, x: Array, *, low: int, high: int) -> list[Array]:
    if (low, high) != (1, x.shape[-1]):
        raise step.refused("it leaves rows and columns out", "use jax.lax.linalg.hessenberg")
    factors, coefficients = lax.linalg.hessenberg(x)
    return [factors, coefficients, status(x)]


@_lapack("ssytrd", "dsytrd", "chetrd", "zhetrd")
def _sytrd(step: Step, x: Array, *, uplo: int) -> list[Array]:
    found = lax.linalg.tridiagonal(x, lower=_char(uplo) == "L")
    matrix, diagonal, off_diagonal, coefficients = found
    return [matrix, diagonal, off_diagonal, coefficients, status(x)]


@_lapack(*_each("trsm"))
def _trsm(
    step: Step, a: Array, b: Array, *, diag: int, side: int, trans_x: int, uplo: int
) -> Array:
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=_char(side) == "L",
        lower=_char(uplo) == "L",
        transpose_a=_char(trans_x) != "N",
        conjugate_a=_char(trans_x) == "C",
        unit_diagonal=_char(diag) == "U",
    )


@_lapack(*_each("gtsv"))
def _gtsv(step: Step, lower: Array, diagonal: Array, upper: Array, b: Array) -> list[Array]:
    solution = lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)
    return [lower, diagonal, upper, solution, jnp.zeros(b.shape[:-2], jnp.int32)]


@reads_custom_call("lu_pivots_to_permutation", "cu_lu_pivots_to_permutation")
def _lu_pivots_to_permutation(step: Step, pivots: Array) -> Array:
    size: PyTree = step.result.shape[-1]
    return lax.linalg.lu_pivots_to_permutation(pivots, size)
