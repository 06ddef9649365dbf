"""Choices in ONNX Runtime against TensorFlow."""

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
    check(_select, condition, x, x[::-1].copy(), signs=False)
    check(_select, condition[:, None], x[None], x[0], signs=False)


@pytest.mark.parametrize("dtype", ["int16", "uint64", "bool", "float32"])
@pytest.mark.parametrize("condition", [True, False])
def test_a_choice_by_a_scalar(dtype, condition):
    x = numbers(dtype)
    check(_select, np.array(condition), x, x[::-1].copy(), signs=False)
    check(_select, np.array(condition), x[1], x[0])
    check(_select, np.array(condition), x[:0], x[:0])


def test_numbers_that_are_not_chosen_do_not_matter():
    x = np.array([1, np.nan, np.inf, -np.inf, -0.0, 2], np.float32)
    check(lambda x: _select(RAW.IsFinite(x=x), tf.constant(0.0), x), x)
    check(lambda x: _select(RAW.IsFinite(x=x), x, tf.constant(0.0)), x, signs=False)


def test_a_negation_is_no_node():
    x = numbers("float32")
    ops = check(lambda x, y: _select(RAW.NotEqual(x=x, y=y), x, y), x, x[::-1].copy(), signs=False)
    assert ops == ["Equal", "Where"]


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
