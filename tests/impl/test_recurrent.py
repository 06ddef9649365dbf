"""Loops that are an LSTM, and those that look like one."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from jax2tf._src.lowering.passes.idioms import recurrent
from jax2tf._src.targets.by_name import TARGETS

TARGET = dataclasses.replace(TARGETS["onnx"], finite_idioms={"lstm"})
STEPS, BATCH, FEATURES, UNITS = 5, 2, 3, 4


def array(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


W, U, B = array(FEATURES, 4 * UNITS), array(UNITS, 4 * UNITS), array(4 * UNITS)
GATES = [slice(k * UNITS, (k + 1) * UNITS) for k in range(4)]


def of_one_product(x, h):
    return jnp.split(x @ W + h @ U + B, 4, -1)


def side_by_side(x, h):
    return jnp.split(jnp.concatenate([h, x], -1) @ np.concatenate([U, W]) + B, 4, axis=1)


def of_products_each(x, h):
    return [x @ W[:, k] + B[k] + h @ U[:, k] for k in GATES]


def by_parts(x, h):
    z = h @ U + (x @ W + B)
    return [z[:, k] for k in GATES]


def of_turned_weights(x, h):
    turned = np.ascontiguousarray(U.T)
    of_h = lax.dot_general(h, turned, (((1,), (1,)), ((), ())))
    return jnp.split(B + x @ jnp.transpose(np.ascontiguousarray(W.T)) + of_h, 4, -1)


def of_weights_made_in_the_step(x, h):
    w = jnp.concatenate([2 * W[:, :3] / 2, jnp.asarray(W)[:, 3:]], 1)
    bias = jnp.broadcast_to(B, (x.shape[0], B.size))
    return jnp.split(jax.jit(jnp.matmul)(x, w) + h @ U + bias, 4, -1)


def without_bias(x, h):
    return jnp.split(x @ W + h @ U, 4, -1)


def with_a_number(x, h):
    i, f, g, o = of_one_product(x, h)
    return i, f + 1.0, g, o


MANNERS = [
    of_one_product,
    side_by_side,
    of_products_each,
    by_parts,
    of_turned_weights,
    of_weights_made_in_the_step,
    without_bias,
    with_a_number,
]


def lstm(gates=of_one_product, *, cell_first=False, swapped=False, reverse=False, shown="h"):
    """A scan over `[steps, batch, features]` from h and c."""

    def step(carry, x):
        h, c = carry[::-1] if cell_first else carry
        i, f, g, o = map(jnp.asarray, gates(x, h))
        i, f, o = map(jax.nn.sigmoid, (i, f, o))
        c = jnp.tanh(g) * i + c * f if swapped else f * c + i * jnp.tanh(g)
        h = jnp.tanh(c) * o if swapped else o * jnp.tanh(c)
        carry = (c, h) if cell_first else (h, c)
        return carry, {"h": h, "none": None, "twice": (h, h), "c": c, "both": (h, c)}[shown]

    def run(x, h, c):
        return lax.scan(step, (c, h) if cell_first else (h, c), x, reverse=reverse)

    return run


def given(dtype=np.float32, batch=BATCH, steps=STEPS):
    shapes = (steps, batch, FEATURES), (batch, UNITS), (batch, UNITS)
    return [array(*shape, seed=i).astype(dtype) for i, shape in enumerate(shapes)]


def graph_of(fun, args, target=TARGET, **options):
    converted = jax2tf.convert(
        fun, target=target, assume_finite=True, with_gradient=False, **options
    )
    return tf.function(converted, autograph=False).get_concrete_function(
        *jax.tree.map(tf.constant, args)
    )


def has_op(function):
    return recurrent.OP in {op.type for op in function.graph.get_operations()}


def check(function, fun, args):
    expected = jax.tree.leaves(jax.jit(fun)(*args))
    actual = jax.tree.leaves(function(*map(tf.constant, args)))
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("gates", MANNERS, ids=lambda f: f.__name__)
def test_gates_are_written_in_many_ways(gates):
    function = graph_of(lstm(gates), given())
    assert has_op(function)
    check(function, lstm(gates), given())


@pytest.mark.parametrize("cell_first", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shown", ["h", "none", "twice"])
def test_carries_and_results_come_in_any_order(cell_first, swapped, reverse, shown):
    fun = lstm(cell_first=cell_first, swapped=swapped, reverse=reverse, shown=shown)
    function = graph_of(fun, given())
    assert has_op(function)
    check(function, fun, given())


@pytest.mark.parametrize(("batch", "steps"), [(1, 2), (3, 7)])
def test_batch_and_length_may_be_open(batch, steps):
    converted = jax2tf.convert(
        lstm(reverse=True),
        target=TARGET,
        assume_finite=True,
        polymorphic_shapes=["t, b, _", "b, _", "b, _"],
        with_gradient=False,
    )
    shapes = [None, None, FEATURES], [None, UNITS], [None, UNITS]
    function = tf.function(converted, autograph=False).get_concrete_function(
        *(tf.TensorSpec(shape) for shape in shapes)
    )
    assert has_op(function)
    check(function, lstm(reverse=True), given(batch=batch, steps=steps))


def test_weights_may_be_arguments():
    def fun(x, h, c, w, u, b):
        return lstm(lambda x, h: jnp.split(x @ w + h @ u + b, 4, -1))(x, h, c)

    args = [*given(), W, U, B]
    function = graph_of(fun, args)
    assert has_op(function)
    check(function, fun, args)


def another(update):
    """A scan whose step makes h and c of the gates and of c by `update`."""

    def run(x, h, c):
        return lax.scan(lambda s, x: (update(*of_one_product(x, s[0]), s[1]), None), (h, c), x)

    return run


@another
def relu_for_tanh(i, f, g, o, c):
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.nn.relu(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


@another
def gate_of_the_cell(i, f, g, o, c):
    c = jax.nn.sigmoid(f + c) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


@another
def output_of_the_old_cell(i, f, g, o, c):
    new = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), new


def bias_of_each_row(x, h, c):
    rows = array(BATCH, 4 * UNITS)

    def gates(x, h):
        return jnp.split(x @ W + h @ U + rows, 4, -1)

    return lstm(gates)(x, h, c)


def number_of_each_row(x, h, c):
    """There are as many rows as columns, so that shapes do not tell whose numbers these are."""
    w, u, numbers = W[:, :BATCH], U[:BATCH, :BATCH], array(BATCH)

    def gates(x, h):
        z = x @ w + h @ u + lax.broadcast_in_dim(numbers, (BATCH, BATCH), (0,))
        return z, z, z, z

    return lstm(gates)(x, h[:, :BATCH], c[:, :BATCH])


def another_carry(x, h, c):
    def step(carry, x):
        inner, n = carry
        inner, y = lax.scan(lambda s, _: (s, None), inner, None, length=1)[0], x.sum()
        return (inner, n + y), None

    return lax.scan(step, ((h, c), jnp.float32(0)), x)


@pytest.mark.parametrize(
    "fun",
    [
        relu_for_tanh,
        gate_of_the_cell,
        output_of_the_old_cell,
        bias_of_each_row,
        number_of_each_row,
        another_carry,
        lstm(shown="c"),
        lstm(shown="both"),
    ],
)
def test_what_is_no_lstm_stays_a_loop(fun):
    function = graph_of(fun, given())
    assert not has_op(function)
    check(function, fun, given())


def test_it_takes_a_target_that_has_it_and_finite_numbers():
    assert not has_op(graph_of(lstm(), given(), target="onnx"))
    guarded = jax2tf.convert(lstm(), target=TARGET, with_gradient=False)
    args = map(tf.constant, given())
    assert not has_op(tf.function(guarded, autograph=False).get_concrete_function(*args))


def test_no_steps_give_the_start():
    args = given(steps=0)
    check(graph_of(lstm(), args), lstm(), args)
