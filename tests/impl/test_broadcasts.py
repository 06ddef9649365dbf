"""Arrays that ops repeat: along how many dimensions, and without an op that does it for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import assert_near

RNG = np.random.default_rng(1)
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


@pytest.mark.parametrize("target", ["xla", "tensorflow", "onnx"])
@pytest.mark.parametrize("which", [np.eye(2, dtype=bool), X[0, :1] > 0, X[:, :1] > 0])
def test_a_choice_between_scalars_keeps_its_shape(which, target):
    """The condition is smaller than both sides, which are repeated before a function is called."""

    @jax.jit
    def chosen(x, y):
        return jnp.where(which, x, y)

    def function(x):
        like = jnp.broadcast_to(x[:, None, :1], (3, 2, 2))
        return chosen(1.0, jnp.zeros_like(like)), chosen(jnp.ones_like(like), like * 0 - 1)

    converted = tf.function(jax2tf.convert(function, target=target), autograph=False)
    assert_near(converted(X[:, 0]), jax.jit(function)(X[:, 0]), ulps=0)


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


ROW = RNG.normal(size=4).astype(np.float32)
GIVE_DIMENSIONS = {"Reshape", "ExpandDims", "BroadcastTo"}
OPERANDS = {
    "bias": lambda x, row: x + row,
    "bias in front": lambda x, row: row - x,
    "scale and bias": lambda x, row: x * row[None, None] + row.reshape(1, 1, 4),
    "as large as the other": lambda x, row: x + jnp.broadcast_to(row, x.shape),
    "both": lambda x, row: row[None, None] + (row - 1)[None, None] + x,
    "a number": lambda x, row: x * jnp.reshape(jnp.sum(row), (1, 1, 1)),
    "extremes": lambda x, row: jnp.minimum(jnp.maximum(x, row - 1), row),
    "comparison": lambda x, row: (x < row) & (row >= x),
    "columns and rows": lambda x, row: row[:, None] <= row[None] + x,
    "integers": lambda x, row: x.astype(int)[0, :2] * 3 - row.astype(int),
    "bfloat16": lambda x, row: (
        jnp.round(x).astype(jnp.bfloat16) + jnp.round(row).astype(jnp.bfloat16)
    ).astype(float),
    "rows beside their sums": lambda x, row: x * jnp.sum(x, -1, keepdims=True),
    "columns beside their sums": lambda x, row: x - jnp.sum(x, 1, keepdims=True),
    "sums of two axes": lambda x, row: x - jnp.sum(x, (0, 2), keepdims=True),
    "extremes of rows": lambda x, row: (
        x.max(-1, keepdims=True) - x.min(1, keepdims=True) + x.max(0, keepdims=True)
    ),
    "softmax": lambda x, row: jax.nn.softmax(x, axis=1),
    "logsumexp": lambda x, row: x - jax.nn.logsumexp(x, axis=-1, keepdims=True),
}


@pytest.mark.parametrize("batch", [3, None])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize(
    ("name", "target"),
    [
        (name, target)
        for name in OPERANDS
        for target in ("xla", "tensorflow", "litert", "onnx", "openvino", "tfjs")
        if name != "bfloat16" or target in ("xla", "tensorflow")
    ],
)
def test_operands_are_repeated_by_the_ops(name, target, mode, batch):
    fun = OPERANDS[name]
    x = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    x[0, 0, 0], x[1, 2, 3], x[2, 1] = np.nan, -np.inf, np.inf
    results, given = [], []
    for chosen in (jax2tf.TARGETS[target], _without(target, "broadcast_operands")):
        function = jax2tf.convert(
            fun, target=chosen, polymorphic_shapes=None if batch else ("b, ...", None)
        )
        if mode != "eager":
            function = tf.function(function, autograph=False, jit_compile=mode == "compiled")
            specs = tf.TensorSpec([batch, 4, 4]), tf.TensorSpec([4])
            graph = function.get_concrete_function(*specs).graph
            given.append(sum(op.type in GIVE_DIMENSIONS for op in graph.get_operations()))
        results.append(function(tf.constant(x), tf.constant(ROW)).numpy())
    assert not given or given[0] < given[1]
    np.testing.assert_array_equal(*results, strict=True)
    assert_near(results[0], jax.jit(fun)(x, ROW), ulps=16)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: (x.sum(-1), x - x.sum(-1, keepdims=True)),
        lambda x: (lambda s: (s, x - s[:, None], x * s[:, None]))(x.sum(-1)),
        lambda x: x.sum(-1, keepdims=True),
        lambda x: x.max(-1, keepdims=True, initial=2.0) - x,
        lambda x: x.max(-1, keepdims=True, initial=-jnp.inf) - x,
        lambda x: x[:, :0].max(-1, keepdims=True, initial=-jnp.inf) - x,
        lambda x: jnp.broadcast_to(x.sum(-1)[:, None], (3, 4)) + x,
        lambda x: x.sum(0)[:, None] + x.max(-1)[None],
        lambda x: x.sum((), keepdims=True) + x,
        lambda x: x.astype(jnp.complex64).sum(-1, keepdims=True) * x,
        lambda x: (x > 0).sum(-1, keepdims=True) + (x > 0).any(-1, keepdims=True),
    ],
)
@pytest.mark.parametrize("target", ["xla", "tensorflow"])
@pytest.mark.parametrize("compiled", [False, True])
def test_reductions_keep_dimensions_for_one_reader(fun, target, compiled):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    x[1, 1] = np.nan
    converted = jax2tf.convert(fun, target=target)
    for function in (converted, tf.function(converted, autograph=False, jit_compile=compiled)):
        for got, want in zip(*map(jax.tree.leaves, (function(x), jax.jit(fun)(x))), strict=True):
            assert_near(got, want, ulps=16)


def test_the_gradient_of_an_operand_that_is_repeated():
    def fun(x, row, number):
        return jnp.sum(jnp.sin(x * row + row.reshape(1, 4)) - x.sum(-1, keepdims=True) * number)

    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    args = [tf.Variable(a) for a in (x, ROW, np.float32(0.5))]
    converted = tf.function(jax2tf.convert(fun), autograph=False)
    with tf.GradientTape() as tape:
        value = converted(*args)
    expected = jax.grad(fun, (0, 1, 2))(*(a.numpy() for a in args))
    for got, want in zip(tape.gradient(value, args), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def _without(target, name):
    return jax2tf.TARGETS[target].without_optimizations(name)
