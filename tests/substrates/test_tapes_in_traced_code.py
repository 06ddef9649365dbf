"""Tapes in code that JAX traces, with known arrays beside traced ones: TensorFlow's derivatives."""

from __future__ import annotations

import operator

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

X = np.array([1.5, 0.75, 2.0], np.float32)
W = np.array([0.5, 2.0, 1.25], np.float32)

# How a function of one tensor is called, by where its code then stands.
CONTEXTS = {
    "function": lambda tf, f, x: tf.function(f)(x),
    "function in function": lambda tf, f, x: tf.function(lambda y: tf.function(f)(y * 2.0))(x),
    "while_loop": lambda tf, f, x: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, f(y)), (0, x)
    )[1],
    "map_fn": lambda tf, f, x: tf.map_fn(f, tf.stack([x, x + 1.0])),
    "vectorized_map": lambda tf, f, x: tf.vectorized_map(f, tf.stack([x, x + 1.0])),
    "scan": lambda tf, f, x: tf.scan(lambda s, row: f(s) + row, tf.stack([x, x, x])),
    "foldl": lambda tf, f, x: tf.foldl(lambda s, row: f(s) + row, tf.stack([x, x, x])),
    "cond": lambda tf, f, x: tf.function(lambda y: tf.cond(y[0] > 0.0, lambda: f(y), lambda: y))(x),
}

# What stands beside the watched tensor, known when the code is traced.
OTHERS = {
    "a tensor": lambda tf: tf.constant(W),
    "a variable": lambda tf: tf.Variable(W),
    "an array": lambda tf: W,
    "a NumPy scalar": lambda tf: np.float32(1.5),
    "a number": lambda tf: 1.5,
}
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.pow]


def _gradient(function):
    """The gradient of a function of the tape's module, a known operand and the watched tensor."""

    def program(tf, context, make):
        other = make(tf)

        def derivative(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(tf, other, x)
            return tape.gradient(y, x)

        return context(tf, derivative, tf.constant(X))

    return program


def _all_operators(tf, other, x):
    total = x
    for function in OPERATORS:
        total = total + function(other, x) + function(x, other)
    total *= other
    return total + other * 2.0


def _program(context, make):
    return lambda tf: _gradient(_all_operators)(tf, context, make)


@over(
    [
        Case(
            f"{other} in {context}", _program(CONTEXTS[context], OTHERS[other]), 1e-5, only=("jax",)
        )
        for context in CONTEXTS
        for other in OTHERS
    ]
)
def test_operators_beside_known_operands(case, substrate):
    assert_as_tensorflow(case, substrate)


def _matrices(tf):
    matrix = tf.constant(np.outer(X, W))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(matrix @ x[:, None] * matrix[:2, 1][0]) + tf.reduce_sum(
                x[None] @ matrix
            )
            z = sum(x[i] * matrix[0, i] for i in range(3))
        return tape.gradient([y, z], x)

    return step(tf.constant(X))


def _known_is_watched(tf):
    @tf.function
    def step(x):
        known = tf.constant(W)
        with tf.GradientTape() as tape:
            tape.watch(known)
            y = np.float32(2.0) * known + W * known
            y *= known
            y = y + x * known
        return tape.gradient(y, known)

    return step(tf.constant(X))


def _forward(tf):
    w = tf.constant(W)

    @tf.function
    def step(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = w * x / (w + x)
        return accumulator.jvp(y)

    return step(tf.constant(X))


def _nested(tf):
    w = tf.constant(W)

    @tf.function
    def step(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = w * x * x / (w + x)
            first = inner.gradient(y, x)
            second = w * first
        return outer.gradient(first, x), outer.gradient(second, x)

    return step(tf.constant(X))


def _trained(tf):
    target, w = tf.constant(X), tf.Variable(W)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((target - w) ** 2 + W * w)
        return tape.gradient(loss, w)

    return step()


def _in_own_gradient(tf):
    w = tf.constant(W)

    @tf.custom_gradient
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = w * x * x
        slope = tape.gradient(y, x)
        return y, lambda upstream: upstream * slope

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = w * f(x)
    return tape.gradient(y, x), tf.function(f)(x)


@over(
    [
        Case(name, program, 1e-5, only=("jax",))
        for name, program in {
            "matrices and indices": _matrices,
            "a known tensor is watched": _known_is_watched,
            "a forward accumulator": _forward,
            "nested tapes": _nested,
            "a step of training": _trained,
            "a tape in a function with its own gradient": _in_own_gradient,
        }.items()
    ]
)
def test_tapes(case, substrate):
    assert_as_tensorflow(case, substrate)


METHODS = {
    "sum": lambda w, x: w.sum() * x.sum(),
    "reshape": lambda w, x: (w * x).reshape(3, 1).T @ w.reshape(3, 1),
    "dot": lambda w, x: w.dot(x),
    "astype": lambda w, x: x.astype(np.float16).astype(np.float32) * w,
    "at": lambda w, x: w.at[1].set(x[0] * 2.0) * x.at[:2].mul(w[0]),
    "max": lambda w, x: (w * x).max() - x.mean(),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_methods_of_arrays(name, how):
    tf = tf_of("jax")
    w = tf.constant(W)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = METHODS[name](w, x)
        return tape.gradient(y, x)

    expected = jax.grad(lambda x: METHODS[name](w, x).sum())(jax.numpy.asarray(X))
    np.testing.assert_allclose(how(gradient)(tf.constant(X)), expected, rtol=1e-5)


def test_classes_of_arrays_have_their_own_members_afterwards():
    tf = tf_of("jax")
    known_arrays = type(tf.constant(1.0))
    before = [dict(vars(owner)) for owner in (known_arrays, jax.core.Tracer)]

    @jax.jit
    def fails(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails(1.0)
    assert [dict(vars(owner)) for owner in (known_arrays, jax.core.Tracer)] == before
