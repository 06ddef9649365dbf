"""Barriers hold: what jax.checkpoint computes anew is computed anew, and when it is wanted."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import assert_near

LAYERS = 4
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4)


def network(layer):
    def loss(w, x):
        for _ in range(LAYERS):
            x = layer(w, x)
        return jnp.sum(x**2)

    return loss


def layer(w, x):
    return jnp.tanh(x @ w) * x  # Grappler makes one op of several unary ones


def gradient(fun):
    """By a tape inside, as training steps do it."""
    converted = jax2tf.convert(fun)

    def of_tape(w, x):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = converted(w, x)
        return tape.gradient(y, w)

    return of_tape


def compiled_tanhs(fun):
    function = tf.function(fun, autograph=False, jit_compile=True)
    hlo = function.experimental_get_compiler_ir(tf.constant(W), tf.constant(X))("optimized_hlo")
    return len(re.findall(r" tanh\(", hlo))


def run_tanhs(fun):
    """How many the graph runs once Grappler is through with it."""
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        operands = {tf.compat.v1.placeholder(v.dtype, v.shape): v for v in (W, X)}
        result = fun(*operands)
        session.run(result, operands, options, metadata)
    return sum(n.op == "Tanh" for g in metadata.partition_graphs for n in g.node)


COUNTS = {"graph": run_tanhs, "compiled": compiled_tanhs}


@pytest.mark.parametrize("place", COUNTS)
def test_recomputation_is_not_undone(place):
    count = COUNTS[place]
    assert count(gradient(network(layer))) == LAYERS
    assert count(gradient(network(jax.checkpoint(layer)))) == 2 * LAYERS


@pytest.mark.parametrize("place", COUNTS)
def test_what_need_not_be_kept_apart_is_not(place):
    shared = network(jax.checkpoint(layer, prevent_cse=False))
    assert COUNTS[place](gradient(shared)) == LAYERS


@pytest.mark.parametrize("place", COUNTS)
def test_a_barrier_of_the_users(place):
    def twice(w, x):
        held, _ = jax.lax.optimization_barrier((x, w))
        return jnp.tanh(x) + jnp.tanh(held)

    assert COUNTS[place](jax2tf.convert(twice)) == 2


def test_recomputation_waits_for_the_cotangent():
    step = gradient(network(jax.checkpoint(layer)))
    function = tf.function(step, autograph=False)
    graph = function.get_concrete_function(tf.constant(W), tf.constant(X)).graph
    waiting = [op for op in graph.get_operations() if op.type == "Identity" and op.control_inputs]
    assert len(waiting) >= 3 * LAYERS
    tanhs = [op for op in graph.get_operations() if op.type == "Tanh"]
    assert sum(_waits(op, set(waiting)) for op in tanhs) == LAYERS


def _waits(op, waiting):
    pending, seen = [op], set()
    while pending:
        current = pending.pop()
        if current in waiting:
            return True
        new = {x.op for x in current.inputs} - seen
        seen |= new
        pending += new
    return False


def _in_a_scan(step):
    return lambda w, x: jax.lax.scan(lambda c, _: (step(w, c), None), x, None, length=2)[0]


@pytest.mark.parametrize("pfor", [True, False])
@pytest.mark.parametrize(
    "fun",
    [
        jax.checkpoint(layer),
        _in_a_scan(jax.checkpoint(layer)),
        lambda w, x: jax.lax.cond(x.sum() > 9, lambda w, x: x @ w, jax.checkpoint(layer), w, x),
    ],
    ids=["alone", "in a scan", "in a branch"],
)
def test_a_jacobian_of_an_eager_call(fun, pfor):
    operands = [tf.constant(W), tf.constant(X)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(operands)
        y = jax2tf.convert(fun)(*operands)
    jacobians = tape.jacobian(y, operands, experimental_use_pfor=pfor)
    assert_near(tuple(map(np.asarray, jacobians)), jax.jit(jax.jacrev(fun, (0, 1)))(W, X))


def test_without_xla_ops_there_is_none():
    converted = jax2tf.convert(lambda x: jax.lax.optimization_barrier((x, x + 1)), enable_xla=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(X)).graph
    assert not any(op.control_inputs for op in graph.get_operations() if op.type != "NoOp")


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "bfloat16", "float64", "complex128", "float8_e4m3fn"]
)
def test_every_dtype_passes(dtype, jit_compile):
    with jax.enable_x64(True):
        x, empty = np.array([0, 1, 1, 0]).astype(dtype), np.zeros((0, 2), dtype)
        converted = jax2tf.convert(lambda x, y: jax.lax.optimization_barrier((x, y)))
        function = tf.function(converted, autograph=False, jit_compile=jit_compile)
        assert_near(tuple(map(np.asarray, function(x, empty))), (x, empty))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_bits_pass(jit_compile):
    x = np.array([np.nan, -0.0, np.inf, 1e-45], np.float32)
    converted = jax2tf.convert(jax.lax.optimization_barrier)
    y = tf.function(converted, autograph=False, jit_compile=jit_compile)(x)
    np.testing.assert_array_equal(np.asarray(y).view(np.int32), x.view(np.int32))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_inside_a_scan_with_an_open_batch(jit_compile):
    def loss(x):
        def step(c, y):
            return jax.checkpoint(lambda c: jnp.sin(c * y + x.sum()))(c), c

        carried, kept = jax.lax.scan(step, x, jnp.arange(1.0, 4.0))
        return jnp.sum(carried) + jnp.sum(kept)

    converted = jax2tf.convert(jax.grad(loss), polymorphic_shapes="b")
    function = tf.function(
        converted,
        autograph=False,
        jit_compile=jit_compile,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    np.testing.assert_allclose(function(X[0]), jax.jit(jax.grad(loss))(X[0]), rtol=1e-5)
