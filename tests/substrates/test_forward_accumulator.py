"""tf.autodiff.ForwardAccumulator: TensorFlow's derivatives along tangents."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of


def along(function, *pairs, then=lambda acc, y: acc.jvp(y)):
    """A program: the derivative of a function of tensors along tangents."""

    def program(tf):
        xs, ts = ([tf.constant(pair[i]) for pair in pairs] for i in (0, 1))
        with tf.autodiff.ForwardAccumulator(xs, ts) as acc:
            y = function(tf, *xs)
        found = then(acc, y)
        return "None" if found is None else found

    return program


X = ([1.5, -2.0], [1.0, 0.5])
Y = ([0.5, 3.0], [-1.0, 2.0])


def of_a_variable(tf):
    v = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, -1.0])) as acc:
        y = v * v
        inside = acc.jvp(y)
    return [inside, acc.jvp(y)]


def forward_over_reverse(tf):
    x = tf.constant([1.5, -2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3) * x[0]
        gradient = tape.gradient(y, x)
    return [gradient, acc.jvp(gradient)]


def reverse_over_forward(tf):
    x = tf.constant([1.5, -2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
            y = tf.reduce_sum(x**3)
        slope = acc.jvp(y)
    return [slope, tape.gradient(slope, x)]


def forward_over_forward(tf):
    x, t = tf.constant([1.5, -2.0]), tf.constant([1.0, 0.5])
    with tf.autodiff.ForwardAccumulator(x, t) as outer:
        with tf.autodiff.ForwardAccumulator(x, t) as inner:
            y = x**3
        slope = inner.jvp(y)
    return [slope, outer.jvp(slope)]


CASES = {
    "operators": along(lambda tf, x: x * x + 2.0 / x, X),
    "two tensors": along(lambda tf, x, y: tf.sin(x) * y, X, Y),
    "structures": along(lambda tf, x: {"a": x * 2, "b": (x**2,)}, X),
    "the primal itself": along(lambda tf, x: x, X),
    "unconnected": along(lambda tf, x: tf.constant(2.0), X),
    "unconnected zeros": along(
        lambda tf, x: tf.constant(2.0), X, then=lambda acc, y: acc.jvp(y, "zero")
    ),
    "complex": along(lambda tf, x: x * x * (1 + 2j), ([1 + 2j], [1j])),
    "matrices": along(lambda tf, x: tf.linalg.inv(x), (np.eye(2) * 2, np.ones([2, 2]))),
    "another dtype": along(lambda tf, x: x, ([1.0], np.array([1.0]))),
    "other structures": lambda tf: tf.autodiff.ForwardAccumulator([tf.ones([2])], tf.ones([2])),
    "a variable": of_a_variable,
    "forward over reverse": forward_over_reverse,
    "reverse over forward": reverse_over_forward,
    "forward over forward": forward_over_forward,
}


@over([Case(name, program, only=("jax",)) for name, program in CASES.items()])
def test_derivatives(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_inside_jit():
    tf = tf_of("jax")

    @jax.jit
    def f(x, t):
        with tf.autodiff.ForwardAccumulator(x, t) as acc:
            y = x * x
        return acc.jvp(y)

    assert f(np.float32(3), np.float32(2)) == 12


def test_what_is_refused():
    tf = tf_of("numpy")
    with pytest.raises(NotImplementedError, match=r"NumPy has no derivatives. What to do"):
        tf.autodiff.ForwardAccumulator(tf.ones([2]), tf.ones([2]))
    tf = tf_of("jax")
    with pytest.raises(ValueError, match=r"shape of a tangent, \(3,\).*primal, \(2,\)"):
        tf.autodiff.ForwardAccumulator(tf.ones([2]), tf.ones([3]))
