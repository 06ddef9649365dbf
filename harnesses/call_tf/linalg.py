"""tf.linalg."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import ask, normal

_ULPS = {"float32": 512, "float64": 512, "complex64": 512}
_SQUARE = normal((2, 3, 3))
_TALL = normal((4, 3))
_RHS = normal((3, 3), (3, 2))
_INEXACT = ("float32", "float64", "complex64")


def _positive(x):
    return x @ tf.linalg.adjoint(x) + 3 * tf.eye(x.shape[-1], dtype=x.dtype)


def _regular(x):
    return x + 4 * tf.eye(x.shape[-1], dtype=x.dtype)


def _product(u, values, v):
    """U diag(values) V^H: vectors alone are right with any sign."""
    return tf.linalg.matmul(u * tf.cast(values, u.dtype)[..., None, :], v, adjoint_b=True)


def _by_eigenvectors(x):
    values, vectors = tf.linalg.eigh(_positive(x))
    return _product(vectors, values, vectors)


def _by_singular_vectors(x):
    values, u, v = tf.linalg.svd(_regular(x))
    return _product(u, values, v)


def _by_eigenvectors_of_any(x):
    values, vectors = tf.linalg.eig(_regular(x))
    return vectors @ tf.linalg.diag(values) @ tf.linalg.inv(vectors)


_OF_A_MATRIX = {
    "adjoint": tf.linalg.adjoint,
    "band_part": lambda x: tf.linalg.band_part(x, 1, 0),
    "cholesky": lambda x: tf.linalg.cholesky(_positive(x)),
    "det": lambda x: tf.linalg.det(_regular(x)),
    "diag": tf.linalg.diag,
    "diag_part": tf.linalg.diag_part,
    "eigh": _by_eigenvectors,
    "eigvalsh": lambda x: tf.linalg.eigvalsh(_positive(x)),
    "expm": lambda x: tf.linalg.expm(x),
    "inv": lambda x: tf.linalg.inv(_regular(x)),
    "logdet": lambda x: tf.linalg.logdet(_positive(x)),
    "logm": lambda x: tf.linalg.logm(tf.cast(_positive(x), tf.complex64)),
    "lu": lambda x: tf.linalg.lu(_regular(x)),
    "matrix_transpose": tf.linalg.matrix_transpose,
    "normalize": tf.linalg.normalize,
    "pinv": lambda x: tf.linalg.pinv(_regular(x)),
    "qr": lambda x: tf.linalg.qr(_regular(x)),
    "set_diag": lambda x: tf.linalg.set_diag(x, x[..., 0]),
    "slogdet": lambda x: tf.linalg.slogdet(_regular(x)),
    "sqrtm": lambda x: tf.linalg.sqrtm(_positive(x)),
    "svd": _by_singular_vectors,
    "tensor_diag": lambda x: tf.linalg.tensor_diag(x[0, 0]),
    "tensor_diag_part": lambda x: tf.linalg.tensor_diag_part(x[0]),
    "trace": tf.linalg.trace,
    "norm": tf.linalg.norm,
    "global_norm": lambda x: tf.linalg.global_norm([x, x]),
    "matrix_rank": lambda x: tf.linalg.matrix_rank(_regular(x)),
    "eig": _by_eigenvectors_of_any,
    "eigvals": lambda x: tf.linalg.eigvals(_regular(x)),
}


@family.builder
def functions_of_a_matrix() -> None:
    """Functions of a batch of square matrices."""
    float32_alone = ("logdet", "global_norm", "matrix_rank", "pinv", "logm", "normalize", "sqrtm",
                     "eig", "eigvals")  # fmt: skip
    for name, function in _OF_A_MATRIX.items():
        dtypes = ("float32",) if name in float32_alone else _INEXACT
        tags = ("not_grad", "not_jvp") if name == "matrix_rank" else ()
        ask(f"tf.linalg.{name}", function, _SQUARE, dtypes=dtypes, ulps=_ULPS, tags=tags)
    ask("tf.linalg.svd", lambda x: tf.linalg.svd(_regular(x), compute_uv=False), _SQUARE,
        case="values", dtypes=_INEXACT, ulps=_ULPS)  # fmt: skip


_OF_TWO_MATRICES = {
    "matmul": tf.linalg.matmul,
    "solve": lambda a, b: tf.linalg.solve(_regular(a), b),
    "triangular_solve": lambda a, b: tf.linalg.triangular_solve(_regular(a), b),
    "cholesky_solve": lambda a, b: tf.linalg.cholesky_solve(_regular(a), b),
    "lstsq": lambda a, b: tf.linalg.lstsq(_regular(a), b),
    "matvec": lambda a, b: tf.linalg.matvec(a, b[:, 0]),
    "lu_solve": lambda a, b: tf.linalg.lu_solve(*tf.linalg.lu(_regular(a)), b),
}


@family.builder
def functions_of_two_matrices() -> None:
    """Products and solutions."""
    for name, function in _OF_TWO_MATRICES.items():
        dtypes = ("float32",) if name == "lstsq" else _INEXACT
        ask(f"tf.linalg.{name}", function, _RHS, dtypes=dtypes, ulps=_ULPS)
    ask("tf.linalg.cross", tf.linalg.cross, normal((4, 3), (4, 3)))
    ask("tf.linalg.einsum", lambda x: tf.linalg.einsum("ij,ik->jk", x, x), _TALL)


@family.builder
def structured_matrices() -> None:
    """Tridiagonal matrices, and linear operators."""
    ask("tf.linalg.tridiagonal_matmul", lambda d, x: tf.linalg.tridiagonal_matmul(d, x),
        normal((3, 4), (4, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.linalg.tridiagonal_solve", lambda d, x: tf.linalg.tridiagonal_solve(
        d + tf.constant([[0.0], [6.0], [0.0]]), x, partial_pivoting=False),
        normal((3, 4), (4, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.linalg.LinearOperatorDiag", lambda d, x: tf.linalg.LinearOperatorDiag(d[0]).matmul(x),
        normal((3, 4), (4, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.linalg.LinearOperatorToeplitz",
        lambda d, x: tf.linalg.LinearOperatorToeplitz(d[0], d[0]).matmul(x),
        normal((3, 4), (4, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.linalg.LinearOperatorKronecker",
        lambda d, x: tf.linalg.LinearOperatorKronecker(
            [tf.linalg.LinearOperatorFullMatrix(d[:2, :2])] * 2).matmul(x),
        normal((3, 4), (4, 2)), ulps=_ULPS)  # fmt: skip
