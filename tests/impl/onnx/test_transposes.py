"""Transposes around convolutions meet and go."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written

IMAGE = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32)
FILTER = np.random.default_rng(1).normal(size=(3, 3, 3, 3)).astype(np.float32)
BIAS = np.float32([0.5, -1.0, 2.0])


def _conv(x):
    return tf.nn.conv2d(x, FILTER, 1, "SAME")


def _same(x):
    return tf.transpose(tf.transpose(x, [0, 3, 1, 2]), [0, 2, 3, 1])


CASES = {
    "bias and relu": (lambda x: _conv(tf.nn.relu(_conv(x) + BIAS)), 2),
    "a scalar": (lambda x: _conv(tf.tanh(_conv(x) * 2.0)), 2),
    "a branch": (lambda x: _conv(tf.nn.relu(_conv(x)) + _conv(x)), 2),
    "an operand in the order of channels last": (lambda x: _conv(_conv(x) + x), 4),
    "a result on the way": (lambda x: [_conv(x), _conv(_conv(x))], 3),
    "there and back": (lambda x: tf.exp(_same(x)), 0),
    "two are one": (lambda x: tf.transpose(tf.transpose(x, [0, 3, 1, 2]), [1, 0, 2, 3]), 1),
    "two are none at a result": (_same, 1),
}


@pytest.mark.parametrize("size", [2, None])
@pytest.mark.parametrize("case", CASES)
def test_transposes(case, size):
    function, n = CASES[case]
    written = Written(function, tf.TensorSpec([size, 6, 6, 3]))
    for result, expected in zip(
        written.run(IMAGE), tf.nest.flatten(function(tf.constant(IMAGE))), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert written.ops().count("Transpose") <= n, written.ops()
