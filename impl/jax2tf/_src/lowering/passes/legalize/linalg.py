"""Computes linear algebra by products, sums and loops, for targets without ops for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.emit.linalg import jacobi, reflections, schur, triangles
from jax2tf._src.lowering.emit.linalg.empty import empty_results
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import by_primitive
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]
_DTYPES = frozenset(map(np.dtype, ("float32", "float64", "int32")))


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for an equation of linear algebra that the target lacks, or None."""
    found = _FUNCTIONS.get(eqn.primitive)
    if found is None:
        return None
    op, function = found
    aval = aval_of(eqn.invars[0])
    is_lacking = aval.dtype in _DTYPES and not target.takes(op, str(aval.dtype))
    # The bands of a matrix are vectors; their other dimensions are a batch.
    sizes = aval.shape[-1:] if function is triangles.tridiagonal_solve else aval.shape[-2:]
    sizes = (*sizes, eqn.params.get("permutation_size", 1))
    is_known = all(isinstance(d, int) and d > 0 for d in sizes)
    if not is_lacking or not is_known or _is_refused(eqn):
        return None
    return _of_any_size(eqn, function)


def of_complex(eqn: jex_core.JaxprEqn) -> Function | None:
    """Returns the function for an equation of complex matrices of known sizes, or None."""
    function = _OF_COMPLEX.get(eqn.primitive)
    aval = aval_of(eqn.invars[0])
    # Real matrices have complex eigenvalues, too.
    is_complex = jnp.issubdtype(aval.dtype, np.complexfloating) or function is schur.eig
    is_known = all(isinstance(d, int) for d in aval.shape[-2:])
    if function is None or not is_complex or not is_known or _is_refused(eqn):
        return None
    return _of_any_size(eqn, function)


def _of_any_size(eqn: jex_core.JaxprEqn, function: Function) -> Function:
    """Returns the function, or `empty_results` if an operand is empty."""
    is_empty = any(0 in aval_of(v).shape for v in eqn.invars)
    return empty_results if is_empty else function


def _is_refused(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the primitive's own rule refuses the equation, because it perturbs or sorts."""
    params = eqn.params
    is_sorted = params.get("sort_eig_vals", False) or params.get("select_callable") is not None
    return bool(is_sorted or params.get("perturb_singular", False))


# The functions, each with TensorFlow's op for the primitive.
_BY_NAME: dict[str, tuple[str, Function]] = {
    "cholesky": ("Cholesky", triangles.cholesky),
    "eigh": ("SelfAdjointEigV2", jacobi.eigh),
    "geqrf": ("Qr", reflections.geqrf),
    "householder_product": ("Qr", reflections.householder_product),
    "lu": ("Lu", triangles.lu),
    "lu_pivots_to_permutation": ("Lu", triangles.lu_pivots_to_permutation),
    "ormqr": ("Qr", reflections.ormqr),
    "qr": ("Qr", reflections.qr),
    "svd": ("Svd", jacobi.svd),
    "triangular_solve": ("MatrixTriangularSolve", triangles.triangular_solve),
    "tridiagonal_solve": ("TridiagonalSolve", triangles.tridiagonal_solve),
}
_FUNCTIONS = by_primitive(_BY_NAME)
# The functions for complex matrices.
_OF_COMPLEX: dict[jex_core.Primitive, Function] = {
    **{primitive: function for primitive, (_, function) in _FUNCTIONS.items()},
    lax.linalg.eig_p: schur.eig,
    lax.linalg.hessenberg_p: reflections.hessenberg,
    lax.linalg.schur_p: schur.schur,
    lax.linalg.tridiagonal_p: reflections.tridiagonal,
}
