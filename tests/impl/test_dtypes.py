"""The dtypes of tensors that rules use, beside TensorFlow's of the same names."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

from jax2tf._src.util import dtypes, tensors

BY_NAME = pytest.mark.parametrize("name", dtypes.DTYPES)


def test_none_is_missing():
    of_jax = {dtype.name for dtype in vars(tf.dtypes).values() if isinstance(dtype, tf.DType)}
    of_jax = {name for name in of_jax if dtypes.is_of_jax(tf.as_dtype(name))}
    assert of_jax <= set(dtypes.DTYPES) | {"float4_e2m1fn", "int2", "uint2"}
    assert not any(map(dtypes.is_of_jax, (tf.string, tf.resource, tf.variant, tf.qint8)))


@BY_NAME
def test_it_is_equal_to_tensorflows(name):
    dtype, of_tensorflow = dtypes.DTYPES[name], tf.as_dtype(name)
    assert dtype == of_tensorflow
    assert of_tensorflow == dtype
    assert dtype in {of_tensorflow}
    assert of_tensorflow in {dtype}
    assert {dtype: 1}[of_tensorflow] == {of_tensorflow: 1}[dtype] == 1
    assert [x for x in dtypes.DTYPES.values() if x == of_tensorflow] == [dtype]


@BY_NAME
def test_it_says_the_same_as_tensorflows(name):
    dtype, of_tensorflow = dtypes.DTYPES[name], tf.as_dtype(name)
    kinds = ["is_floating", "is_complex", "is_bool", "is_integer", "is_unsigned"]
    for attribute in ["name", "size", "as_numpy_dtype", "real_dtype", *kinds]:
        assert getattr(dtype, attribute) == getattr(of_tensorflow, attribute), attribute
    if dtype.is_integer or dtype.is_floating:
        for attribute in ("min", "max"):
            limit, expected = getattr(dtype, attribute), getattr(of_tensorflow, attribute)
            assert (limit, type(limit)) == (expected, type(expected))


@BY_NAME
def test_functions_take_it(name):
    dtype = dtypes.DTYPES[name]
    assert np.zeros(2, dtype).dtype == dtype.dtype
    assert tf.TensorSpec([], dtype).dtype == tf.as_dtype(dtype) == dtype
    assert tf.constant(np.zeros(2, dtype)).dtype == dtype
    assert dtypes.to_tf(dtype.dtype) is dtype


def test_ops_take_it():
    x = tf.zeros([2])
    assert tf.cast(x, dtypes.bfloat16).dtype == tf.bfloat16
    assert tf.raw_ops.Cast(x=x, DstT=dtypes.bfloat16).dtype == dtypes.bfloat16
    assert tf.bitcast(x, dtypes.int32).dtype == tf.int32


@BY_NAME
def test_a_copy_has_its_attributes(name):
    dtype = dtypes.DTYPES[name]
    for copied in (copy.deepcopy(dtype), pickle.loads(pickle.dumps(dtype))):
        assert (copied, copied.name, copied.dtype) == (dtype, name, dtype.dtype)
    assert f"{dtype} {dtype!r}" == f"{name} {name}"


@pytest.mark.parametrize(
    ("protocol", "of_tensorflow"),
    [
        (tensors.Tensor, type(tf.zeros([]))),
        (tensors.TensorShape, tf.TensorShape),
        (tensors.Operation, tf.Operation),
    ],
)
def test_tensors_answer_what_rules_ask(protocol, of_tensorflow):
    questions = {name for name in vars(protocol) if not name.startswith("_")}
    assert questions
    assert questions <= set(dir(of_tensorflow))
