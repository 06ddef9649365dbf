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


@pytest.mark.parametrize("target", ["litert", "tfjs"])
@pytest.mark.parametrize("distance", [0, 1, 3, 9, 31, 40])
@pytest.mark.parametrize("name", ["shift_left", "shift_right_arithmetic", "shift_right_logical"])
def test_shifts_by_a_known_distance(name, distance, target):
    assert_same(lambda x: BINARY[name](x, np.int32(distance)), target, EDGES.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int32])
@pytest.mark.parametrize("function", [lax.reduce_max, lax.reduce_min])
def test_extremes_of_nothing_are_the_ends_of_the_dtype(function, dtype):
    assert_same(lambda x: function(x, (0,)), "litert", np.zeros((0, 3), dtype))


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


def assert_near(function, ulps, target, *args):
    concrete = graph_of(function, target, *args)
    expected = np.asarray(jax.jit(function)(*args))
    actual = concrete(*map(tf.constant, args)).numpy()
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    rtol = ulps * float(jnp.finfo(expected.dtype).eps)
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol
    )
    return ops_of(concrete)


@pytest.mark.parametrize("target", ["litert", "onnx", "openvino", "tfjs"])
@pytest.mark.parametrize("op", ALONE)
def test_special_functions_of_one_number(op, target):
    function, ulps = ALONE[op]
    assert op not in assert_near(function, ulps, target, np.float32(POINTS))


@pytest.mark.parametrize("op", TOGETHER)
def test_special_functions_of_several_numbers(op):
    function, ulps = TOGETHER[op]
    left, right = LEFTS.astype(np.float32), RIGHTS.astype(np.float32)
    assert op not in assert_near(function, ulps, "litert", left, right)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 1)])
@pytest.mark.parametrize("op", {**ALONE, **TOGETHER})
def test_special_functions_of_a_shape(op, shape):
    function, ulps = ALONE.get(op) or TOGETHER[op]
    args = [np.full(shape, 0.75, np.float32)] * (1 if op in ALONE else 2)
    assert op not in assert_near(function, ulps, "litert", *args)


def test_special_functions_of_a_number_beside_an_array():
    x = np.float32([0.5, 1.5, 4])
    assert "Igamma" not in assert_near(lambda x: lax.igamma(x, 2.0), 16, "litert", x)


def test_special_functions_of_narrow_floats_are_computed_in_float32():
    x = np.linspace(2.5, 20, 30).astype(jnp.bfloat16)
    assert "Lgamma" not in assert_near(lax.lgamma, 1, "litert", x)


def test_special_functions_of_float64():
    with jax.enable_x64(True):
        x = np.linspace(2.5, 20, 30)
        assert "Lgamma" not in assert_near(lax.lgamma, 16, "litert", x)
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="takes no BesselI1e"):
            graph_of(lax.bessel_i1e, "litert", x)


def test_special_functions_of_other_targets_are_ops():
    assert "Igamma" in assert_near(
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
        ("litert", np.float64, _NORMAL + _SMALL),
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


@pytest.mark.parametrize("reduce", [jnp.max, jnp.min, jnp.sum, jnp.prod, jnp.any, jnp.all])
@pytest.mark.parametrize("axes", [(1,), (2, 4), (0, 1, 7), (0, 2, 4, 6), (1, 3, 5, 7)])
def test_reductions_of_many_dimensions_are_of_few(reduce, axes):
    target = jax2tf.Target("few", quirks={"few_dimensions_in_reductions"})
    x = np.arange(2.0**8, dtype=np.float32).reshape((2,) * 8) % 3 + 0.5
    x[0, 1, 0, 1, 1, 0, 0, 1] = np.nan
    x = x > 1 if reduce in (jnp.any, jnp.all) else x

    def reduced(x):
        return reduce(x, axes)

    concrete = graph_of(reduced, target, x)
    reductions = [op for op in concrete.graph.get_operations() if op.type in REDUCTIONS]
    assert reductions
    assert max(op.inputs[0].shape.rank for op in reductions) <= 6
    np.testing.assert_allclose(concrete(tf.constant(x)), reduced(x), rtol=1e-6)


REDUCTIONS = {"All", "Any", "Max", "Min", "Prod", "Sum"}


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_integers_of_three_dimensions_are_reduced_as_four(axis, dtype):
    target = jax2tf.Target("three", quirks={"no_integers_of_three_dimensions"})
    x = np.arange(24, dtype=dtype).reshape(2, 4, 3)

    def reduced(x):
        return jnp.max(x, axis) * 2, lax.reduce_sum(x, (axis,)) + x.dtype.type(4)

    concrete = graph_of(reduced, target, x)
    reductions = [op for op in concrete.graph.get_operations() if op.type in REDUCTIONS]
    assert {op.inputs[0].shape.rank for op in reductions} == {4}
    for came, expected in zip(concrete(tf.constant(x)), reduced(x), strict=True):
        np.testing.assert_array_equal(came, expected)


ORDERS_AS_FLOATS = jax2tf.Target("floats", quirks={"orders_integers_as_floats"})


@pytest.mark.parametrize("reduce", [jnp.max, jnp.min])
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
def test_the_largest_of_integers_is_that_of_their_halves(reduce, axes):
    ends = np.array([-(2**31), 2**31 - 1, 2**31 - 2, -1, 0, 65535, 65536, -65536], np.int32)
    x = np.random.default_rng(0).permuted(np.tile(ends, 3)).reshape(2, 4, 3)
    concrete = graph_of(lambda x: reduce(x, axes), ORDERS_AS_FLOATS, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), reduce(x, axes))
    halves = [op for op in concrete.graph.get_operations() if op.type in ("Max", "Min")]
    assert [op.type for op in halves] == (["Max", "Max"] if axes else [])


@pytest.mark.parametrize(
    ("reduce", "end"), [(lax.reduce_max, -(2**31)), (lax.reduce_min, 2**31 - 1)]
)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_largest_of_what_may_be_empty(reduce, end, size):
    converted = jax2tf.convert(
        lambda x: reduce(x[:, 1:], (1,)), target=ORDERS_AS_FLOATS, polymorphic_shapes="2, n"
    )
    x = np.arange(2 * size, dtype=np.int32).reshape(2, size) + np.int32(-(2**31))
    expected = reduce(x[:, 1:], (1,)) if size > 1 else np.full(2, end)
    function = tf.function(converted, input_signature=[tf.TensorSpec([2, None], tf.int32)])
    np.testing.assert_array_equal(function(x), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_integers_are_reversed_by_their_places(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    concrete = graph_of(lambda x: lax.rev(x, (0, 2)), ORDERS_AS_FLOATS, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), x[::-1, :, ::-1])
    types = {op.type for op in concrete.graph.get_operations()}
    assert ("ReverseV2" in types, "GatherV2" in types) == (dtype != np.int32, dtype == np.int32)


SATURATES = jax2tf.Target("saturating", quirks={"integer_reductions_saturate"})


@pytest.mark.parametrize("reduce", [lax.reduce_sum, lax.reduce_prod])
@pytest.mark.parametrize("axes", [(), (0,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 2, 4), (3, 0, 4)])
def test_sums_and_products_of_integers_wrap_around(reduce, axes, shape):
    numbers = np.array([2**31 - 1, -(2**31), 70000, -70001, 3, 2**30 + 1], np.int32)
    x = np.random.default_rng(0).choice(numbers, shape)
    concrete = graph_of(lambda x: reduce(x, axes), SATURATES, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), reduce(x, axes), strict=True)
    reductions = [op for op in concrete.graph.get_operations() if op.type in ("Sum", "Prod")]
    assert {op.inputs[0].dtype for op in reductions} <= {tf.int64}


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


@pytest.mark.parametrize(
    ("fun", "kept"),
    [
        (lambda x: (x + 1, jnp.arange(3)), 1),
        (lambda x: (jnp.zeros((0, 3)), 2.5, jnp.array(True)), 3),
        (lambda x: (x, x[:0]), 1),
        (lambda x: (x, -x), 0),
    ],
)
def test_a_constant_result_goes_through_an_op(fun, kept):
    target = jax2tf.Target("drops", quirks={"drops_constant_results"})
    x = np.ones(3, np.float32)
    concrete = graph_of(fun, target, x)
    for came, expected in zip(concrete(tf.constant(x)), fun(x), strict=True):
        np.testing.assert_array_equal(came, expected)
    made = [op for op in concrete.graph.get_operations() if op.type == "Reshape"]
    assert len(made) == kept


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("compare", [jnp.greater, jnp.less])
def test_integers_are_compared_without_greater_and_less(compare, dtype):
    target = jax2tf.Target("compares", quirks={"compares_integers_as_floats"})
    limits = np.iinfo(dtype)
    x = np.array([limits.max, limits.max - 1, limits.min, limits.min + 1, 3, 3], dtype)
    with jax.enable_x64(True):
        concrete = graph_of(lambda x: compare(x[:, None], x), target, x)
        expected = compare(x[:, None], x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), expected)
    assert not {"Greater", "Less"} & {op.type for op in concrete.graph.get_operations()}


@pytest.mark.parametrize(
    "equation", ["bij,bkj->bik", "bji,bjk->bik", "bji,bkj->bik", "ij,bkj->bik"]
)
def test_integer_matrices_are_transposed_by_themselves(equation):
    target = jax2tf.Target("adjoints", quirks={"no_adjoint_of_integers"})
    shapes = [
        [{"b": 2, "i": 3, "j": 4, "k": 5}[d] for d in term] for term in equation[:-5].split(",")
    ]
    x, y = (np.arange(np.prod(s), dtype=np.int32).reshape(s) for s in shapes)
    concrete = graph_of(lambda x, y: jnp.einsum(equation, x, y), target, x, y)
    np.testing.assert_array_equal(
        concrete(tf.constant(x), tf.constant(y)), jnp.einsum(equation, x, y)
    )
    products = [op for op in concrete.graph.get_operations() if "MatMul" in op.type]
    flags = ("transpose_a", "transpose_b", "adj_x", "adj_y")
    assert products
    assert not any(op.node_def.attr[n].b for op in products for n in flags if n in op.node_def.attr)
