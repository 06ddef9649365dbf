"""What the matrix cannot see of the array rules: which ops a graph holds, and symbolic shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from jax2tf._src.lowering.emit import compiled_calls
from tests.running import AROUND, MODES, graph_of, ops_in_order, ops_of


@pytest.mark.parametrize(
    ("other", "target", "ops"),
    [
        (None, "xla", ["SelectV2"]),
        (None, "tensorflow", ["SelectV2"]),
        (0.0, "tensorflow", ["SelectV2"]),
        (-np.inf, "tensorflow", ["SelectV2"]),
    ],
)
def test_a_choice(other, target, ops):
    def choose(x, which):
        return lax.select_n(which, x, x if other is None else lax.full_like(x, other))

    which = np.array([[True, False, True, False]] * 3)
    concrete = graph_of(choose, target, np.ones((3, 4), np.float32), which)
    assert ops_in_order(concrete, AROUND | {"BroadcastTo"}) == ops


def test_a_choice_of_two_constants():
    which = np.array([True, False, True])
    concrete = graph_of(lambda which: jnp.where(which, 1.0, 2.0), "tensorflow", which)
    assert ops_in_order(concrete, AROUND | {"BroadcastTo"}) == ["SelectV2"]


OF_ONE = {
    "rev": lambda x: lax.rev(x, (0, 2)),
    "sort": lambda x: lax.sort((x, x + 1), dimension=0)[1] - 1,
    "cummax": lambda x: lax.cummax(x, 0, reverse=True),
    "cummin": lambda x: lax.cummin(x, 2),
    "argmax": lambda x: jnp.argmax(x, 0),
    "argmin": lambda x: jnp.argmin(x, 2),
}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "int8"])
@pytest.mark.parametrize("target", ["xla", "tensorflow", "openvino"])
@pytest.mark.parametrize("name", OF_ONE)
def test_what_is_done_along_an_axis_of_one_is_no_op(name, target, dtype):
    x = np.arange(5).reshape(1, 5, 1).astype(dtype)
    concrete = graph_of(OF_ONE[name], target, x)
    moves = {"ArgMax", "ArgMin", "GatherV2", "Maximum", "ReverseV2", "TopKV2", "XlaVariadicSort"}
    assert not moves & set(ops_of(concrete))
    expected = jax.jit(OF_ONE[name])(x)
    actual = concrete(tf.constant(x))
    np.testing.assert_array_equal(actual, expected, strict=True)


STACKED_TWICE = {
    "of_split": lambda x: jnp.stack([jnp.split(x, 2, -1)[1]] * 2, -1),
    "of_top_k": lambda x: jnp.stack([lax.top_k(x, 3)[1], lax.top_k(x, 3)[1]]),
    "of_sort": lambda x: jnp.stack([jnp.argsort(x)] * 3, 1),
    "of_unstack": lambda x: jnp.stack([jnp.unstack(x)[2]] * 2),
    "as_indices": lambda x: x[lax.top_k(x[0], 2)[1], lax.top_k(x[0], 2)[1]],
}


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("name", STACKED_TWICE)
def test_what_is_stacked_twice_is_the_right_result_of_its_op(name, enable_xla, mode):
    fun = STACKED_TWICE[name]
    converted = mode(jax2tf.convert(fun, enable_xla=enable_xla))
    x = np.array([[3, 1, 2, 0], [5, 4, 7, 6], [8, 9, 11, 10]], np.float32)
    np.testing.assert_array_equal(converted(tf.constant(x)), jax.jit(fun)(x), strict=True)


def test_a_graph_holds_each_shape_once():
    def reshaped_twice(x, y):
        return lax.reshape(x, (12,)), lax.reshape(y, (12,))

    x = np.ones((3, 4), np.float32)
    concrete = graph_of(reshaped_twice, "xla", x, x.T)
    assert sorted(ops_in_order(concrete, AROUND - {"Const"})) == ["Const", "Reshape", "Reshape"]


def test_a_short_iota_is_a_constant_and_a_long_one_is_not():
    short = graph_of(lambda: lax.broadcasted_iota(np.int32, (4, 4), 1), "xla")
    assert ops_in_order(short, AROUND - {"Const"}) == ["Const"]
    assert "Range" in ops_of(graph_of(lambda: lax.iota(np.int32, 5000), "xla"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 0, 1), (0, 1, 1), (1, 1, 0)])
def test_an_iota_has_the_axes_of_length_1_too(shape, mode):
    def counted(x):
        sizes = tuple(n or x.shape[0] for n in shape)
        return lax.broadcasted_iota(np.int32, sizes, shape.index(0))

    converted = MODES[mode](jax2tf.convert(counted, polymorphic_shapes="b"))
    np.testing.assert_array_equal(converted(tf.zeros(3)), counted(np.zeros(3)), strict=True)


SYMBOLIC_PADS = {
    "adds": lambda x: [(0, x.shape[0], 0), (x.shape[0] - 1, 0, 0)],
    "cuts": lambda x: [(0, 1 - x.shape[0], 0), (0, 0, 0)],
    "adds or cuts, as the run says": lambda x: [(0, 4 - x.shape[0], 0), (0, 0, 0)],
    "interior": lambda x: [(0, 2, 1), (1, -1, 2)],
}


@pytest.mark.parametrize("size", [1, 3, 6])
@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("case", SYMBOLIC_PADS)
def test_pad_of_a_symbolic_dimension(case, enable_xla, size):
    def padded(x):
        return lax.pad(x, -1.0, SYMBOLIC_PADS[case](x))

    converted = jax2tf.convert(padded, polymorphic_shapes=["b, _"], enable_xla=enable_xla)
    function = tf.function(
        converted, autograph=False, input_signature=[tf.TensorSpec([None, 4], tf.float32)]
    )
    x = np.arange(4 * size, dtype=np.float32).reshape(size, 4)
    np.testing.assert_array_equal(function(x), jax.jit(padded)(x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strides", [None, (1, 2) + (1,) * 7, (2,) + (1,) * 7 + (2,)])
def test_a_slice_of_more_axes_than_tensorflow_slices(mode, strides):
    """One axis is sliced after the other."""
    x = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, *[1] * 6, 6)
    start, limit = (1, 0, *[0] * 6, 2), (3, 4, *[1] * 6, 5)
    converted = MODES[mode](jax2tf.convert(lambda x: lax.slice(x, start, limit, strides)))
    np.testing.assert_array_equal(converted(x), lax.slice(x, start, limit, strides), strict=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, jnp.int4])
def test_unstacked_by_slices(axis, dtype):
    x = jnp.arange(24).reshape(2, 3, 4).astype(dtype)
    target = jax2tf.Target("parts", quirks={"no_unpack_of_parts"})

    def unstacked(x):
        return jnp.unstack(x, axis=axis)

    converted = jax2tf.convert(unstacked, with_gradient=False, target=target)
    expected = unstacked(x)
    for function in (converted, tf.function(converted, autograph=False)):
        actual = function(x)
        assert len(actual) == len(expected)
        for given, wanted in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(given), wanted, strict=True)


NO_PAD_OF_BOOL = jax2tf.Target("few", lacks={"PadV2": ("bool",)})


@pytest.mark.parametrize(
    ("target", "dtype"), [("xla", tf.bool), ("tensorflow", tf.bool), (NO_PAD_OF_BOOL, tf.int32)]
)
def test_truth_values_are_padded_in_a_dtype_that_the_engine_takes(target, dtype):
    def padded(x):
        return lax.pad(x, True, [(1, 0, 0), (0, 2, 0)])

    x = np.array([[True, False], [False, False]])
    converted = jax2tf.convert(padded, with_gradient=False, target=target)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(x))
    np.testing.assert_array_equal(graph(tf.constant(x)), padded(x), strict=True)
    operations = graph.graph.get_operations()
    assert [op.inputs[0].dtype for op in operations if op.type == "PadV2"] == [dtype]


@pytest.mark.parametrize(
    "config", [((1, 2, 0), (0, 1, 0)), ((0, 0, 2), (3, -1, 1))], ids=["edges", "cut_and_apart"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_padded_by_what_is_no_constant(config, dtype):
    target = jax2tf.Target("pads", quirks={"pads_with_constants_alone"})

    def padded(x, value):
        return lax.pad(x, value, config)

    x, value = np.arange(6, dtype=dtype).reshape(2, 3), dtype(-7)
    graph = graph_of(padded, target, x, value)
    actual = graph(tf.constant(x), tf.constant(value))
    np.testing.assert_array_equal(actual, padded(x, value), strict=True)
    values = [op.inputs[2].op.type for op in graph.graph.get_operations() if op.type == "PadV2"]
    assert values
    assert set(values) == {"Const"}
    # A constant needs no choice.
    graph = graph_of(lambda x: lax.pad(x, dtype(3), config), target, x)
    assert "SelectV2" not in ops_of(graph)


@pytest.mark.parametrize("dtype", [tf.as_dtype("int4"), tf.as_dtype("uint4")])
def test_integers_of_four_bits_are_bytes_where_they_cross_into_compiled_code(dtype):
    numbers = [tf.cast([0, 1, 7], dtype), tf.constant([1.5])]
    crossing = compiled_calls.unpacked(numbers)
    assert [x.dtype.size for x in crossing] == [1, 4]
    assert not any(x.dtype == dtype for x in crossing)
    behind = compiled_calls.in_dtypes(crossing, [x.dtype for x in numbers])
    assert [x.dtype for x in behind] == [dtype, tf.float32]
    assert tf.cast(behind[0], tf.int32).numpy().tolist() == [0, 1, 7]
