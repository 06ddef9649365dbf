"""What a target lacks, in what it has: the numbers stay JAX's, and the lacking ops are gone."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

EDGES = np.array([0, 1, 2, 7, 31, 32, 2**15, 2**16 + 3, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
LEFT, RIGHT = (x.astype(np.uint32).reshape(-1) for x in np.meshgrid(EDGES, EDGES))

BINARY = {
    "add": lax.add,
    "and": lax.bitwise_and,
    "div": lax.div,
    "lt": lax.lt,
    "max": lax.max,
    "min": lax.min,
    "mul": lax.mul,
    "or": lax.bitwise_or,
    "rem": lax.rem,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "xor": lax.bitwise_xor,
}
UNARY = {
    "clz": lax.clz,
    "cummax": lax.cummax,
    "argmax": lambda x: lax.argmax(x, 0, np.uint32),
    "mask": lambda x: x & x.dtype.type(63),
    "not": lax.bitwise_not,
    "population_count": lax.population_count,
    "shift_by_9": lambda x: lax.shift_right_logical(x, x.dtype.type(9)),
    "sign": lax.sign,
    "sort": lax.sort,
    "sum": jnp.sum,
    "take": lambda x: x[x],
    "to_float32": lambda x: x.astype(np.float32),
    "to_int8": lambda x: x.astype(np.int8),
}


def graph_of(function, target, *args):
    converted = jax2tf.convert(function, target=target, with_gradient=False)
    specs = [tf.TensorSpec(np.shape(x), x.dtype) for x in args]
    traced = tf.function(converted, autograph=False, input_signature=specs)
    return traced.get_concrete_function()


def ops_of(concrete):
    return {op.type for op in concrete.graph.get_operations()}


def assert_same(function, target, *args):
    concrete = graph_of(function, target, *args)
    expected = jax.jit(function)(*args)
    actual = concrete(*map(tf.constant, args))
    np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)
    return concrete


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int8])
@pytest.mark.parametrize("name", BINARY)
def test_integers_by_two(name, dtype):
    assert_same(BINARY[name], "litert", LEFT.astype(dtype), RIGHT.astype(dtype))


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int8])
@pytest.mark.parametrize("name", UNARY)
def test_integers_alone(name, dtype):
    if name in ("clz", "population_count") and dtype in (np.uint8, np.int8):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="takes no "):
            graph_of(UNARY[name], "litert", EDGES.astype(np.uint32).astype(dtype))
        return
    assert_same(UNARY[name], "litert", EDGES.astype(np.uint32).astype(dtype))


@pytest.mark.parametrize("name", ["and", "or", "xor", "shift_left", "shift_right_arithmetic"])
def test_bits_by_arithmetic_alone(name):
    concrete = assert_same(BINARY[name], "tfjs", LEFT.astype(np.int32), RIGHT.astype(np.int32))
    lacking = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}
    assert not ops_of(concrete) & lacking


def test_floats_of_uint32_are_rounded_once():
    assert_same(lambda x: x.astype(np.uint32), "litert", np.float32([-1, 0.9, 3e9, 5e9, np.nan]))
    around = np.arange(2**31 - 300, 2**31 + 300, dtype=np.uint32)
    assert_same(lambda x: x.astype(np.float32), "litert", around)


def test_numbers_by_a_key():
    key = jax.random.key_data(jax.random.key(7))

    def draw(key):
        return jax.random.uniform(key, (3, 4))

    assert_same(draw, "litert", np.asarray(key))


def test_float16_is_rounded():
    x = np.linspace(-3, 3, 41).astype(np.float16)
    assert_same(lambda x: x * x, "litert", x)


@pytest.mark.parametrize("target", ["litert", "onnx", "tfjs"])
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)])
def test_convolutions_of_integers(target, groups):
    features, batches = groups
    generator = np.random.default_rng(0)
    lhs = generator.integers(-(2**31), 2**31, (2, 4, 6, 5), np.int32)
    rhs = generator.integers(-(2**31), 2**31, (6, 4 // features, 3, 2), np.int32)

    def convolve(lhs, rhs):
        return lax.conv_general_dilated(
            lhs,
            rhs,
            (2, 1),
            [(1, 2), (0, 1)],
            (1, 2),
            (1, 2),
            feature_group_count=features,
            batch_group_count=batches,
        )

    assert "Conv2D" not in ops_of(assert_same(convolve, target, lhs, rhs))


def test_products_of_integers():
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4) * 2**27
    concrete = assert_same(lambda x: jnp.einsum("bij,bkj->bik", x, x), "litert", x)
    assert not ops_of(concrete) & {"MatMul", "BatchMatMulV2"}


@pytest.mark.parametrize("target", ["xla", "tensorflow"])
def test_other_targets_keep_the_ops(target):
    concrete = graph_of(operator.and_, target, LEFT, RIGHT)
    assert ops_of(concrete) == {"Placeholder", "BitwiseAnd", "Identity"}
