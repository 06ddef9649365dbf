"""What the matrix cannot see of the array rules: which ops a graph holds, and symbolic shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from jax2tf.lowering import compiled
from tests.running import MODES


def _ops(fun, *args, enable_xla=True, constants=False):
    """The types of the ops that a graph of the converted function holds."""
    converted = jax2tf.convert(fun, enable_xla=enable_xla, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(*args).graph
    plumbing = {"Placeholder", "Identity", "IdentityN", "PreventGradient", "NoOp"}
    plumbing |= set() if constants else {"Const"}
    return [op.type for op in graph.get_operations() if op.type not in plumbing]


ONE_OP = {
    "Reshape": lambda x: lax.reshape(x, (12,)),
    "Transpose": lambda x: x.T,
    "BroadcastTo": lambda x: jnp.broadcast_to(x, (2, 3, 4)),
    "ExpandDims": lambda x: x[:, None],
    "Squeeze": lambda x: lax.squeeze(x, (0,)),
    "ReverseV2": lambda x: lax.rev(x, (1,)),
    "ConcatV2": lambda x: jnp.concatenate([x, x, x]),
    "Unpack": lambda x: jnp.unstack(x),  # alone, it is jitted, and jitted functions are compiled
    "Split": lambda x: lax.split(x, (2, 2), 1),
    "SplitV": lambda x: lax.split(x, (1, 3), 1),
    "Tile": lambda x: jnp.tile(x, (2, 2)),
    "Slice": lambda x: lax.slice(x, (0, 1), (1, 3)),
    "StridedSlice": lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)),
    "PadV2": lambda x: lax.pad(x, 0.0, [(1, 2, 0), (0, 1, 0)]),
}


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("op", ONE_OP)
def test_one_primitive_is_one_op(op, enable_xla):
    shape = [1, 4] if op == "Squeeze" else [3, 4]
    assert _ops(ONE_OP[op], tf.ones(shape), enable_xla=enable_xla) == [op]


@pytest.mark.parametrize(
    ("other", "enable_xla", "ops"),
    [
        (None, True, ["SelectV2"]),
        # tf2onnx takes it for a choice, and not for a sum of products, if an IsNan decides.
        (None, False, ["SelectV2", "IsNan", "SelectV2"]),
        (0.0, False, ["SelectV2", "IsNan", "SelectV2"]),
        # What it masks may be infinite, as scores that were masked before.
        (-1e9, False, ["SelectV2", "IsNan", "SelectV2"]),
        (-np.inf, False, ["SelectV2"]),
    ],
)
def test_a_choice(other, enable_xla, ops):
    def choose(x, which):
        return lax.select_n(which, x, x if other is None else lax.full_like(x, other))

    which = tf.constant([[True, False, True, False]] * 3)
    seen = _ops(choose, tf.ones([3, 4]), which, enable_xla=enable_xla)
    assert [op for op in seen if op != "BroadcastTo"] == ops


def test_a_choice_of_two_constants():
    # As a product it is as right: neither side is anything but finite.
    which = tf.constant([True, False, True])
    ops = _ops(lambda which: jnp.where(which, 1.0, 2.0), which, enable_xla=False)
    assert [op for op in ops if op != "BroadcastTo"] == ["SelectV2"]


def test_several_axes_are_reversed_at_once_where_xla_ops_may_be_used():
    # LiteRT and OpenVINO reverse one axis at a time.
    for enable_xla, ops in ((True, ["ReverseV2"]), (False, ["ReverseV2"] * 2)):
        reverse = _ops(lambda x: lax.rev(x, (0, 1)), tf.ones([3, 4]), enable_xla=enable_xla)
        assert reverse == ops


NO_OP = {
    "reshape to itself is JAX's": lambda x: lax.reshape(x, x.shape),
    "identity permutation": lambda x: lax.transpose(x, (0, 1)),
    "broadcast to itself": lambda x: lax.broadcast_in_dim(x, x.shape, (0, 1)),
    "concatenate of one": lambda x: lax.concatenate([x], 0),
    "split in one": lambda x: lax.split(x, (3,), 0),
    "pad of nothing": lambda x: lax.pad(x, 0.0, [(0, 0, 0), (0, 0, 0)]),
    "select of one": lambda x: lax.select_n(np.array(False), x),
    "convert to itself": lambda x: lax.convert_element_type(x, np.float32),
}


@pytest.mark.parametrize("case", NO_OP)
def test_what_changes_nothing_is_no_op(case):
    assert _ops(NO_OP[case], tf.ones([3, 4])) == []


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


def test_only_what_is_cut_is_cut():
    def cut(x):
        return lax.pad(x, 0.0, [(-1, 0, 0), (0, -2, 0)])

    assert _ops(cut, tf.ones([3, 4])) == ["Slice"]


def test_dilation_is_one_xla_op_or_standard_ops():
    def dilated(x):
        return lax.pad(x, 0.0, [(0, 0, 1), (0, 0, 0)])

    assert _ops(dilated, tf.ones([3, 4])) == ["XlaPad"]
    without = _ops(dilated, tf.ones([3, 4]), enable_xla=False)
    assert without == ["ExpandDims", "PadV2", "Reshape", "Slice"]


def test_a_graph_holds_each_shape_once():
    def reshaped_twice(x, y):
        return lax.reshape(x, (12,)), lax.reshape(y, (12,))

    ops = _ops(reshaped_twice, tf.ones([3, 4]), tf.ones([4, 3]), constants=True)
    assert sorted(ops) == ["Const", "Reshape", "Reshape"]


def test_a_short_iota_is_a_constant_and_a_long_one_is_not():
    assert _ops(lambda: lax.broadcasted_iota(np.int32, (4, 4), 1), constants=True) == ["Const"]
    assert "Range" in _ops(lambda: lax.iota(np.int32, 5000))


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


@pytest.mark.parametrize(("enable_xla", "dtype"), [(True, tf.bool), (False, tf.int32)])
def test_truth_values_are_padded_in_a_dtype_that_every_engine_takes(enable_xla, dtype):
    def padded(x):
        return lax.pad(x, True, [(1, 0, 0), (0, 2, 0)])

    x = np.array([[True, False], [False, False]])
    converted = jax2tf.convert(padded, with_gradient=False, enable_xla=enable_xla)
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
    converted = jax2tf.convert(padded, with_gradient=False, target=target)
    specs = [tf.TensorSpec(np.shape(a), a.dtype) for a in (x, value)]
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs)
    np.testing.assert_array_equal(graph(x, value), padded(x, value), strict=True)
    values = [op.inputs[2].op.type for op in graph.graph.get_operations() if op.type == "PadV2"]
    assert values
    assert set(values) == {"Const"}
    # A constant needs no choice.
    converted = jax2tf.convert(
        lambda x: lax.pad(x, dtype(3), config), with_gradient=False, target=target
    )
    graph = tf.function(converted, autograph=False).get_concrete_function(specs[0]).graph
    assert "SelectV2" not in {op.type for op in graph.get_operations()}


@pytest.mark.parametrize("dtype", [tf.as_dtype("int4"), tf.as_dtype("uint4")])
def test_integers_of_four_bits_are_bytes_where_they_cross_into_compiled_code(dtype):
    numbers = [tf.cast([0, 1, 7], dtype), tf.constant([1.5])]
    crossing = compiled.unpacked(numbers)
    assert [x.dtype.size for x in crossing] == [1, 4]
    assert not any(x.dtype == dtype for x in crossing)
    behind = compiled.in_dtypes(crossing, [x.dtype for x in numbers])
    assert [x.dtype for x in behind] == [dtype, tf.float32]
    assert tf.cast(behind[0], tf.int32).numpy().tolist() == [0, 1, 7]
