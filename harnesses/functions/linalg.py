"""jax.numpy.linalg, jax.lax.linalg, jax.scipy.linalg and jax.scipy.sparse.linalg.

Factors whose signs or phases are free are compared by what they multiply to.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from harnesses.functions import family
from harnesses.harness import Normal, Uniform, Values, define_functions, each, use

_RNG = np.random.default_rng(8)
_A = _RNG.standard_normal((4, 4)).astype(np.float32)
# Well-conditioned: with a large diagonal; symmetric and positive definite; triangular.
A = Values(_A + 5 * np.eye(4, dtype=np.float32), "float32")
SPD = Values(_A @ _A.T + 4 * np.eye(4, dtype=np.float32), "float32")
LOWER = Values(np.tril(_A + 5 * np.eye(4, dtype=np.float32)), "float32")
UPPER = Values(np.triu(_A + 5 * np.eye(4, dtype=np.float32)), "float32")
# Upper triangular but for one block, as the real Schur form of a matrix with complex eigenvalues.
BLOCKS = Values([[3, 1, 2, 1], [-1, 3, 1, 2], [0, 0, 2, 1], [0, 0, 0, 1]], "float32")
SMALL = Uniform((4, 4), "float32", -0.2, 0.2)
TALL = Normal((4, 3), "float32")
B = Normal((4, 2), "float32")
V = Normal((4,), "float32")
W = Normal((3,), "float32")
UNIT = Uniform((4,), "float32", 0.1, 1)


def _product(factors: Any) -> Any:
    """The product of the factors, and the size of their elements."""
    product = factors[0]
    for factor in factors[1:]:
        product = product @ factor
    return product, [jnp.abs(factor) for factor in factors]


def _of_eigenvectors(values: Any, vectors: Any) -> Any:
    """The matrix that has these eigenvalues and vectors, and the eigenvalues in order."""
    return (vectors * values) @ jnp.linalg.inv(vectors), jnp.sort(values)


def _of_singular_vectors(u: Any, s: Any, vt: Any) -> Any:
    return (u[:, : s.size] * s) @ vt[: s.size], s


def _of_schur_vectors(t: Any, z: Any) -> Any:
    return z @ t @ z.conj().T, jnp.abs(jnp.diagonal(t))


NUMPY_USES = {
    **each(
        "cholesky cond det eigvalsh inv matrix_rank norm pinv slogdet svdvals trace "
        "matrix_norm matrix_transpose diagonal vector_norm",
        use(SPD),
    ),
    "cross": use(W, W),
    "eig": use(A).but(then=lambda r: _of_eigenvectors(*r)),
    "eigh": use(SPD).but(then=lambda r: _of_eigenvectors(*r)),
    "eigvals": use(A).but(then=jnp.sort),
    "lstsq": use(TALL, V),
    **each("matmul tensordot", use(A, A)),
    "matrix_power": use(A, -3),
    "multi_dot": use([A, B, Normal((2, 3), "float32"), W]),
    "outer": use(V, W),
    "qr": use(TALL).but(then=_product),
    "solve": use(A, B),
    "svd": use(TALL).but(then=lambda r: _of_singular_vectors(*r)),
    "tensorinv": use(A, 1),
    "tensorsolve": use(A, V),
    "vecdot": use(TALL, W),
}


@family.builder
def linear_algebra_of_numpy() -> None:
    """Functions of jax.numpy.linalg."""
    define_functions(
        "jax.numpy.linalg",
        NUMPY_USES,
        ulps={
            "cond": 10,
            "det": 17,
            "eig": 32,
            "eigh": 10,
            "eigvals": 32,
            "lstsq": 7,
            "pinv": 7,
            "svd": 7,
        },
    )


LAX_USES = {
    "cholesky": use(SPD),
    "cholesky_update": use(UPPER, V),
    "eig": use(A, compute_left_eigenvectors=False).but(then=lambda r: _of_eigenvectors(*r)),
    "eigh": use(SPD).but(then=lambda r: _of_eigenvectors(r[1], r[0])),
    "hessenberg": use(A),
    "householder_product": use(TALL, Normal((3,), "float32")),
    "lu": use(A),
    "lu_pivots_to_permutation": use(Values([2, 3, 2], "int32"), 4),
    "ormqr": use(TALL, Normal((3,), "float32"), B),
    "qdwh": use(A, is_hermitian=False),
    "qr": use(TALL, full_matrices=False).but(then=_product),
    "schur": use(A).but(then=lambda r: _of_schur_vectors(*r)),
    "svd": use(TALL, full_matrices=False).but(then=lambda r: _of_singular_vectors(*r)),
    "symmetric_product": use(TALL, SPD, alpha=2.0, beta=3.0, symmetrize_output=True),
    "triangular_solve": use(LOWER, B, left_side=True, lower=True),
    "tridiagonal": use(SPD),
    "tridiagonal_solve": use(V, Values([5.0, 6, 7, 8], "float32"), V, B),
}


@family.builder
def linear_algebra_of_lax() -> None:
    """Functions of jax.lax.linalg."""
    define_functions(
        "jax.lax.linalg",
        LAX_USES,
        ulps={"eig": 32, "eigh": 10, "schur": 32, "svd": 23, "tridiagonal": 16},
    )


SCIPY_USES = {
    **each(
        "cho_factor cholesky det inv sqrtm",
        use(SPD),
    ),
    "block_diag": use(A, B),
    "cho_solve": use((LOWER, True), B),
    **each("circulant companion fiedler fiedler_companion toeplitz", use(UNIT)),
    "convolution_matrix": use(V, 3),
    **each("dft hadamard helmert hilbert invhilbert invpascal pascal", use(4)),
    "eigh": use(SPD).but(then=lambda r: _of_eigenvectors(*r)),
    "eigh_tridiagonal": use(V, W, eigvals_only=True),
    # Of SPD, of a large norm, JAX itself is off by hundreds of ULPs: squarings double the error.
    "expm": use(A),
    "expm_frechet": use(SMALL, A),
    "funm": use(SPD, jnp.tanh, disp=False).but(then=lambda r: r[0]),
    "hankel": use(V, W),
    "hessenberg": use(A),
    "leslie": use(UNIT, Uniform((3,), "float32")),
    "lu": use(A),
    "lu_factor": use(A),
    "lu_solve": use((A, Values([2, 1, 2, 3], "int32")), B),
    "polar": use(A),
    "qr": use(TALL).but(then=_product),
    "qr_multiply": use(TALL, Normal((2, 4), "float32")).but(then=lambda r: jnp.abs(r[0])),
    "rsf2csf": use(BLOCKS, np.eye(4, dtype=np.float32)).but(then=lambda r: _of_schur_vectors(*r)),
    "schur": use(A).but(then=lambda r: _of_schur_vectors(*r)),
    "solve": use(A, B),
    "solve_sylvester": use(A, SPD, SMALL),
    "solve_triangular": use(LOWER, B, lower=True),
    "svd": use(TALL, full_matrices=False).but(then=lambda r: _of_singular_vectors(*r)),
}


@family.builder
def linear_algebra_of_scipy() -> None:
    """Functions of jax.scipy.linalg."""
    define_functions(
        "jax.scipy.linalg",
        SCIPY_USES,
        ulps={
            "det": 17,
            "eigh": 10,
            "expm": 22,
            "funm": 64,
            "invhilbert": 33,
            "invpascal": 17,
            "pascal": 15,
            # OpenBLAS takes other kernels on each processor.
            "qr_multiply": 16,
            "rsf2csf": 32,
            "schur": 32,
            "solve_sylvester": 64,
            "sqrtm": 32,
            "svd": 8,
        },
    )


@family.builder
def iterative_solvers() -> None:
    """The iterative solvers of jax.scipy.sparse.linalg."""
    define_functions(
        "jax.scipy.sparse.linalg",
        {
            name: use(SPD, V, tol=1e-6).but(then=lambda r: r[0])
            for name in ("bicgstab", "cg", "gmres")
        },
    )
