"""Convolutions and pools as ONNX.

The numbers are small whole ones: their sums are exact in every order.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written

_raw = tf.raw_ops
_IMAGE, _KERNEL = (2, 7, 6, 4), (3, 2, 4, 6)
_EDGES = [[0, 0], [1, 2], [0, 1], [0, 0]]
_SHAPES = {"static": _IMAGE, "open": [None, None, None, 4], "open_batch": [None, 7, 6, 4]}
_PADDINGS = {"same": "SAME", "valid": "VALID", "numbers": _EDGES}


def _whole(*shape, seed=0):
    return np.random.RandomState(seed).randint(-9, 10, shape).astype(np.float32)


def _check(function, shapes, *arrays, dtype="float32"):
    written = Written(function, *[tf.TensorSpec(shape, dtype) for shape in shapes])
    written.check(*(x.astype(dtype) for x in arrays))
    return written


@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("padding", _PADDINGS)
@pytest.mark.parametrize("strides", [1, 2, (1, 3)])
@pytest.mark.parametrize("is_known", [False, True])
def test_conv(is_known, strides, padding, sizes):
    kernel = _whole(*_KERNEL)

    def conv(x, k):
        return tf.nn.conv2d(x, k, strides, _PADDINGS[padding])

    if is_known:
        written = _check(lambda x: conv(x, kernel), [_SHAPES[sizes]], _whole(*_IMAGE))
        assert written.ops() == ["Transpose", "Conv", "Transpose"]
    else:
        _check(conv, [_SHAPES[sizes], _KERNEL], _whole(*_IMAGE), kernel)


@pytest.mark.parametrize("padding", _PADDINGS)
@pytest.mark.parametrize("sizes", _SHAPES)
def test_dilated(padding, sizes):
    kernel = _whole(*_KERNEL)
    _check(
        lambda x: tf.nn.conv2d(x, kernel, 1, _PADDINGS[padding], dilations=[2, 3]),
        [_SHAPES[sizes]],
        _whole(*_IMAGE),
    )


@pytest.mark.parametrize("groups", [2, 4])
def test_groups(groups):
    kernel = _whole(3, 2, 4 // groups, 8)
    _check(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), [_SHAPES["open"]], _whole(*_IMAGE))


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("padding", _PADDINGS)
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("is_known", [False, True])
def test_depthwise(is_known, multiplier, padding, strides):
    kernel = _whole(3, 2, 4, multiplier)
    edges = _PADDINGS[padding]
    is_named = isinstance(edges, str)

    def conv(x, k):
        return _raw.DepthwiseConv2dNative(
            input=x,
            filter=k,
            strides=[1, strides, strides, 1],
            padding=edges if is_named else "EXPLICIT",
            explicit_paddings=[] if is_named else list(itertools.chain(*edges)),
        )

    if is_known:
        _check(lambda x: conv(x, kernel), [_SHAPES["open"]], _whole(*_IMAGE))
    else:
        _check(conv, [_SHAPES["static"], kernel.shape], _whole(*_IMAGE), kernel)


@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("padding", _PADDINGS)
@pytest.mark.parametrize("strides", [1, 2, (2, 3)])
def test_transposed(strides, padding, sizes):
    if (sizes, padding) == ("open", "same") and strides != 1:
        pytest.skip("refused; see below")
    kernel = _whole(*_KERNEL)
    edges = _PADDINGS[padding]
    is_named = isinstance(edges, str)
    shape = tf.nn.conv2d(np.zeros(_IMAGE), kernel.astype(np.float64), strides, edges).shape

    def backwards(x, y):
        return _raw.Conv2DBackpropInput(
            input_sizes=tf.shape(x),
            filter=kernel,
            out_backprop=y,
            strides=[1, *np.broadcast_to(strides, 2).tolist(), 1],
            padding=edges if is_named else "EXPLICIT",
            explicit_paddings=[] if is_named else list(itertools.chain(*edges)),
        )

    small = {"static": shape, "open": [None, None, None, 6], "open_batch": [None, *shape[1:]]}
    _check(backwards, [_SHAPES[sizes], small[sizes]], _whole(*_IMAGE), _whole(*shape))


def test_transposed_of_an_open_size_is_refused_where_its_padding_depends_on_it():
    kernel = _whole(*_KERNEL)
    with pytest.raises(NotImplementedError, match="an open size with the padding SAME"):
        Written(
            lambda x, y: tf.nn.conv2d_transpose(y, kernel, tf.shape(x), 2, "SAME"),
            tf.TensorSpec([None, None, None, 4]),
            tf.TensorSpec([None, None, None, 6]),
        )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("shape", [(2, 7, 6, 5, 4), (None, 7, 6, 5, 4)])
def test_conv3d(shape, strides, padding):
    kernel, image = _whole(3, 2, 2, 4, 6), _whole(2, 7, 6, 5, 4)
    steps = [1, strides, strides, strides, 1]
    small = tf.nn.conv3d(image, kernel, steps, padding).shape
    _check(lambda x: tf.nn.conv3d(x, kernel, steps, padding), [shape], image)
    _check(
        lambda x, y: tf.nn.conv3d_transpose(y, kernel, tf.shape(x), steps, padding),
        [shape, [shape[0], *small[1:]]],
        image,
        _whole(*small),
    )


@pytest.mark.parametrize("name", ["NaN", "inf"])
def test_numbers_that_are_not_finite_stay_in_their_windows(name):
    image, kernel = _whole(*_IMAGE), np.abs(_whole(*_KERNEL)) + 1
    image[0, 3, 2, 1] = float(name)
    for padding in ("SAME", "VALID"):
        _check(lambda x, p=padding: tf.nn.conv2d(x, kernel, 1, p), [_IMAGE], image)


@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [1, 2, (3, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8"])
def test_max_pool(dtype, strides, padding, sizes):
    steps = [1, *np.broadcast_to(strides, 2).tolist(), 1]
    image = _whole(*_IMAGE) if dtype != "uint8" else np.abs(_whole(*_IMAGE))
    _check(
        lambda x: _raw.MaxPool(input=x, ksize=[1, 3, 2, 1], strides=steps, padding=padding),
        [_SHAPES[sizes]],
        image,
        dtype=dtype,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [np.inf, np.finfo(np.float32).min])
def test_max_pool_of_special_numbers(number, dtype):
    image = _whole(*_IMAGE)
    image[0, 2:6, 1:4] = number
    image[1, 3, 3, 2] = number
    for padding in ("SAME", "VALID"):
        _check(lambda x, p=padding: tf.nn.max_pool2d(x, 2, 2, p), [_IMAGE], image, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool_of_nothing_but_infinities(dtype):
    """The largest of them is -inf, which it is in JAX; TensorFlow's is the lowest number."""
    written = Written(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.TensorSpec(_IMAGE, dtype))
    (result,) = written.run(np.full(_IMAGE, -np.inf, dtype))
    assert (result == -np.inf).all()


@pytest.mark.parametrize("sizes", _SHAPES)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [1, 2])
def test_avg_pool(strides, padding, sizes):
    written = Written(
        lambda x: tf.nn.avg_pool2d(x, (3, 2), strides, padding),
        tf.TensorSpec(_SHAPES[sizes]),
    )
    written.check(_whole(*_IMAGE), ulps=1)


@pytest.mark.parametrize("opset", [18, 21, 22, 25])
def test_opsets(opset):
    kernel = _whole(*_KERNEL)
    written = Written(
        lambda x: [
            tf.nn.conv2d(x, kernel, 2, "SAME"),
            tf.nn.max_pool2d(x, 2, 1, "SAME"),
            tf.nn.avg_pool2d(x, 2, 1, "VALID"),
            tf.nn.conv2d_transpose(x, np.swapaxes(kernel, 2, 3), (2, 7, 6, 6), 1, "SAME"),
        ],
        tf.TensorSpec(_IMAGE),
        opset=opset,
    )
    written.check(_whole(*_IMAGE))


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_dtypes_without_a_kernel_are_refused(dtype):
    kernel = _whole(*_KERNEL).astype(dtype)
    with pytest.raises(NotImplementedError, match=f"no kernel of Conv for {dtype}"):
        Written(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), tf.TensorSpec(_IMAGE, dtype))


def test_float16():
    kernel = _whole(*_KERNEL)
    _check(
        lambda x: [
            tf.nn.conv2d(x, kernel.astype(np.float16), 1, "SAME"),
            tf.nn.avg_pool2d(x, 2, 2, "VALID"),
        ],
        [_IMAGE],
        _whole(*_IMAGE),
        dtype="float16",
    )
