"""Reductions of segments, and the places of what is not zero, as ONNX."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import DTYPES, NUMBERS, special

_raw = tf.raw_ops


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", NUMBERS[1:])
@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min"])
def test_segments(name, dtype, kind):
    op = getattr(_raw, f"UnsortedSegment{name}")
    written = Written(
        lambda x, i, n: [
            op(data=x, segment_ids=i, num_segments=4),
            op(data=x[:, 0], segment_ids=i, num_segments=n),
            op(data=x, segment_ids=tf.stack([i, i], 1), num_segments=n),
        ],
        tf.TensorSpec([None, 2, 3], dtype),
        tf.TensorSpec([None], kind),
        tf.TensorSpec([], "int32"),
    )
    random = np.random.RandomState(0)
    data = random.randint(0, 100, (6, 2, 3)).astype(dtype)
    written.check(data, np.array([0, 2, 2, -1, -7, 0], kind), np.int32(5))
    written.check(data[:0], np.zeros(0, kind), np.int32(2))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "float16"])
def test_places(dtype):
    written = Written(lambda x: tf.where(x), tf.TensorSpec([None, 3, 4], dtype))
    array = special(dtype)
    array[0, :2] = 0
    written.check(array)
    written.check(array[:0])
