"""tf.linalg: products, diagonals, decompositions, solvers, norms, and linear operators.

Decompositions that are right in more than one way are asked for what they determine.
"""

from typing import Any

from harnesses.substrates import family
from harnesses.substrates.asking import (
    FLOAT64,
    FLOATS,
    KINDS,
    NO_DERIVATIVES,
    SHAPE,
    WIDE,
    ask,
    ask_raises,
    call,
    normal,
)

# Rounding errors grow with the condition of a matrix.
LOOSE = {"float32": 512, "float64": 512, "complex64": 1024, "complex128": 1024}
SQUARE = normal((3, 3))
BATCH = normal((2, 3, 3))
PRODUCTS = (*FLOATS, "complex64", "complex128", "int32", "int64")


def definite(tf: Any, x: Any) -> Any:
    """A positive definite matrix of a square one."""
    size = x.shape[-1]
    return tf.matmul(x, x, adjoint_b=True) + size * tf.eye(size, dtype=x.dtype)


def regular(tf: Any, x: Any) -> Any:
    """A matrix far from a singular one."""
    return x + 4 * tf.eye(x.shape[-1], dtype=x.dtype)


@family.builder
def matrix_products() -> None:
    """Products of matrices, and of matrices and vectors."""
    ask("linalg.matmul", normal((2, 3, 4), (4, 2)), dtypes=PRODUCTS)
    for a, b in ((True, False), (False, True), (True, True)):
        ask("linalg.matmul", normal((3, 3), (3, 3)), case=f"adjoint{a:d}{b:d}", adjoint_a=a,
            adjoint_b=b, dtypes=("float32", "complex64"))  # fmt: skip
        ask("linalg.matmul", normal((3, 3), (3, 3)), case=f"transpose{a:d}{b:d}", transpose_a=a,
            transpose_b=b, dtypes=("float32", "complex64"))  # fmt: skip
    ask("linalg.matvec", normal((2, 3, 4), (4,)), dtypes=PRODUCTS)
    ask("linalg.matvec", normal(SHAPE, (3,)), case="adjoint", adjoint_a=True, dtypes=WIDE)


@family.builder
def einsums() -> None:
    """Sums of products that an equation names."""
    for name, equation, shapes in (
        ("product", "ij,jk->ik", ((3, 4), (4, 2))),
        ("batch", "bij,bjk->bik", ((2, 3, 4), (2, 4, 2))),
        ("ellipsis", "...ij,...j->...i", ((2, 3, 4), (4,))),
        ("sum", "ij->i", ((3, 4),)),
        ("transpose", "ij->ji", ((3, 4),)),
    ):
        ask("linalg.einsum", normal(*shapes), lambda tf, *x, e=equation: tf.einsum(e, *x),
            case=name, dtypes=WIDE)  # fmt: skip
    ask(
        "linalg.einsum",
        SQUARE,
        lambda tf, x: tf.einsum("ii->i", x),
        case="diagonal",
        dtypes=FLOAT64,
    )


@family.builder
def contractions_and_transposes() -> None:
    """Tensor, cross and tridiagonal products, traces and transposes."""
    ask("linalg.tensordot", normal((2, 3, 4), (4, 3)), axes=[[1, 2], [1, 0]], dtypes=WIDE)
    ask("linalg.tensordot", normal(SHAPE, (4, 2)), case="number", axes=1, dtypes=FLOAT64)
    ask("linalg.cross", normal((2, 3), (2, 3)), dtypes=FLOAT64)
    ask("linalg.trace", BATCH, dtypes=WIDE)
    ask("linalg.matrix_transpose", normal((2, 3, 4)), dtypes=KINDS)
    ask("linalg.adjoint", normal((2, 3, 4)), dtypes=WIDE)
    ask("linalg.tridiagonal_matmul", normal((3, 3), (3, 2)),
        call("linalg.tridiagonal_matmul", diagonals_format="compact"), dtypes=WIDE)  # fmt: skip


@family.builder
def diagonals_and_bands() -> None:
    """Matrices of diagonals, diagonals of matrices, and bands."""
    ask("linalg.diag", normal((2, 3)), dtypes=KINDS)
    ask("linalg.diag", normal((2, 3)), case="above", k=1, dtypes=FLOAT64)
    ask("linalg.diag", normal((2, 3)), case="band", k=(-1, 0), dtypes=FLOAT64)
    ask("linalg.diag_part", SQUARE, dtypes=KINDS)
    ask("linalg.diag_part", normal(SHAPE), case="band", k=(-1, 1), dtypes=FLOAT64)
    ask(
        "linalg.diag_part",
        normal(SHAPE),
        case="left",
        k=(-1, 2),
        align="LEFT_RIGHT",
        dtypes=FLOAT64,
    )
    ask("linalg.set_diag", normal((3, 3), (3,)), dtypes=KINDS)
    ask("linalg.set_diag", normal((3, 3), (2,)), case="above", k=1, dtypes=FLOAT64)
    ask("linalg.tensor_diag", normal((3,)), dtypes=WIDE)
    ask("linalg.tensor_diag_part", SQUARE, dtypes=WIDE)
    for lower, upper in ((0, -1), (-1, 0), (1, 0)):
        ask("linalg.band_part", normal((3, 4)), case=f"{lower}_{upper}", num_lower=lower,
            num_upper=upper, dtypes=FLOAT64)  # fmt: skip
    ask("linalg.eye", [], call("linalg.eye", 3, 4))


@family.builder
def inverses_and_determinants() -> None:
    """Cholesky factors, inverses and determinants."""
    ask("linalg.cholesky", BATCH, lambda tf, x: tf.linalg.cholesky(definite(tf, x)), dtypes=WIDE,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.cholesky_solve", normal((3, 3), (3, 2)),
        lambda tf, x, y: tf.linalg.cholesky_solve(regular(tf, tf.linalg.band_part(x, -1, 0)), y),
        dtypes=WIDE, ulps=LOOSE)  # fmt: skip
    for op in ("linalg.inv", "linalg.det", "linalg.slogdet", "linalg.pinv"):
        ask(op, BATCH, lambda tf, x, op=op: call(op)(tf, regular(tf, x)), dtypes=WIDE
            if op != "linalg.pinv" else FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("linalg.logdet", BATCH, lambda tf, x: tf.linalg.logdet(definite(tf, x)), dtypes=WIDE,
        ulps=LOOSE)  # fmt: skip


@family.builder
def linear_equations() -> None:
    """Linear equations: dense, triangular, tridiagonal, and least squares."""
    for adjoint in (False, True):
        case = "adjoint" if adjoint else ""
        ask("linalg.solve", normal((3, 3), (3, 2)),
            lambda tf, x, y, a=adjoint: tf.linalg.solve(regular(tf, x), y, adjoint=a),
            case=case, dtypes=WIDE, ulps=LOOSE)  # fmt: skip
        for lower in (True, False):
            ask("linalg.triangular_solve", normal((3, 3), (3, 2)),
                lambda tf, x, y, a=adjoint, low=lower:
                    tf.linalg.triangular_solve(regular(tf, x), y, lower=low, adjoint=a),
                case=f"lower{lower:d}{case}", dtypes=WIDE, ulps=LOOSE)  # fmt: skip
    ask("linalg.lstsq", normal((4, 3), (4, 2)), lambda tf, x, y: tf.linalg.lstsq(x, y, fast=True),
        dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("linalg.lstsq", normal((4, 3), (4, 2)),
        lambda tf, x, y: tf.linalg.lstsq(x, y, l2_regularizer=0.5), case="ridge", dtypes=FLOAT64,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.tridiagonal_solve", normal((3, 4), (4, 2)),
        lambda tf, x, y: tf.linalg.tridiagonal_solve(
            x + tf.constant([[0.0], [5.0], [0.0]], x.dtype), y, partial_pivoting=False),
        dtypes=WIDE, ulps=LOOSE)  # fmt: skip


@family.builder
def decompositions() -> None:
    """LU, eigenvalues, singular values and QR."""
    ask("linalg.lu", SQUARE, lambda tf, x: tf.linalg.lu(regular(tf, x)), dtypes=WIDE, ulps=LOOSE)
    ask("linalg.eigh", SQUARE, lambda tf, x: tf.linalg.eigh(definite(tf, x))[0], dtypes=WIDE,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.eigh", SQUARE, lambda tf, x: (lambda w, v: tf.matmul(v * tf.exp(-w)[None], v,
        adjoint_b=True))(*tf.linalg.eigh(definite(tf, x))), case="function", dtypes=FLOAT64,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.eigvalsh", SQUARE, lambda tf, x: tf.linalg.eigvalsh(definite(tf, x)), dtypes=WIDE,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.svd", normal((4, 3)), compute_uv=False, case="values", dtypes=WIDE, ulps=LOOSE)
    ask("linalg.svd", normal((4, 3)), lambda tf, x: (lambda s, u, v: tf.matmul(
        u * s[None], v, adjoint_b=True))(*tf.linalg.svd(x)), case="product", dtypes=FLOAT64,
        ulps=LOOSE)  # fmt: skip
    ask("linalg.qr", normal((4, 3)), lambda tf, x: tf.matmul(*tf.linalg.qr(x)), case="product",
        dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip
    ask("linalg.qr", normal((4, 3)), lambda tf, x: tf.abs(tf.linalg.qr(x)[1]), case="size",
        dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip


@family.builder
def norms() -> None:
    """Norms of vectors and of matrices."""
    for case, options in {
        "": {},
        "one": {"ord": 1, "axis": 1},
        "two": {"ord": 2, "axis": 0, "keepdims": True},
        "inf": {"ord": float("inf"), "axis": -1},
        "three": {"ord": 3, "axis": 1},
        "fro": {"ord": "fro", "axis": (0, 1)},
        "one_of_matrix": {"ord": 1, "axis": (0, 1)},
    }.items():
        ask(
            "linalg.norm", normal(SHAPE), case=case, dtypes=WIDE if not case else FLOAT64, **options
        )
    ask("linalg.l2_normalize", normal(SHAPE), axis=1, dtypes=FLOAT64)


_OPERATORS = {
    "FullMatrix": ((3, 3), lambda tf, x: tf.linalg.LinearOperatorFullMatrix(regular(tf, x))),
    "LowerTriangular": (
        (3, 3),
        lambda tf, x: tf.linalg.LinearOperatorLowerTriangular(regular(tf, x)),
    ),
    "Diag": ((3,), lambda tf, x: tf.linalg.LinearOperatorDiag(x + 4)),
    "Identity": ((3,), lambda tf, x: tf.linalg.LinearOperatorIdentity(3, dtype=x.dtype)),
    "Householder": ((3,), lambda tf, x: tf.linalg.LinearOperatorHouseholder(x)),
    "ScaledIdentity": ((3,), lambda tf, x: tf.linalg.LinearOperatorScaledIdentity(3, x[0] + 4)),
    "Adjoint": (
        (3, 3),
        lambda tf, x: tf.linalg.LinearOperatorAdjoint(
            tf.linalg.LinearOperatorFullMatrix(regular(tf, x))
        ),
    ),
    "Inversion": (
        (3, 3),
        lambda tf, x: tf.linalg.LinearOperatorInversion(
            tf.linalg.LinearOperatorFullMatrix(regular(tf, x))
        ),
    ),
    "Composition": (
        (3, 3),
        lambda tf, x: tf.linalg.LinearOperatorComposition(
            [
                tf.linalg.LinearOperatorFullMatrix(regular(tf, x)),
                tf.linalg.LinearOperatorDiag(x[0] + 4),
            ]
        ),
    ),
    "Kronecker": (
        (2, 2),
        lambda tf, x: tf.linalg.LinearOperatorKronecker(
            [
                tf.linalg.LinearOperatorFullMatrix(regular(tf, x)),
                tf.linalg.LinearOperatorDiag(x[0] + 4),
            ]
        ),
    ),
    "BlockDiag": (
        (2, 2),
        lambda tf, x: tf.linalg.LinearOperatorBlockDiag(
            [
                tf.linalg.LinearOperatorFullMatrix(regular(tf, x)),
                tf.linalg.LinearOperatorDiag(x[0] + 4),
            ]
        ),
    ),
    "BlockLowerTriangular": (
        (2, 2),
        lambda tf, x: tf.linalg.LinearOperatorBlockLowerTriangular(
            [
                [tf.linalg.LinearOperatorFullMatrix(regular(tf, x))],
                [
                    tf.linalg.LinearOperatorFullMatrix(x),
                    tf.linalg.LinearOperatorDiag(x[0] + 4),
                ],
            ]
        ),
    ),
    "LowRankUpdate": (
        (3, 1),
        lambda tf, x: tf.linalg.LinearOperatorLowRankUpdate(
            tf.linalg.LinearOperatorDiag(x[:, 0] * x[:, 0] + 4, is_positive_definite=True), u=x
        ),
    ),
}
_METHODS = {
    "to_dense": lambda tf, o, y: o.to_dense(),
    "matmul": lambda tf, o, y: o.matmul(y),
    "solve": lambda tf, o, y: o.solve(y),
    "log_abs_determinant": lambda tf, o, y: o.log_abs_determinant(),
    "diag_part": lambda tf, o, y: o.diag_part(),
    "trace": lambda tf, o, y: o.trace(),
}


@family.builder
def linear_operators() -> None:
    """What linear operators do, one operator of each kind."""
    for name, (shape, made) in _OPERATORS.items():
        rows = {"Kronecker": 4, "BlockDiag": 4, "BlockLowerTriangular": 4}.get(name, 3)
        for method, called in _METHODS.items():
            if name == "Identity" and method not in ("matmul", "solve"):
                continue  # what depends on no operand
            ask(f"linalg.LinearOperator{name}", normal(shape, (rows, 2)),
                lambda tf, x, y, made=made, called=called: called(tf, made(tf, x), y),
                case=method, dtypes=FLOAT64, ulps=LOOSE)  # fmt: skip


_REFUSED = (
    ("linalg.matmul", "shapes", lambda tf: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))),
    ("linalg.matmul", "vectors", lambda tf: tf.matmul(tf.ones([2]), tf.ones([2]))),
    ("linalg.matmul", "dtypes",
     lambda tf: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.float64))),
    ("linalg.matmul", "both_transposed",
     lambda tf: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), transpose_a=True, adjoint_a=True)),
    ("linalg.matrix_transpose", "vector", lambda tf: tf.linalg.matrix_transpose(tf.ones([2]))),
    ("linalg.einsum", "equation", lambda tf: tf.einsum("ij,jk->ik", tf.ones([2, 3]))),
    ("linalg.einsum", "sizes", lambda tf: tf.einsum("i,i->i", tf.ones([2]), tf.ones([3]))),
    ("linalg.cholesky", "no_square", lambda tf: tf.linalg.cholesky(tf.ones([2, 3]))),
    ("linalg.cholesky", "integers", lambda tf: tf.linalg.cholesky(tf.constant([[1]]))),
    ("linalg.inv", "no_square", lambda tf: tf.linalg.inv(tf.ones([2, 3]))),
    ("linalg.solve", "shapes", lambda tf: tf.linalg.solve(tf.ones([2, 2]), tf.ones([3, 1]))),
    ("linalg.norm", "order", lambda tf: tf.norm(tf.ones([2, 2]), ord="max")),
    ("linalg.diag_part", "outside", lambda tf: tf.linalg.diag_part(tf.ones([2, 2]), k=7)),
    ("linalg.set_diag", "length", lambda tf: tf.linalg.set_diag(tf.ones([2, 2]), [1.0])),
    ("linalg.cross", "length", lambda tf: tf.linalg.cross(tf.ones([2]), tf.ones([2]))),
    ("linalg.det", "no_square", lambda tf: tf.linalg.det(tf.ones([2, 3]))),
)  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with shapes, dtypes or options that do not fit."""
    for op, case, program in _REFUSED:
        ask_raises(op, case, program)


@family.builder
def normalized_tensors() -> None:
    """Tensors divided by their norms."""
    for case, options in {
        "": {},
        "of_rows": {"axis": 1},
        "of_ones": {"ord": 1, "axis": 0},
        "of_matrices": {"ord": "fro", "axis": [-2, -1]},
    }.items():
        ask("linalg.normalize", normal(SHAPE), case=case, dtypes=FLOAT64, **options)


def _factors(tf: Any, x: Any) -> tuple:
    lu, p = tf.linalg.lu(regular(tf, x))
    return tf.stop_gradient(lu), p


@family.builder
def functions_of_matrices() -> None:
    """Exponentials, ranks, and systems of which the factors are known."""
    ask("linalg.expm", BATCH, dtypes=WIDE, ulps=LOOSE)
    ask("linalg.expm", SQUARE, lambda tf, x: tf.linalg.expm(x * 8), case="scaled", dtypes=WIDE,
        ulps={dtype: 16 * ulps for dtype, ulps in LOOSE.items()})  # fmt: skip
    ask("linalg.matrix_rank", normal((2, 3, 4)), dtypes=FLOAT64, tags=NO_DERIVATIVES)
    ask("linalg.matrix_rank", normal((3, 1), (1, 3)),
        lambda tf, a, b: tf.linalg.matrix_rank(a @ b), case="one", dtypes=FLOAT64,
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("linalg.matrix_rank", BATCH, case="limit", tol=1.0, dtypes=FLOAT64, tags=NO_DERIVATIVES)
    ask("linalg.lu_solve", normal((2, 3, 3), (2, 3, 2)),
        lambda tf, x, b: tf.linalg.lu_solve(*_factors(tf, x), b), dtypes=WIDE,
        ulps=LOOSE)  # fmt: skip
    for op in ("lu_matrix_inverse", "lu_reconstruct"):
        ask(f"linalg.{op}", BATCH,
            lambda tf, x, op=op: getattr(tf.linalg, op)(*_factors(tf, x)), dtypes=WIDE, ulps=LOOSE,
            tags=NO_DERIVATIVES)  # fmt: skip
    ask_raises("linalg.expm", "square", lambda tf: tf.linalg.expm(tf.ones([2, 3])))
    ask_raises("linalg.lu_solve", "rows", lambda tf: tf.linalg.lu_solve(
        tf.eye(3), tf.constant([0, 1, 2]), tf.ones([2, 1])))  # fmt: skip


def _entries(tf, values, shape=(3, 4)):
    """A sparse tensor with three elements."""
    return tf.SparseTensor([[0, 1], [1, 2], [2, 0]], values, shape)


@family.builder
def sparse_and_partial_tensors() -> None:
    """Sparse tensors, made dense, and rows of a tensor."""
    three = normal((3,))
    ask("sparse.sparse_dense_matmul", normal((3,), (4, 2)),
        lambda tf, v, b: tf.sparse.sparse_dense_matmul(_entries(tf, v), b),
        dtypes=(*WIDE, "bfloat16", "int32"))  # fmt: skip
    ask("sparse.sparse_dense_matmul", normal((3,), (2, 3)),
        lambda tf, v, b: tf.sparse.sparse_dense_matmul(
            _entries(tf, v), b, adjoint_a=True, adjoint_b=True),
        case="adjoint", dtypes=WIDE)  # fmt: skip
    ask("sparse.sparse_dense_matmul", normal((3,), (2, 3)),
        lambda tf, v, b: tf.sparse.sparse_dense_matmul(b, _entries(tf, v)),
        case="second", dtypes=WIDE)  # fmt: skip
    ask("sparse.reshape", three,
        lambda tf, v: tf.sparse.to_dense(tf.sparse.reshape(_entries(tf, v), [2, -1])),
        dtypes=KINDS)  # fmt: skip
    ask("sparse.slice", three,
        lambda tf, v: tf.sparse.to_dense(tf.sparse.slice(_entries(tf, v), [0, 1], [3, 2])),
        dtypes=KINDS)  # fmt: skip
    ask("IndexedSlices", normal((3, 2)),
        lambda tf, v: tf.convert_to_tensor(tf.IndexedSlices(v, tf.constant([0, 2, 0]), [4, 2])),
        dtypes=(*WIDE, "bfloat16", "int32"))  # fmt: skip
