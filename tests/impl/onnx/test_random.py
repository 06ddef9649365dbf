"""The rules of random numbers."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("shape", [[], [0, 2], [40, 50]])
def test_uniform(shape, dtype):
    written = Written(
        lambda n: tf.raw_ops.RandomUniform(shape=n, dtype=dtype),
        tf.TensorSpec([len(shape)], tf.int32),
    )
    (numbers,) = written.run(np.array(shape, np.int32))
    assert numbers.shape == tuple(shape)
    assert numbers.dtype == dtype.as_numpy_dtype
    assert ((numbers >= 0) & (numbers < 1)).all()
    if numbers.size > 1:
        assert 0.4 < numbers.mean() < 0.6
        assert len(np.unique(numbers)) > 0.99 * numbers.size
