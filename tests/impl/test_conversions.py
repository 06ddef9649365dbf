"""What the matrix cannot see of conversions: ops in graphs, dtypes that only XLA knows, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_in_order, ops_of


@pytest.mark.parametrize("new", [np.int8, np.uint8, np.int16, np.int32, np.uint32])
def test_a_float_saturates_at_the_ends_of_an_integer(new):
    converted = jax2tf.convert(lambda x: x.astype(new))
    ends = np.iinfo(new)
    result = converted(np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.9], np.float32))
    expected = [0, ends.max, ends.min, ends.max, ends.min, 0]
    np.testing.assert_array_equal(result, np.array(expected, new))


@pytest.mark.parametrize("target", ["xla", "tensorflow"])
@pytest.mark.parametrize("name", ["float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_a_dtype_without_kernels_is_compiled_step_by_step(name, target):
    dtype = getattr(jnp, name)

    def rounded(x):
        return x.astype(dtype).astype(np.float32)

    x = np.linspace(-3, 3, 7, dtype=np.float32)
    ops = ops_in_order(graph_of(rounded, target, x))
    assert set(ops) <= {"PartitionedCall", "StatefulPartitionedCall"}
    converted = jax2tf.convert(rounded, target=target)
    np.testing.assert_array_equal(converted(x), jax.jit(rounded)(x))


def test_a_constant_of_a_dtype_without_kernels_stands_in_a_graph():
    def chosen(x):
        return jnp.where(x > 0, x.astype(jnp.float8_e4m3fnuz), jnp.array(2, jnp.float8_e4m3fnuz))

    x = np.array([-1.0, 3.0], np.float32)
    result = tf.function(jax2tf.convert(chosen, with_gradient=False), autograph=False)(x)
    np.testing.assert_array_equal(result.numpy(), np.asarray(jax.jit(chosen)(x)))


@pytest.mark.parametrize("dtype", [jnp.int4, jnp.uint4])
def test_a_jitted_function_takes_and_gives_4_bit_integers(dtype):
    # XLA packs two in a byte: TensorFlow alone would hand them over wrongly.
    fun = jax.jit(lambda x: (x, x[::-1], x.astype(np.int32)))
    x = np.arange(1, 8).astype(dtype)
    converted = jax2tf.convert(fun)
    for run in (converted, tf.function(converted, autograph=False)):
        for result, expected in zip(run(tf.constant(x)), fun(x), strict=True):
            np.testing.assert_array_equal(result.numpy(), np.asarray(expected))


@pytest.mark.parametrize(
    ("name", "lack"),
    [
        ("int2", "neither kernels nor an XLA type for dtype int2"),
        ("float4_e2m1fn", "neither kernels nor an XLA type for dtype float4_e2m1fn"),
        ("float8_e3m4", "no dtype float8_e3m4"),
    ],
)
def test_a_dtype_that_tensorflow_lacks_is_refused_by_name(name, lack):
    converted = jax2tf.convert(lambda x: x.astype(getattr(jnp, name)).astype(np.float32))
    with pytest.raises(TypeError, match=f"TensorFlow has {lack}; cast to one that it has"):
        converted(np.ones(2, np.float32))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x.T,
        lambda x: jnp.concatenate([x, x]),
        lambda x: lax.population_count(x),
        lambda x: x.astype(np.uint8).astype(jnp.uint4),
        lambda x: lax.bitcast_convert_type(x.astype(np.uint8), jnp.uint4),
    ],
)
def test_no_byte_is_cast_to_uint4(fun):
    """TensorFlow 2.21 ends the process over that Cast on a GPU."""
    x = np.arange(12).astype(jnp.uint4).reshape(3, 4)
    traced = tf.function(jax2tf.convert(fun), autograph=False).get_concrete_function(x)
    casts = [op for op in traced.graph.get_operations() if op.type == "Cast"]
    assert casts
    assert not [
        op
        for op in casts
        if op.get_attr("SrcT") == tf.uint8 and op.get_attr("DstT") == tf.as_dtype("uint4")
    ]
    np.testing.assert_array_equal(traced(tf.constant(x)).numpy(), fun(jnp.asarray(x)))


# What an engine without Bitcast makes a float of: zeros, subnormal, normal, infinite, no number.
# fmt: off
PATTERNS = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x3F800000, 0x3F800001, 0x40490FDB, 0x40800000,
     0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000],
    np.uint32,
)
# fmt: on


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_floats_made_of_their_bits_by_arithmetic(dtype, mode):
    bits = np.concatenate([PATTERNS, PATTERNS | np.uint32(1 << 31)]).view(dtype)
    target = jax2tf.Target("bits", lacks={"Bitcast": ()})
    converted = jax2tf.convert(
        lambda x: lax.bitcast_convert_type(x, jnp.float32), with_gradient=False, target=target
    )
    graph = tf.function(converted, autograph=False)
    assert "Bitcast" not in ops_of(graph.get_concrete_function(bits))
    actual = np.asarray((converted if mode == "eager" else graph)(bits))
    expected = bits.view(np.float32)
    # TensorFlow's own product flushes subnormal numbers to zeros of their signs.
    flushed = (np.abs(expected) < np.finfo(np.float32).tiny) & (actual == 0)
    np.testing.assert_array_equal(actual[~flushed], expected[~flushed])
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))
