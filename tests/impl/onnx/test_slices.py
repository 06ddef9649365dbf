"""Parts of arrays and what is put around them, as ONNX."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import DTYPES, SIGNED, UNSIGNED, special

_NUMBER = {
    **{dtype: np.iinfo(dtype).max for dtype in SIGNED + UNSIGNED},
    **{"bool": True, "float16": np.nan, "float32": -np.inf, "float64": -0.0},
}


def _number(x):
    return tf.constant(_NUMBER[x.dtype.name], x.dtype)


# Functions of an array of three dimensions, of which the first is at least 1.
_FUNCTIONS = {
    "slice": lambda x: [
        tf.slice(x, [0, 1, 1], [-1, -1, 2]),
        tf.slice(x, [0, 0, 0], [-1, 3, -1]),
        tf.slice(x, [0, 2, 0], [1, 1, 4]),
        tf.slice(x, [0, 2, 4], [1, 1, 0]),
    ],
    "slice_by_shape": lambda x: [
        tf.slice(x, [0, 0, 0], tf.shape(x[:, :2, :3])),
        tf.slice(x, tf.stack([0, tf.shape(x)[1] - 2, 1]), [-1, 1, 2]),
        tf.slice(x, tf.stack([0, tf.shape(x)[1] - 2, 1]), tf.stack([-1, tf.shape(x)[2] - 3, 2])),
    ],
    "single": lambda x: [x[0], x[:, 1], x[..., 2], x[-1], x[..., -1], x[:, -3]],
    "singles": lambda x: [x[0, 1], x[0, 1, 2], x[-1, :, -1], x[0, ..., 3], x[0, 0:2, 1]],
    "parts": lambda x: [x[:1], x[:, 1:], x[:, :-1, 1:-1], x[:, -2:], x[:, 5:], x[:, 2:1]],
    "strides": lambda x: [x[:, ::2], x[..., 1::2], x[:, ::5], x[:, 1:3:2, ::3]],
    "backwards": lambda x: [x[::-1], x[:, ::-2], x[..., 2::-1], x[..., :1:-1], x[..., -2:0:-2]],
    "added": lambda x: [x[None], x[:, None, :, None], x[..., None], x[None, 0, None, ..., None]],
    "mixed": lambda x: [x[None, 0, ::-2, None, -1], x[..., None, 1:3, 2], x[:, tf.newaxis, 1, :2]],
    "pad": lambda x: [
        tf.pad(x, [[0, 0], [1, 2], [3, 0]]),
        tf.pad(x, [[0, 0], [0, 0], [0, 0]]),
        tf.pad(x, [[1, 1], [0, 0], [0, 0]]),
    ],
    "pad_with_a_number": lambda x: [
        tf.raw_ops.PadV2(input=x, paddings=[[0, 1], [1, 2], [3, 0]], constant_values=_number(x)),
        tf.raw_ops.PadV2(input=x, paddings=[[0, 1], [1, 2], [0, 0]], constant_values=x[0, 0, 0]),
    ],
    "mirror_pad": lambda x: [
        tf.pad(x, [[0, 0], [1, 2], [3, 0]], "REFLECT"),
        tf.pad(x, [[1, 1], [0, 3], [4, 1]], "SYMMETRIC"),
    ],
}
_SHAPES = {"static": [2, 3, 4], "open": [None, None, 4], "all_open": [None, None, None]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_function(name, sizes, dtype):
    written = Written(_FUNCTIONS[name], tf.TensorSpec(_SHAPES[sizes], dtype))
    written.check(special(dtype))
    if sizes != "static":
        written.check(special(dtype, (1, 3, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_without_elements(dtype):
    written = Written(
        lambda x: [
            tf.slice(x, [0, 0, 1], [-1, -1, 2]),
            tf.slice(x, [0, 0, 1], [1, 0, 2]),
            x[0],
            x[:, :2, ::-1],
            x[:, ::-1],
            x[..., -1],
            x[None, 1, :0, 1],
            tf.pad(x, [[0, 0], [1, 2], [3, 0]]),
            tf.pad(x, [[0, 1], [0, 0], [3, 0]]),
            tf.raw_ops.PadV2(
                input=x, paddings=[[0, 1], [1, 2], [3, 0]], constant_values=_number(x)
            ),
        ],
        tf.TensorSpec([None, None, 4], dtype),
    )
    written.check(np.zeros((2, 0, 4), dtype))


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "bool"])
def test_computed_places(dtype, kind):
    written = Written(
        lambda x, i, n: [
            tf.slice(x, tf.stack([i, 0, 1]), tf.constant([1, 3, 2], kind)),
            tf.slice(x, tf.stack([i, 0, 0]), tf.constant([1, -1, 4], kind)),
            tf.slice(x, tf.stack([0, i, i]), tf.constant([2, 1, 3], kind)),
            tf.slice(x, tf.stack([0, i, i]), tf.constant([-1, 1, -1], kind)),
            tf.slice(x, tf.stack([0, i, i]), tf.stack([2, n[0], n[0] + 1])),
            tf.slice(x, tf.constant([0, 0, 1], kind), tf.stack([-1, n[0], n[1]])),
            tf.slice(x, tf.concat([n * 0, i[None]], 0), tf.concat([n, i[None] + 1], 0)),
            x[i],
            x[:, i],
            x[..., n[0]],
            x[n[0]],
            x[:i],
            x[:, i:],
            x[:, i : i + 2, ::-1],
            x[..., i, None],
            x[i, i],
            x[i, 1:, n[1]],
            x[n[0] - 2],
            x[i - 1, -1],
            x[:, i - 1, n[0] - 2 :],
        ],
        tf.TensorSpec([None, 3, 4], dtype),
        tf.TensorSpec([], kind),
        tf.TensorSpec([2], kind),
    )
    for i in (0, 1):
        written.check(special(dtype), np.array(i, kind), np.array([1, 2], kind))


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "bool", "float16"])
def test_computed_paddings(dtype, kind):
    written = Written(
        lambda x, p, n: [
            tf.pad(x, p),
            tf.pad(x, tf.stack([[0, 0], [n, 2], [3, n]])),
            tf.pad(x, tf.reshape(tf.stack([0, 0, n, 2, 3, n]), [3, 2])),
            tf.pad(x, tf.reshape(tf.stack([0, 0, n, 2, 3, n]), [-1, 2])),
            tf.pad(x, tf.stack([p[0], p[1] + 1, [0, 1]])),
        ],
        tf.TensorSpec([None, 3, 4], dtype),
        tf.TensorSpec([3, 2], kind),
        tf.TensorSpec([], kind),
    )
    written.check(special(dtype), np.array([[1, 2], [0, 3], [1, 0]], kind), np.array(2, kind))
    written.check(
        special(dtype, (0, 3, 4)), np.array([[1, 2], [0, 3], [1, 0]], kind), np.array(0, kind)
    )


@pytest.mark.parametrize(
    ("function", "ops"),
    [
        (lambda x: x[0], ["Gather"]),
        (lambda x: x[:, 1:3, ::2], ["Slice"]),
        (lambda x: x[0, 1], ["Slice", "Squeeze"]),
        (lambda x: x[:, None], ["Unsqueeze"]),
        (lambda x: tf.slice(x, [0, 0, 1], [-1, -1, 2]), ["Slice"]),
        (lambda x: tf.slice(x, [0, 0, 0], [-1, -1, 4]), []),
        (lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0]]), ["Pad"]),
    ],
)
def test_one_op_for_one_op(function, ops):
    written = Written(function, tf.TensorSpec([None, None, 4], "float32"))
    assert [op for op in written.ops() if op != "Identity"] == ops


def test_known_sizes_stay_known():
    """The elements of the shape of an array with an open size are numbers where they are known."""
    written = Written(
        lambda x: [tf.shape(x)[2], tf.shape(x)[1:], tf.stack([tf.shape(x)[-1], 5])],
        tf.TensorSpec([None, 3, 4], "float32"),
    )
    written.check(special("float32"))
    assert "Gather" not in written.ops()
    assert "Slice" not in written.ops()


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23, 24, 25])
def test_opsets(opset):
    for name, function in _FUNCTIONS.items():
        try:
            written = Written(function, tf.TensorSpec([None, None, 4], "float32"), opset=opset)
            written.check(special("float32"))
        except Exception as error:
            raise AssertionError(name) from error
