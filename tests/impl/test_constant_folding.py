"""What depends on no argument is computed by JAX, for engines whose converters do not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import gradient_in_graph, graph_of, ops_of

FOLDS = jax2tf.Target("folds", quirks={"no_folding"})
LEAVES = jax2tf.Target("leaves")
X = np.array([1.0, -2.0, 0.5], np.float32)
MATRIX = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]], np.float32)


def _shifted(x):
    return x * lax.fori_loop(0, 3, lambda i, c: c * 2 + i, jnp.float32(1))


def _by_key(x):
    return x + jax.random.normal(jax.random.key(3), (3,))


def _chosen(x):
    return x * lax.cond(jnp.sum(jnp.asarray(MATRIX)) > 3, jnp.sin, jnp.cos, jnp.float32(2.0))


OF_CONSTANTS = {
    "eigenvectors": lambda x: x @ jnp.linalg.eigh(jnp.asarray(MATRIX))[1],
    "a function": lambda x: x * jax.scipy.special.gammainc(jnp.asarray(X), 2.0),
    "a loop": _shifted,
    "a branch": _chosen,
    "segments": lambda x: x * jax.ops.segment_max(jnp.asarray(X), np.array([2, 0, 1]), 3),
    "a jitted function": lambda x: x + jax.jit(jnp.cumsum)(jnp.asarray(X)),
    "a custom rule": lambda x: x + jax.nn.relu(jnp.asarray(X)) + jax.nn.silu(jnp.asarray(X)),
    "bits": lambda x: x + lax.population_count(jnp.arange(3, dtype=jnp.uint8)),
    "a window": lambda x: x * jnp.kaiser(3, 2.0).astype(np.float32),
    "an infinity": lambda x: x + jnp.log(jnp.zeros(3)) * jnp.asarray(X),
}


@pytest.mark.parametrize("fun", OF_CONSTANTS.values(), ids=OF_CONSTANTS)
def test_what_is_made_of_constants_is_a_constant(fun):
    concrete = graph_of(fun, FOLDS, X)
    np.testing.assert_allclose(concrete(tf.constant(X)), jax.jit(fun)(X), rtol=1e-6)
    made = ops_of(concrete) - {"Const", "Identity", "Placeholder"}
    assert made <= {"AddV2", "Mul", "MatMul", "Reshape", "Squeeze", "ExpandDims"}, made


@pytest.mark.parametrize("fun", [OF_CONSTANTS["bits"], OF_CONSTANTS["segments"]])
def test_other_targets_leave_it_to_the_converter(fun):
    assert len(ops_of(graph_of(fun, LEAVES, X))) > len(ops_of(graph_of(fun, FOLDS, X)))


def test_gradients_are_those_of_the_arguments():
    fun = OF_CONSTANTS["segments"]
    gradient = gradient_in_graph(jax2tf.convert(fun, target=FOLDS))
    expected = jax.grad(lambda x: fun(x).sum())(X)
    np.testing.assert_array_equal(gradient(tf.constant(X)), expected)


def test_float64_and_int64_stay_what_they_are():
    with jax.enable_x64(True):
        x = np.array([1.5, 2.5], np.float64)

        def fun(x):
            return x * jnp.exp(jnp.array([1.0, 2.0])), jnp.cumsum(jnp.array([2**40, 1]))

        concrete = graph_of(fun, FOLDS, x)
        for came, expected in zip(concrete(tf.constant(x)), jax.jit(fun)(x), strict=True):
            np.testing.assert_allclose(came, expected, rtol=1e-15)
            assert came.dtype.as_numpy_dtype == expected.dtype


def test_a_large_result_is_left_to_the_graph():
    def large(x):
        return x + jnp.outer(jnp.exp(jnp.arange(80.0)), jnp.ones(80)).sum()

    concrete = graph_of(large, FOLDS, X)
    assert concrete.graph.as_graph_def().ByteSize() < 80 * 80 * 4
    np.testing.assert_allclose(concrete(tf.constant(X)), jax.jit(large)(X), rtol=1e-6)


def test_open_dimensions_are_not_constants():
    def counted(x):
        return x * jnp.arange(x.shape[0], dtype=x.dtype) + jnp.sin(jnp.float32(x.shape[0]))

    converted = jax2tf.convert(counted, target=FOLDS, polymorphic_shapes=["b"])
    concrete = tf.function(converted, autograph=False).get_concrete_function(
        tf.TensorSpec([None], tf.float32)
    )
    for size in (1, 3):
        x = np.ones(size, np.float32)
        np.testing.assert_allclose(concrete(tf.constant(x)), counted(x), rtol=1e-6)


def test_the_host_is_called_when_the_graph_runs():
    calls = []

    def host(x):
        calls.append(1)
        return np.asarray(x)

    def fun(x):
        return x + jax.pure_callback(host, jax.ShapeDtypeStruct((3,), np.float32), jnp.asarray(X))

    concrete = graph_of(fun, FOLDS, X)
    assert not calls
    np.testing.assert_array_equal(concrete(tf.constant(X)), 2 * X)
    assert calls


def test_what_is_refused_is_refused_of_constants_too():
    def fun(x):
        other = jax.ffi.ffi_call("of_no_library", jax.ShapeDtypeStruct((3,), np.float32))
        return x + jax.jit(other)(jnp.asarray(X))

    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="ffi_call"):
        graph_of(fun, FOLDS, X)


def _whole_by_key(x):
    """One number stands for an array of it in the graph."""
    return x * jax.random.randint(jax.random.key(1), (1,), 0, 7)


@pytest.mark.parametrize("fun", [_by_key, _whole_by_key])
def test_draws_by_a_constant_key(fun):
    concrete = graph_of(fun, FOLDS, X)
    np.testing.assert_allclose(concrete(tf.constant(X)), jax.jit(fun)(X), rtol=1e-6)


def test_in_the_step_of_a_loop():
    def fun(x):
        return lax.fori_loop(
            0, 2, lambda i, c: c + jax.ops.segment_max(jnp.asarray(X), np.array([2, 0, 1]), 3), x
        )

    concrete = graph_of(fun, FOLDS, X)
    np.testing.assert_array_equal(concrete(tf.constant(X)), jax.jit(fun)(X))
