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


MASK = np.tril(np.ones((4, 4), bool))
CHOOSE = {"SelectV2", "LogicalAnd", "LogicalOr"}
CHOICES = {
    "condition": lambda x: jnp.where(MASK, x, -1e9),
    "condition and side": lambda x: jnp.where(x[:, :1, :1] > 0, x, x[:, :, :1]),
    "sides": lambda x: jnp.where(x > 0, x[:, :1], x[:, :, :1]),
    "all": lambda x: jnp.where(x[:, :1] > 0, x[:, :, :1], jnp.zeros((4, 1))),
    "the condition as a side": lambda x: jnp.where(x[:, :1] > 0, x[:, :1] > 0, x > 1),
    "five dimensions": lambda x: jnp.where(
        (x > 0)[:, :, None, :, None], x[:, None, :, None, :], x[:, :, None, :, None]
    ),
    "integers": lambda x: jnp.where(MASK[0], x.astype(jnp.int32), 2**30 + 1),
    "int4": lambda x: jnp.where(MASK[0], x.astype(jnp.int4), jnp.int4(3)).astype(jnp.int8),
}


@pytest.mark.parametrize("batch", [3, None])
@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize(
    ("name", "target"),
    [(n, t) for n in CHOICES for t in jax2tf.TARGETS if t == "xla" or n != "int4"],
)
def test_a_choice_repeats_its_operands_by_itself(name, target, mode, batch):
    fun = CHOICES[name]
    x = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    x[0, 0, 0], x[1, 2, 3] = np.nan, -np.inf
    results, repeated = [], []
    for chosen in (jax2tf.TARGETS[target], _without(target, "broadcast_choices")):
        converted = jax2tf.convert(
            fun, target=chosen, polymorphic_shapes=None if batch else "b, ..."
        )
        function = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
        graph = function.get_concrete_function(tf.TensorSpec([batch, 4, 4]))
        results.append(graph(tf.constant(x)).numpy())
        ops = graph.graph.get_operations()
        operands = [x.op.type for op in ops if op.type in CHOOSE for x in op.inputs]
        repeated.append(operands.count("BroadcastTo"))
    # An int4 is a wider integer on the way.
    assert name == "int4" or repeated[0] < repeated[1] or repeated == [0, 0]
    assert name in ("all", "five dimensions", "int4") or not repeated[0]
    np.testing.assert_array_equal(results[0], results[1], strict=True)
    np.testing.assert_array_equal(results[0], jax.jit(fun)(x), strict=True)


def _without(target, name):
    return jax2tf.TARGETS[target].without_optimizations(name)
