"""The helper of these tests sees wrong numbers."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written, assert_same


def test_a_function_is_run():
    written = Written(tf.sin, tf.TensorSpec([None, 3], tf.float32), shapes={"x0": ("b", 3)})
    written.check(np.ones([2, 3], np.float32), ulps=2)
    assert written.ops() == ["Sin"]
    assert written.session.get_inputs()[0].shape == ["b", 3]


@pytest.mark.parametrize("opset", [18, 21, 23])
def test_a_model_has_the_opset(opset):
    written = Written(tf.sin, tf.TensorSpec([3], tf.float32), opset=opset)
    assert written.model.opset_import[0].version == opset


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (np.float32([0.0]), np.float32([-0.0])),
        (np.float32([1.0]), np.float32([np.nan])),
        (np.float32([1.0]), np.nextafter(np.float32([1.0]), np.float32(2))),
        (np.float32([1.0]), np.float64([1.0])),
        (np.int32([1]), np.int32([2])),
        (np.int32([1]), np.int32([1, 1])),
    ],
)
def test_differences_are_seen(result, expected):
    with pytest.raises(AssertionError):
        assert_same(result, expected)


def test_neighbours_are_one_ulp_apart():
    assert_same(np.float32([1e-45, 1.0]), np.float32([-0.0, 1.0]), ulps=1)
