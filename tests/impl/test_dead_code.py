"""What no result needs is not lowered; what has a side effect is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.extend import core as jex_core

import jax2tf
from harnesses.engine.graphs import nodes
from tests.running import assert_near

X = np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(3, 4)

# A primitive of nobody's: it has no rule, and JAX does not compile it.
nowhere_p = jex_core.Primitive("nowhere")
nowhere_p.def_abstract_eval(lambda x: x)


def _two(x):
    return jnp.tanh(x), jax.random.normal(jax.random.key(0), x.shape) + jnp.cumsum(x, -1)


def _jitted(x):
    return jax.jit(_two)(x)[0]


def _branch(x):
    return jax.lax.cond(x[0, 0] > 1, _two, lambda x: (x, x), x)[0]


def _scan(x):
    def step(carry, row):
        return carry + row, jax.random.normal(jax.random.key(1), row.shape) * row

    return jax.lax.scan(step, jnp.zeros(4), x)[0]


def _loop(x):
    def step(i, carry):
        kept, lost = carry
        return kept + 1, jnp.cumsum(lost, 0) + i

    return jax.lax.fori_loop(0, 3, step, (x, x))[0]


def _checkpointed(x):
    return jax.checkpoint(_two)(x)[0]


@jax.custom_vjp
def _with_rule(x):
    return _two(x)


_with_rule.defvjp(lambda x: (_two(x), x), lambda x, cts: (cts[0] * x,))


def _custom(x):
    return _with_rule(x)[0]


def _top(x):
    jnp.cumsum(x, 1)
    jax.random.normal(jax.random.key(0), x.shape)
    return jnp.tanh(x)


def _batch(x):
    return jax.vmap(_jitted)(x)


PROGRAMS = [_top, _jitted, _branch, _scan, _loop, _checkpointed, _custom, _batch]
# Of random bits, and of cumulative sums.
DEAD = {"BitwiseXor", "RightShift", "LeftShift", "Cumsum", "XlaReduceWindow", "XlaRngBitGenerator"}


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_what_no_result_needs_is_not_lowered(fun):
    converted = jax2tf.convert(fun)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(X)).graph
    assert not DEAD & {node.op for node in nodes(graph)}
    assert_near(converted(X), fun(X))


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_the_gradient_is_that_of_the_result(fun):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax2tf.convert(fun)(x)
    assert_near(tape.gradient(y, x), jax.grad(lambda x: jnp.sum(fun(x)))(X))


def test_what_has_no_rule_and_no_reader_is_no_reason_to_refuse():
    def fun(x):
        nowhere_p.bind(x)
        return x + 1

    assert_near(jax2tf.convert(fun)(X), X + 1)
    with pytest.raises(NotImplementedError, match="nowhere"):
        jax2tf.convert(lambda x: nowhere_p.bind(x) + 1)(X)


def test_a_captured_array_that_nothing_reads_is_no_constant():
    large = np.ones((64, 64), np.float32)

    def fun(x):
        jnp.asarray(large) @ jnp.asarray(large)
        return x + 1

    graph = tf.function(jax2tf.convert(fun)).get_concrete_function(tf.constant(X)).graph
    assert all(
        np.prod(op.outputs[0].shape) <= X.size for op in graph.get_operations() if op.outputs
    )


def test_arguments_that_nothing_reads_stay():
    fun = jax2tf.convert(lambda x, unused: x + 1)
    concrete = tf.function(fun).get_concrete_function(tf.constant(X), tf.constant(X))
    assert len(concrete.inputs) == 2
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fun(X, x)
    gradient = tape.gradient(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    np.testing.assert_array_equal(gradient, np.zeros_like(X))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jitted"])
def test_side_effects_stay(wrap, capsys):
    @wrap
    def shown(x):
        jax.debug.print("seen {x}", x=x[0, 0])
        return x + 1, x

    assert_near(jax2tf.convert(lambda x: shown(x)[1])(X), X)
    jax.effects_barrier()
    assert "seen 0.5" in capsys.readouterr().out
