"""What the matrix cannot see of random numbers: which uses are refused."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

KEY = np.arange(4, dtype=np.uint32)


def _bits_like(algorithm):
    return lambda key, x: lax.rng_bit_generator(key, x.shape, np.uint32, algorithm)[1]


@pytest.mark.parametrize("algorithm", ["default", "philox"])
def test_bits_of_an_unknown_number(algorithm):
    algorithm = {"default": 0, "philox": 2}[algorithm]
    fun = _bits_like(algorithm)
    converted = jax2tf.convert(fun, polymorphic_shapes=[None, "b, _"], enable_xla=False)
    spec = [tf.TensorSpec([4], tf.uint32), tf.TensorSpec([None, 3], tf.float32)]
    graph = tf.function(converted, autograph=False, input_signature=spec)
    for size in (1, 4):
        x = np.ones([size, 3], np.float32)
        np.testing.assert_array_equal(graph(KEY, x), jax.jit(fun)(KEY, x))


def test_threefry_of_an_unknown_number_is_refused_without_xla():
    converted = jax2tf.convert(_bits_like(1), polymorphic_shapes=[None, "b, _"], enable_xla=False)
    graph = tf.function(converted, autograph=False)
    with pytest.raises(
        jax2tf.errors.UnsupportedPrimitiveError,
        match=r"'rng_bit_generator' with shape=\(b, 3\): its bits depend on whether a dimension of "
        r"unknown size is even.*enable_xla=True",
    ):
        graph.get_concrete_function(
            tf.TensorSpec([4], tf.uint32), tf.TensorSpec([None, 3], tf.float32)
        )
