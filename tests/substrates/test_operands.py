"""Operators of JAX's arrays with lists beside them, as TensorFlow's tensors have them."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest
from jax.extend import source_info_util

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

PAIR = [2.0, -1.0]


def x(tf):
    return tf.constant([4.0, 3.0])


OPERATORS = [
    Case(name, program)
    for name, program in {
        "add": lambda tf: x(tf) + PAIR,
        "subtract": lambda tf: PAIR - x(tf),
        "multiply": lambda tf: PAIR * x(tf),
        "divide": lambda tf: x(tf) / PAIR,
        "divide by": lambda tf: PAIR / x(tf),
        "floor divide": lambda tf: x(tf) // PAIR,
        "modulo": lambda tf: x(tf) % PAIR,
        "power": lambda tf: x(tf) ** PAIR,
        "power of": lambda tf: [2, 3] ** x(tf),
        "matmul": lambda tf: [[1.0, 2.0]] @ tf.reshape(x(tf), [2, 1]),
        "less": lambda tf: x(tf) < PAIR,
        "greater": lambda tf: x(tf) >= PAIR,
        "equal": lambda tf: x(tf) == [4, 2],
        "not equal": lambda tf: x(tf) != [4, 2],
        "and": lambda tf: (x(tf) > 3.0) & [True, True],
        "a tuple": lambda tf: x(tf) * (1, 2),
        "nothing": lambda tf: tf.constant([], tf.float32) - [],
        "rows": lambda tf: x(tf) * [[1.0], [2.0]],
        "tensors in a list": lambda tf: x(tf) - [tf.constant(1.0), 2],
        "rows of two lengths": lambda tf: x(tf) * [[1.0], [2.0, 3.0]],
        "tensors of two dtypes": lambda tf: (
            x(tf) - [tf.constant(1.0, tf.float64), tf.constant(1.0, tf.float64)]
        ),
        "integers and floats": lambda tf: x(tf) - [1, 2.0],
        "complex on the left": lambda tf: [1j, 2.0] - x(tf),
    }.items()
]


@over(OPERATORS)
def test_operators_take_lists(case, substrate):
    assert_as_tensorflow(case, substrate)


def _in_place(make):
    """A tensor, and what an operator in place makes of it under another name."""

    def program(tf):
        first = make(tf)
        second = first
        second -= 1
        third = first
        third *= 3
        return [first, second, third]

    return program


@over(
    [
        Case("in place, of a list", _in_place(lambda tf: tf.constant([4, 3]))),
        Case("in place, of floats", _in_place(lambda tf: tf.constant([4.0, 3.0]))),
        Case("in place, of an array", _in_place(lambda tf: tf.identity(np.int32([4, 3])))),
        Case("in place, of a shape", _in_place(lambda tf: tf.shape(tf.zeros([2, 3])))),
        Case("in place, of a tensor", _in_place(lambda tf: tf.convert_to_tensor((4, 3), tf.int64))),
        Case("in place, of a row", _in_place(lambda tf: tf.constant([[4, 3]])[0])),
        Case("in place, of a range", _in_place(lambda tf: tf.range(3))),
        Case("in place, of a scalar", _in_place(lambda tf: tf.constant(3))),
    ]
)
def test_nothing_changes_in_place(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_operators_take_lists_under_jit_and_in_tapes():
    tf = tf_of("jax")

    def program(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.reduce_sum([1.0, 2.0] * x + [y, 3.0] * x)
        return tape.gradient(z, [x, y])

    a, b = np.float32([4.0, 3.0]), np.float32(5.0)
    expected = [[6.0, 5.0], 4.0]
    assert [g.tolist() for g in program(tf.constant(a), tf.constant(b))] == expected
    assert [g.tolist() for g in jax.jit(program)(a, b)] == expected


def test_other_operands_are_jaxs():
    with pytest.raises(TypeError):
        jax.numpy.ones(2) + None
    assert (jax.numpy.ones(2, np.int8) + np.ones(2, np.int16)).dtype == np.int16


def test_marked_arrays_of_numpy_take_the_dtype_of_a_tensor():
    attributes = importlib.import_module("tf_substrates.jax.tensor_attributes")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        weights = attributes.as_number(np.array([0.5, 2.0]))

        def both(x):
            return weights * x, x / weights

        for run in (both, jax.jit(both)):
            times, divided = run(jax.numpy.ones(2, np.float32))
            assert (times.dtype, divided.dtype) == (np.float32, np.float32)
            assert (times.tolist(), divided.tolist()) == ([0.5, 2.0], [2.0, 0.5])
        assert (weights * 2.0).dtype == np.float64
        # Of integers TensorFlow makes no floats, JAX does.
        assert (weights * jax.numpy.ones(2, np.int32)).dtype == np.float64
    finally:
        jax.config.update("jax_enable_x64", before)


def test_an_operator_stands_in_the_line_of_its_caller():
    tf_of("jax")
    (equation,) = jax.make_jaxpr(lambda x: x + np.float32(3))(np.ones(3, np.float32)).eqns
    assert source_info_util.summarize(equation.source_info).startswith(__file__)
