"""Shapes, joining and parting, and new arrays, as ONNX."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import DTYPES, special

_raw = tf.raw_ops

# Functions of an array of three dimensions.
_FUNCTIONS = {
    "reshape_to_numbers": lambda x: tf.reshape(x, [-1, 2, 2]),
    "reshape_by_shape": lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], tf.shape(x)[1], 2, 2])),
    "reshape_moves_sizes": lambda x: tf.reshape(x, tf.stack([tf.shape(x)[1], tf.shape(x)[0], 4])),
    "reshape_by_concat": lambda x: tf.reshape(x, tf.concat([[1], tf.shape(x)[:-1], [4, 1]], 0)),
    "reshape_to_its_shape": lambda x: tf.reshape(x, tf.shape(x)),
    "expand_dims": lambda x: [tf.expand_dims(x, 0), tf.expand_dims(x, -1), tf.expand_dims(x, -2)],
    "squeeze": lambda x: tf.squeeze(x[:, :, None, :, None], [2, -1]),
    "transpose": lambda x: [tf.transpose(x, [2, 0, 1]), tf.transpose(x, [0, 1, 2])],
    "concat": lambda x: [tf.concat([x, x], -1), tf.concat([x, x, x], 0)],
    "concat_of_constants": lambda x: tf.concat([x, tf.zeros([1, 3, 4], x.dtype)], 0),
    "pack": lambda x: [tf.stack([x, x], 1), tf.stack([x], -1)],
    "unpack": lambda x: [*tf.unstack(x, axis=-1), *tf.unstack(x[..., :1], axis=2)],
    "split": lambda x: [*tf.split(x, 2, -1), *tf.split(x, 1, 0)],
    "split_v": lambda x: tf.split(x, [1, 0, -1, 2], 2),
    "tile": lambda x: [tf.tile(x, [1, 2, 3]), tf.tile(x, [1, 1, 1]), tf.tile(x, [2, 0, 1])],
    "broadcast_to": lambda x: tf.broadcast_to(x, tf.stack([5, tf.shape(x)[0], 3, 4])),
    "broadcast_a_size_of_1": lambda x: tf.broadcast_to(x[:, :1], tf.shape(x)),
    "broadcast_to_its_shape": lambda x: tf.broadcast_to(x, tf.shape(x)),
    "fill": lambda x: [
        tf.fill(tf.shape(x), tf.constant(1, x.dtype)) if x.dtype != tf.bool else x,
        tf.fill(tf.concat([tf.shape(x), [2]], 0), tf.reduce_any(tf.shape(x) > 2)),
    ],
    "zeros_like": lambda x: [_raw.ZerosLike(x=x), _raw.OnesLike(x=x)],
    "reverse": lambda x: [tf.reverse(x, [0, -1]), tf.reverse(x, [1]), tf.reverse(x, [])],
    "shape": lambda x: [tf.shape(x), tf.shape(x, tf.int64), *_raw.ShapeN(input=[x, x[:, 0]])],
    "sizes": lambda x: [tf.size(x), tf.size(x, tf.int64), _raw.Rank(input=x), tf.shape(x)[1:]],
    "ensure_shape": lambda x: tf.ensure_shape(x, [None, 3, 4]),
}
_SHAPES = {"static": [2, 3, 4], "open": [None, None, 4], "open_batch": [None, 3, 4]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_function(name, sizes, dtype):
    if (name, dtype) == ("tile", "uint16"):
        pytest.skip("TensorFlow has no such kernel")
    written = Written(_FUNCTIONS[name], tf.TensorSpec(_SHAPES[sizes], dtype))
    written.check(special(dtype))
    if sizes != "static":
        written.check(special(dtype, (1, 3, 4)))
        written.check(special(dtype, (0, 3, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_without_elements(dtype):
    empty = np.zeros((2, 0, 4), dtype)
    written = Written(
        lambda x: [
            tf.reshape(x, [0, 7]),
            tf.reshape(x, [2, 4, 0]),
            tf.transpose(x, [1, 2, 0]),
            tf.concat([x, x], 1),
            tf.concat([x, tf.zeros([2, 1, 4], x.dtype)], 1),
            *tf.split(x, 2, 2),
            *tf.split(x, 2, 1),
            tf.tile(x, [2, 2, 2]),
            tf.reverse(x, [1, 2]),
            tf.broadcast_to(x, [3, 2, 0, 4]),
            tf.expand_dims(x, 0),
            *tf.unstack(x, axis=0),
        ],
        tf.TensorSpec(empty.shape, dtype),
    )
    written.check(empty)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(dtype):
    written = Written(
        lambda x: [
            tf.reshape(x, [1, 1]),
            tf.expand_dims(x, -1),
            tf.stack([x, x]),
            tf.broadcast_to(x, [2, 3]),
            tf.broadcast_to(x, []),
            tf.fill([2, 1], x),
            tf.fill([], x),
            tf.transpose(x, []),
            tf.shape(x),
            tf.size(x),
        ],
        tf.TensorSpec([], dtype),
    )
    for number in special(dtype).reshape(-1)[:12]:
        written.check(number)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_shapes_are_operands(kind):
    """The numbers of a shape are arguments."""
    written = Written(
        lambda x, n: [
            tf.reshape(x, tf.stack([n[0], -1])),
            tf.reshape(x, n),
            tf.broadcast_to(x[0, 0, 0], n),
            tf.fill(n, x[0, 1, 1]),
            tf.fill(n[:1], 3),
            tf.tile(x, tf.concat([n, [1]], 0)),
            tf.zeros(n),
            *tf.split(x, tf.stack([n[0] - 3, tf.cast(tf.shape(x)[2], kind) - (n[0] - 3)]), 2, 2),
        ],
        tf.TensorSpec([None, 3, 4], "float32"),
        tf.TensorSpec([2], kind),
    )
    written.check(special("float32"), np.array([4, 6], kind))
    written.check(special("float32"), np.array([6, 4], kind))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_range(dtype):
    written = Written(
        lambda x, y, z: [
            tf.range(x, y, z),
            tf.range(tf.cast(3, dtype), tf.cast(11, dtype), tf.cast(2, dtype)),
            tf.range(tf.cast(3, dtype), tf.cast(-11, dtype), tf.cast(-2, dtype)),
        ],
        *[tf.TensorSpec([], dtype)] * 3,
    )
    for numbers in ((0, 5, 1), (5, 0, -2), (0, 0, 1), (-4, 9, 3)):
        written.check(*np.array(numbers, dtype))


@pytest.mark.parametrize("count", [3, 5000])
def test_range_of_a_known_length(count):
    written = Written(lambda x: tf.range(count) + x, tf.TensorSpec([], "int32"))
    written.check(np.int32(2))


@pytest.mark.parametrize("count", [3, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_of_a_known_size(dtype, count):
    number = special(dtype, (1, 1, 1)).reshape(())
    written = Written(
        lambda x: [tf.fill([count, 2], tf.constant(number)), tf.identity(x)],
        tf.TensorSpec([], dtype),
    )
    written.check(number)


def test_open_sizes_of_several_arrays():
    written = Written(
        lambda x, y: [
            tf.reshape(x, tf.stack([tf.shape(y)[1], tf.shape(x)[0]])),
            tf.broadcast_to(x, tf.stack([tf.shape(y)[0], *tf.unstack(tf.shape(x))])),
            tf.reshape(y, tf.concat([tf.shape(x)[1:], [-1]], 0)),
            tf.reshape(x, tf.concat([tf.reverse(tf.shape(x), [0]), [1]], 0)),
        ],
        tf.TensorSpec([None, None], "float32"),
        tf.TensorSpec([None, None], "float32"),
    )
    written.check(special("float32", (2, 3)), special("float32", (4, 3)))
    written.check(special("float32", (5, 3)), special("float32", (2, 3)))
    written.check(special("float32", (0, 3)), special("float32", (1, 3)))


def test_arithmetic_of_sizes():
    written = Written(
        lambda x: [
            tf.reshape(x, tf.stack([tf.shape(x)[1], tf.shape(x)[0] * 2, 2])),
            tf.zeros(tf.stack([tf.shape(x)[0] + 3, 7 - tf.shape(x)[1]])),
            tf.fill([tf.shape(x)[0] * tf.shape(x)[1] + 1], x[0, 0, 1]),
            tf.zeros([tf.shape(x)[0] - tf.shape(x)[1] + tf.cast(x[0, 0, 0], tf.int32) * 0 + 2]),
            x[:, tf.shape(x)[1] - 1],
            x[: tf.shape(x)[0] - 1, : tf.shape(x)[1] - 2],
        ],
        tf.TensorSpec([None, None, 4], "int32"),
    )
    written.check(special("int32"))
    written.check(special("int32", (5, 2, 4)))


def test_sizes_of_one_name_are_one():
    """A size of another array stays 0 in a Reshape, and 1 in an Expand, if it has the same name."""
    written = Written(
        lambda x, y, z: [
            tf.reshape(y, tf.stack([tf.shape(x)[0], tf.shape(x)[1], 2, 2])),
            tf.broadcast_to(z, tf.concat([tf.shape(x)[:2], [5]], 0)),
        ],
        tf.TensorSpec([None, None], "float32"),
        tf.TensorSpec([None, None, 4], "float32"),
        tf.TensorSpec([None, None, 1], "float32"),
        shapes={"x0": ("b", "n"), "x1": ("b", "n", 4), "x2": ("b", "n", 1)},
    )
    written.check(*(special("float32", shape) for shape in ((2, 3), (2, 3, 4), (2, 3, 1))))
    assert "Concat" not in written.ops()


@pytest.mark.parametrize(
    ("function", "ops"),
    [
        (_FUNCTIONS["reshape_to_numbers"], ["Reshape"]),
        (lambda x: tf.reshape(x, tf.shape(x)), ["Reshape"]),
        (lambda x: tf.transpose(x, [0, 1, 2]), []),
        (lambda x: tf.broadcast_to(x, [5, 2, 3, 4]), ["Expand"]),
        (lambda x: tf.concat([x, tf.zeros([2, 3, 4])], 0), ["Concat"]),
        (lambda x: tf.fill([2, 3], 1.0), []),
        (lambda x: tf.reverse(x, [0, 1]), ["Slice"]),
    ],
)
def test_one_op_for_one_op(function, ops):
    shape = [2, 3, 4] if len(ops) and ops[0] in ("Expand", "Concat") else [None, None, 4]
    written = Written(function, tf.TensorSpec(shape, "float32"))
    known = [op for op in written.ops() if op not in ("Identity", "Shape", "Cast")]
    assert known == ops


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23, 24, 25])
def test_opsets(opset):
    for name, function in _FUNCTIONS.items():
        try:
            written = Written(function, tf.TensorSpec([None, None, 4], "float32"), opset=opset)
            written.check(special("float32"))
        except Exception as error:
            raise AssertionError(name) from error
