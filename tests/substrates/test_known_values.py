"""What is computed of known numbers stays known while JAX traces."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, tf_of

tf = tf_of("jax")


def steps(y):
    times = tf.constant([0.1, 0.5])
    count = tf.reduce_max(tf.cast(tf.math.ceil(times / 0.1), tf.int32))
    distinct, _ = tf.unique(tf.concat([times, -times, times], 0))
    return tf.zeros(count) + y, distinct


def in_place(y):
    first = tf.constant([1.0, 2.0])
    second = first
    second *= 3.0
    return first + second * y


def at_traced_places(y):
    grid = tf.constant([1.0, 2.0, 4.0])

    def body(i, x):
        return i + 1, x + grid[i]

    return tf.while_loop(lambda i, x: i < 3, body, (0, y))


def with_a_tape(y):
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(x**2 * 2.0 - tf.sin(x) / x + y * x)
    return tape.gradient(total, x)


def forward_by_two_tapes(y):
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            z = -tf.constant([0.5, 0.25]) * x
        w = tf.ones_like(z)
        outer.watch(w)
        g = inner.gradient(z, x, output_gradients=w)
    return outer.gradient(g, w) + 0 * y


def rows(y):
    return [a * y for a in tf.constant([1.0, 2.0])] + [2.0 - tf.constant(1.0), y @ y]


PROGRAMS = [steps, in_place, at_traced_places, with_a_tape, forward_by_two_tapes, rows]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_compiled_is_as_eager(program):
    y = np.ones((1, 1), np.float32) if program is rows else np.float32(2)
    expected = jax.tree.leaves(program(tf.constant(y)))
    actual = jax.tree.leaves(jax.jit(program)(y))
    assert [a.dtype for a in actual] == [e.dtype for e in expected]
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


FLOATS = [1.5, 2]
OPERATORS_OF_KNOWN_TENSORS = [
    Case(name, program)
    for name, program in {
        "a float and an integer tensor": lambda tf: tf.constant(2.0) ** tf.constant(2),
        "two widths": lambda tf: tf.constant(2.0) * tf.constant(2.0, tf.float64),
        "an integer and a float": lambda tf: tf.constant(2) + 1.5,
        "a float to an integer": lambda tf: 2.0 ** tf.constant([2, 1]),
        "a negative power": lambda tf: tf.constant([2, 1]) ** -1,
        "abs of booleans": lambda tf: abs(tf.constant([True])),
        "an array of NumPy's": lambda tf: tf.constant([2.0, 1.0]) ** np.array([2, 3]),
        "a tuple": lambda tf: tf.constant([2.0, 1.0]) * (1, 2),
        "a list of floats": lambda tf: tf.constant([2, 1]) + FLOATS,
        "rows of two lengths": lambda tf: tf.constant([2.0, 1.0]) * [[1.0], [2.0, 3.0]],
        "a function of NumPy's": lambda tf: (
            tf.constant(2.0) * np.sqrt(tf.constant(2.0, tf.float64))
        ),
    }.items()
]


@pytest.mark.parametrize("case", OPERATORS_OF_KNOWN_TENSORS, ids=lambda case: case.name)
def test_operators_of_known_tensors_are_tensorflows(case):
    def program(module):
        compiled = jax.jit if module is tf else lambda function: function
        return compiled(lambda: case.program(module))()

    assert_as_tensorflow(dataclasses.replace(case, program=program), "jax")


def test_known_integers_and_booleans_at_traced_places():
    def program(i):
        return tf.constant([5, 6, 7])[i], tf.constant([True, False, True])[i]

    assert [int(x) for x in jax.jit(program)(1)] == [6, 0]


def test_numbers_beside_a_known_tensor_take_its_dtype():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        x = tf.constant([1.0], tf.float32)
        assert jax.jit(lambda: tf.constant([1.0]) * np.float64(2) + np.ones(1))().dtype == x.dtype
        with pytest.raises(ValueError, match="requested dtype float64 for Tensor"):
            jax.jit(lambda: tf.convert_to_tensor(tf.constant(1.0), tf.float64))()
    finally:
        jax.config.update("jax_enable_x64", before)
    # Without 64-bit types there are none of known numbers either.
    assert jax.jit(lambda: tf.constant(1.0, tf.float64) + 1)().dtype == (
        np.float64 if before else np.float32
    )


def test_known_numbers_are_tensors():
    def program():
        x = tf.constant(1.5)
        assert tf.is_tensor(x)
        assert tf.is_tensor(-x / 2)
        return float(x)

    assert jax.jit(program)() == 1.5


def test_many_known_numbers_are_left_to_the_compiled_program():
    jaxpr = jax.make_jaxpr(lambda: tf.reduce_sum(tf.ones([100, 100]) * 2.0))()
    assert "reduce_sum" in str(jaxpr)
    assert not jaxpr.consts


class _Deferred:
    """Stands for a tensor, whose methods it calls, as libraries write it."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return type(self.value).__add__(self.value, other)

    def __radd__(self, other):
        return type(self.value).__radd__(self.value, other)


def test_what_stands_for_a_known_tensor_is_added_to_a_traced_one():
    def sums(y):
        deferred = _Deferred(tf.constant([1.0, 2.0]))
        return y + deferred, deferred + y

    for total in jax.jit(sums)(np.float32(0.5)):
        np.testing.assert_array_equal(total, np.float32([1.5, 2.5]))


def test_an_identity_is_a_tensor_of_its_own():
    def differ(y):
        known, computed = tf.constant([1.0, 2.0]), y * 2
        for tensor in (known, computed):
            assert tf.identity(tensor) is not tensor
            assert tf.identity_n([tensor])[0] is not tensor
        return tf.identity(computed), tf.identity(known)

    for results in (differ(jax.numpy.float32(-0.0)), jax.jit(differ)(np.float32(-0.0))):
        assert np.signbit(results[0])
        np.testing.assert_array_equal(results[1], np.float32([1, 2]))
    numpy = tf_of("numpy")
    tensor = numpy.constant([1.0, 2.0])
    assert numpy.identity(tensor) is not tensor
    assert jax.grad(lambda y: tf.identity(y) * y)(3.0) == 6.0
