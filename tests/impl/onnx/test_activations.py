"""Activations in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.running import Written
from tests.impl.onnx.special_numbers import FLOATS, NUMBERS, numbers, random

RAW = tf.raw_ops


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16"])
@pytest.mark.parametrize("op", ["Relu", "Relu6"])
def test_relu(op, dtype):
    # TensorFlow's kernel gives either zero of -0.0.
    check(lambda x: getattr(RAW, op)(features=x), numbers(dtype), signs=False)


@pytest.mark.parametrize(
    ("dtype", "relative"), [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)]
)
@pytest.mark.parametrize("op", ["Elu", "LeakyRelu", "Softsign"])
def test_activations(op, dtype, relative):
    x = numbers(dtype)
    check(lambda x: getattr(RAW, op)(features=x), x[np.abs(x) < 1e4], relative=relative)


@pytest.mark.parametrize("op", ["Elu", "LeakyRelu"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_of_nan_and_infinity(op, dtype):
    x = np.array([np.nan, np.inf, -np.inf], dtype)
    check(lambda x: getattr(RAW, op)(features=x), x)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float16", 1e-3), ("float32", 2e-7), ("float64", 1e-15)]
)
def test_sigmoid(dtype, tolerance):
    check(lambda x: RAW.Sigmoid(x=x), numbers(dtype), relative=tolerance)


@pytest.mark.parametrize(
    ("dtype", "relative"), [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)]
)
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op, dtype, relative):
    for shape in ((3, 7), (2, 0), (2, 3, 4)):
        check(lambda x: getattr(RAW, op)(logits=x), random(shape, dtype), relative=relative)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_a_row_with_a_nan_is_nan(op, dtype):
    # So it is in JAX. TensorFlow's kernel of float32 gives zeros beside the NaN.
    x = np.array([[1, np.nan, 3], [1, 2, 3]], dtype)
    written = Written(lambda x: getattr(RAW, op)(logits=x), tf.TensorSpec([None, 3], x.dtype))
    assert np.isnan(written.run(x)[0]).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["int32", "uint64", *FLOATS])
def test_biases(dtype):
    x = random((2, 3, 4, 5), dtype)
    check(lambda x, y: RAW.BiasAdd(value=x, bias=y), x, x[0, 0, 0])
    by_channel = x[0, :, 0, 0].copy()
    check(lambda x, y: RAW.BiasAdd(value=x, bias=y, data_format="NCHW"), x, by_channel)
