"""Linear algebra for engines that have no ops for it: JAX's factors, in ops that they have."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import assert_near, graph_of, ops_of

LACKING = {
    *("Cholesky", "Lu", "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "Svd"),
    "TridiagonalSolve",
}
SQUARES = [(1, 1), (5, 5), (2, 3, 4, 4)]
SHAPES = [(1, 1), (5, 3), (3, 5), (2, 4, 4), (1, 4), (4, 1)]


def _matrix(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def _positive(shape: tuple[int, ...]) -> np.ndarray:
    a = _matrix(shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=a.dtype)


def _run(function: Any, *args: np.ndarray) -> Any:
    """The function's results from a graph for an engine, which has none of the ops."""
    graph = graph_of(function, "onnx", *args)
    assert not op_types(graph.graph).keys() & LACKING
    return graph(*map(tf.constant, args))


def _assert_same(function: Any, *args: np.ndarray, ulps: float = 16) -> None:
    results = jax.tree.map(np.asarray, tuple(jax.tree.leaves(_run(function, *args))))
    assert_near(results, tuple(jax.tree.leaves(jax.jit(function)(*args))), ulps)


@pytest.mark.parametrize("shape", SQUARES)
def test_cholesky(shape):
    a = _positive(shape)
    # The upper triangle is not looked at.
    _assert_same(lax.linalg.cholesky, a)
    upper = np.triu(np.full(shape, np.nan, np.float32), 1)
    results = _run(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), a + upper)
    assert_near(np.asarray(results), np.asarray(lax.linalg.cholesky(a)))


def test_cholesky_of_what_is_not_positive_is_nan():
    a = np.stack([np.eye(3, dtype=np.float32), np.diag([1.0, -1.0, 1.0]).astype(np.float32)])
    _assert_same(lax.linalg.cholesky, a)


@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
def test_triangular_solve(left_side, lower, transpose_a, unit_diagonal):
    a = _matrix((2, 4, 4)) + 4 * np.eye(4, dtype=np.float32)
    b = _matrix((2, 4, 3) if left_side else (2, 3, 4), seed=1)

    def solved(a, b):
        return lax.linalg.triangular_solve(
            a,
            b,
            left_side=left_side,
            lower=lower,
            transpose_a=transpose_a,
            unit_diagonal=unit_diagonal,
        )

    _assert_same(solved, a, b, ulps=64 if unit_diagonal else 16)


@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape):
    _assert_same(lax.linalg.lu, _matrix(shape))


def test_lu_of_a_singular_matrix():
    _assert_same(lax.linalg.lu, np.array([[0, 1, 2], [0, 0, 1], [0, 3, 4]], np.float32))


def test_lu_pivots_to_permutation():
    pivots = np.array([[2, 3, 2, 3], [0, 1, 2, 4]], np.int32)
    _assert_same(lambda p: lax.linalg.lu_pivots_to_permutation(p, 5), pivots)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, mode):
    _assert_same(lambda a: jnp.linalg.qr(a, mode=mode), _matrix(shape))


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3, 4)])
def test_tridiagonal_solve(shape):
    lower, diagonal, upper = (_matrix(shape, seed=seed) for seed in range(3))
    # A row is exchanged for the next one where that has the larger element.
    lower[..., -1] *= 10
    _assert_same(lax.linalg.tridiagonal_solve, lower, diagonal, upper, _matrix((*shape, 2)))


def test_tridiagonal_solve_of_a_singular_matrix_is_nan():
    bands = np.float32([[0, 1, 1], [0, 0, 2]])
    zeros = np.zeros((2, 3), np.float32)
    diagonal = np.float32([[2, 2, 2], [2, 0, 2]])
    _assert_same(lax.linalg.tridiagonal_solve, zeros, diagonal, zeros, _matrix((2, 3, 1)))
    _assert_same(lax.linalg.tridiagonal_solve, bands, diagonal, zeros, _matrix((2, 3, 1)))
    of_one_row = np.float32([[0], [2]])
    zeros = np.zeros((2, 1), np.float32)
    _assert_same(lax.linalg.tridiagonal_solve, zeros, of_one_row, zeros, _matrix((2, 1, 2)))


@pytest.mark.parametrize(
    "function", [lax.linalg.cholesky, jnp.linalg.qr, jnp.linalg.eigh, lax.linalg.lu, jnp.linalg.svd]
)
def test_an_empty_batch_has_no_loop(function):
    a = np.zeros((0, 3, 3), np.float32)
    _assert_same(function, a)
    assert not ops_of(graph_of(function, "openvino", a)) & {"While", "StatelessWhile"}


@pytest.mark.parametrize("shape", SHAPES)
def test_qr_with_pivots(shape):
    _assert_same(lambda a: lax.linalg.qr(a, pivoting=True, full_matrices=False), _matrix(shape))


def _reflectors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    transposed, taus = map(np.asarray, jnp.linalg.qr(a, mode="raw"))
    return np.swapaxes(transposed, -1, -2), taus


@pytest.mark.parametrize("shape", SHAPES)
def test_reflections(shape):
    a = _matrix(shape)
    _assert_same(lambda a: jnp.linalg.qr(a, mode="raw"), a)
    reflectors, taus = _reflectors(a)
    if shape[-2] >= shape[-1]:
        _assert_same(lax.linalg.householder_product, reflectors, taus)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_reflections_applied(left, transpose):
    reflectors, taus = _reflectors(_matrix((2, 5, 3)))
    c = _matrix((2, 5, 4) if left else (2, 4, 5), seed=1)
    _assert_same(
        lambda a, taus, c: lax.linalg.ormqr(a, taus, c, left=left, transpose=transpose),
        reflectors,
        taus,
        c,
    )


def test_qr_of_columns_that_vanish_or_are_large():
    a = _matrix((4, 4))
    a[:, 1] = 0
    _assert_same(jnp.linalg.qr, a)
    _assert_same(jnp.linalg.qr, _matrix((3, 3)) * np.float32(1e30))


def _assert_unitary(q: np.ndarray) -> None:
    identity = np.broadcast_to(
        np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *q.shape[-1:] * 2)
    )
    assert_near(np.swapaxes(q, -1, -2) @ q, identity)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", SQUARES)
def test_eigh(shape, lower):
    a = _matrix(shape)
    symmetric = a + np.swapaxes(a, -1, -2)
    half = np.tril(symmetric) if lower else np.triu(symmetric)

    def eigh(a):
        return lax.linalg.eigh(a, lower=lower, symmetrize_input=False)

    vectors, values = map(np.asarray, _run(eigh, half))
    assert_near(values, np.asarray(lax.linalg.eigh(symmetric)[1]))
    assert_near(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), symmetric)
    _assert_unitary(vectors)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, (6, 6)])
def test_svd(shape, full_matrices):
    a = _matrix(shape)
    u, s, vh = map(np.asarray, _run(lambda a: jnp.linalg.svd(a, full_matrices), a))
    expected = jnp.linalg.svd(a, full_matrices)
    assert [x.shape for x in (u, s, vh)] == [x.shape for x in expected]
    assert_near(s, np.asarray(expected[1]))
    k = s.shape[-1]
    assert_near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
    _assert_unitary(u)
    _assert_unitary(np.swapaxes(vh, -1, -2))
    _assert_same(lambda a: jnp.linalg.svd(a, compute_uv=False), a)


def test_values_of_larger_matrices():
    """Their rotations are many more, in each of several sweeps."""
    a = _matrix((18, 16))
    _assert_same(lambda a: jnp.linalg.svd(a, compute_uv=False), a, ulps=64)
    _assert_same(jnp.linalg.eigvalsh, a.T @ a, ulps=64)


def test_svd_of_a_matrix_whose_values_are_all_equal():
    a = np.linalg.qr(_matrix((8, 6)))[0]
    u, s, vh = map(np.asarray, _run(lambda a: jnp.linalg.svd(a, full_matrices=False), a))
    assert_near(u * s @ vh, a)
    _assert_unitary(u)


def test_values_that_vanish_are_equal_or_far_apart():
    for a in (np.zeros((3, 3)), np.eye(4), np.ones((4, 3)), np.diag([1e-20, 1.0, 1e15])):
        a = a.astype(np.float32)
        _assert_same(lambda a: jnp.linalg.svd(a, compute_uv=False), a)
        u = np.asarray(_run(jnp.linalg.svd, a)[0])
        _assert_unitary(u)
        if a.shape[0] == a.shape[1]:
            _assert_same(jnp.linalg.eigvalsh, a)


@pytest.mark.parametrize("function", [jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eigvalsh])
def test_of_a_matrix_that_is_not_finite_all_is_nan(function):
    a = np.stack([np.eye(3, dtype=np.float32), np.full((3, 3), np.inf, np.float32)])
    for result in jax.tree.leaves(_run(function, a)):
        assert np.isnan(result[1]).all()
        assert np.isfinite(result[0]).all()


@pytest.mark.parametrize(
    "function",
    [
        jnp.linalg.inv,
        jnp.linalg.det,
        lambda a: jnp.linalg.solve(a, a[..., :2]),
        jnp.linalg.slogdet,
        jax.scipy.linalg.expm,
        jnp.linalg.pinv,
        lambda a: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a @ a.T), a),
    ],
    ids=["inv", "det", "solve", "slogdet", "expm", "pinv", "cho_solve"],
)
def test_what_is_made_of_them(function):
    a = _matrix((4, 4)) + 4 * np.eye(4, dtype=np.float32)
    _assert_same(function, a, ulps=64)


def test_a_batch_of_any_size():
    converted = jax2tf.convert(
        jnp.linalg.cholesky, target="litert", polymorphic_shapes="b, _, _", with_gradient=False
    )
    spec = tf.TensorSpec([None, 3, 3], tf.float32)
    graph = tf.function(converted, autograph=False).get_concrete_function(spec)
    for batch in (1, 4):
        a = _positive((batch, 3, 3))
        assert_near(graph(tf.constant(a)).numpy(), np.asarray(jnp.linalg.cholesky(a)))


def test_a_matrix_of_any_size_is_refused_by_name():
    converted = jax2tf.convert(
        jnp.linalg.cholesky, target="litert", polymorphic_shapes="n, n", with_gradient=False
    )
    spec = tf.TensorSpec([None, None], tf.float32)
    with pytest.raises(
        jax2tf.UnsupportedPrimitiveError, match=r"'litert' takes no (Cholesky|MatrixDiag)"
    ):
        tf.function(converted, autograph=False).get_concrete_function(spec)
