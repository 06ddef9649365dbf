"""tf.linalg: products, diagonals, decompositions and solvers of batches of matrices."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import FailedPreconditionError, invalid_argument
from tf_substrates.numpy.math.derivatives import absolute, maximum, sqrt
from tf_substrates.numpy.math.dtype_groups import FLOATS, NUMBERS, like
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.reductions import axes_of
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import (
    OPERATORS,
    convert,
    has_dtype,
    operands,
    require,
    static_value,
)

JAX_MODE = False
if JAX_MODE:
    import jax


DECOMPOSED = ("float32", "float64", "complex64", "complex128")


def _turned(x: Any) -> Any:
    return xp.swapaxes(x, -1, -2)


def _adjoint(x: Any) -> Any:
    return xp.conj(_turned(x)) if x.dtype.kind == "c" else _turned(x)


def _matrix(op_name: str, x: Any, allowed: tuple = FLOATS) -> Any:
    array = require(op_name, convert(x), allowed)
    if len(array.shape) < 2:
        raise invalid_argument(f"Input must have rank >= 2, got {len(array.shape)} [Op:{op_name}]")
    return array


def square_matrices(op_name: str, x: Any, allowed: tuple = DECOMPOSED) -> Any:
    """Matrices as an array, if they are square and of a dtype that the operation takes."""
    array = _matrix(op_name, x, allowed)
    if array.shape[-1] != array.shape[-2]:
        raise invalid_argument(f"Input matrix must be square. [Op:{op_name}]")
    return array


@op("matmul", "linalg.matmul", static=True)
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: Any = None,
) -> Any:
    """Products of matrices `[..., n, k]` and `[..., k, m]`, whose leading axes broadcast.

    Raises:
      ValueError: a matrix is both transposed and adjoined.
      tf.errors.InvalidArgumentError: the dtypes differ, or the shapes do not go together.
    """
    for which, both in (("a", transpose_a and adjoint_a), ("b", transpose_b and adjoint_b)):
        if both:
            raise ValueError(
                f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. Received"
                f" `transpose_{which}`=True, `adjoint_{which}`=True."
            )
    a, b = operands("MatMul", a, b)
    require("MatMul", a, NUMBERS)
    if min(len(a.shape), len(b.shape)) < 2:
        raise invalid_argument(
            f"In[0] ndims must be >= 2: {list(a.shape)}, {list(b.shape)} [Op:MatMul]"
        )
    a = _adjoint(a) if adjoint_a else _turned(a) if transpose_a else a
    b = _adjoint(b) if adjoint_b else _turned(b) if transpose_b else b
    if a.shape[-1] != b.shape[-2]:
        raise invalid_argument(
            f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)} [Op:MatMul]"
        )
    broadcast_shapes(a.shape[:-2], b.shape[:-2], "BatchMatMulV2")
    product = like(xp.matmul(a, b), a)  # NumPy's product of bfloat16 is float32
    return product if output_type is None else product.astype(dtypes.numpy_dtype(output_type))


OPERATORS["matmul"] = matmul


@op("linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: Any = None,
) -> Any:
    """Products of matrices `[..., n, k]` and vectors `[..., k]`."""
    a, b = operands("MatMul", a, b)
    return convert(matmul(a, b[..., None], transpose_a=transpose_a, adjoint_a=adjoint_a))[..., 0]


@op("einsum", "linalg.einsum")
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Any:
    unknown = set(kwargs) - {"name", "optimize"}
    if unknown:
        raise TypeError(f"Invalid keyword arguments for einsum: {', '.join(sorted(unknown))}")
    arrays = operands("Einsum", *inputs)
    _require_sizes(equation.replace(" ", ""), arrays)
    try:
        return xp.einsum(equation.replace(" ", ""), *arrays)
    except (ValueError, TypeError) as error:
        shapes = [list(array.shape) for array in arrays]
        raise ValueError(f"tf.einsum: {equation!r} of shapes {shapes}: {error}") from None


def _require_sizes(equation: str, arrays: list) -> None:
    """Raises if a label has two sizes; what else is wrong with the equation is NumPy's to say."""
    sizes: dict[str, int] = {}
    for labels, array in zip(equation.partition("->")[0].split(","), arrays, strict=False):
        if len(labels) == len(array.shape) and "." not in labels:
            for label, size in zip(labels, array.shape, strict=True):
                if sizes.setdefault(label, size) != size:
                    raise invalid_argument(
                        f"Expected dimension {sizes[label]} of label {label!r} but got dimension"
                        f" {size} [Op:Einsum]"
                    )


@op("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: Any = None) -> Any:
    a, b = operands("MatMul", a, b)
    known: Any = axes
    if not isinstance(axes, int):
        sides = [np.ravel(static_value(side, "The axes of tf.tensordot")) for side in axes]
        known = [[int(i) for i in side] for side in sides]
    return xp.tensordot(a, b, known)


@op("linalg.matrix_transpose", static=True)
def matrix_transpose(a: Any, name: Any = "matrix_transpose", conjugate: bool = False) -> Any:
    """The last two axes exchanged.

    Raises:
      ValueError: there are fewer than two axes.
    """
    x = convert(a)
    if len(x.shape) < 2:
        raise ValueError(
            f"Argument `a` should be a (batch) matrix with rank >= 2. Received {x.shape}"
        )
    return _adjoint(x) if conjugate else _turned(x)


@op("linalg.adjoint")
def adjoint(matrix: Any, name: Any = None) -> Any:
    return _adjoint(convert(matrix))


@op("linalg.trace")
def trace(x: Any, name: Any = None) -> Any:
    array = _matrix("Trace", x, NUMBERS)
    return xp.sum(xp.diagonal(array, axis1=-2, axis2=-1), axis=-1, dtype=array.dtype)


@op("linalg.cross")
def cross(a: Any, b: Any, name: Any = None) -> Any:
    a, b = operands("Cross", a, b)
    if a.shape[-1:] != (3,):
        raise FailedPreconditionError(
            None, None, f"Cross-products are only defined for 3-element vectors: {list(a.shape)}"
        )
    return xp.cross(a, b)


# Diagonals. A band is stored as rows of equal length, aligned left or right and padded.


def _offsets(k: Any) -> tuple[int, int]:
    known = np.ravel(static_value(k, "The diagonals `k`"))
    low, high = int(known[0]), int(known[-1])
    if low > high:
        raise invalid_argument(
            f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}"
        )
    return low, high


def _places(rows: int, columns: int, low: int, high: int, align: str) -> tuple:
    """For each place of a band `[diagonal, position]`: its row, its column, whether it is one."""
    if align not in ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"):
        raise invalid_argument(f"align: {align!r} is no alignment such as 'RIGHT_LEFT'")
    upper, lower = align.split("_")
    ks = np.arange(high, low - 1, -1)
    lengths = np.minimum(rows + np.minimum(ks, 0), columns - np.maximum(ks, 0))
    longest = int(lengths.max())
    position = np.arange(longest)[None, :]
    right = np.where(ks >= 0, upper == "RIGHT", lower == "RIGHT")
    along = position - np.where(right, longest - lengths, 0)[:, None]
    inside = (along >= 0) & (along < lengths[:, None])
    along = np.clip(along, 0, None)
    row, column = along + np.maximum(-ks, 0)[:, None], along + np.maximum(ks, 0)[:, None]
    return np.where(inside, row, 0), np.where(inside, column, 0), inside


@op("linalg.diag_part")
def diag_part(
    input: Any,
    name: Any = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Any:
    """The diagonal `k` of matrices, or the band of diagonals `k[0]` to `k[1]`, padded."""
    x = _matrix("MatrixDiagPartV3", input, (*NUMBERS, "bool"))
    low, high = _offsets(k)
    _in_matrix(low, high, *x.shape[-2:])
    row, column, inside = _places(x.shape[-2], x.shape[-1], low, high, align)
    band = xp.where(inside, x[..., row, column], _padding(padding_value, input))
    return band[..., 0, :] if low == high else band


def _in_matrix(low: int, high: int, rows: int, columns: int) -> None:
    for k in (low, high):
        if not -rows < k < columns and k != 0:
            raise invalid_argument(
                f"diag_index is out of bound: {k}. It must be between {1 - rows} and {columns - 1}"
            )


def _padding(value: Any, operand: Any) -> Any:
    """What stands beside a band. Of a tensor of bool a number is one too, such as the default."""
    dtype = convert(operand).dtype
    a_bool = dtype.kind == "b" and has_dtype(operand)
    return convert(bool(value) if a_bool else value, dtype=dtype)


@op("linalg.diag")
def diag(
    diagonal: Any,
    name: Any = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Any:
    """Matrices of a diagonal `k`, or of a band of diagonals, with padding elsewhere."""
    band = convert(diagonal)
    low, high = _offsets(k)
    if not band.shape:
        raise invalid_argument(
            "diagonal must be at least 1-dim, received shape: [] [Op:MatrixDiagV3]"
        )
    length = band.shape[-1]
    rows, columns = int(static_value(num_rows, "num_rows")), int(static_value(num_cols, "num_cols"))
    least_rows, least_columns = length + max(-high, 0), length + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    elif rows == -1:
        rows = least_rows
    elif columns == -1:
        columns = least_columns
    if min(rows - least_rows, columns - least_columns) < 0 or (
        rows != least_rows and columns != least_columns
    ):
        raise invalid_argument(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper,"
            " and diagonal. [Op:MatrixDiagV3]"
        )
    band = band[..., None, :] if low == high else band
    padding = _padding(padding_value, diagonal)
    start = xp.broadcast_to(padding, (*band.shape[:-2], rows, columns))
    return _with_band(start, band, low, high, align)


def _with_band(x: Any, band: Any, low: int, high: int, align: str) -> Any:
    row, column, inside = _places(x.shape[-2], x.shape[-1], low, high, align)
    if band.shape[-2:] != inside.shape:
        raise invalid_argument(
            f"The diagonals have shape {list(band.shape[-2:])} where {list(inside.shape)} is"
            " expected"
        )
    at = (row[inside], column[inside])
    if JAX_MODE:
        on_device: Any = xp.asarray(x)
        return on_device.at[(..., *at)].set(band[..., inside])
    result = np.array(x)
    result[(..., *at)] = band[..., inside]
    return result


@op("linalg.set_diag")
def set_diag(
    input: Any, diagonal: Any, name: Any = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """Matrices with a diagonal, or a band of diagonals, replaced."""
    x, band = operands("MatrixSetDiagV3", input, diagonal)
    low, high = _offsets(k)
    _in_matrix(low, high, *x.shape[-2:])
    return _with_band(x, band[..., None, :] if low == high else band, low, high, align)


@op("linalg.band_part")
def band_part(input: Any, num_lower: Any, num_upper: Any, name: Any = None) -> Any:
    """Zero but for diagonals: `num_lower` below the main one and `num_upper` above, all for -1."""
    x = _matrix("MatrixBandPart", input, (*NUMBERS, "bool"))
    lower, upper = convert(num_lower), convert(num_upper)
    below = np.arange(x.shape[-2])[:, None] - np.arange(x.shape[-1])[None, :]
    inside = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
    return xp.where(inside, x, np.zeros((), x.dtype))


@op("linalg.tensor_diag")
def tensor_diag(diagonal: Any, name: Any = None) -> Any:
    x = convert(diagonal)
    count = int(np.prod(x.shape))
    flat = xp.where(np.eye(count, dtype=bool), x.reshape(-1), np.zeros((), x.dtype))
    return flat.reshape((*x.shape, *x.shape))


@op("linalg.tensor_diag_part")
def tensor_diag_part(input: Any, name: Any = None) -> Any:
    x = convert(input)
    half = x.shape[: len(x.shape) // 2]
    if half * 2 != tuple(x.shape):
        raise invalid_argument(f"The two halves of the shape {list(x.shape)} must be equal")
    count = int(np.prod(half))
    return xp.diagonal(x.reshape((count, count))).reshape(half)


# Decompositions.

Qr = collections.namedtuple("Qr", ["q", "r"])
Lu = collections.namedtuple("Lu", ["lu", "p"])
LogMatrixDeterminant = collections.namedtuple(
    "LogMatrixDeterminant", ["sign", "log_abs_determinant"]
)


if JAX_MODE:

    @jax.custom_jvp
    def _self_adjoint(x: Any) -> Any:
        """The matrix itself, which moves as self-adjoint matrices do: so TensorFlow's gradient."""
        return x

    @_self_adjoint.defjvp
    def _tangent_of_self_adjoint(primals: tuple, tangents: tuple) -> tuple:
        (tangent,) = tangents
        return primals[0], (tangent + _adjoint(tangent)) / 2


@op("linalg.cholesky")
def cholesky(input: Any, name: Any = None) -> Any:
    """Lower triangular factors; NaN where a matrix is not positive definite."""
    x = square_matrices("Cholesky", input)
    if JAX_MODE:
        on_device = _self_adjoint(xp.asarray(x))
        return xp.tril(jax.lax.linalg.cholesky(on_device, symmetrize_input=False))
    flat = x.reshape((-1, *x.shape[-2:]))
    result = np.empty_like(flat)
    for i, matrix in enumerate(flat):
        try:
            result[i] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            result[i] = np.tril(np.full_like(matrix, np.nan))
    return result.reshape(x.shape)


@op("linalg.qr")
def qr(input: Any, full_matrices: bool = False, name: Any = None) -> Any:
    x = _matrix("Qr", input, DECOMPOSED)
    q, r = xp.linalg.qr(x, mode="complete" if full_matrices else "reduced")
    return Qr(q, r)


@op("linalg.svd")
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: Any = None) -> Any:
    """`(s, u, v)` of which the matrix is `u @ diag(s) @ adjoint(v)`; `s` alone if asked."""
    x = _matrix("Svd", tensor, DECOMPOSED)
    if not compute_uv:
        return xp.linalg.svd(x, compute_uv=False)
    u, s, vh = xp.linalg.svd(x, full_matrices=full_matrices)
    return s, u, _adjoint(vh)


@op("linalg.eigh")
def eigh(tensor: Any, name: Any = None) -> Any:
    """Eigenvalues, in the dtype of the matrices if that is complex too, and eigenvectors."""
    x = square_matrices("SelfAdjointEigV2", tensor)
    values, vectors = xp.linalg.eigh(x)
    return like(values, x), vectors


@op("linalg.eigvalsh")
def eigvalsh(tensor: Any, name: Any = None) -> Any:
    x = square_matrices("SelfAdjointEigV2", tensor)
    return like(xp.linalg.eigvalsh(x), x)


def _regular(x: Any, what: str, op_name: str) -> None:
    # On JAX a traced matrix is not known: its inverse is infinite or NaN.
    if isinstance(x, np.ndarray) and x.size:
        factors = [np.linalg.matrix_rank(m) for m in x.reshape((-1, *x.shape[-2:]))]
        if min(factors) < x.shape[-1] and not np.all(np.linalg.det(x)):
            raise invalid_argument(f"{what} is not invertible. [Op:{op_name}]")


@op("linalg.inv")
def inv(input: Any, adjoint: bool = False, name: Any = None) -> Any:
    """Inverses.

    Raises:
      tf.errors.InvalidArgumentError: a matrix is singular, on NumPy.
    """
    x = square_matrices("MatrixInverse", input)
    _regular(x, "Input", "MatrixInverse")
    return xp.linalg.inv(_adjoint(x) if adjoint else x)


@op("linalg.solve")
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: Any = None) -> Any:
    """x of `matrix @ x = rhs`, or of `adjoint(matrix) @ x = rhs`."""
    a, b = operands("MatrixSolve", matrix, rhs)
    a = square_matrices("MatrixSolve", a)
    if b.shape[-2:-1] != a.shape[-1:]:
        raise invalid_argument(
            f"Input matrix and rhs are incompatible: {list(a.shape)}, {list(b.shape)}"
            " [Op:MatrixSolve]"
        )
    _regular(a, "Input matrix", "MatrixSolve")
    return xp.linalg.solve(_adjoint(a) if adjoint else a, b)


@op("linalg.det")
def det(input: Any, name: Any = None) -> Any:
    return xp.linalg.det(square_matrices("MatrixDeterminant", input))


@op("linalg.slogdet")
def slogdet(input: Any, name: Any = None) -> Any:
    sign, logarithm = xp.linalg.slogdet(square_matrices("LogMatrixDeterminant", input))
    return LogMatrixDeterminant(sign, logarithm.astype(sign.dtype))


@op("linalg.logdet")
def logdet(matrix: Any, name: Any = None) -> Any:
    """The logarithm of the determinant of positive definite matrices."""
    factor = convert(cholesky(matrix))
    diagonal = xp.real(xp.diagonal(factor, axis1=-2, axis2=-1))
    return np.asarray(2, diagonal.dtype) * xp.sum(xp.log(diagonal), axis=-1)


@op("linalg.triangular_solve")
def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: Any = None
) -> Any:
    """x of `matrix @ x = rhs` where the matrix's other triangle counts for zeros."""
    a, b = operands("MatrixTriangularSolve", matrix, rhs)
    a = square_matrices("MatrixTriangularSolve", a)
    return _triangular(a, b, lower, adjoint)


def _triangular(a: Any, b: Any, lower: bool, adjoint: bool) -> Any:
    if len(a.shape) == 2 and len(b.shape) > 2 and a.shape[-1:] == b.shape[-2:-1]:
        # One matrix for a batch: its columns are all solved for at once, and the matrix is not
        # written once for each.
        rows = xp.moveaxis(b, -2, 0)
        columns = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
        return xp.moveaxis(_triangular(a, columns, lower, adjoint).reshape(rows.shape), 0, -2)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], "MatrixTriangularSolve")
    a = xp.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = xp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if JAX_MODE:
        return jax.lax.linalg.triangular_solve(
            a, b, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint
        )
    triangle = np.tril(a) if lower else np.triu(a)
    _regular(triangle, "Input matrix", "MatrixTriangularSolve")
    return np.linalg.solve(_adjoint(triangle) if adjoint else triangle, b)


@op("linalg.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: Any = None) -> Any:
    """x of `chol @ adjoint(chol) @ x = rhs`."""
    factor, b = operands("MatrixTriangularSolve", chol, rhs)
    half = _triangular(square_matrices("MatrixTriangularSolve", factor), b, True, False)
    return _triangular(factor, half, True, True)


# Norms.


@op("linalg.normalize")
def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: Any = None
) -> tuple[Any, Any]:
    """The tensor divided by its norm, and the norm, with axes of size 1 where it was taken."""
    x = convert(tensor)
    length = convert(norm(x, ord, axis, True)).astype(x.dtype)
    return x / length, length


@op("norm", "linalg.norm")
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Any = None
) -> Any:
    """Vector norms over one axis or everything, matrix norms over two.

    Raises:
      ValueError: `ord` is no norm of these axes.
    """
    x = require("Sqrt", convert(tensor), FLOATS)
    keep = bool(keepdims)
    is_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    if isinstance(axis, (list, tuple)) and len(axis) != 2:
        raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
    axes = axes_of(axis, len(x.shape), "Norm")
    size = absolute(x)
    if ord in ("euclidean", "fro"):
        if ord == "fro" and not is_matrix:
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}.")
        return _euclidean(x, axes, keep)
    if is_matrix:
        return _matrix_norm(x, size, ord, axes, keep)
    if isinstance(ord, str) or ord <= 0:
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}.")
    if ord == np.inf:
        return xp.max(size, axis=axes, keepdims=keep)
    if ord == 1:
        return xp.sum(size, axis=axes, keepdims=keep)
    if ord == 2:
        return _euclidean(x, axes, keep)
    exponent = np.asarray(ord, size.dtype)
    return xp.sum(size**exponent, axis=axes, keepdims=keep) ** (
        np.asarray(1, size.dtype) / exponent
    )


def _euclidean(x: Any, axes: tuple, keep: bool) -> Any:
    """The root of the sum of squares: a complex number of complex ones, unlike other norms."""
    squares = x * xp.conj(x) if x.dtype.kind == "c" else x * x
    return sqrt(xp.sum(squares, axis=axes, keepdims=keep))


def _matrix_norm(x: Any, size: Any, ord: Any, axes: tuple, keep: bool) -> Any:
    rows, columns = axes
    if ord == 1:
        return xp.max(xp.sum(size, axis=rows, keepdims=True), axis=axes, keepdims=keep)
    if ord == np.inf:
        return xp.max(xp.sum(size, axis=columns, keepdims=True), axis=axes, keepdims=keep)
    if ord == 2:
        moved = xp.moveaxis(x, axes, (-2, -1))
        largest = xp.max(xp.linalg.svd(moved, compute_uv=False), axis=-1)
        return xp.expand_dims(largest, tuple(sorted(axes))) if keep else largest
    raise ValueError(
        f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}"
    )


@op("math.l2_normalize", "linalg.l2_normalize", "nn.l2_normalize")
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: Any = None, dim: Any = None
) -> Any:
    """x over its Euclidean norm, of which the square is at least epsilon."""
    array = require("Rsqrt", convert(x), FLOATS)
    axes = axes_of(dim if axis is None else axis, len(array.shape), "Sum")
    squares = xp.sum(xp.real(array * xp.conj(array)), axis=axes, keepdims=True)
    least = np.asarray(epsilon, squares.dtype)
    return array / sqrt(maximum(squares, least)).astype(array.dtype)


@op("linalg.global_norm")
def global_norm(t_list: Any, name: Any = None) -> Any:
    """The Euclidean norm of all elements of a list of tensors, None left out."""
    squares = [xp.sum(xp.square(absolute(convert(t)))) for t in t_list if t is not None]
    return sqrt(sum(squares[1:], squares[0]))
