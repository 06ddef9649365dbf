"""Tapes around branches and loops whose decision JAX traces: TensorFlow's derivatives."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

X = np.array([1.5, 0.75, 2.0], np.float32)
W = np.array([0.5, 2.0, 1.25], np.float32)


def _inner(tf, p, x, w):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cond(p > 0.0, lambda: x * x * w, lambda: x)
    return tape.gradient(y, x)


def _until(tf, total, x, w):
    return tf.while_loop(
        lambda y: tf.reduce_sum(y) < total, lambda y: (y * 1.2 * tf.sqrt(x) / 1.1,), (x * w,)
    )[0]


def _written(tf, p, x, w):
    array = tf.TensorArray(tf.float32, size=4, element_shape=[3])
    return tf.while_loop(
        lambda i, y, array: i < tf.cast(p + 3.0, tf.int32),
        lambda i, y, array: (i + 1, y * x, array.write(i, y[0] * x * w)),
        (0, x, array),
    )[2].stack()


# Of a number that decides, the watched tensor, a variable and a known tensor.
PROGRAMS = {
    "cond": lambda tf, p, x, v, k: tf.cond(p > 0.0, lambda: x * x * v, lambda: tf.sin(x) * k),
    "cond of what is there": lambda tf, p, x, v, k: tf.cond(p > 0.0, lambda: x, lambda: v.value()),
    "cond of arrays and numbers": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: 2.0 / x + W - x, lambda: x[0] * W
    ),
    "cond in cond": lambda tf, p, x, v, k: tf.cond(
        p > 0.0,
        lambda: tf.cond(x[0] > 0.5, lambda: x * x * x, lambda: v * x),
        lambda: x[::-1] * x,
    ),
    "cond without": lambda tf, p, x, v, k: tf.cond(p > 0.0, lambda: k, lambda: k * 2.0),
    "cond of a structure": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: {"a": [x * v], "b": 1}, lambda: {"a": [k + x], "b": 2}
    )["a"][0],
    "a tape in a branch": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: _inner(tf, p - 0.5, x, v), lambda: x * k
    ),
    "a loop over rows in a branch": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: tf.map_fn(lambda row: row * x[1] * row, x), lambda: x
    ),
    "a function in a branch": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: tf.function(lambda y: y * x * v)(x), lambda: x
    ),
    "case": lambda tf, p, x, v, k: tf.case(
        [(p > 0.0, lambda: x * v), (p > -2.0, lambda: x * x * x)], default=lambda: k
    ),
    "switch_case": lambda tf, p, x, v, k: tf.switch_case(
        tf.cast(p + 1.0, tf.int32), [lambda: x * v, lambda: x * x], default=lambda: k * x * x
    ),
    "a loop with a limit": lambda tf, p, x, v, k: tf.while_loop(
        lambda i, y: tf.reduce_sum(y) < p * 20.0,
        lambda i, y: (i + 1, y * x * v + y),
        (0, x),
        maximum_iterations=3,
    )[1],
    "a loop": lambda tf, p, x, v, k: _until(tf, 50.0 + p, x, v),
    "a loop of a hundred steps": lambda tf, p, x, v, k: tf.while_loop(
        lambda i, y: i < tf.cast(100.0 + 5.0 * p, tf.int32),
        lambda i, y: (i + 1, tf.sin(y * 1.1 * x) + v * 0.1),
        (0, x * k),
    )[1],
    "a loop of no steps": lambda tf, p, x, v, k: _until(tf, p * 0.0, x, v),
    "a loop in a branch": lambda tf, p, x, v, k: tf.cond(
        p > 0.0, lambda: _until(tf, 20.0, x, v), lambda: x
    ),
    "a branch in a loop": lambda tf, p, x, v, k: tf.while_loop(
        lambda y: tf.reduce_sum(y) < 30.0 + p,
        lambda y: (tf.cond(y[0] > 2.0, lambda: y * 1.5 + x, lambda: y * v + x + 0.2),),
        (x * k,),
    )[0],
    "a loop in a loop": lambda tf, p, x, v, k: tf.while_loop(
        lambda y: tf.reduce_sum(y) < 30.0 + p,
        lambda y: (_until(tf, tf.reduce_sum(y) + 5.0, y, v),),
        (x + 0.5,),
    )[0],
    "a loop that writes": lambda tf, p, x, v, k: _written(tf, p, x, v),
}


def _in_function(tf, derivative):
    function = tf.function(derivative)
    return [function(tf.constant(X), tf.constant(p)) for p in (1.0, -1.0)]


def _gradient(program):
    def run(tf):
        v, k = tf.Variable(W), tf.constant(W)

        def derivative(x, p):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = program(tf, p, x, v, k)
            return tape.gradient(y, [x, v])

        return _in_function(tf, derivative)

    return run


def _second(program):
    def run(tf):
        v, k = tf.Variable(W), tf.constant(W)

        def derivative(x, p):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = program(tf, p, x, v, k) * x
                first = tape.gradient(y, x)
            return outer.gradient(first, x)

        return _in_function(tf, derivative)

    return run


@over([Case(name, _gradient(f), 2e-5, 1e-6, only=("jax",)) for name, f in PROGRAMS.items()])
def test_gradients(case, substrate):
    assert_as_tensorflow(case, substrate)


SECOND = ("cond", "cond in cond", "a loop", "a loop in a branch")


@over([Case(n, _second(PROGRAMS[n]), 2e-5, 1e-6, only=("jax",)) for n in SECOND])
def test_second_derivatives(case, substrate):
    assert_as_tensorflow(case, substrate)


def _mixed(tf, name, x, p, outer, inner):
    """A derivative of a derivative, each of a direction."""
    v, k = tf.Variable(W), tf.constant(W)
    program = lambda y: PROGRAMS[name](tf, p, y, v, k) * y  # noqa: E731
    return _derived(tf, outer, lambda y: _derived(tf, inner, program, y), x)


def _derived(tf, direction, function, x):
    if direction == "forward":
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = function(x)
        return accumulator.jvp(y)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("name", ["cond", "a loop", "a loop in a branch", "a branch in a loop"])
@pytest.mark.parametrize("outer", ["forward", "reverse"])
@pytest.mark.parametrize("inner", ["forward", "reverse"])
def test_directions_in_any_order(name, outer, inner):
    """What TensorFlow does not derive itself in graphs, in eager mode, where nothing is traced."""
    tf = tf_of("jax")
    x, p = tf.constant(X), tf.constant(1.0)
    compiled = jax.jit(lambda x, p: _mixed(tf, name, x, p, outer, inner))(x, p)
    np.testing.assert_allclose(compiled, _mixed(tf, name, x, p, outer, inner), rtol=2e-5)


@pytest.mark.parametrize("steps", [0, 1, 31, 32, 33, 64, 100, 1500])
def test_loops_keep_some_of_their_steps(steps):
    tf = tf_of("jax")

    def last(x, n):
        return tf.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, tf.sin(y) + x * 0.9), (0, x * x)
        )[1]

    def gradient(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = last(x, n)
        return tape.gradient(y, x)

    def of_scan(x):
        return jax.lax.scan(lambda y, _: (jax.numpy.sin(y) + x * 0.9, None), x * x, length=steps)[0]

    np.testing.assert_allclose(
        jax.jit(gradient)(0.75, steps), jax.grad(of_scan)(jax.numpy.float32(0.75)), rtol=1e-5
    )


def test_rows_of_their_own_numbers_of_steps():
    tf = tf_of("jax")

    def gradient(x, total):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda y: y < total, lambda y: (y * x,), (x,))[0]
        return tape.gradient(y, x)

    totals = np.array([1.0, 4.0, 30.0], np.float32)
    each = [jax.jit(gradient)(2.0, total) for total in totals]
    assert each == [1.0, 4.0, 80.0]
    rows = jax.jit(jax.vmap(gradient, (None, 0)))(np.float32(2.0), totals)
    np.testing.assert_allclose(rows, each)


def test_integers_and_keys_beside_what_is_watched():
    tf = tf_of("jax")

    def gradient(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            start = (0, tf.constant([1, 2]), x)
            _, _, y = tf.while_loop(
                lambda i, seed, y: i < n,
                lambda i, seed, y: (i + 1, seed + 1, y * x + tf.random.stateless_uniform([], seed)),
                start,
            )
        return tape.gradient(y, x)

    def of_python(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in range(n):
                y = y * x + tf.random.stateless_uniform([], tf.constant([1 + i, 2 + i]))
        return tape.gradient(y, x)

    expected = of_python(tf.constant(1.5), 3)
    np.testing.assert_allclose(jax.jit(gradient)(1.5, 3), expected, rtol=1e-6)
