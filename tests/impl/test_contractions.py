"""What the matrix cannot see of contractions: products that TensorFlow computes wrongly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import (
    assert_near,
    check,
    each_lowering,
    each_mode,
)


class TestProductsThatOverwroteMemory:
    """TensorFlow's BatchMatMulV2 of (12, 1, 3, 8) and one matrix ends the process, or is wrong."""

    x = np.random.default_rng(0).normal(size=(12, 1, 3, 8)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)

    @each_mode
    @each_lowering
    @pytest.mark.parametrize(
        "fun",
        [
            lambda x, w: x @ w,
            lambda x, w: jnp.einsum("abcd,ed->abce", x, w.T),
            lambda x, w: jax.grad(lambda w: jnp.sum(jnp.sin(x @ w)))(w),
        ],
        ids=["product", "transposed", "gradient"],
    )
    def test_of_known_sizes(self, fun, mode, lowering):
        check(fun, (self.x, self.w), mode, lowering)

    def test_of_open_sizes(self):
        converted = jax2tf.convert(jnp.matmul, polymorphic_shapes=["b, s, n, d", "d, e"])
        function = tf.function(converted, autograph=False)
        signature = [tf.TensorSpec([None] * rank, tf.float32) for rank in (4, 2)]
        product = function.get_concrete_function(*signature)
        for x in (self.x, self.x.swapaxes(0, 1), self.x.reshape(4, 3, 3, 8)):
            assert_near(
                product(tf.constant(x), tf.constant(self.w)), jax.jit(jnp.matmul)(x, self.w)
            )

    def test_of_images_that_grow(self):
        def backward(x):
            shape = (x.shape[0], 4, 6, 3)
            return jax.vjp(lambda y: jax.image.resize(y, x.shape, "linear"), jnp.zeros(shape))[1](x)

        x = np.random.default_rng(2).normal(size=(1, 8, 12, 3)).astype(np.float32)
        converted = jax2tf.convert(backward, polymorphic_shapes="b, ...", enable_xla=False)
        function = tf.function(converted, autograph=False)
        graph = function.get_concrete_function(tf.TensorSpec([None, 8, 12, 3]))
        assert_near(tuple(graph(tf.constant(x))), jax.jit(backward)(x), least=1)
