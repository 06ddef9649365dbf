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


# The function and the number of Transposes at most: with two results, each has one.
GROUPS = {
    "two that read one": (lambda x: [_conv(tf.exp(y := _conv(x)) + tf.tanh(y))], 2),
    "a residual": (lambda x: [_conv(tf.nn.relu(y := _conv(x)) + _conv(y))], 2),
    "a choice": (lambda x: [_conv(tf.where(_conv(x) > 0.0, x, _conv(x)))], 3),
    "means of the pixels": (lambda x: [tf.reduce_mean(tf.nn.relu(_conv(x)), [1, 2])], 1),
    "kept means": (
        lambda x: [_conv((y := _conv(x)) * tf.sigmoid(tf.reduce_mean(y, [1, 2], keepdims=True)))],
        2,
    ),
    "sums of channels": (lambda x: [_conv((y := _conv(x)) / tf.reduce_sum(y, 3, True))], 2),
    "a mean over rows": (lambda x: [tf.exp(tf.reduce_mean(_conv(x), 1))], 2),
    "beside one another": (lambda x: [_wide(tf.concat([tf.tanh(_conv(x)), _conv(x)], 3))], 2),
    "above one another": (lambda x: [_conv(tf.concat([tf.tanh(_conv(x)), _conv(x)], 1))], 2),
    "with a constant": (lambda x: [_wide(tf.concat([_conv(x), tf.zeros([2, 6, 6, 3])], 3))], 2),
    "a matrix behind": (lambda x: [tf.nn.relu(_conv(x) + BIAS) @ np.eye(3, dtype="f")], 2),
    "an input that is turned before": (lambda x: [_conv(tf.exp(x)) * 2.0], 2),
}


def _wide(x):
    return tf.nn.conv2d(x, np.tile(FILTER, [1, 1, 2, 2]), 1, "SAME")


@pytest.mark.parametrize("n", [2, None])
@pytest.mark.parametrize("group", GROUPS)
def test_groups(group, n):
    function, most = GROUPS[group]
    size = 2 if group == "with a constant" else n
    written = Written(function, tf.TensorSpec([size, 6, 6, 3]))
    # ONNX Runtime 1.31 refuses no images where it adds two convolutions.
    n_given = 1 if size else 2 if group == "a residual" else 3
    for given in (IMAGE, IMAGE[:1], IMAGE[:0])[:n_given]:
        for result, expected in zip(written.run(given), function(tf.constant(given)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    assert written.ops().count("Transpose") <= most, written.ops()


@pytest.mark.parametrize("n", [2, None])
def test_groups_in_loops(n):
    def function(x):
        bias = tf.reduce_sum(x, [1, 2], keepdims=True)
        step = lambda i, y: [i + 1, tf.ensure_shape(_conv(tf.tanh(_conv(y)) + bias), x.shape)]  # noqa: E731
        return tf.while_loop(lambda i, y: i < 2, step, [0, x])[1]

    written = Written(function, tf.TensorSpec([n, 6, 6, 3]))
    (result,) = written.run(IMAGE)
    np.testing.assert_allclose(result, function(tf.constant(IMAGE)), rtol=1e-3, atol=1e-3)
