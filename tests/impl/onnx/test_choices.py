"""Choices in ONNX Runtime against TensorFlow."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, NUMBERS, SIGNED, numbers

RAW = tf.raw_ops


def _select(condition, this, that):
    return RAW.SelectV2(condition=condition, t=this, e=that)


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool", "bfloat16"])
def test_a_choice_of_arrays(dtype):
    x = numbers(dtype)
    condition = np.arange(len(x)) % 3 == 0
    check(_select, condition, x, x[::-1].copy())
    check(_select, condition[:, None], x[None], x[0])


@pytest.mark.parametrize("dtype", ["int16", "uint64", "bool", "float32"])
@pytest.mark.parametrize("condition", [True, False])
def test_a_choice_by_a_scalar(dtype, condition):
    x = numbers(dtype)
    check(_select, np.array(condition), x, x[::-1].copy())
    check(_select, np.array(condition), x[1], x[0])
    check(_select, np.array(condition), x[:0], x[:0])


_SHAPES = [(), (4,), (3, 1), (3, 4)]


@pytest.mark.parametrize("condition", _SHAPES)
def test_zeros_keep_their_signs_whatever_the_shapes(condition):
    chosen = np.arange(np.prod(condition, dtype=int)).reshape(condition) % 2 == 0
    for this, that in itertools.product(_SHAPES, repeat=2):
        for first, second in ((-0.0, 1.0), (1.0, -0.0)):
            x, y = np.full(this, first, "f"), np.full(that, second, "f")
            check(_select, chosen, x, y, are_open=(False,))


_X = np.array([-0.0, 0.0, -1, 2, np.nan, np.inf], np.float32)
# TensorFlow keeps the tensor of a number, and gives it for 0.0 as for -0.0.
_NEGATIVE_ZERO = np.full([1], -0.0, np.float32)
_C = np.array([True, False, True, False, True, True])


@pytest.mark.parametrize(
    ("function", "n_choices"),
    [
        (lambda c, x: RAW.Reciprocal(x=_select(c, x, x)), 2),
        (lambda c, x: RAW.Reciprocal(x=_select(c, x, tf.constant(3.0))), 1),
        (lambda c, x: RAW.Reciprocal(x=_select(c, tf.constant(_NEGATIVE_ZERO), x)), 2),
        (lambda c, x: RAW.Reciprocal(x=_select(c, RAW.Abs(x=x), x)), 1),
        (lambda c, x: RAW.Neg(x=_select(RAW.LogicalNot(x=c), x, tf.constant(3.0))), 1),
        # Nobody can tell.
        (lambda c, x: RAW.Exp(x=_select(c, x, RAW.Neg(x=x))), 1),
        (lambda c, x: RAW.AddV2(x=_select(c, x, RAW.Neg(x=x)), y=tf.constant(1.0)), 1),
        (lambda c, x: RAW.Less(x=_select(c, x, RAW.Neg(x=x)), y=x), 1),
        (lambda c, x: RAW.Abs(x=RAW.Reshape(tensor=_select(c, x, RAW.Neg(x=x)), shape=[2, 3])), 1),
    ],
)
def test_signs_of_zeros_that_a_reader_tells(function, n_choices):
    assert check(function, _C, _X, are_open=(True, False)).count("Where") == n_choices


def test_integers_decide_by_the_opposite_comparison():
    def function(i, x):
        return _select(RAW.Less(x=i, y=tf.constant(3)), x, tf.constant(7.0))

    i = np.arange(6, dtype=np.int32)
    assert check(function, i, _X, are_open=(True, False)) == ["GreaterOrEqual", "Where"]


def test_numbers_that_are_not_chosen_do_not_matter():
    x = np.array([1, np.nan, np.inf, -np.inf, -0.0, 2], np.float32)
    check(lambda x: _select(RAW.IsFinite(x=x), tf.constant(0.0), x), x)
    check(lambda x: _select(RAW.IsFinite(x=x), x, tf.constant(0.0)), x)


def test_a_negation_is_no_node():
    x = numbers("float32")
    y = x[::-1].copy()
    ops = check(lambda x, y: RAW.Abs(x=_select(RAW.NotEqual(x=x, y=y), x, y)), x, y)
    assert ops == ["Equal", "Where", "Abs"]


@pytest.mark.parametrize("constant", [True, False])
def test_a_choice_of_a_known_bool_is_logic(constant):
    condition, x = (np.array(x) for x in ([True, True, False, False], [True, False, True, False]))
    number = tf.constant(constant)
    for select in (lambda c, x: _select(c, number, x), lambda c, x: _select(c, x, number)):
        assert len(check(select, condition, x)) <= 2
        check(select, condition[:, None], x)


def test_a_zero_that_stands_second_keeps_its_sign():
    x = numbers("float32")
    check(lambda x: _select(RAW.NotEqual(x=x, y=x), tf.constant(np.float32(np.nan)), x), x)
    check(lambda x: _select(RAW.NotEqual(x=x, y=1 / x), x, tf.constant(np.float32(3))), x)


@pytest.mark.parametrize("dtype", [*SIGNED, "uint8", "uint16", *FLOATS, "bfloat16"])
def test_numbers_are_clipped(dtype):
    def clip(x):
        low, high = tf.constant(1, x.dtype), tf.constant(5, x.dtype)
        return RAW.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)

    check(clip, numbers(dtype), signs=False)
