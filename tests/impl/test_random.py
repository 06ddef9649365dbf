"""What the matrix cannot see of random numbers: how many of them only the run can tell."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

KEY = np.arange(4, dtype=np.uint32)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
@pytest.mark.parametrize("algorithm", [0, 1, 2], ids=["default", "threefry", "philox"])
def test_bits_of_an_unknown_number(algorithm, dtype, enable_xla):
    def fun(key, x):
        return lax.rng_bit_generator(key, x.shape, dtype, algorithm)

    converted = jax2tf.convert(fun, polymorphic_shapes=[None, "b, _"], enable_xla=enable_xla)
    spec = [tf.TensorSpec([4], tf.uint32), tf.TensorSpec([None, 3], tf.float32)]
    graph = tf.function(converted, autograph=False, input_signature=spec)
    for size in (1, 3, 4, 5):
        x = np.ones([size, 3], np.float32)
        for result, expected in zip(graph(KEY, x), jax.jit(fun)(KEY, x), strict=True):
            np.testing.assert_array_equal(result, expected)
