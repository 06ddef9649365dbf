"""What the matrix cannot see of contractions: products that TensorFlow computes wrongly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import op_types
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


@pytest.mark.parametrize("batch", [4, None])
def test_rows_of_many_dimensions_are_one_matrix_in_a_graph(batch):
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((4, 3, 5), (5, 2)))

    def fun(x, w):
        return jnp.einsum("btk,kn->btn", x, w), jnp.einsum("btk,kn->btn", x[:, :0], w)

    without = jax2tf.TARGETS["xla"].without_optimizations("rows_of_one_matrix")
    products = {}
    for target in ("xla", without):
        spec = None if batch else ("b, ...", None)
        converted = jax2tf.convert(fun, target=target, polymorphic_shapes=spec)
        graph = tf.function(converted, autograph=False).get_concrete_function(
            tf.TensorSpec([batch, 3, 5], tf.float32), tf.TensorSpec(w.shape, tf.float32)
        )
        found = op_types(graph.graph)
        products[target] = {op for op in ("MatMul", "BatchMatMulV2") if found[op]}
        for actual, expected in zip(graph(tf.constant(x), tf.constant(w)), fun(x, w), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6, strict=True)
    assert products == {"xla": {"MatMul"}, without: {"BatchMatMulV2"}}


@pytest.mark.parametrize("target", ["xla", "tensorflow", "litert"])
@pytest.mark.parametrize("compiled", [False, True])
def test_presets_that_ask_for_nothing(target, compiled):
    default = jax.lax.DotAlgorithmPreset.DEFAULT
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)

    def product(x):
        return jax.lax.dot(x[0, :, :, 0], x[0, :, :, 0].T, precision=default)

    def convolution(x):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, x[0, :2, :2, :, None], (1, 1), "SAME", dimension_numbers=numbers, precision=default
        )

    for fun in (product, convolution):
        converted = tf.function(
            jax2tf.convert(fun, target=target), autograph=False, jit_compile=compiled
        )
        np.testing.assert_allclose(converted(x), jax.jit(fun)(x), rtol=1e-6)
