"""Arrays repeated along more dimensions than TensorFlow's kernels tell apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import assert_near

X = np.arange(-9, 9, dtype=np.float32).reshape(3, 3, 2) / 4


def columns(x):
    return x[:, None, :, None, :, None]


def rows(x):
    return x[None, :, None, :, None, :]


FUNCTIONS = {
    "kron": lambda x: jnp.kron(x, x + 1),
    "add": lambda x: columns(x) + rows(x),
    "maximum": lambda x: jnp.maximum(columns(x), rows(x)),
    "less": lambda x: columns(x) < rows(x),
    "power": lambda x: jnp.abs(columns(x)) ** rows(x),
    "where": lambda x: jnp.where(columns(x) > 0, rows(x), columns(x)),
    "broadcast": lambda x: jnp.broadcast_to(rows(x), (7, 2, *x.shape[:1], 4, 3, 5, 2)),
    "integers": lambda x: columns(x).astype(jnp.int32) // (rows(x).astype(jnp.int32) ** 2 + 1),
    "of eight dimensions": lambda x: (
        x[:, None, :, None, :, None, None, None] * x[None, :, None, :, None, :, None, None]
    ),
    "gradient": lambda x: jax.grad(lambda x: jnp.sum(jnp.sin(columns(x) * rows(x))))(x),
}


@pytest.mark.parametrize("shape", [None, "b, ..."])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("target", ["xla", "tensorflow"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_groups_of_dimensions(name, target, mode, shape):
    converted = jax2tf.convert(FUNCTIONS[name], target=target, polymorphic_shapes=shape)
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    assert_near(converted(X), jax.jit(FUNCTIONS[name])(X), ulps=16)


def test_few_groups_are_left_to_the_op():
    """Of (3, 2, 2, 2, 2, 1) and (1, 2, 2, 2, 2, 4) there are three."""

    def function(x, y):
        return x + y

    graph = tf.function(jax2tf.convert(function), autograph=False).get_concrete_function(
        tf.TensorSpec([3, 2, 2, 2, 2, 1]), tf.TensorSpec([1, 2, 2, 2, 2, 4])
    )
    assert "BroadcastTo" not in {op.type for op in graph.graph.get_operations()}
