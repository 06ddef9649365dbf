"""Contractions of integers of at most 8 bits, for targets that contract floats."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

FLOATS_ONLY = jax2tf.Target(
    "floats",
    lacks={"Conv2D": ("int32",), "MatMul": ("int32",), "BatchMatMulV2": ("int32",)},
)
ROUNDS = jax2tf.Target("rounds", quirks={"adds_integers_as_floats"})
DTYPES = (np.bool_, np.int8, np.uint8)
NHWC = ("NHWC", "HWIO", "NHWC")


def largest(dtype, *shape):
    """Numbers of which each is near the largest of the dtype, and odd."""
    rng = np.random.default_rng(0)
    if dtype == np.bool_:
        return np.ones(shape, bool)
    most = int(jnp.iinfo(dtype).max)
    return (most - 2 * rng.integers(0, 3, shape)).astype(dtype)


def conv(window_strides=(1, 1), padding="SAME", out=jnp.int32, numbers=NHWC, **options):
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        window_strides,
        padding,
        dimension_numbers=numbers,
        preferred_element_type=out,
        **options,
    )


def dot(lhs, rhs, out=jnp.int32, batch=((), ())):
    return lambda x, w: lax.dot_general(x, w, ((lhs, rhs), batch), preferred_element_type=out)


PROGRAMS = {
    "a convolution": (conv(), (2, 6, 6, 3), (3, 3, 3, 4)),
    "strides": (conv((2, 2), "VALID"), (2, 7, 7, 3), (3, 3, 3, 4)),
    "a dilated filter": (conv(rhs_dilation=(2, 2)), (2, 7, 7, 3), (3, 3, 3, 4)),
    "a transposed convolution": (
        conv(padding=((1, 2), (1, 2)), lhs_dilation=(2, 2)),
        (2, 5, 5, 3),
        (3, 3, 3, 4),
    ),
    "depthwise": (conv(feature_group_count=4), (2, 6, 6, 4), (3, 3, 1, 4)),
    "groups": (conv(feature_group_count=2), (2, 6, 6, 4), (3, 3, 2, 6)),
    "one dimension": (conv((1,), numbers=("NWC", "WIO", "NWC")), (2, 9, 3), (3, 3, 4)),
    "no spatial dimension": (conv((), (), numbers=("NC", "IO", "NC")), (2, 3), (3, 4)),
    "three dimensions": (
        conv((1, 1, 1), numbers=("NDHWC", "DHWIO", "NDHWC")),
        (2, 3, 3, 3, 2),
        (2, 2, 2, 2, 3),
    ),
    "channels first": (conv(numbers=("NCHW", "OIHW", "NCHW")), (2, 3, 5, 5), (4, 3, 3, 3)),
    "sums that float32 has not": (conv(), (1, 4, 4, 400), (3, 3, 400, 2)),
    "groups of such sums": (conv(feature_group_count=2), (1, 4, 4, 400), (3, 3, 200, 2)),
    "a window of such sums": (conv(padding="VALID"), (1, 33, 33, 1), (33, 33, 1, 1)),
    "into the operands' dtype": (conv(out=None), (2, 6, 6, 3), (3, 3, 3, 4)),
    "nothing to add up": (conv(), (2, 4, 4, 0), (3, 3, 0, 2)),
    "a product": (dot((1,), (0,)), (2, 5), (5, 4)),
    "a product of vectors": (dot((0,), (0,)), (5,), (5,)),
    "a product in batches": (dot((2,), (1,), batch=((0,), (0,))), (2, 3, 5), (2, 5, 4)),
    "a product over two dimensions": (dot((1, 2), (1, 0)), (2, 70, 50), (50, 70, 3)),
    "a long product": (dot((1,), (0,)), (2, 3001), (3001, 3)),
    "a product over nothing": (dot((1,), (0,)), (2, 0), (0, 3)),
}


def converted(name, target, **options):
    return jax2tf.convert(PROGRAMS[name][0], target=target, with_gradient=False, **options)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", [FLOATS_ONLY, ROUNDS], ids=lambda t: t.name)
def test_gives_the_integers_of_jax(name, target):
    fun, *shapes = PROGRAMS[name]
    for dtype in DTYPES:
        x, w = (largest(dtype, *shape) for shape in shapes)
        graph = tf.function(converted(name, target), autograph=False)
        expected = np.asarray(fun(jnp.asarray(x), jnp.asarray(w)))
        np.testing.assert_array_equal(graph(x, w), expected, err_msg=str(dtype), strict=True)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "a product of vectors"])
def test_over_an_open_batch(name):
    fun, *shapes = PROGRAMS[name]
    specs = ["b, ...", "b, ..." if "batches" in name else None]
    for dtype in (np.int8, np.int32):
        x, w = (largest(np.int8, *shape).astype(dtype) for shape in shapes)
        run = converted(name, FLOATS_ONLY, polymorphic_shapes=specs)
        open_batch = [
            tf.TensorSpec([None if s else a.shape[0], *a.shape[1:]], a.dtype)
            for s, a in zip(specs, (x, w), strict=True)
        ]
        graph = tf.function(run, autograph=False, input_signature=open_batch)
        expected = np.asarray(fun(jnp.asarray(x), jnp.asarray(w)))
        np.testing.assert_array_equal(graph(x, w), expected, err_msg=str(dtype), strict=True)


def test_no_integers_are_contracted():
    for name in ("a convolution", "a long product"):
        x, w = (largest(np.int8, *shape) for shape in PROGRAMS[name][1:])
        graph = tf.function(converted(name, FLOATS_ONLY), autograph=False)
        for op in graph.get_concrete_function(x, w).graph.get_operations():
            if op.type in ("Conv2D", "MatMul", "BatchMatMulV2"):
                assert op.inputs[0].dtype == tf.float32


@pytest.mark.parametrize("target", ["litert", "onnx", "openvino", "coreml"])
@pytest.mark.parametrize("name", ["a convolution", "depthwise", "a product"])
def test_every_engines_target_takes_them(name, target):
    x, w = (largest(np.int8, *shape) for shape in PROGRAMS[name][1:])
    signature = [tf.TensorSpec([None, *x.shape[1:]], x.dtype), tf.TensorSpec(w.shape, w.dtype)]
    run = converted(name, target, polymorphic_shapes=["b, ...", None])
    tf.function(run, autograph=False, input_signature=signature).get_concrete_function()
