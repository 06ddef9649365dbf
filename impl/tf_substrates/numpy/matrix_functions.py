"""tf.linalg: exponentials and ranks of matrices, and systems of which the LU factors are known."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.linalg import square_matrices, svd, triangular_solve
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, listed

JAX_MODE = False


@op("linalg.expm")
def expm(input: Any, name: Any = None) -> Any:
    """The exponential of square matrices, by Pade approximants (Higham, 2005).

    Raises:
      tf.errors.InvalidArgumentError: the matrices are not square.
    """
    x = square_matrices("MatrixSolve", input)
    if 0 in x.shape:
        return x
    library = importlib.import_module("jax.scipy.linalg" if JAX_MODE else "scipy.linalg")
    return library.expm(x).astype(x.dtype)


@op("linalg.matrix_rank")
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: Any = None) -> Any:
    """How many singular values exceed `tol`, int32.

    Args:
      tol: the limit; by default the largest singular value times the larger size times epsilon.
    """
    x = convert(a)
    values = convert(svd(x, compute_uv=False))
    if tol is None:
        epsilon = np.asarray(np.finfo(x.dtype).eps * max(x.shape[-2:]), values.dtype)
        limit = epsilon * xp.max(values, axis=-1, keepdims=True)
    else:
        limit = convert(tol, dtype=values.dtype)[..., None]
    return xp.sum(values > limit, axis=-1, dtype=np.int32)


@op("linalg.lu_solve")
def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: Any = None
) -> Any:
    """The solution `[..., n, k]` of the matrices that have these factors and permutations.

    Raises:
      ValueError: the right-hand sides have another number of rows.
    """
    packed, right = listed("MatrixTriangularSolve", (lower_upper, rhs))
    if len(right.shape) < 2 or right.shape[-2] != packed.shape[-1]:
        raise ValueError("`lower_upper.shape[-1]` must equal `rhs.shape[-1]`.")
    order = convert(perm)
    batch = np.broadcast_shapes(packed.shape[:-2], right.shape[:-2], order.shape[:-1])
    right = xp.broadcast_to(right, (*batch, *right.shape[-2:]))
    order = xp.broadcast_to(order, (*batch, order.shape[-1]))
    right = xp.take_along_axis(right, order[..., None], -2)
    packed = xp.broadcast_to(packed, (*batch, *packed.shape[-2:]))
    between = convert(triangular_solve(_lower(packed), right))
    return convert(triangular_solve(packed, between, lower=False))


def _lower(packed: Any) -> Any:
    eye = xp.eye(packed.shape[-1], dtype=packed.dtype)
    return xp.tril(packed, -1) + eye


@op("linalg.lu_matrix_inverse")
def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: Any = None
) -> Any:
    """The inverses of the matrices that have these factors and permutations."""
    packed = convert(lower_upper)
    return convert(lu_solve(packed, perm, xp.eye(packed.shape[-1], dtype=packed.dtype)))


@op("linalg.lu_reconstruct")
def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: Any = None
) -> Any:
    """The matrices that have these factors and permutations."""
    packed, order = convert(lower_upper), convert(perm)
    product = xp.matmul(_lower(packed), xp.triu(packed))
    return xp.take_along_axis(product, xp.argsort(order, axis=-1)[..., None], -2)
