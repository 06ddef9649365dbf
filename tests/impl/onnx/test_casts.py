"""Casts in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, INTEGERS, NUMBERS, numbers

RAW = tf.raw_ops


def _within(x, dtype):
    """The numbers that an integer of the dtype can hold: a cast of others is undefined."""
    ends = np.iinfo(dtype)
    x = x[np.isfinite(x)].astype(np.float64)
    return x[(x >= ends.min) & (x < float(ends.max))]


@pytest.mark.parametrize("target", [*NUMBERS, "bool", "bfloat16"])
@pytest.mark.parametrize("source", [*NUMBERS, "bool"])
def test_a_cast(source, target):
    x = numbers(source)
    if source in FLOATS and target in INTEGERS:
        x = _within(x, target).astype(source)
    check(lambda x: RAW.Cast(x=x, DstT=getattr(tf, target)), x)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_are_read_as_others(source, target):
    if np.dtype(source).itemsize == np.dtype(target).itemsize:
        check(lambda x: RAW.Bitcast(input=x, type=getattr(tf, target)), numbers(source))


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "int32"), ("int64", "float64"), ("uint16", "float16")]
)
def test_bits_of_floats_need_a_new_opset(source, target):
    def read(x):
        return RAW.Bitcast(input=x, type=getattr(tf, target))

    check(read, numbers(source), opset=26)
    with pytest.raises(NotImplementedError, match=f"bits of {source} as {target}"):
        check(read, numbers(source))
