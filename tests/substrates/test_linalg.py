"""Products, diagonals, decompositions, solvers and norms: TensorFlow's results and errors."""

from __future__ import annotations

import numpy as np

from tests.substrates.comparing import Case, assert_as_tensorflow, over

NAN, INF = np.nan, np.inf


def a(tf, dtype="float64"):
    return tf.constant([[[4.0, 1.0], [1.0, 3.0]], [[2.0, -1.0], [-1.0, 2.0]]], dtype)


def b(tf, dtype="float64"):
    return tf.constant([[[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]]] * 2, dtype)


def m(tf):
    return tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


CASES = [
    Case(
        "matmul",
        lambda tf: [
            tf.matmul(a(tf), b(tf)),
            tf.matmul(a(tf), b(tf)[0]),
            tf.matmul(m(tf), m(tf), transpose_b=True),
            tf.matmul([[1, 2]], [[3], [4]]),
            tf.matmul(tf.constant([[1j]]), tf.constant([[2j]]), adjoint_a=True),
        ],
    ),
    Case("matmul of vectors", lambda tf: tf.matmul([1.0], [1.0])),
    Case("matmul of shapes that do not fit", lambda tf: tf.matmul(m(tf), m(tf))),
    Case("matmul of two dtypes", lambda tf: tf.matmul(m(tf), a(tf))),
    Case(
        "matmul transposed and adjoined",
        lambda tf: tf.matmul(m(tf), m(tf), transpose_a=True, adjoint_a=True),
    ),
    Case(
        "matvec",
        lambda tf: [
            tf.linalg.matvec(a(tf), tf.constant([1.0, 2.0], tf.float64)),
            tf.linalg.matvec(m(tf), [1.0, 2.0], transpose_a=True),
        ],
    ),
    Case(
        "einsum",
        lambda tf: [
            tf.einsum("bij,bjk->bik", a(tf), b(tf)),
            tf.einsum("ii", a(tf)[0]),
            tf.einsum("...ij->...ji", a(tf)),
        ],
    ),
    Case(
        "tensordot",
        lambda tf: [
            tf.tensordot(m(tf), m(tf), [[1], [1]]),
            tf.tensordot(m(tf), tf.transpose(m(tf)), 1),
        ],
    ),
    Case(
        "transposes",
        lambda tf: [tf.linalg.matrix_transpose(a(tf)), tf.linalg.adjoint(tf.constant([[1j, 2.0]]))],
    ),
    Case("matrix_transpose of a vector", lambda tf: tf.linalg.matrix_transpose(tf.constant([1.0]))),
    Case(
        "trace and cross",
        lambda tf: [tf.linalg.trace(a(tf)), tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])],
    ),
    Case(
        "diag",
        lambda tf: [
            tf.linalg.diag([1.0, 2.0]),
            tf.linalg.diag([[1.0, 2.0]], k=1),
            tf.linalg.diag([[1.0, 2.0], [3.0, 4.0]], k=(-1, 0)),
            tf.linalg.diag([1.0, 2.0], num_rows=2, num_cols=4, padding_value=9.0),
            tf.linalg.diag([[0.0, 8.0, 9.0], [1.0, 2.0, 3.0], [4.0, 5.0, 0.0]], k=(-1, 1)),
        ],
    ),
    Case("diag of wrong rows", lambda tf: tf.linalg.diag([1.0, 2.0], num_rows=3, num_cols=4)),
    Case(
        "diag_part",
        lambda tf: [
            tf.linalg.diag_part(m(tf)),
            tf.linalg.diag_part(m(tf), k=1),
            tf.linalg.diag_part(m(tf), k=(-1, 1)),
            tf.linalg.diag_part(m(tf), k=(-1, 2), align="LEFT_RIGHT", padding_value=7.0),
        ],
    ),
    Case(
        "diagonals of bools",
        lambda tf: [
            tf.linalg.diag(tf.constant([True, False])),
            tf.linalg.diag([True, True], padding_value=True),
            tf.linalg.diag_part(tf.constant([[True, False], [True, True]]), k=(0, 1)),
        ],
    ),
    Case("diagonal of a list of bools", lambda tf: tf.linalg.diag([True, False])),
    Case("diag_part outside", lambda tf: tf.linalg.diag_part(m(tf), k=7)),
    Case(
        "set_diag",
        lambda tf: [
            tf.linalg.set_diag(m(tf), [9.0, 8.0]),
            tf.linalg.set_diag(m(tf), [9.0, 7.0], k=1),
            tf.linalg.set_diag(a(tf, "float32")[0], [[9.0, 7.0], [8.0, 6.0]], k=(0, 1)),
        ],
    ),
    Case("set_diag of another length", lambda tf: tf.linalg.set_diag(m(tf), [9.0])),
    Case(
        "band_part",
        lambda tf: [
            tf.linalg.band_part(m(tf), x, y) for x, y in ((0, -1), (-1, 0), (1, 0), (0, 0))
        ],
    ),
    Case(
        "tensor_diag",
        lambda tf: [
            tf.linalg.tensor_diag([1.0, 2.0]),
            tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(m(tf))),
        ],
    ),
    Case(
        "cholesky",
        lambda tf: [
            tf.linalg.cholesky(a(tf)),
            tf.linalg.cholesky_solve(tf.linalg.cholesky(a(tf)), b(tf)),
        ],
        atol=1e-15,
    ),
    Case(
        "cholesky of complex",
        lambda tf: tf.linalg.cholesky(tf.constant(np.array([[2.0, 1j], [-1j, 2.0]]))),
    ),
    Case("cholesky of no square", lambda tf: tf.linalg.cholesky(m(tf))),
    Case("cholesky of ints", lambda tf: tf.linalg.cholesky([[1]])),
    Case(
        "qr",
        lambda tf: (
            [tf.abs(p) for p in tf.linalg.qr(b(tf))]
            + [tf.abs(p) for p in tf.linalg.qr(tf.transpose(m(tf)), full_matrices=True)][1:]
        ),
        atol=1e-6,
    ),
    Case(
        "svd",
        lambda tf: [
            tf.linalg.svd(b(tf), compute_uv=False),
            tf.linalg.svd(m(tf))[0],
            (lambda s, u, v: tf.matmul(u * s[..., None, :], v, adjoint_b=True))(
                *tf.linalg.svd(b(tf))
            ),
        ],
        rtol=1e-5,
        atol=1e-12,
    ),
    Case(
        "eigh",
        lambda tf: [
            tf.linalg.eigh(a(tf))[0],
            tf.linalg.eigvalsh(a(tf)),
            tf.abs(tf.linalg.eigh(a(tf))[1]),
        ],
    ),
    Case(
        "inv, solve, det",
        lambda tf: [
            tf.linalg.inv(a(tf)),
            tf.linalg.inv(a(tf), adjoint=True),
            tf.linalg.solve(a(tf), b(tf)),
            tf.linalg.det(a(tf)),
            *tf.linalg.slogdet(-a(tf)),
            tf.linalg.logdet(a(tf)),
        ],
    ),
    Case(
        "inv of a singular matrix",
        lambda tf: tf.linalg.inv([[1.0, 1.0], [1.0, 1.0]]),
        only=("numpy",),
    ),
    Case(
        "solve with a singular matrix",
        lambda tf: tf.linalg.solve([[1.0, 1.0], [1.0, 1.0]], [[1.0], [1.0]]),
        only=("numpy",),
    ),
    Case(
        "triangular_solve",
        lambda tf: [
            tf.linalg.triangular_solve(a(tf), b(tf), lower=low, adjoint=adj)
            for low in (True, False)
            for adj in (True, False)
        ],
    ),
    Case(
        "norm",
        lambda tf: [
            tf.norm(m(tf)),
            tf.norm(m(tf), ord=1),
            tf.norm(m(tf), ord=np.inf),
            tf.norm(m(tf), ord="fro", axis=[0, 1]),
            tf.norm(m(tf), ord=2, axis=(0, 1)),
            tf.norm(m(tf), ord=1, axis=(0, 1)),
            tf.norm(m(tf), ord=3, axis=0, keepdims=True),
            tf.norm(m(tf), ord=np.inf, axis=(-2, -1), keepdims=True),
            tf.norm(m(tf), ord=2, axis=1),
        ],
        rtol=1e-5,
    ),
    Case(
        "norms and eigenvalues of complex matrices",
        lambda tf: [
            tf.norm(tf.constant([3 + 4j, 1j])),
            tf.norm(tf.constant([3 + 4j, 1j]), ord=2, axis=0, keepdims=True),
            tf.norm(tf.constant([3 + 4j, 1j]), ord=1),
            tf.norm(tf.constant([[3 + 4j, 1j]]), ord="fro", axis=[0, 1]),
            tf.linalg.eigvalsh(tf.constant([[2 + 0j, 1j], [-1j, 2]])),
            tf.linalg.eigh(tf.constant([[2 + 0j, 1j], [-1j, 2]]))[0],
        ],
    ),
    Case("norm of ints", lambda tf: tf.norm(tf.constant([1, 2]))),
    Case("norm of no such order", lambda tf: tf.norm(m(tf), ord="max")),
    Case(
        "l2_normalize",
        lambda tf: [
            tf.math.l2_normalize([3.0, 4.0]),
            tf.math.l2_normalize([0.0, 0.0]),
            tf.math.l2_normalize(m(tf), axis=1),
        ],
    ),
    Case("global_norm", lambda tf: tf.linalg.global_norm([m(tf), None, m(tf)])),
    Case("matmul operator", lambda tf: m(tf) @ tf.transpose(m(tf))),
]


@over(CASES)
def test_linalg(case, substrate):
    assert_as_tensorflow(case, substrate)
