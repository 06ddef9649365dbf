"""Which TensorFlow ops convolutions become, in groups and of open sizes."""

import collections

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_in_order

_NHWC = ("NHWC", "HWIO", "NHWC")


def _conv(strides=(1, 1), padding="SAME", **params):
    params = {"dimension_numbers": _NHWC, **params}
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **params)


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
