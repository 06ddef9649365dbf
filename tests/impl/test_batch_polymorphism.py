"""Any function that is a vmap at top level converts with its batch polymorphic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import assert_near

RNG = np.random.default_rng(0)
KEYS = np.arange(6, dtype=np.uint32).reshape(3, 2)
ROWS = RNG.normal(size=(3, 5)).astype(np.float32)
MATRICES = RNG.normal(size=(3, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)


def choice(data, x):
    return jax.random.choice(jax.random.wrap_key_data(data), x, (2,))


def gamma(data):
    return jax.random.gamma(jax.random.wrap_key_data(data), 2.0, (2,))


def split(data):
    return jax.random.key_data(jax.random.split(jax.random.wrap_key_data(data)))


FUNCTIONS = {
    "random choice": (choice, KEYS, ROWS),
    "rejection sampling": (gamma, KEYS),
    "keys": (split, KEYS),
    "scan": (lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x), ROWS),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + c**2 + 0.1, x), ROWS),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), ROWS),
    "dynamic trip count": (
        lambda x: lax.fori_loop(0, jnp.int32(jnp.abs(x[0]) * 3), lambda i, c: c + i, x),
        ROWS,
    ),
    "solve": (lambda a, b: jnp.linalg.solve(a, b[:4]), MATRICES, ROWS),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 2)), ROWS),
    "scatter": (lambda x: jnp.zeros(5).at[jnp.argsort(x)].add(x), ROWS),
    "nested": (lambda x: jax.vmap(lambda s: lax.cumsum(jnp.stack([s, s])))(x), ROWS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("jit_compile", [None, True], ids=["graph", "compiled"])
def test_one_graph_for_every_batch(name, jit_compile):
    fun, *args = FUNCTIONS[name]
    batched = jax.vmap(fun)
    converted = jax2tf.convert(batched, polymorphic_shapes="b, ...")
    graph = tf.function(converted, autograph=False, jit_compile=jit_compile)
    specs = [tf.TensorSpec([None, *a.shape[1:]], a.dtype) for a in args]
    function = graph.get_concrete_function(*specs)
    for size in (1, 3):
        batch = [a[:size] for a in args]
        assert_near(list(tf.nest.flatten(function(*batch))), jax.tree.leaves(batched(*batch)), 64)


RESHAPES = {
    "heads": lambda x: x.reshape(x.shape[0], 2, 6),
    "flat": lambda x: x.reshape(-1),
    "merged": lambda x: x.reshape(x.shape[0] * 3, 4),
    "repeated": lambda x: jnp.repeat(x, 2, axis=0),
    "without elements": lambda x: x[:, :0].reshape(x.shape[0], 0, 2, 2),
    "transposed": lambda x: lax.reshape(x, (x.shape[0], 12), dimensions=(0, 2, 1)),
    "product": lambda x: jnp.einsum("bij,kl->bijkl", x, jnp.eye(2)).reshape(x.shape[0], 48),
    "argument of two": lambda x: x.reshape(2, 3, x.shape[0], 2),
}
# What needs a size that is nowhere inferred.
COMPUTED = {"repeated", "without elements"}


@pytest.mark.parametrize("target", jax2tf.TARGETS)
@pytest.mark.parametrize("name", RESHAPES)
@pytest.mark.parametrize("jit_compile", [None, True], ids=["graph", "compiled"])
def test_a_reshape_infers_the_size_that_is_unknown(name, target, jit_compile):
    fun = RESHAPES[name]
    x = RNG.normal(size=(4, 3, 4)).astype(np.float32)
    without = jax2tf.TARGETS[target].without_optimizations("inferred_sizes")
    packed = []
    for chosen in (target, without):
        # A dimension is at least 1, and one less may be 0.
        converted = jax2tf.convert(fun, target=chosen, polymorphic_shapes="b - 1, ...")
        function = tf.function(converted, autograph=False, jit_compile=jit_compile)
        graph = function.get_concrete_function(tf.TensorSpec([None, 3, 4]))
        for size in (4, 1, 0):
            actual = graph(tf.constant(x[:size])).numpy()
            np.testing.assert_array_equal(actual, fun(x[:size]), strict=True)
        shapes = [
            op.inputs[1].op.type for op in graph.graph.get_operations() if op.type == "Reshape"
        ]
        packed.append(len(shapes) - shapes.count("Const"))
    assert packed[0] < packed[1] or name in COMPUTED
    assert packed[0] == 0 or name in COMPUTED
