"""Functions along dimensions, of matrices and of networks."""

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


def triangular_solve(
    matrix: PyTree, rhs: PyTree, lower: bool = True, adjoint: bool = False
) -> Symbol:
    """The solutions for triangular matrices."""
    return raw.MatrixTriangularSolve(matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint)


# Networks.


def conv2d(
    input: PyTree, filters: PyTree, strides: PyTree, padding: PyTree, *, dilations: PyTree
) -> Symbol:
    """The convolution of images whose channels come last; strides and dilations are pairs."""
    explicit = not isinstance(padding, str)
    return raw.Conv2D(
        input=input,
        filter=filters,
        strides=[1, *strides, 1],
        padding="EXPLICIT" if explicit else padding,
        explicit_paddings=[n for pair in padding for n in pair] if explicit else [],
        dilations=[1, *dilations, 1],
    )


def leaky_relu(features: PyTree, alpha: float = 0.2) -> Symbol:
    """x, or alpha*x where x is negative."""
    return raw.LeakyRelu(features=features, alpha=alpha)


def softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.Softmax(logits=logits)


def log_softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The logarithm of the softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.LogSoftmax(logits=logits)


def _check_last(x: PyTree, axis: int) -> None:
    if axis not in (-1, x.shape.rank - 1):
        raise NotImplementedError(f"softmax along axis {axis} of {x!r}")
