"""Loops, branches and lists of tensors as ONNX.

The functions compute with Sin, Cos and Exp, and with what the loops themselves need.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written

X = np.float32([[0.5, -1.0, 2.0], [0.25, 3.0, -0.5]])
KNOWN = tf.TensorSpec([2, 3], tf.float32)
OPEN = tf.TensorSpec([None, 3], tf.float32)
NUMBER = tf.TensorSpec([], tf.int32)
TRUTH = tf.TensorSpec([], tf.bool)


def _counting(n, x):
    """Applies cos `n` times, by a loop that counts up."""
    return tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, tf.cos(x)), (0, x))


@pytest.mark.parametrize("spec", [KNOWN, OPEN], ids=str)
def test_a_loop_that_counts_has_no_condition(spec):
    written = Written(lambda n, x: _counting(n, x)[1], NUMBER, spec)
    for n in (3, 1, 0, -2):
        written.check(np.int32(n), X, ulps=3)
    assert sorted(set(written.ops())) == ["Cast", "Cos", "Identity", "Loop"]


def test_a_known_number_of_steps():
    written = Written(lambda x: _counting(3, x)[1], KNOWN)
    written.check(X, ulps=3)
    assert sorted(written.ops()) == ["Cos", "Identity", "Loop"]


def test_the_number_after_the_last_step():
    written = Written(_counting, NUMBER, KNOWN)
    for n in (3, 0, -2):
        written.check(np.int32(n), X, ulps=3)


def test_a_condition_on_values():
    def function(x, limit):
        return tf.while_loop(
            lambda x, y: x[0, 0] < limit, lambda x, y: (tf.exp(x), x), (x, tf.sin(x))
        )

    written = Written(function, KNOWN, tf.TensorSpec([], tf.float32))
    for limit in (10.0, 0.0, np.nan):
        written.check(X, np.float32(limit), ulps=3)


def test_an_array_that_grows():
    def function(n, x):
        any_length = (tf.TensorShape([]), tf.TensorShape([None, *x.shape[1:]]))
        return tf.while_loop(
            lambda i, _: i < n,
            lambda i, x: (i + 1, tf.concat([x, 2 * x[:1]], 0)),
            (0, x),
            shape_invariants=any_length,
        )

    written = Written(function, NUMBER, KNOWN)
    for n in (0, 1, 3):
        written.check(np.int32(n), X)


def test_what_a_loop_passes_on_and_swaps():
    def function(n, x, y):
        return tf.while_loop(
            lambda i, *_: i < n, lambda i, x, y, z: (i + 1, y, x, z), (0, x, y, y)
        )[1:]

    written = Written(function, NUMBER, KNOWN, KNOWN)
    for n in (0, 1, 2, 3):
        written.check(np.int32(n), X, -X)


def test_nested_loops():
    def function(n, x):
        def step(i, x):
            return i + 1, _counting(i, x)[1]

        return tf.while_loop(lambda i, _: i < n, step, (0, x))[1]

    written = Written(function, NUMBER, OPEN, shapes={"x1": ("b", 3)})
    for n in (0, 1, 4):
        written.check(np.int32(n), X, ulps=8)


def test_a_function_that_is_called_twice():
    @tf.function
    def called(x):
        return tf.cos(x)

    written = Written(lambda x: called(called(x)), KNOWN)
    written.check(X, ulps=3)
    assert written.ops() == ["Cos", "Cos"]


def test_branches_give_their_operands():
    def function(p, x):
        return tf.cond(p, lambda: (x, x), lambda: (tf.sin(x), tf.zeros([2, 3])))

    written = Written(function, TRUTH, KNOWN)
    for p in (True, False):
        written.check(p, X, ulps=3)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_switch(n):
    branches = [lambda x: tf.sin(x), lambda x: tf.cos(x), lambda x: x, lambda x: tf.exp(x)]

    def function(i, x):
        return tf.switch_case(i, [lambda b=b: b(x) for b in branches[:n]])

    written = Written(function, NUMBER, KNOWN)
    for i in (*range(n), n, -1):
        written.check(np.int32(i), X, ulps=3)


def test_a_branch_in_a_loop_in_a_branch():
    def function(p, n, x):
        def step(i, x):
            return i + 1, tf.cond(p, lambda: tf.sin(x), lambda: tf.cos(x))

        def loop():
            return tf.while_loop(lambda i, _: i < n, step, (0, x))[1]

        return tf.cond(p, loop, lambda: x)

    written = Written(function, TRUTH, NUMBER, KNOWN)
    for p in (True, False):
        for n in (0, 2):
            written.check(p, np.int32(n), X, ulps=8)


def _stacked(n, x, *, at, spare=False, element_shape=(3,)):
    """The results of steps, written at `at(i, n)`; a spare element as JAX's scan has it."""
    places = n + 1 if spare else n
    array = tf.TensorArray(tf.float32, places, element_shape=element_shape)
    if spare:
        array = array.write(n, tf.zeros([3]))

    def step(i, row, array):
        row = tf.cos(row)
        return i + 1, row, array.write(at(i, n), row)

    _, row, array = tf.while_loop(lambda i, *_: i < n, step, (0, x, array))
    rows = array.stack()
    return row, rows[:n] if spare else rows


FORWARDS = {"at": lambda i, n: i}
BACKWARDS = {"at": lambda i, n: n - 1 - i}


@pytest.mark.parametrize("spare", [False, True])
@pytest.mark.parametrize("order", [FORWARDS, BACKWARDS], ids=["forwards", "backwards"])
def test_rows_of_steps_are_an_output_of_the_loop(order, spare):
    row = X[0]
    written = Written(lambda x: _stacked(4, x, spare=spare, **order), tf.TensorSpec([3]))
    written.check(row, ulps=8)
    assert "ScatterND" not in written.ops()
    function = lambda n, x: _stacked(n, x, spare=spare, **order)  # noqa: E731
    written = Written(function, NUMBER, tf.TensorSpec([3]))
    assert "ScatterND" not in written.ops()
    for n in (1, 4) if not spare else (0, 1, 4):
        written.check(np.int32(n), row, ulps=8)


def test_a_loop_may_carry_nothing():
    def function(x):
        array = tf.TensorArray(tf.float32, 4, element_shape=(3,))

        def step(i, array):
            return i + 1, array.write(i, tf.cos(x))

        return tf.while_loop(lambda i, _: i < 4, step, (0, array))[1].stack()

    written = Written(function, tf.TensorSpec([3]))
    assert "Loop" in written.ops()
    written.check(X[0], ulps=8)


def test_a_list_that_steps_write_anywhere():
    written = Written(
        lambda n, x: _stacked(n, x, at=lambda i, n: (i * 3) % n), NUMBER, tf.TensorSpec([3])
    )
    assert "ScatterND" in written.ops()
    written.check(np.int32(4), X[0], ulps=8)


def test_a_list_that_steps_read():
    def function(x):
        given = tf.TensorArray(tf.float32, 2, element_shape=[3]).unstack(x)
        return tf.while_loop(
            lambda i, _: i < 2, lambda i, y: (i + 1, tf.sin(given.read(i))), (0, x[0])
        )[1]

    Written(function, KNOWN).check(X, ulps=3)


def test_a_loop_reads_a_variable():
    variable = tf.Variable(X)

    def function(n):
        return tf.while_loop(
            lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(variable)), (0, tf.cos(variable))
        )[1]

    written = Written(function, NUMBER)
    for n in (0, 2):
        written.check(np.int32(n), ulps=3)
