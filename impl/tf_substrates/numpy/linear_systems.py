"""tf.linalg: tridiagonal matrices, LU decompositions, least squares and pseudo-inverses."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.linalg import DECOMPOSED, cholesky, cholesky_solve, svd
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, operands, require, traced

JAX_MODE = False
if JAX_MODE:
    import jax

Lu = collections.namedtuple("Lu", ["lu", "p"])


def _adjoint(x: Any) -> Any:
    return xp.conj(xp.swapaxes(x, -1, -2))


def _diagonals(diagonals: Any, diagonals_format: str) -> tuple:
    """The diagonals above, on and below the main one, each `[..., m]`."""
    if diagonals_format == "compact":
        array = convert(diagonals)
        if len(array.shape) < 2 or array.shape[-2] != 3:
            raise ValueError(f"Expected diagonals of shape [..., 3, m], got {list(array.shape)}")
        return array[..., 0, :], array[..., 1, :], array[..., 2, :]
    if diagonals_format == "sequence":
        if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
            raise ValueError("Expected diagonals to be a sequence of length 3.")
        above, main, below = map(convert, diagonals)
        size = main.shape[-1]
        if above.shape[-1] != size:  # a diagonal may come without the element that is ignored
            above = xp.concatenate([above, xp.zeros((*above.shape[:-1], 1), above.dtype)], -1)
        if below.shape[-1] != size:
            below = xp.concatenate([xp.zeros((*below.shape[:-1], 1), below.dtype), below], -1)
        return above, main, below
    if diagonals_format == "matrix":
        array = convert(diagonals)
        if len(array.shape) < 2 or array.shape[-1] != array.shape[-2]:
            raise ValueError(
                "Expected last two dimensions of diagonals to be same, got"
                f" {list(array.shape[-2:])}"
            )
        zero = xp.zeros((*array.shape[:-2], 1), array.dtype)
        parts = [xp.diagonal(array, k, -2, -1) for k in (1, 0, -1)]
        above = xp.concatenate([parts[0], zero], -1)
        below = xp.concatenate([zero, parts[2]], -1)
        return above[..., : array.shape[-1]], parts[1], below[..., : array.shape[-1]]
    raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")


@op("linalg.tridiagonal_matmul")
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: Any = None
) -> Any:
    """The product of tridiagonal matrices and `rhs`, `[..., m, k]`.

    Args:
      diagonals: `[..., 3, m]` if compact (above, main, below), three of `[..., m]` if a sequence,
        and `[..., m, m]` if a matrix.
    """
    above, main, below = _diagonals(diagonals, diagonals_format)
    main, rhs = operands("TridiagonalMatMul", main, rhs)
    require("TridiagonalMatMul", rhs, DECOMPOSED)
    zero = xp.zeros_like(rhs[..., :1, :])
    after = xp.concatenate([rhs[..., 1:, :], zero], -2)
    before = xp.concatenate([zero, rhs[..., :-1, :]], -2)
    return above[..., None] * after + main[..., None] * rhs + below[..., None] * before


@op("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: Any = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Any:
    """Solves tridiagonal systems for right-hand sides `[..., m]` or `[..., m, k]`.

    Raises:
      ValueError: shapes or the format do not fit.
      NotImplementedError: `perturb_singular`.
    """
    if perturb_singular:
        raise NotImplementedError(
            "tf.linalg.tridiagonal_solve: perturb_singular=True is not here. What to do: add to the"
            " main diagonal yourself."
        )
    above, main, below = _diagonals(diagonals, diagonals_format)
    main, rhs = operands("TridiagonalSolve", main, rhs)
    require("TridiagonalSolve", main, DECOMPOSED)
    is_vector = len(rhs.shape) == len(main.shape)
    if not is_vector and len(rhs.shape) != len(main.shape) + 1:
        raise ValueError(
            f"Expected the rank of rhs to be {len(main.shape)} or {len(main.shape) + 1}, got"
            f" {len(rhs.shape)}"
        )
    if is_vector:
        rhs = rhs[..., None]
    elif transpose_rhs:
        rhs = xp.swapaxes(rhs, -1, -2)
    rhs = xp.conj(rhs) if conjugate_rhs else rhs
    if rhs.shape[-2] != main.shape[-1] or rhs.shape[:-2] != main.shape[:-1]:
        raise invalid_argument(
            f"diagonals are for matrices of {list(main.shape)}, rhs is {list(rhs.shape)}"
            " [Op:TridiagonalSolve]"
        )
    solved = _solved(above, main, below, rhs)
    return solved[..., 0] if is_vector else solved


def _solved(above: Any, main: Any, below: Any, rhs: Any) -> Any:
    if main.shape[-1] == 0:
        return rhs
    if JAX_MODE:
        # What is outside of the matrix is ignored, whatever it holds.
        zero = xp.zeros_like(main[..., :1])
        below = xp.concatenate([zero, below[..., 1:]], -1)
        above = xp.concatenate([above[..., :-1], zero], -1)
        return jax.lax.linalg.tridiagonal_solve(below, main, above, rhs)
    return _eliminated(above, main, below, rhs)


def _eliminated(above: Any, main: Any, below: Any, rhs: Any) -> Any:
    """Elimination with row exchanges, one row at a time for all batches."""
    size = main.shape[-1]
    # Of the row at hand: its entries in this column, the next and the one after, and its side.
    row = [main[..., 0], above[..., 0], np.zeros_like(main[..., 0]), rhs[..., 0, :]]
    rows = []
    for i in range(1, size):
        last = np.zeros_like(main[..., 0]) if i == size - 1 else above[..., i]
        next_row = [below[..., i], main[..., i], last, rhs[..., i, :]]
        exchange = np.abs(next_row[0]) > np.abs(row[0])
        pivot = [_chosen(exchange, b, a) for a, b in zip(row, next_row, strict=True)]
        other = [_chosen(exchange, a, b) for a, b in zip(row, next_row, strict=True)]
        factor = other[0] / pivot[0]
        rows.append(pivot)
        row = [
            other[1] - factor * pivot[1],
            other[2] - factor * pivot[2],
            np.zeros_like(main[..., 0]),
            other[3] - factor[..., None] * pivot[3],
        ]
    rows.append(row)
    zero = np.zeros_like(row[3])
    found = [zero, zero]
    for first, second, third, side in reversed(rows):
        rest = side - second[..., None] * found[-1] if len(found) > 2 else side
        rest = rest - third[..., None] * found[-2] if len(found) > 3 else rest
        found.append(rest / first[..., None])
    return np.stack(found[:1:-1], -2)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)), x, y)


@op("linalg.lu")
def lu(input: Any, output_idx_type: Any = dtypes.int32, name: Any = None) -> Any:
    """`Lu(lu, p)` of square matrices: row `i` of L U is row `p[i]` of the input.

    Raises:
      tf.errors.InvalidArgumentError: a matrix is not square, or is singular.
    """
    x = require("Lu", convert(input), DECOMPOSED)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise invalid_argument(f"Input matrix must be square, got {list(x.shape)} [Op:Lu]")
    if JAX_MODE:
        packed, _, order = jax.lax.linalg.lu(x)
    else:
        packed, order = _factored(x)
    if not traced(packed) and packed.size and (np.diagonal(packed, 0, -2, -1) == 0).any():
        raise invalid_argument("Input is not invertible. [Op:Lu]")
    return Lu(packed, order.astype(dtypes.numpy_dtype(output_idx_type)))


def _factored(x: Any) -> tuple:
    """Doolittle's elimination of all matrices, with the largest pivot of each column."""
    size, count = x.shape[-1], math.prod(x.shape[:-2])
    work = np.array(x).reshape(count, size, size)
    order = np.tile(np.arange(size), (count, 1))
    each = np.arange(count)
    for k in range(size):
        pivot = k + np.argmax(np.abs(work[:, k:, k]), axis=1)
        work[each, k], work[each, pivot] = work[each, pivot], work[each, k].copy()
        order[each, k], order[each, pivot] = order[each, pivot], order[each, k].copy()
        work[:, k + 1 :, k] /= work[:, k, None, k]
        work[:, k + 1 :, k + 1 :] -= work[:, k + 1 :, k, None] * work[:, k, None, k + 1 :]
    return work.reshape(x.shape), order.reshape(x.shape[:-1])


@op("linalg.pinv")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: Any = None) -> Any:
    """The pseudo-inverse `[..., n, m]` of matrices `[..., m, n]`.

    Args:
      rcond: singular values below this part of the largest are zero; `10 max(m, n) eps` if None.

    Raises:
      TypeError: the matrices are not of real floats.
      ValueError: there are fewer than two axes.
    """
    x = convert(a)
    if x.dtype.kind != "f":
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {x.dtype.name}).")
    if len(x.shape) < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {len(x.shape)}).")
    if rcond is None:
        rcond = 10.0 * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return _pseudo_inverse(x, convert(rcond, dtype=x.dtype))


def _pseudo_inverse(x: Any, rcond: Any) -> Any:
    values, left, right = map(convert, svd(x, full_matrices=False))
    cutoff = rcond * xp.max(values, axis=-1)
    inverses = 1 / xp.where(values > cutoff[..., None], values, np.asarray(np.inf, values.dtype))
    return xp.matmul(right * inverses[..., None, :].astype(x.dtype), _adjoint(left))


@op("linalg.lstsq")
def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: Any = None
) -> Any:
    """Least squares `[..., n, k]` of matrices `[..., m, n]` and right-hand sides `[..., m, k]`.

    With `fast` by Cholesky's decomposition, with the regularizer; else the solution of least norm.
    """
    a, b = operands("MatrixSolveLs", matrix, rhs)
    require("MatrixSolveLs", a, DECOMPOSED)
    rows, columns = a.shape[-2:]
    if not fast:
        cutoff = np.asarray(max(rows, columns) * np.finfo(a.dtype).eps, np.finfo(a.dtype).dtype)
        return xp.matmul(_pseudo_inverse(a, cutoff), b)
    size = min(rows, columns)
    real = np.finfo(a.dtype).dtype
    weight = xp.eye(size, dtype=a.dtype) * convert(l2_regularizer, dtype=real)
    if rows >= columns:
        chol = cholesky(xp.matmul(_adjoint(a), a) + weight)
        return convert(cholesky_solve(chol, xp.matmul(_adjoint(a), b)))
    chol = cholesky(xp.matmul(a, _adjoint(a)) + weight)
    return xp.matmul(_adjoint(a), convert(cholesky_solve(chol, b)))
