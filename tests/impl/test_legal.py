"""What a target lacks, in what it has: the numbers stay JAX's, and the lacking ops are gone."""

import dataclasses
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import assert_near, graph_of, ops_of

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
    "mask_of_31_bits": lambda x: x.astype(np.int32) & np.int32(2**31 - 1),
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


def assert_same(function, target, *args):
    concrete = graph_of(function, target, *args)
    expected = jax.jit(function)(*args)
    actual = concrete(*map(tf.constant, args))
    np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)
    return concrete


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint16, np.uint8, np.int8])
@pytest.mark.parametrize("name", BINARY)
def test_integers_by_two(name, dtype):
    assert_same(BINARY[name], "litert", LEFT.astype(dtype), RIGHT.astype(dtype))


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int8])
@pytest.mark.parametrize("name", UNARY)
def test_integers_alone(name, dtype):
    assert_same(UNARY[name], "litert", EDGES.astype(np.uint32).astype(dtype))


@pytest.mark.parametrize("name", ["and", "or", "xor", "shift_left", "shift_right_arithmetic"])
def test_bits_by_arithmetic_alone(name):
    concrete = assert_same(BINARY[name], "tfjs", LEFT.astype(np.int32), RIGHT.astype(np.int32))
    lacking = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}
    assert not ops_of(concrete) & lacking


@pytest.mark.parametrize("target", ["litert", "tfjs"])
@pytest.mark.parametrize("distance", [0, 1, 3, 9, 31, 40])
@pytest.mark.parametrize("name", ["shift_left", "shift_right_arithmetic", "shift_right_logical"])
def test_shifts_by_a_known_distance(name, distance, target):
    assert_same(lambda x: BINARY[name](x, np.int32(distance)), target, EDGES.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int32])
@pytest.mark.parametrize("function", [lax.reduce_max, lax.reduce_min])
def test_extremes_of_nothing_are_the_ends_of_the_dtype(function, dtype):
    assert_same(lambda x: function(x, (0,)), "litert", np.zeros((0, 3), dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16])
@pytest.mark.parametrize("function", [lax.reduce_max, lax.reduce_min])
def test_extremes_along_an_open_axis(function, dtype):
    """The axis may be empty, so that the result is brought into the range of the dtype."""

    def after_the_first(x):
        return function(x[1:], (0,))

    converted = jax2tf.convert(after_the_first, polymorphic_shapes=["n, 3"], target="litert")
    for x in (np.zeros((1, 3), dtype), EDGES.astype(dtype).reshape(4, 3)):
        actual = tf.function(converted, autograph=False)(x)
        expected = after_the_first(jnp.asarray(x))
        np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)


def test_floats_of_uint32_are_rounded_once():
    assert_same(lambda x: x.astype(np.uint32), "litert", np.float32([-1, 0.9, 3e9, 5e9, np.nan]))
    around = np.arange(2**31 - 300, 2**31 + 300, dtype=np.uint32)
    assert_same(lambda x: x.astype(np.float32), "litert", around)


def test_numbers_by_a_key():
    key = jax.random.key_data(jax.random.key(7))

    def draw(key):
        return jax.random.uniform(key, (3, 4))

    assert_same(draw, "litert", np.asarray(key))


KEYS_BY_POSITION = {
    "dynamic_slice": lambda keys, i: lax.dynamic_slice(keys, (i,), (2,)),
    "dynamic_update_slice": lambda keys, i: lax.dynamic_update_slice(keys, keys[:2], (i,)),
    "indexed": lambda keys, i: keys[i],
}


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("name", KEYS_BY_POSITION)
def test_keys_chosen_by_a_position(name, dtype):
    """An integer that is held in another dtype does not make the keys beside it such integers."""

    def choose(data, position):
        keys = jax.random.wrap_key_data(data)
        return jax.random.key_data(KEYS_BY_POSITION[name](keys, position))

    assert_same(choose, "litert", LEFT[:8].reshape(4, 2), np.array(1, dtype))


@pytest.mark.parametrize("target", ["litert", "tensorflow"])
def test_random_bits_of_any_number(target):
    def draw(key, x):
        return jax.random.bits(key, (x.shape[0], 3))

    converted = jax2tf.convert(
        draw, target=target, polymorphic_shapes=[None, "b"], with_gradient=False
    )
    specs = [tf.TensorSpec([2], tf.uint32), tf.TensorSpec([None], tf.float32)]
    concrete = tf.function(converted, autograph=False).get_concrete_function(*specs)
    key, x = jax.random.key_data(jax.random.key(7)), np.zeros(5, np.float32)
    actual = concrete(tf.constant(key), tf.constant(x)).numpy()
    np.testing.assert_array_equal(actual, np.asarray(draw(key, x)), strict=True)
    definition = concrete.graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    quotients = [
        n for n in nodes if n.op == "FloorDiv" and n.attr["T"].type == tf.int64.as_datatype_enum
    ]
    assert bool(quotients) == (target == "tensorflow")


NO_GENERATOR = jax2tf.Target("no_generator", lacks={"StatelessRandomUniformFullIntV2": ()})
# A small one, one whose lower half overflows, and one that overflows.
COUNTERS = ([3, 4], [2**32 - 2, 5], [2**32 - 2, 2**32 - 1])


@pytest.mark.parametrize("algorithm", [1, 2])
@pytest.mark.parametrize("shape", [(), (3, 4, 2), (5, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_generators_by_arithmetic(dtype, shape, algorithm):
    def draw(key):
        return lax.rng_bit_generator(key, shape, dtype, algorithm)

    with jax.enable_x64(True):
        concrete = graph_of(draw, NO_GENERATOR, np.zeros(4, np.uint32))
        for counter in COUNTERS:
            key = np.array([2**32 - 1, 2, *counter], np.uint32)
            results = zip(concrete(tf.constant(key)), jax.jit(draw)(key), strict=True)
            for actual, expected in results:
                np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)
    assert "StatelessRandomUniformFullIntV2" not in ops_of(concrete)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_generators_of_openvino_have_no_numbers_of_64_bits(dtype):
    key = np.array([1, 2, 3, 4], np.uint32)
    concrete = assert_same(lambda key: lax.rng_bit_generator(key, (7,), dtype)[1], "openvino", key)
    assert not {"Bitcast", "StatelessRandomUniformFullIntV2"} & {*ops_of(concrete)}


def test_generators_of_what_the_target_does_not_hold_are_refused():
    key = np.array([1, 2, 3, 4], np.uint32)
    with jax.enable_x64(True), pytest.raises(jax2tf.UnsupportedPrimitiveError, match="'openvino'"):
        graph_of(lambda key: lax.rng_bit_generator(key, (7,), np.uint64), "openvino", key)


@pytest.mark.parametrize(
    ("target", "dtype"),
    [("litert", jnp.float16), ("litert", jnp.bfloat16), ("openvino", jnp.float16)],
)
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (5, 0), (2, 12)])
def test_fewer_bits_of_16(target, exponent, mantissa, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    concrete = graph_of(lambda x: lax.reduce_precision(x, exponent, mantissa), target, x)
    expected = np.asarray(jax.jit(lambda x: lax.reduce_precision(x, exponent, mantissa))(x))
    actual = concrete(tf.constant(x)).numpy()
    is_nan = np.isnan(x.astype(np.float32))
    assert np.isnan(actual[is_nan].astype(np.float32)).all()
    np.testing.assert_array_equal(
        actual[~is_nan].view(np.uint16), expected[~is_nan].view(np.uint16)
    )


def _dot(x, y):
    return x @ y


def _convolved(x, y):
    return lax.conv_general_dilated(x[None, None], y[None, None], (1, 1), "SAME")


def _sum_in_float32(x, y):
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("function", [_dot, _convolved, _sum_in_float32])
def test_products_of_narrow_floats_are_sums_in_float32(function, dtype):
    """They are rounded once; a sum of products of few bits is exact before that."""
    x = np.arange(-12, 12).reshape(4, 6).astype(dtype)
    y = np.linspace(-2, 2, 36).reshape(6, 6).astype(dtype)
    concrete = graph_of(function, "litert", x, y)
    actual = concrete(tf.constant(x), tf.constant(y)).numpy()
    expected = np.asarray(function(jnp.asarray(x), jnp.asarray(y)))
    assert actual.dtype == expected.dtype
    eps = float(jnp.finfo(actual.dtype).eps)
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=eps, atol=8 * eps
    )
    made = {op.inputs[0].dtype for op in concrete.graph.get_operations() if "Mul" in op.type}
    assert tf.as_dtype(dtype) not in made


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


LIMITS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 7.5]
POINTS = [*LIMITS, -2.75, -0.3, 1e-6, 0.75, 3.25, 9.0, 40.0, 1e6, 1e30]
LEFTS, RIGHTS = (x.ravel() for x in np.meshgrid(LIMITS, LIMITS))
ALONE = {
    "BesselI0e": (lax.bessel_i0e, 8),
    "BesselI1e": (lax.bessel_i1e, 8),
    "Digamma": (lax.digamma, 16),
    "Lgamma": (lax.lgamma, 16),
}
TOGETHER = {
    "Igamma": (lax.igamma, 64),
    "Igammac": (lax.igammac, 64),
    "IgammaGradA": (lax.igamma_grad_a, 64),
    "Betainc": (lambda a, b: lax.betainc(a, b, jnp.full_like(a, 0.25)), 64),
    "Zeta": (lax.zeta, 8),
    "Lgamma": (lax.polygamma, 64),
}


def ops_of_near(function, ulps, target, *args):
    """The ops of a graph that gives what JAX does, to so many units in the last place."""
    concrete = graph_of(function, target, *args)
    actual = concrete(*map(tf.constant, args))
    assert_near(actual, jax.jit(function)(*args), ulps, least=1, each=True)
    return ops_of(concrete)


@pytest.mark.parametrize("target", ["litert", "onnx", "openvino", "tfjs"])
@pytest.mark.parametrize("op", ALONE)
def test_special_functions_of_one_number(op, target):
    function, ulps = ALONE[op]
    assert op not in ops_of_near(function, ulps, target, np.float32(POINTS))


@pytest.mark.parametrize("op", TOGETHER)
def test_special_functions_of_several_numbers(op):
    function, ulps = TOGETHER[op]
    left, right = LEFTS.astype(np.float32), RIGHTS.astype(np.float32)
    assert op not in ops_of_near(function, ulps, "litert", left, right)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 1)])
@pytest.mark.parametrize("op", {**ALONE, **TOGETHER})
def test_special_functions_of_a_shape(op, shape):
    function, ulps = ALONE.get(op) or TOGETHER[op]
    args = [np.full(shape, 0.75, np.float32)] * (1 if op in ALONE else 2)
    assert op not in ops_of_near(function, ulps, "litert", *args)


def test_special_functions_of_a_number_beside_an_array():
    x = np.float32([0.5, 1.5, 4])
    assert "Igamma" not in ops_of_near(lambda x: lax.igamma(x, 2.0), 16, "litert", x)


def test_special_functions_of_narrow_floats_are_computed_in_float32():
    x = np.linspace(2.5, 20, 30).astype(jnp.bfloat16)
    assert "Lgamma" not in ops_of_near(lax.lgamma, 1, "litert", x)


def test_special_functions_of_float64():
    target = jax2tf.Target("of_float64", lacks={"Lgamma": (), "BesselI1e": ()})
    with jax.enable_x64(True):
        x = np.linspace(2.5, 20, 30)
        assert "Lgamma" not in ops_of_near(lax.lgamma, 16, target, x)
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="takes no BesselI1e"):
            graph_of(lax.bessel_i1e, target, x)


def test_special_functions_of_other_targets_are_ops():
    assert "Igamma" in ops_of_near(
        lambda x: lax.igamma(x, x), 64, "tensorflow", np.ones(3, np.float32)
    )


NUMBERS = np.concatenate(
    [
        np.float32([0, -0.0, 1, -1, 1.5, 3, 65504, 65520, 3.4028235e38, np.inf, -np.inf]),
        2.0 ** np.arange(-126, 128, dtype=np.float32),
        -np.nextafter(2.0 ** np.arange(-125, 128, dtype=np.float32), np.float32(0)),
    ]
)


@pytest.mark.parametrize("target", ["onnx", "openvino", "tfjs"])
def test_bits_of_floats_by_arithmetic(target):
    def there(x):
        return lax.bitcast_convert_type(x, np.int32)

    def back(x):
        return lax.bitcast_convert_type(x, np.float32)

    assert "Bitcast" not in ops_of(assert_same(there, target, NUMBERS))
    concrete = assert_same(back, target, NUMBERS.view(np.int32))
    assert "Bitcast" not in ops_of(concrete)
    signs = np.signbit(concrete(tf.constant(NUMBERS.view(np.int32))).numpy())
    np.testing.assert_array_equal(signs, np.signbit(NUMBERS))


# fmt: off
PATTERNS = np.array(
    [0, 1, 0x7F, 0x80, 0x3C00, 0x7C00, 0x8000, 0xFC00, 0x83FF, 0x3F80_0000, 0x7F80_0000,
     0x8000_0000, 0xC048_0000, 0x0001_FFFF, 0x3FF0_0000, 0x7FF0_0000, 0xFFEF_FFFF, 0xFF80_0000],
    np.uint32,
)
# fmt: on
OLD = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NEW = (*OLD, "float16", "float32", "float64")


def _bits_of(function, x):
    target = jax2tf.Target("bits", lacks={"Bitcast": ()})
    with jax.enable_x64(True):
        concrete = graph_of(function, target, x)
        expected = np.asarray(jax.jit(function)(x))
    assert not ops_of(concrete) & {"Bitcast"}
    actual = concrete(tf.constant(x)).numpy()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    return actual, expected


@pytest.mark.parametrize("old", OLD)
@pytest.mark.parametrize("new", NEW)
def test_bits_of_integers_of_another_width(old, new):
    x = PATTERNS.view(old).reshape(-1, max(1, np.dtype(new).itemsize // np.dtype(old).itemsize))
    x = x[:, 0] if x.shape[1] == 1 else x
    actual, expected = _bits_of(lambda x: lax.bitcast_convert_type(x, np.dtype(new)), x)
    if np.dtype(new).kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))
        # TensorFlow's own product flushes subnormal numbers.
        flushed = (np.abs(expected) < np.finfo(new).tiny) & (actual == 0)
        actual, expected = actual[~flushed], expected[~flushed]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("new", ["int8", "uint16", "int16", "int64", "uint64"])
@pytest.mark.parametrize("old", ["float16", "float32"])
def test_bits_of_floats_of_another_width(old, new):
    numbers = [0, -0.0, 1, -1.5, 2.0**-24, -(2.0**-15), 2.0**-14, 65504, np.inf, -np.inf, 3, 0.1]
    x = np.array(numbers, old)
    count = np.dtype(new).itemsize // np.dtype(old).itemsize
    x = x.reshape(-1, count) if count > 1 else x
    np.testing.assert_array_equal(
        *_bits_of(lambda x: lax.bitcast_convert_type(x, np.dtype(new)), x)
    )


@pytest.mark.parametrize(
    ("options", "new"),
    [
        ({"lacks_dtypes": {"int8"}, "lacks": {"Bitcast": ()}}, "int8"),
        ({"lacks": {"Bitcast": ()}, "quirks": {"computes_64_bits_in_32"}}, "int64"),
    ],
)
def test_bits_that_the_target_does_not_hold_are_refused(options, new):
    target = jax2tf.Target("bits", **options)
    x = np.ones((3, 2), np.float32)
    words = f"the bits of float32 for {new}"
    with (
        jax.enable_x64(True),
        pytest.raises(jax2tf.UnsupportedPrimitiveError, match=words),
    ):
        graph_of(lambda x: lax.bitcast_convert_type(x, np.dtype(new)), target, x)


@pytest.mark.parametrize("target", ["litert", "onnx", "openvino", "tfjs"])
@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (4, 3), (3, 0), (1, 5), (8, 23), (15, 5)])
def test_fewer_bits_by_arithmetic(target, bits):
    def reduce(x):
        return lax.reduce_precision(x, *bits)

    concrete = assert_same(reduce, target, np.append(NUMBERS, np.float32(np.nan)))
    assert not ops_of(concrete) & {"BitwiseAnd", "BitwiseOr"}


_NORMAL = [1, -1, 1.5, 3.4028235e38, -3.4028235e38, np.inf, -np.inf, np.nan]
_SMALL = [0, -0.0, 1.1754944e-38, -1.1754944e-38]


@pytest.mark.parametrize(
    ("target", "dtype", "numbers"),
    [
        ("litert", np.float32, _NORMAL + _SMALL),
        (jax2tf.Target("of_float64", lacks={"NextAfter": ()}), np.float64, _NORMAL + _SMALL),
        # These have no bits of float64, and those of float32 by arithmetic of normal numbers.
        ("onnx", np.float32, _NORMAL),
        ("openvino", np.float32, _NORMAL),
        ("tfjs", np.float32, _NORMAL),
    ],
)
def test_the_next_number(target, dtype, numbers):
    with jax.enable_x64(dtype == np.float64):
        x, y = (v.ravel() for v in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))
        concrete = assert_same(lax.nextafter, target, x, y)
        assert "NextAfter" not in ops_of(concrete)
        expected = np.asarray(jax.jit(lax.nextafter)(x, y))
        is_number = ~np.isnan(expected)
        signs = np.signbit(concrete(tf.constant(x), tf.constant(y)).numpy())
        np.testing.assert_array_equal(signs[is_number], np.signbit(expected)[is_number])
        assert_same(lambda x: lax.nextafter(x, dtype(2)), target, x)
        assert_same(lax.nextafter, target, dtype(1), dtype(2))


def test_the_next_number_of_narrow_floats_is_one_of_theirs():
    x = np.array([0, 1, -1, np.inf], jnp.bfloat16)
    assert_same(lambda x: lax.nextafter(x, jnp.ones_like(x)), "litert", x)


UPDATES = {
    "set": lambda x: x.at[jnp.array([2, 0, 2])].set(jnp.array([7, 8, 9], x.dtype)),
    "add": lambda x: x.at[jnp.array([2, 0, 2, 9])].add(x[:4] + x.dtype.type(100)),
    "subtract": lambda x: x.at[jnp.array([2, 0, 2])].subtract(jnp.array([7, 8, 9], x.dtype)),
    "mul": lambda x: x.at[jnp.array([3, 4, 3])].multiply(x[3:]),
    "max": lambda x: x.at[jnp.array([2, 0, 2])].max(jnp.array([7, 120, 9], x.dtype)),
    "min": lambda x: x.at[jnp.array([2, 0, 2])].min(jnp.array([7, 8, 1], x.dtype)),
    "apply": lambda x: x.at[jnp.array([2, 0])].apply(lambda y: y * y),
    "by uint8": lambda x: x.at[jnp.array([2, 0, 200], jnp.uint8)].add(x[:3], mode="drop"),
    "by uint32": lambda x: x.at[jnp.array([2, 2**32 - 1], jnp.uint32)].set(x[:2], mode="drop"),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.uint32])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_by_index_of_integers(name, dtype):
    limits = np.iinfo(dtype)
    x = np.array([1, limits.max, 100, limits.max - 1, 77, limits.min], dtype)
    assert_same(UPDATES[name], "litert", x)
    assert_same(UPDATES[name], "openvino", x)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 0, 5)])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
def test_bools_are_split_by_slices(sizes, dtype):
    x = np.random.default_rng(0).integers(0, 2, (3, 6)).astype(dtype)
    target = jax2tf.Target("no_split", lacks={"Split": ("bool",), "SplitV": ("bool",)})
    concrete = graph_of(lambda x: lax.split(x, sizes, 1), target, x)
    for came, expected in zip(concrete(tf.constant(x)), lax.split(x, sizes, 1), strict=True):
        np.testing.assert_array_equal(came, expected, strict=True)
    assert ("Slice" in ops_of(concrete)) == (dtype == np.bool_)


@pytest.mark.parametrize("name", ["clz", "population_count"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bits_are_counted_by_logic(name, dtype):
    target = jax2tf.Target(
        "no_count", lacks={"PopulationCount": ()}, computes_in={"uint32": "int32"}
    )
    concrete = assert_same(UNARY[name], target, EDGES.astype(np.uint32).view(dtype))
    assert not {"FloorDiv", "PopulationCount", "Sum"} & ops_of(concrete)


@pytest.mark.parametrize("name", ["clz", "population_count"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
def test_bits_of_other_integers_are_counted_as_those_of_int32(name, dtype):
    with jax.enable_x64(dtype.endswith("64")):
        bounds = np.iinfo(dtype)
        x = np.array([0, 1, 5, 64, bounds.max, bounds.max // 3, bounds.min], dtype)
        x = np.append(x, x.dtype.type(1) << np.arange(8 * x.dtype.itemsize, dtype=dtype))
        concrete = assert_same(UNARY[name], "onnx", x.reshape(1, -1))
        assert "PopulationCount" not in ops_of(concrete)
        assert_same(UNARY[name], "onnx", np.zeros((0, 2), dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_shifts_without_a_sign_by_a_mask(dtype):
    target = jax2tf.Target(
        "signed", lacks={"RightShift": ("uint32",)}, computes_in={"uint32": "int32"}
    )
    left, right = LEFT.astype(np.uint32).view(dtype), RIGHT.astype(np.uint32).view(dtype)
    concrete = assert_same(BINARY["shift_right_logical"], target, left, right)
    assert {"BitwiseAnd"} <= ops_of(concrete)
    for distance in (0, 1, 9, 31, 32, 40):
        assert_same(lambda x, d=distance: lax.shift_right_logical(x, dtype(d)), target, left)


def test_shifts_choose_no_integers_where_engines_choose_floats():
    """OpenVINO's Select of int32 rounds what is beyond 2**24."""
    distances = RIGHT.astype(np.int32)
    concrete = assert_same(BINARY["shift_left"], "openvino", LEFT.astype(np.int32), distances)
    assert "SelectV2" not in ops_of(concrete)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_parity_without_logic(axes):
    x = np.random.default_rng(0).integers(0, 2, (3, 5)).astype(bool)
    concrete = assert_same(lambda x: lax.reduce_xor_p.bind(x, axes=axes), "litert", x)
    assert "BitwiseAnd" not in ops_of(concrete)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
def test_ragged_products_of_integers(dtype):
    x = np.random.default_rng(0).integers(0, 3, (6, 4)).astype(dtype)
    y = np.random.default_rng(1).integers(0, 3, (3, 4, 5)).astype(dtype)
    sizes = np.array([2, 3, 1], np.int32)
    concrete = assert_same(lax.ragged_dot, "litert", x, y, sizes)
    products = {"MatMul", "BatchMatMulV2"}
    # float32 has the sums of bools.
    made = [op for op in concrete.graph.get_operations() if op.type in products]
    assert all(op.inputs[0].dtype == tf.float32 and dtype == np.bool_ for op in made)


def _rows_summed(x):
    def step(total, row):
        return total + row, {"row": row, "is_large": row > np.uint32(2**31)}

    return jax.tree.leaves(lax.scan(step, x[0], x, reverse=True))


UINT32_IN_LOOPS = {
    "scan": _rows_summed,
    "reduce": lambda x: [lax.reduce(x, np.uint32(3), lambda a, b: a * b + a + b, (1,))],
    "two": lambda x: lax.reduce(
        (x, x.astype(np.float32)),
        (np.uint32(0), np.float32(0)),
        lambda a, b: (a[0] | b[0], a[1] + b[1]),
        (0,),
    ),
}


@pytest.mark.parametrize("name", UINT32_IN_LOOPS)
def test_no_cast_of_uint32_is_left_to_be_moved(name):
    function = UINT32_IN_LOOPS[name]
    x = EDGES.astype(np.uint32).reshape(4, 3)
    concrete = graph_of(function, "litert", x)
    for actual, expected in zip(concrete(tf.constant(x)), function(jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)
    definition = concrete.graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    casts = [{n.attr["SrcT"].type, n.attr["DstT"].type} for n in nodes if n.op == "Cast"]
    assert {tf.int32.as_datatype_enum, tf.uint32.as_datatype_enum} not in casts


def _kept_by_cond(i):
    key = jax.random.key(i)
    return lax.cond(i > 0, lambda k: k, lambda k: jax.random.fold_in(k, 3), key)


def _kept_by_while(i):
    def step(carry):
        n, key = carry
        return n + 1, jax.random.fold_in(key, n)

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, jax.random.key(i)))[1]


# By name: of a number of int32, and all of uint32 is inside.
WITH_UINT32_INSIDE = {
    "cond": lambda i: lax.cond(i > 0, lambda x: x // 7, lambda x: x * 5, i.astype(np.uint32)),
    "fori": lambda i: lax.fori_loop(
        0, 3, lambda n, x: x * np.uint32(2654435769) + n.astype(np.uint32), i.astype(np.uint32)
    ),
    "while": lambda i: lax.while_loop(
        lambda x: x < np.uint32(2**31), lambda x: x * 2 + 1, i.astype(np.uint32)
    ),
    "vmap of while": lambda i: jax.vmap(
        lambda x: lax.while_loop(lambda x: x < np.uint32(2**31), lambda x: x * 2 + 1, x)
    )(jnp.arange(4, dtype=np.uint32) + i.astype(np.uint32)),
    "scan": lambda i: sum(
        lax.scan(lambda c, x: (c + x, c ^ x), i.astype(np.uint32), np.arange(5, dtype=np.uint32))
    ),
    "jit twice": lambda i: (lambda f: f(f(i.astype(np.uint32))))(
        jax.jit(lambda x: (x << 3) ^ (x >> 5) ^ (x * 3) ^ (x + 9))
    ),
    "key in a branch": lambda i: jax.random.bits(_kept_by_cond(i), (3,)),
    "key in a loop": lambda i: jax.random.bits(_kept_by_while(i), (3,)),
    "keys that are split": lambda i: jax.random.bits(jax.random.split(jax.random.key(i))[1], (2,)),
}


def _read_by(outputs):
    """The ops that results are computed by."""
    found, pending = set(), [x.op for x in outputs]
    while pending:
        op = pending.pop()
        if op not in found:
            found.add(op)
            pending += [x.op for x in op.inputs]
    return found


@pytest.mark.parametrize("name", WITH_UINT32_INSIDE)
@pytest.mark.parametrize("number", [-3, 5])
def test_a_target_without_uint32_has_none_between_ops(name, number):
    def function(i):
        return WITH_UINT32_INSIDE[name](i).astype(np.int32)

    i = np.int32(number)
    concrete = assert_same(function, "tfjs", i)
    graphs = [_read_by(concrete.outputs)]
    library = concrete.graph.as_graph_def().library.function
    assert not any(
        arg.type == tf.uint32.as_datatype_enum
        for f in library
        for arg in (*f.signature.input_arg, *f.signature.output_arg)
    )
    assert all(x.dtype != tf.uint32 for ops in graphs for op in ops for x in op.inputs)


@pytest.mark.parametrize(
    ("function", "argument", "what"),
    [
        (lambda d: d["x"] + 1, {"x": np.uint32([1])}, r"argument d\['x'\] is of uint32"),
        (lambda x: (x, x.astype(np.uint32)), np.float32([1]), "result 1 is of uint32"),
        (lambda x: jax.random.key(x), np.int32(1), "result 0 is of keys"),
    ],
)
def test_uint32_is_refused_where_a_target_has_no_arrays_of_it(function, argument, what):
    converted = tf.function(jax2tf.convert(function, target="tfjs"), autograph=False)
    with pytest.raises(jax2tf._src.api.errors.UnsupportedDtypeError, match=what):
        converted.get_concrete_function(argument)


@pytest.mark.parametrize("target", ["tensorflow", "tfjs", "litert"])
@pytest.mark.parametrize("number", [-1.0, 1.0])
def test_a_constant_branch_waits_for_what_it_is_given(target, number):
    def function(x):
        return lax.switch(
            (x[0] > 0).astype(np.int32),
            [lambda x: jnp.full_like(x, 7.0), lambda x: (x @ x) * x],
            x,
        )

    concrete = assert_same(function, target, np.float32([number, 2.0]))
    functions = concrete.graph.as_graph_def().library.function
    kept = [node for f in functions for node in f.node_def if node.op == "SelectV2"]
    assert len(kept) == (0 if target == "litert" else 1)


# By name: a loop up to a number, from 0, and a matrix; some carries are not read by the body.
UNREAD_CARRIES = {
    "constant": lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.full_like(x, 5.0)), (0, x)
    ),
    "flag": lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, True), (0, False)),
    "of another": lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[2], c[2] * 2), (0, x, x + 1)
    ),
    "number alone": lambda n, x: lax.while_loop(lambda c: c < n, lambda c: n, 3),
}


@pytest.mark.parametrize("name", UNREAD_CARRIES)
@pytest.mark.parametrize("n", [0, 2, 5])
def test_a_loop_reads_what_it_carries_for_a_target_that_loses_it(name, n):
    function, x = UNREAD_CARRIES[name], np.arange(4, dtype=np.float32).reshape(2, 2)
    args = np.int32(n), x
    concrete = graph_of(function, "openvino", *args)
    for actual, expected in zip(
        jax.tree.leaves(concrete(*map(tf.constant, args))),
        jax.tree.leaves(jax.jit(function)(*args)),
        strict=True,
    ):
        np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), strict=True)

    assert _nodes_of_bodies(function, "openvino", args) > _nodes_of_bodies(
        function, NO_UNREAD_CARRIES, args
    )


NO_UNREAD_CARRIES = dataclasses.replace(
    jax2tf.TARGETS["openvino"],
    quirks=jax2tf.TARGETS["openvino"].quirks - {"drops_unread_carries"},
)


def _nodes_of_bodies(function, target, args):
    library = graph_of(function, target, *args).graph.as_graph_def().library.function
    return sum(len(f.node_def) for f in library)


def test_a_loop_that_reads_what_it_carries_stays_as_it_is():
    def function(n, x):
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2, c[2]), (0, x, x + 1)
        )

    args = np.int32(2), np.ones(2, np.float32)
    assert _nodes_of_bodies(function, "openvino", args) == _nodes_of_bodies(
        function, NO_UNREAD_CARRIES, args
    )
