"""Which TensorFlow ops contractions, convolutions and windows become."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import (
    assert_near,
    check,
    each_lowering,
    each_mode,
    graph_of,
    ops_in_order,
)

_NHWC = ("NHWC", "HWIO", "NHWC")


def _conv(strides=(1, 1), padding="SAME", **params):
    params = {"dimension_numbers": _NHWC, **params}
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **params)


def _max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


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


def test_the_name_of_a_padding_is_found_again():
    converted = jax2tf.convert(_conv((2, 2)))
    specs = [tf.TensorSpec((1, 8, 8, 3)), tf.TensorSpec((3, 3, 3, 4))]
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
    (conv,) = (op for op in graph.get_operations() if op.type == "Conv2D")
    assert conv.get_attr("padding") == b"SAME"


def test_what_has_no_standard_op_is_one_of_xla_or_composed():
    fun = _conv(padding="VALID", batch_group_count=2)
    args = np.ones((2, 8, 8, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)
    assert ops_in_order(graph_of(fun, "xla", *args)).count("XlaConvV2") == 1
    without = ops_in_order(graph_of(fun, "tensorflow", *args))
    assert without.count("Conv2D") == 1
    assert not any(op.startswith("Xla") for op in without)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_pooling_with_xla_knows_what_max_pool_does_not(value):
    x = np.full((1, 4, 4, 1), value, np.float32)
    np.testing.assert_array_equal(jax2tf.convert(_max_pool)(x), jax.jit(_max_pool)(x))


def test_a_long_window_takes_few_ops():
    fun = lambda x: lax.reduce_window(x, 0, lax.add, (1000,), (1,), "VALID")  # noqa: E731
    x = np.arange(3000, dtype=np.int32)
    assert len(ops_in_order(graph_of(fun, "tensorflow", x))) < 100
    np.testing.assert_array_equal(jax2tf.convert(fun, enable_xla=False)(x), jax.jit(fun)(x))


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize(
    ("lhs_shape", "rhs_shape", "options"),
    [
        ((2, 5, 6, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
        ((4, 5, 6, 3), (3, 3, 3, 6), {"batch_group_count": 2}),
        ((2, 5, 6, 3), (3, 3, 3, 4), {"lhs_dilation": (2, 1)}),
    ],
)
def test_filters_of_a_polymorphic_batch(enable_xla, lhs_shape, rhs_shape, options):
    conv = _conv(padding=((1, 1), (1, 1)), **options)
    converted = tf.function(
        jax2tf.convert(jax.vmap(conv), polymorphic_shapes="b, ...", enable_xla=enable_xla),
        input_signature=[tf.TensorSpec([None, *shape]) for shape in (lhs_shape, rhs_shape)],
        autograph=False,
    )
    for batch in (1, 2, 5):
        rng = np.random.default_rng(batch)
        args = [rng.normal(size=(batch, *s)).astype("float32") for s in (lhs_shape, rhs_shape)]
        expected = jax.jit(jax.vmap(conv))(*args)
        np.testing.assert_allclose(converted(*args), expected, rtol=1e-5, atol=1e-5)


def _product_and_largest(a, b):
    return a[0] * b[0], lax.max(a[1], b[1])


WINDOWS_OF_UNKNOWN_SIZE = {
    "sum": lambda x, n: lax.reduce_window(x, 0.0, lax.add, (n, 1), (1, 1), "VALID"),
    "max_padded": lambda x, n: lax.reduce_window(
        x, -np.inf, lax.max, (n, 2), (2, 1), ((1, 0), (0, 1))
    ),
    "dilated": lambda x, n: lax.reduce_window(
        x, 0.0, lax.add, (n // 2 + 1, 1), (1, 1), "VALID", window_dilation=(2, 1)
    ),
    "two_operands": lambda x, n: lax.reduce_window(
        (x, x),
        (np.float32(1), np.float32(-np.inf)),
        _product_and_largest,
        (n // 2 + 1, 1),
        (1, 1),
        ((0, 2), (1, 0)),
    ),
}


@pytest.mark.parametrize("case", WINDOWS_OF_UNKNOWN_SIZE)
@pytest.mark.parametrize("enable_xla", [True, False])
def test_windows_of_unknown_size(case, enable_xla):
    def fun(x):
        return WINDOWS_OF_UNKNOWN_SIZE[case](x, x.shape[0])

    converted = jax2tf.convert(fun, polymorphic_shapes="n, _", enable_xla=enable_xla)
    spec = tf.TensorSpec([None, 3], tf.float32)
    calls = (
        converted,
        tf.function(converted, autograph=False, input_signature=[spec]),
        tf.function(converted, autograph=False, jit_compile=True),
    )
    for size in (1, 2, 5, 8):
        x = np.random.default_rng(size).normal(0, 2, [size, 3]).astype(np.float32)
        expected = jax.tree.leaves(jax.jit(fun)(x))
        for call in calls:
            for result, should in zip(tf.nest.flatten(call(x)), expected, strict=True):
                assert result.shape == should.shape
                np.testing.assert_allclose(result, should, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("groups", "features", "strides", "dilation", "convolutions"),
    [
        (2, 4, (1, 1), (1, 1), {"Conv2D": 2}),
        (2, 4, (2, 1), (1, 1), {"Conv2D": 2}),
        (4, 4, (2, 2), (1, 1), {"DepthwiseConv2dNative": 1}),
        (4, 4, (2, 1), (1, 1), {"Conv2D": 4}),
        (4, 4, (1, 1), (2, 2), {"Conv2D": 4}),
    ],
)
def test_convolutions_in_groups_for_an_engine_that_has_none(
    groups, features, strides, dilation, convolutions
):
    target = jax2tf.Target("grouped", quirks={"no_convolution_in_groups"})
    x = np.random.default_rng(0).normal(size=(2, 5, 6, features)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(3, 3, features // groups, 8)).astype(np.float32)
    fun = _conv(strides, feature_group_count=groups, rhs_dilation=dilation)
    graph = graph_of(fun, target, x, w)
    found = collections.Counter(ops_in_order(graph))
    assert {name: n for name, n in found.items() if "conv2d" in name.lower()} == convolutions
    np.testing.assert_allclose(
        graph(tf.constant(x), tf.constant(w)), jax.jit(fun)(x, w), rtol=1e-5, atol=1e-5
    )
