"""Functions along dimensions, and of matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jax2tf._src.graph.ops.elementwise import conj
from jax2tf._src.graph.ops.operands import integers
from jax2tf._src.graph.symbols import Symbol, raw
from jax2tf._src.util.dtypes import int64
from jax2tf._src.util.typing import PyTree

# Along dimensions.


def argmax(input: PyTree, axis: PyTree = 0, output_type: PyTree = int64) -> Symbol:
    """The place of the largest element."""
    return raw.ArgMax(input=input, dimension=integers(axis), output_type=output_type)


def argmin(input: PyTree, axis: PyTree = 0, output_type: PyTree = int64) -> Symbol:
    """The place of the smallest element."""
    return raw.ArgMin(input=input, dimension=integers(axis), output_type=output_type)


def _cumulative(op: str) -> Callable[..., Symbol]:
    def along(
        x: PyTree, axis: PyTree = 0, exclusive: bool = False, reverse: bool = False
    ) -> Symbol:
        return getattr(raw, op)(x=x, axis=integers(axis), exclusive=exclusive, reverse=reverse)

    return along


cumprod = _cumulative("Cumprod")
cumsum = _cumulative("Cumsum")
cumulative_logsumexp = _cumulative("CumulativeLogsumexp")


def top_k(input: PyTree, k: PyTree = 1, sorted: bool = True) -> tuple[Symbol, Symbol]:
    """The largest elements of each row, and their places."""
    return raw.TopKV2(input=input, k=integers(k), sorted=sorted)


# Matrices.


def matmul(
    a: PyTree,
    b: PyTree,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Symbol:
    """The product of matrices."""
    if a.dtype.is_complex:
        # The ops of many matrices conjugate what they transpose.
        a, b = conj(a) if transpose_a else a, conj(b) if transpose_b else b
    flip_a, flip_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    if a.shape.rank == b.shape.rank == 2 and not a.dtype.is_complex:
        return raw.MatMul(a=a, b=b, transpose_a=flip_a, transpose_b=flip_b)
    return raw.BatchMatMulV2(x=a, y=b, adj_x=flip_a, adj_y=flip_b)


def matrix_transpose(a: PyTree, conjugate: bool = False) -> Symbol:
    """Matrices with rows and columns exchanged."""
    rank = a.shape.rank
    order = np.array([*np.arange(rank - 2), rank - 1, rank - 2], np.int32)
    op = raw.ConjugateTranspose if conjugate and a.dtype.is_complex else raw.Transpose
    return op(x=a, perm=order)


def band_part(input: PyTree, num_lower: PyTree, num_upper: PyTree) -> Symbol:
    """Matrices with zeros outside of a band."""
    lower, upper = (integers(n) for n in (num_lower, num_upper))
    return raw.MatrixBandPart(input=input, num_lower=lower, num_upper=upper)


def diag_part(input: PyTree) -> Symbol:
    """The diagonals of matrices."""
    zero = np.zeros((), input.dtype.dtype)
    return raw.MatrixDiagPartV3(input=input, k=np.array(0, np.int32), padding_value=zero)


def set_diag(input: PyTree, diagonal: PyTree) -> Symbol:
    """Matrices with other diagonals."""
    return raw.MatrixSetDiagV3(input=input, diagonal=diagonal, k=np.array(0, np.int32))


def cholesky(input: PyTree) -> Symbol:
    """The lower triangular factors."""
    return raw.Cholesky(input=input)


def eigh(tensor: PyTree) -> tuple[Symbol, Symbol]:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return raw.SelfAdjointEigV2(input=tensor, compute_v=True)


def qr(input: PyTree, full_matrices: bool = False) -> tuple[Symbol, Symbol]:
    """An orthogonal and an upper triangular factor."""
    return raw.Qr(input=input, full_matrices=full_matrices)


def svd(
    tensor: PyTree, full_matrices: bool = False, compute_uv: bool = True
) -> Symbol | tuple[Symbol, Symbol, Symbol]:
    """The singular values, and the left and right singular vectors."""
    values, left, right = raw.Svd(input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return (values, left, right) if compute_uv else values


def triangular_solve(
    matrix: PyTree, rhs: PyTree, lower: bool = True, adjoint: bool = False
) -> Symbol:
    """The solutions for triangular matrices."""
    return raw.MatrixTriangularSolve(matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint)
