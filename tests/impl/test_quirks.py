"""What engines get wrong of integers and of results, and graphs for them go round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import assert_near, graph_of, ops_of

REDUCTIONS = {"All", "Any", "Max", "Min", "Prod", "Sum"}


@pytest.mark.parametrize("reduce", [jnp.max, jnp.min, jnp.sum, jnp.prod, jnp.any, jnp.all])
@pytest.mark.parametrize("axes", [(1,), (2, 4), (0, 1, 7), (0, 2, 4, 6), (1, 3, 5, 7)])
def test_reductions_of_many_dimensions_are_of_few(reduce, axes):
    target = jax2tf.Target("few")
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


@pytest.mark.parametrize(
    ("axes", "rank"), [((0,), 2), ((1,), 4), ((2,), 2), ((1, 2), 2), ((0, 2), 3), ((0, 1, 2), 1)]
)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_integers_are_not_reduced_along_the_middle_of_three_dimensions(axes, rank, dtype):
    target = jax2tf.Target("three", quirks={"no_integers_of_three_dimensions"})
    x = np.arange(24, dtype=dtype).reshape(2, 4, 3) % 3

    def reduced(x):
        return jnp.max(x, axes) * 2, lax.reduce_prod(x, axes) + x.dtype.type(4)

    concrete = graph_of(reduced, target, x)
    reductions = [op for op in concrete.graph.get_operations() if op.type in REDUCTIONS]
    assert {op.inputs[0].shape.rank for op in reductions} == {rank}
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
    types = ops_of(concrete)
    assert ("ReverseV2" in types, "GatherV2" in types) == (dtype != np.int32, dtype == np.int32)


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


PADS_AS_FLOATS = jax2tf.Target("pads", quirks={"pads_integers_as_floats"})


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31) + 1, 2**24 + 1, -(2**31), 0, 2**24])
def test_integers_are_padded_with_what_floats_hold(value):
    x = np.array([[2**31 - 1, -(2**31), 5], [-7, 2**24 + 1, 0]], np.int32)

    def fun(x):
        return lax.pad(x, np.int32(value), [(1, 2, 0), (-1, 1, 1)])

    concrete = graph_of(fun, PADS_AS_FLOATS, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), fun(x))
    pads = [op for op in concrete.graph.get_operations() if op.type == "PadV2"]
    values = [int(tf.get_static_value(op.inputs[2])) for op in pads]
    assert values
    assert all(int(np.float32(v)) == v for v in values)


NO_PAD = jax2tf.Target("no_pad", lacks={"Pad": ("uint32",), "PadV2": ("uint32",)})


@pytest.mark.parametrize("value", [0, 7, 2**32 - 1])
def test_uint32_is_padded_in_64_bits(value):
    x = np.array([[2**32 - 1, 2**31, 5], [7, 2**24 + 1, 0]], np.uint32)

    def fun(x):
        return lax.pad(x, np.uint32(value), [(1, 2, 0), (-1, 1, 1)])

    concrete = graph_of(fun, NO_PAD, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), fun(x))
    pads = [op for op in concrete.graph.get_operations() if op.type in ("Pad", "PadV2")]
    assert {op.inputs[0].dtype for op in pads} == {tf.int64}


ADDS_AS_FLOATS = jax2tf.Target("adds", quirks={"adds_integers_as_floats"})


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 2, 4), (3, 0, 4)])
def test_integers_are_added_by_cumulative_sums(axes, shape):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, shape).astype(np.int32)
    concrete = graph_of(lambda x: lax.reduce_sum(x, axes), ADDS_AS_FLOATS, x)
    np.testing.assert_array_equal(concrete(tf.constant(x)), lax.reduce_sum(x, axes), strict=True)
    assert "Sum" not in ops_of(concrete)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_many_integers_as_there_are(size):
    x = np.arange(2 * size, dtype=np.int32).reshape(2, size) + np.int32(2**30)
    converted = jax2tf.convert(
        lambda x: x[:, 1:].sum(1),
        target=ADDS_AS_FLOATS,
        polymorphic_shapes="2, n",
        with_gradient=False,
    )
    function = tf.function(converted, input_signature=[tf.TensorSpec([2, None], tf.int32)])
    np.testing.assert_array_equal(function(x), x[:, 1:].sum(1, dtype=np.int32), strict=True)


def test_bools_are_counted_by_one_op():
    concrete = graph_of(lambda x: jnp.sum(x > 0), ADDS_AS_FLOATS, np.ones(5, np.float32))
    assert int(concrete(tf.ones(5))) == 5
    assert {"Sum"} <= ops_of(concrete)


ROUNDS = jax2tf.Target(
    "rounds",
    quirks={"divides_integers_as_floats", "equates_large_integers"},
    lacks={"RightShift": ("int64", "uint32")},
    computes_in={"uint32": "int32"},
)
ENDS = np.array(
    [0, 1, -1, 2, 7, -32, 2**16 + 3, 2**24 + 1, 123456789, -987654321, 2**30, 2**31 - 1, -(2**31)],
    np.int32,
)
LEFT, RIGHT = (x.reshape(-1) for x in np.meshgrid(ENDS, ENDS))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("divide", [lax.div, lax.rem])
def test_integers_are_divided_by_estimates(divide, dtype):
    x, y = LEFT.view(dtype), RIGHT.view(dtype)
    concrete = graph_of(divide, ROUNDS, x, y)
    np.testing.assert_array_equal(
        concrete(tf.constant(x), tf.constant(y)), divide(x, y), strict=True
    )
    assert not {"FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"} & ops_of(concrete)


@pytest.mark.parametrize("divisor", [1, 2, 3, 2**20, 2**31 - 1])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integers_are_divided_by_a_constant(dtype, divisor):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 999) >> np.arange(999) % 31
    x = np.concatenate([ENDS, x.astype(np.int32)]).view(dtype)

    def fun(x):
        return lax.div(x, dtype(divisor)), lax.rem(x, dtype(divisor))

    concrete = graph_of(fun, ROUNDS, x)
    for came, expected in zip(concrete(tf.constant(x)), fun(x), strict=True):
        np.testing.assert_array_equal(came, expected, strict=True)
    assert ("RealDiv" in ops_of(concrete)) == (divisor not in (1, 2, 2**20))


def test_by_negative_constants():
    def fun(x):
        return lax.div(x, np.int32(-3)), lax.div(x, np.int32(-(2**31))), lax.div(x, np.int32(0))

    concrete = graph_of(fun, ROUNDS, ENDS)
    for came, expected in zip(concrete(tf.constant(ENDS)), fun(ENDS), strict=True):
        np.testing.assert_array_equal(came, expected)


COMPARISONS = [lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge, lax.lt_to_p.bind, lax.le_to_p.bind]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("compare", COMPARISONS)
def test_integers_are_compared_by_their_difference(compare, dtype):
    x, y = LEFT.view(dtype), RIGHT.view(dtype)
    concrete = graph_of(compare, ROUNDS, x, y)
    np.testing.assert_array_equal(concrete(tf.constant(x), tf.constant(y)), compare(x, y))
    comparisons = [
        op
        for op in concrete.graph.get_operations()
        if op.outputs and op.outputs[0].dtype == tf.bool and op.inputs and op.type != "Identity"
    ]
    assert {op.type for op in comparisons} <= {"Equal", "NotEqual"}
    assert all(tf.get_static_value(op.inputs[1]) == 0 for op in comparisons)


def test_numbers_without_a_sign_are_clamped_by_comparisons():
    x = ENDS.view(np.uint32)

    def fun(x, low):
        return lax.clamp(np.uint32(1), x, np.uint32(2**31 + 5)), lax.clamp(low, x, x[-1])

    concrete = graph_of(fun, ROUNDS, x, x[4])
    for came, expected in zip(
        concrete(tf.constant(x), tf.constant(x[4])), fun(x, x[4]), strict=True
    ):
        np.testing.assert_array_equal(came, expected, strict=True)
    assert "Minimum" not in ops_of(concrete)


@pytest.mark.parametrize(("number", "is_one_op"), [(2**24 - 1, True), (2**24, False)])
def test_a_number_that_floats_tell_apart_is_compared(number, is_one_op):
    concrete = graph_of(lambda x: x < number, ROUNDS, ENDS)
    np.testing.assert_array_equal(concrete(tf.constant(ENDS)), lax.lt(ENDS, np.int32(number)))
    assert ("Less" in ops_of(concrete)) == is_one_op


@pytest.mark.parametrize(
    ("case", "is_chosen"),
    [(lambda x: x, False), (lambda x: -7, True), (lambda x: 2**24 + 1, False)],
)
def test_a_choice_between_integers_is_by_their_difference(case, is_chosen):
    target = jax2tf.Target("chooses", quirks={"chooses_integers_as_floats"})

    def fun(x):
        return jnp.where(x > 5, case(x), 3 if is_chosen else -x)

    concrete = graph_of(fun, target, ENDS)
    np.testing.assert_array_equal(concrete(tf.constant(ENDS)), fun(ENDS))
    assert ("SelectV2" in ops_of(concrete)) == is_chosen


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_the_upper_half_of_a_product_without_wide_integers(dtype):
    x, y = LEFT.view(dtype), RIGHT.view(dtype)
    concrete = graph_of(lax.mulhi, ROUNDS, x, y)
    np.testing.assert_array_equal(concrete(tf.constant(x), tf.constant(y)), lax.mulhi(x, y))


def test_a_row_by_a_computed_matrix_is_the_matrix_by_a_column():
    target = jax2tf.Target("rows", quirks={"no_row_by_computed_matrix"})
    x, m = np.arange(3, dtype=np.float32), np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def fun(x, m):
        return jnp.einsum("i,aib->ab", x, m), x @ m[0], x @ np.ones((3, 5), np.float32)

    concrete = graph_of(fun, target, x, m)
    for came, expected in zip(concrete(tf.constant(x), tf.constant(m)), fun(x, m), strict=True):
        np.testing.assert_array_equal(came, expected, strict=True)
    products = [op for op in concrete.graph.get_operations() if "MatMul" in op.type]
    columns = sorted(op.inputs[1].shape.as_list()[-1] for op in products)
    # A constant matrix stays the second operand.
    assert columns == [1, 1, 5]


def test_a_scalar_beside_an_array_in_atan2():
    target = jax2tf.Target("atan2", quirks={"no_atan2_of_scalar"})
    x = np.linspace(-2, 2, 5, dtype=np.float32)

    def fun(x):
        return lax.atan2_p.bind(x, x[1]), lax.atan2_p.bind(x[1], x)

    try:
        expected = jax.jit(fun)(x)
    except (TypeError, ValueError):
        pytest.skip("this version of JAX takes no scalar beside an array")
    concrete = graph_of(fun, target, x)
    for came, wanted in zip(concrete(tf.constant(x)), expected, strict=True):
        np.testing.assert_allclose(came, wanted, rtol=1e-6)
    shapes = [
        {tuple(i.shape) for i in op.inputs}
        for op in concrete.graph.get_operations()
        if op.type == "Atan2"
    ]
    assert shapes == [{(5,)}, {(5,)}]


SHORT = jax2tf.Target(
    "short",
    quirks={"keeps_what_16_bits_lose"},
    computes_in={"int16": "int32", "uint16": "int32"},
)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x * x,
        lambda x: -x,
        lambda x: ~x,
        lambda x: x << 3,
        lambda x: lax.shift_right_arithmetic(x, x.dtype.type(1)),
        jnp.cumsum,
    ],
)
def test_integers_of_16_bits_wrap_around_before_they_are_cast(function, dtype):
    """In int32: the Cast of what is in the range changes no number."""
    x = np.array([0, 1, 255, 2**15 - 1, 2**15, 2**16 - 1, 40000], np.int32).astype(dtype)
    concrete = graph_of(function, SHORT, x)
    _assert_no_cast_leaves_the_range(concrete, x, dtype)
    np.testing.assert_array_equal(concrete(tf.constant(x)), jax.jit(function)(x), strict=True)


@pytest.mark.parametrize("old", [np.int32, np.uint32, np.int8, np.int16, np.uint16])
@pytest.mark.parametrize("new", [np.int16, np.uint16])
def test_conversions_to_16_bits_wrap_around_before_they_are_cast(old, new):
    x = np.array([70000, -3, 2**31 - 1, 255, 2**15, 2**16 - 1, -40000], np.int64).astype(old)
    concrete = graph_of(lambda x: x.astype(new), SHORT, x)
    _assert_no_cast_leaves_the_range(concrete, x, new)
    np.testing.assert_array_equal(concrete(tf.constant(x)), x.astype(new), strict=True)


def _assert_no_cast_leaves_the_range(concrete, x, dtype):
    casts = [
        op.inputs[0]
        for op in concrete.graph.get_operations()
        if op.type == "Cast" and op.outputs[0].dtype == dtype
    ]
    limits = np.iinfo(dtype)
    with tf.compat.v1.Session(graph=concrete.graph) as session:
        for given in session.run(casts, {concrete.inputs[0].name: x}):
            assert limits.min <= given.min()
            assert given.max() <= limits.max


FEW = jax2tf.Target("few", quirks={"few_functions_of_float16"}, lacks={"Lgamma": ()})


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (jnp.log1p, "Log1p"),
        (jnp.expm1, "Tanh"),
        (lax.is_finite, "IsFinite"),
        (lambda x: jnp.pad(x, 1, constant_values=2), "PadV2"),
        (lambda x: x.at[np.array([0, 0])].add(x[0]), "TensorScatterAdd"),
    ],
)
def test_few_functions_of_float16_are_ops(function, op):
    x = np.array([0.5, -0.25, np.inf, 3], np.float16)
    concrete = graph_of(function, FEW, x)
    ops = concrete.graph.get_operations()
    assert not any(i.dtype == tf.float16 for o in ops if o.type == op for i in o.inputs)
    assert_near(concrete(tf.constant(x)), jax.jit(function)(x), ulps=1)


def test_arithmetic_of_float16_stays():
    x = np.array([0.5, -0.25, np.inf, 3], np.float16)
    concrete = graph_of(lambda x: jnp.tanh(x * 2 + 1), FEW, x)
    assert "Cast" not in ops_of(concrete)


@pytest.mark.parametrize("activation", [jax.nn.relu, jax.nn.relu6, lambda x: jnp.maximum(0.0, x)])
@pytest.mark.parametrize("approximate", [False, True])
def test_a_relu_takes_no_gelu_apart(activation, approximate):
    def function(x):
        return activation(jax.nn.gelu(x, approximate=approximate))

    x = np.linspace(-4, 7, 23, dtype=np.float32)
    for target, apart in (("litert", not approximate), ("xla", False)):
        converted = jax2tf.convert(function, target=target)
        graph = tf.function(converted, autograph=False).get_concrete_function(x).graph
        below = [op.inputs[1] for op in graph.get_operations() if op.type == "Maximum"]
        assert (-1.0 in map(tf.get_static_value, below)) == apart
        for run in (converted, tf.function(converted, autograph=False)):
            np.testing.assert_allclose(run(x), jax.jit(function)(x), rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("target", ["litert", "tensorflow"])
@pytest.mark.parametrize(
    ("shape", "new", "is_squeeze"),
    [
        ((1, 3, 4), (3, 4), True),
        ((2, 1, 3, 1), (2, 3), True),
        ((1, 1, 3), (1, 3), True),
        ((1, 1), (), True),
        ((3, 4), (1, 3, 4), False),
        ((1, 3, 4), (4, 3), False),
        ((1, 3, 4), (3, 1, 4), False),
        ((1, 6), (3, 2), False),
    ],
)
def test_a_reshape_that_drops_dimensions_of_a_transpose_is_a_squeeze(
    target, shape, new, is_squeeze
):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape[::-1])
    for fun, is_transposed in (
        (lambda x: jnp.reshape(x.T, new), True),
        (lambda x: jnp.reshape(-x.T, new), False),
    ):
        concrete = graph_of(fun, target, x)
        ops = ops_of(concrete)
        assert ("Squeeze" in ops) == (is_squeeze and is_transposed)
        assert ("Squeeze" in ops) != ("Reshape" in ops)
        np.testing.assert_array_equal(concrete(tf.constant(x)), fun(x), strict=True)


def test_a_reshape_of_open_sizes_stays_one():
    converted = jax2tf.convert(
        lambda x: x.transpose(0, 2, 1).reshape(3, -1),
        target="litert",
        polymorphic_shapes="1, b, ...",
    )
    graph = tf.function(converted, autograph=False).get_concrete_function(
        tf.TensorSpec([1, None, 3])
    )
    assert "Reshape" in ops_of(graph)
    assert graph(tf.ones([1, 5, 3])).shape == (3, 5)


@pytest.mark.parametrize("edges", [((0, 1, 0),), ((0, 1, 2), (1, 0, 1)), ((1, -1, 0), (0, 2, 0))])
def test_pads_of_many_dimensions_are_of_few(edges):
    target = jax2tf.Target("few", most_dimensions_of={"PadV2": 5})
    x = np.arange(2.0**6, dtype=np.float32).reshape((2,) * 6)
    config = [edges[i] if i < len(edges) else (0, 0, 0) for i in range(6)]

    def padded(x):
        return lax.pad(x, np.float32(0.5), config)

    concrete = graph_of(padded, target, x)
    pads = [op for op in concrete.graph.get_operations() if op.type == "PadV2"]
    assert pads
    assert max(op.inputs[0].shape.rank for op in pads) <= 5
    np.testing.assert_array_equal(concrete(tf.constant(x)), padded(x), strict=True)


@pytest.mark.parametrize("padding", ["VALID", "SAME_LOWER", [(2, 0), (0, 1)], [(-1, 1), (0, 0)]])
def test_what_is_padded_by_computed_sizes_keeps_those_that_are_known(padding):
    target = jax2tf.Target("loses", quirks={"pads_lose_sizes"})
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(3, 3, 2, 4)).astype(np.float32)

    def convolved(x):
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (2, 2), padding, dimension_numbers=layout)

    converted = tf.function(
        jax2tf.convert(convolved, target=target, polymorphic_shapes="b, h, w, 2"), autograph=False
    )
    concrete = converted.get_concrete_function(tf.TensorSpec([None, None, None, 2]))
    pads = [op.outputs[0] for op in concrete.graph.get_operations() if op.type == "PadV2"]
    assert pads
    for pad in pads:
        assert {op.type for op in pad.consumers()} == {"Reshape"}
    for size in ((1, 1, 1, 2), (2, 1, 3, 2), (2, 4, 5, 2)):
        x = rng.normal(size=size).astype(np.float32)
        np.testing.assert_allclose(concrete(tf.constant(x)), convolved(x), atol=1e-5)


@pytest.mark.parametrize(("quirks", "functions"), [((), 1), (("no_lists_in_functions",), 0)])
def test_a_layer_with_a_loop_that_writes_a_list_is_no_function(quirks, functions):
    @jax.jit
    def layer(x):
        sums = lax.scan(lambda c, row: (c * 0.5 + row, c * row), x[0], x)[1]
        return jnp.tanh(sums * 0.5 + x)

    def stack(x):
        return lax.scan(lambda c, _: (layer(layer(c)), None), layer(layer(x)), None, length=2)[0]

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    concrete = graph_of(stack, jax2tf.Target("lists", quirks=set(quirks)), x)
    names = {f.signature.name for f in concrete.graph.as_graph_def().library.function}
    layers = [name for name in names if "layer" in name and "while" not in name]
    assert len(layers) == functions, names
    np.testing.assert_allclose(concrete(tf.constant(x)), jax.jit(stack)(x), rtol=1e-6)
