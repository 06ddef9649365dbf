"""Linear algebra of matrices whose sizes are symbolic."""

from __future__ import annotations

import functools
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from jax2tf._src.lowering.emit.linalg import reflections
from jax2tf._src.lowering.emit.linalg import schur as schur_decomposition
from tests.running import LOWERINGS, check, each_lowering, each_mode, of_every_size

SHAPES = ((1, 2, 3), (2, 3, 3), (2, 4, 2), (2, 1, 1))
# XLA compiles a program of its own for each shape, 2 to 20 s each: a wide one and a tall one.
COMPILED_SHAPES = SHAPES[::2]
# XLA compiles their loops in the other modes of this lowering too: a large one and one of size 1.
HAVE_COMPILED_LOOPS = {"residual_of_eig", "schur"}


def positive(x):
    return x @ x.mT + 3 * jnp.eye(x.shape[-2])


def singular_values(x):
    return jnp.linalg.svd(x, compute_uv=False)


def product_of_svd(x):
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return (u * s[..., None, :]) @ vh, s


def full_svd(x):
    # Among vectors that belong to no singular value any basis does.
    u, s, vh = jnp.linalg.svd(x)
    return u @ u.mT.conj(), s, vh @ vh.mT.conj()


def full_pivoted_qr(x):
    q, r, columns = jax.scipy.linalg.qr(x, pivoting=True)
    return q @ r, q @ q.mT, columns


def pivoted_qr(x):
    return jax.scipy.linalg.qr(x, pivoting=True, mode="economic")


def residual_of_eig(x):
    values, vectors = jnp.linalg.eig(positive(x))
    residual = jnp.abs(positive(x) @ vectors - vectors * values[..., None, :])
    return residual, jnp.sort(values.real)


def schur(x):
    t, z = jax.vmap(jax.scipy.linalg.schur)(positive(x))
    return z @ t @ z.mT, z @ z.mT


def tridiagonal_solve(x):
    rhs = jnp.stack([x, 2 * x], -1)
    return lax.linalg.tridiagonal_solve(x / 9, 0 * x + 3, x / 8, rhs)


def complex_of(function):
    return lambda x: function(x + 1j * x[..., ::-1])


FUNCTIONS = {
    "singular_values": singular_values,
    "product_of_svd": product_of_svd,
    "full_svd": full_svd,
    "complex_singular_values": complex_of(singular_values),
    "complex_product_of_svd": complex_of(product_of_svd),
    "complex_full_svd": complex_of(full_svd),
    "svd_of_square": lambda x: product_of_svd(positive(x)),
    "svd_of_wide": lambda x: product_of_svd(jnp.concatenate([x, positive(x)], -1)),
    "full_pivoted_qr": full_pivoted_qr,
    "pivoted_qr": pivoted_qr,
    "residual_of_eig": residual_of_eig,
    "schur": schur,
    "tridiagonal_solve": tridiagonal_solve,
}


@each_lowering
@each_mode
@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors_of_matrices_of_symbolic_sizes(name, mode, lowering):
    fun = FUNCTIONS[name]
    xla = LOWERINGS[lowering]
    converted = jax2tf.convert(fun, polymorphic_shapes="b, m, n", enable_xla=xla)
    function = of_every_size(converted, mode, tf.TensorSpec([None] * 3, tf.float32))
    rng = np.random.default_rng(0)
    shapes = SHAPES[2:] if xla and name in HAVE_COMPILED_LOOPS else SHAPES
    for shape in COMPILED_SHAPES if mode == "compiled" else shapes:
        x = rng.normal(size=shape).astype(np.float32)
        actual = jax.tree.leaves(function(tf.constant(x)))
        expected = jax.tree.leaves(jax.jit(fun)(x))
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-4, strict=True)


@each_lowering
@each_mode
def test_a_tridiagonal_system_of_one_row(mode, lowering):
    # LAPACK's gtsv divides by nothing that is 0.
    zeros, diagonal = np.zeros((3, 1), np.float32), np.float32([[2], [0], [-4]])
    rhs = np.float32([[[3, 4]], [[5, 0]], [[7, -2]]])
    check(lax.linalg.tridiagonal_solve, (zeros, diagonal, zeros, rhs), mode, lowering)


@each_lowering
def test_real_eigenvalues_have_real_vectors(lowering):
    # As LAPACK gives them: exactly, whatever rounding leaves elsewhere.
    a = np.random.default_rng(0).normal(size=(4, 5, 5)).astype(np.float32)
    converted = jax2tf.convert(jnp.linalg.eig, enable_xla=LOWERINGS[lowering])
    fun = tf.function(converted, autograph=False)
    values, vectors = (np.asarray(result) for result in fun(a))
    is_real = values.imag == 0
    assert 0 < is_real.sum() < is_real.size
    assert not vectors.imag.swapaxes(-1, -2)[is_real].any()


@each_lowering
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_eig_of_matrices_of_no_size(shape, lowering):
    a = np.zeros(shape, np.float32)
    actual = jax2tf.convert(lax.linalg.eig, enable_xla=LOWERINGS[lowering])(a)
    for given, expected in zip(actual, lax.linalg.eig(a), strict=True):
        np.testing.assert_array_equal(np.asarray(given), expected, strict=True)


@each_lowering
@pytest.mark.parametrize("function", [lax.linalg.schur, lax.linalg.eig])
def test_what_does_not_converge_is_nan(function, lowering, monkeypatch):
    # No matrix is known for which it happens. The triangle has nothing to find.
    monkeypatch.setattr(schur_decomposition, "_ROUNDS", 0)
    a = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    matrices = np.stack([a, a])
    results = jax2tf.convert(function, enable_xla=LOWERINGS[lowering])(matrices)
    assert all(np.isnan(result).all() for result in results)


@each_lowering
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("place", [(0, 1), (0, 2)], ids=lambda p: f"{p[0]}-{p[1]}")
def test_an_infinite_number_leaves_finished_rows_of_an_lu(place, dtype, lowering):
    a = np.float32([[4, 1, 2], [0, 3, 4], [0, 1, 5], [0, 2, 1]]).astype(dtype)
    a[place] = np.inf
    actual = jax2tf.convert(lax.linalg.lu, enable_xla=LOWERINGS[lowering])(np.stack([a, a]))
    for given, expected in zip(actual, lax.linalg.lu(a), strict=True):
        np.testing.assert_allclose(given[1], expected, rtol=1e-6)


@each_lowering
@pytest.mark.parametrize("diagonal", [(1, 0), (0, 1), (3, 0)])
def test_schur_of_a_pair_that_hardly_couples(diagonal, lowering):
    # One of the two eigenvectors that a formula gives is the difference of numbers nearly equal.
    a = np.diag(np.float32(diagonal))
    a[0, 1] = a[1, 0] = 1e-3
    triangle, vectors = map(
        np.asarray, jax2tf.convert(lax.linalg.schur, enable_xla=LOWERINGS[lowering])(a)
    )
    np.testing.assert_allclose(vectors @ triangle @ vectors.T, a, atol=1e-6)


@each_lowering
def test_vectors_of_real_eigenvalues_are_real(lowering):
    a = np.random.default_rng(3).normal(size=(7, 7)).astype(np.float32)
    values, *vectors = map(
        np.asarray, jax2tf.convert(lax.linalg.eig, enable_xla=LOWERINGS[lowering])(a)
    )
    real = values.imag == 0
    assert 0 < real.sum() < 7
    for of_side in vectors:
        assert (of_side[:, real].imag == 0).all()
        assert (of_side[:, ~real].imag != 0).any(axis=0).all()


class TestEigenvaluesOfJittedFunctions:
    """XLA's loops for eigh and svd take 10 to 200 times as long as TensorFlow's kernels."""

    FUNCTIONS = MappingProxyType(
        {
            "eigh": lambda x: jnp.linalg.eigh(x + x.T)[0],
            "svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
            "in_a_branch": lambda x: lax.cond(x[0, 0] > 0, jnp.linalg.pinv, lambda x: x.T, x),
        }
    )

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_are_computed_by_kernels(self, name):
        x = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
        x[0, 0] = 1.0
        jitted = jax.jit(self.FUNCTIONS[name])
        without = jax2tf.TARGETS["xla"].without_optimizations("eigenvalues_by_kernels")
        compiled = {}
        for target in ("xla", without):
            converted = jax2tf.convert(jitted, target=target)
            np.testing.assert_allclose(converted(x), jitted(x), rtol=1e-4, atol=1e-5)
            graph = tf.function(converted, autograph=False).get_concrete_function(x).graph
            library = graph.as_graph_def().library.function
            compiled[target] = any(f.attr["_XlaMustCompile"].b for f in library)
        assert compiled == {"xla": False, without: True}


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled", "open"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 4, 3)])
def test_products_with_the_factor_of_a_pivoted_qr(shape, dtype, mode):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape).astype(dtype) * (1 + dtype(1j if dtype == np.complex64 else 0))
    c = rng.normal(size=(*shape[:-1], shape[-2])).astype(dtype)

    def fun(a, c):
        return jax.scipy.linalg.qr_multiply(a, c, pivoting=True)

    if mode == "open" and len(shape) == 3:
        converted = jax2tf.convert(fun, polymorphic_shapes=["b, _, _"] * 2)
    else:
        converted = jax2tf.convert(fun)
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    for got, want in zip(converted(a, c), jax.jit(fun)(a, c), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("pivots", [[0, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 2]])
def test_columns_that_stay_in_front_of_a_pivoted_qr(pivots):
    a = np.random.default_rng(1).normal(size=(1, 5, 4)).astype(np.float32)
    function = functools.partial(reflections.geqp3, None)
    factors = tf.function(jax2tf.convert(function), autograph=False)(a, np.int32([pivots]))
    reflectors, columns, _ = (np.asarray(x) for x in factors)
    columns = columns[0] - 1
    n_fixed = np.count_nonzero(pivots)
    assert sorted(columns) == [0, 1, 2, 3]
    assert set(columns[:n_fixed]) == set(np.flatnonzero(pivots))
    expected = np.linalg.qr(a[0][:, columns])[1]
    np.testing.assert_allclose(np.abs(np.triu(reflectors[0][:4])), np.abs(expected), atol=1e-5)
