"""Images in another size, as ONNX."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import special

_raw = tf.raw_ops
_COORDINATES = {
    "corners": {"align_corners": True},
    "half": {"half_pixel_centers": True},
    "plain": {},
}
_SIZES = [(14, 12), (5, 9), (7, 6), (1, 1), (3, 40), (10, 2)]


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("coordinates", _COORDINATES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32"])
def test_nearest(dtype, coordinates, size):
    """Every pixel is one of the image, whatever it is."""
    for shape in ([2, 7, 6, 3], [None, None, None, 3]):
        if shape[1] is None and dtype not in ("float32", "uint8", "int32", "int8"):
            continue
        written = Written(
            lambda x: _raw.ResizeNearestNeighbor(images=x, size=size, **_COORDINATES[coordinates]),
            tf.TensorSpec(shape, dtype),
        )
        written.check(special(dtype, (2, 7, 6, 3)))


def _check_close(written, *images):
    """The coordinates between pixels are rounded in float32, in one kernel as in the other."""
    expected = written._function(*map(tf.constant, images))
    for result, known in zip(written.run(*images), tf.nest.flatten(expected), strict=True):
        assert result.dtype == known.dtype
        np.testing.assert_allclose(result, known, rtol=1e-6, atol=1e-6 * np.max(images[0]))


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("coordinates", _COORDINATES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32"])
def test_bilinear(dtype, coordinates, size):
    image = (np.random.RandomState(0).rand(2, 7, 6, 3) * 100 + 1).astype(dtype)
    for shape in ([2, 7, 6, 3], [None, None, None, 3]):
        written = Written(
            lambda x: _raw.ResizeBilinear(images=x, size=size, **_COORDINATES[coordinates]),
            tf.TensorSpec(shape, dtype),
        )
        _check_close(written, image)


def test_size_of_another_image():
    written = Written(
        lambda x, y: [
            _raw.ResizeBilinear(images=x, size=tf.shape(y)[1:3], half_pixel_centers=True),
            _raw.ResizeNearestNeighbor(images=x, size=tf.shape(y)[1:3], half_pixel_centers=True),
        ],
        tf.TensorSpec([None, None, None, 3]),
        tf.TensorSpec([None, None, None, 3]),
    )
    image = np.arange(2 * 7 * 6 * 3, dtype=np.float32).reshape(2, 7, 6, 3) + 1
    _check_close(written, image, np.zeros((1, 9, 4, 3), np.float32))


def test_an_open_batch_is_no_size_that_is_computed():
    written = Written(
        lambda x: _raw.ResizeBilinear(images=x, size=[14, 12], half_pixel_centers=True),
        tf.TensorSpec([None, 7, 6, 3], "float32"),
    )
    assert sorted(written.ops()) == ["Resize", "Transpose", "Transpose"]
