"""tf.image: spaces of colours, and brightness, contrast and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import FailedPreconditionError, invalid_argument
from tf_substrates.numpy.images.layout import as_dtype
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.tensors import convert, is_tensor, require

# ITU-R BT.601, and the spaces of PAL and NTSC.
_GRAY = [[0.2989], [0.587], [0.114]]
_SPACES: dict[str, list] = {
    "rgb_to_yuv": [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ],
    "yuv_to_rgb": [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]],
    "rgb_to_yiq": [
        [0.299, 0.59590059, 0.2115],
        [0.587, -0.27455667, -0.52273617],
        [0.114, -0.32134392, 0.31119955],
    ],
    "yiq_to_rgb": [
        [1, 1, 1],
        [0.95598634, -0.27201283, -1.10674021],
        [0.6208248, -0.64720424, 1.70423049],
    ],
}


def _of_three(x: Any, op_name: str) -> Any:
    if not x.shape or x.shape[-1] != 3:
        raise invalid_argument(f"input must have 3 channels but instead has {x.shape} [{op_name}]")
    return x


def _space(name: str, matrix: list) -> None:
    def call(images: Any) -> Any:
        x = convert(images)
        if x.dtype.name not in REAL_FLOATS:
            raise TypeError(f"Cannot convert {matrix} to EagerTensor of dtype {x.dtype}")
        return xp.tensordot(_of_three(x, name), np.asarray(matrix, x.dtype), 1)

    op(f"image.{name}")(named(call, name, f"{name.replace('_', ' ')}, of float images."))


for _name, _matrix in _SPACES.items():
    _space(_name, _matrix)


@op("image.rgb_to_grayscale")
def rgb_to_grayscale(images: Any, name: Any = None) -> Any:
    """The luma of images, as one channel of the same dtype."""
    x = convert(images)
    wide = as_dtype(_of_three(x, "MatMul"), np.float32)
    return as_dtype(xp.tensordot(wide, np.asarray(_GRAY, np.float32), 1), x.dtype)


@op("image.grayscale_to_rgb")
def grayscale_to_rgb(images: Any, name: Any = None) -> Any:
    """The one channel of images three times."""
    return xp.tile(convert(images), 3)


@op("image.rgb_to_hsv")
def rgb_to_hsv(images: Any, name: Any = None) -> Any:
    """Hue, saturation and value, each from 0 to 1."""
    return _hsv(_float_image(images, "RGBToHSV"))


def _float_image(images: Any, op_name: str) -> Any:
    """Images of three channels; an array that is no tensor becomes float32."""
    x = convert(images)
    x = require(op_name, x if is_tensor(images) else x.astype(np.float32), REAL_FLOATS)
    if not x.shape or x.shape[-1] != 3:
        raise FailedPreconditionError(
            None, None, f"input must have 3 channels but input only has {x.shape} [Op:{op_name}]"
        )
    return x


def _hsv(x: Any) -> Any:
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value = xp.max(x, axis=-1)
    span = value - xp.min(x, axis=-1)
    some, zero = span > 0, xp.zeros_like(span)
    saturation = xp.where(value > 0, span / xp.where(value > 0, value, xp.ones_like(span)), zero)
    share = 1 / (6 * xp.where(some, span, xp.ones_like(span)))
    hue = xp.where(
        red == value,
        (green - blue) * share,
        xp.where(
            green == value,
            (blue - red) * share + np.asarray(2 / 6, x.dtype),
            (red - green) * share + np.asarray(4 / 6, x.dtype),
        ),
    )
    hue = xp.where(some, hue, zero)
    return xp.stack([xp.where(hue < 0, hue + 1, hue), saturation, value], axis=-1)


@op("image.hsv_to_rgb")
def hsv_to_rgb(images: Any, name: Any = None) -> Any:
    """Red, green and blue of hue, saturation and value."""
    return _rgb(_float_image(images, "HSVToRGB"))


def _rgb(x: Any) -> Any:
    hue, saturation, value = x[..., :1] * 6, x[..., 1:2], x[..., 2:]
    zero, one = np.zeros((), x.dtype), np.ones((), x.dtype)
    parts = [xp.abs(hue - 3) - 1, 2 - xp.abs(hue - 2), 2 - xp.abs(hue - 4)]
    pure = xp.minimum(xp.maximum(xp.concatenate(parts, axis=-1), zero), one)
    return ((one - saturation) + saturation * pure) * value


# Adjustments, computed in float32, or in float16 of float16.


def _adjusted(image: Any, function: Callable[[Any], Any]) -> Any:
    x = convert(image)
    narrow = x.dtype.name in ("float16", "float32")
    return as_dtype(function(x if narrow else as_dtype(x, np.float32)), x.dtype, saturate=True)


@op("image.adjust_brightness")
def adjust_brightness(image: Any, delta: Any) -> Any:
    """`delta`, a share of the whole range, added."""
    return _adjusted(image, lambda x: x + convert(delta).astype(x.dtype))


@op("image.adjust_contrast")
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """The distance of each channel to its mean over an image, times a factor.

    Raises:
      tf.errors.InvalidArgumentError: the images have less than three axes.
    """
    if len(convert(images).shape) < 3:
        raise invalid_argument("input must be at least 3-D [Op:AdjustContrastv2]")

    def adjust(x: Any) -> Any:
        wide = x.astype(np.float32)
        mean = xp.mean(wide, axis=(-3, -2), keepdims=True)
        return ((wide - mean) * convert(contrast_factor, hint=np.float32) + mean).astype(x.dtype)

    return _adjusted(images, adjust)


@op("image.adjust_gamma")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """`gain * image ** gamma` of images from 0 to 1.

    Raises:
      ValueError: gamma is negative.
    """
    if isinstance(gamma, (int, float)) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return _adjusted(
        image, lambda x: convert(gain, dtype=x.dtype) * x ** convert(gamma, dtype=x.dtype)
    )


def _in_hsv(image: Any, function: Callable[[Any, Any, Any], tuple]) -> Any:
    def adjust(x: Any) -> Any:
        wide = _hsv(_of_three(x, "AdjustHsv").astype(np.float32))
        parts = function(wide[..., 0], wide[..., 1], wide[..., 2])
        return _rgb(xp.stack(parts, axis=-1)).astype(x.dtype)

    return _adjusted(image, adjust)


@op("image.adjust_saturation")
def adjust_saturation(image: Any, saturation_factor: Any, name: Any = None) -> Any:
    """The saturation times a factor, at most 1."""
    factor = convert(saturation_factor, hint=np.float32)
    zero, one = np.float32(0), np.float32(1)
    return _in_hsv(image, lambda h, s, v: (h, xp.minimum(xp.maximum(s * factor, zero), one), v))


@op("image.adjust_hue")
def adjust_hue(image: Any, delta: Any, name: Any = None) -> Any:
    """The hue turned by `delta`, from -1 to 1."""
    turn = convert(delta, hint=np.float32)
    return _in_hsv(image, lambda h, s, v: ((h + turn) % np.float32(1), s, v))


@op("image.per_image_standardization")
def per_image_standardization(image: Any) -> Any:
    """Each image less its mean, over its standard deviation, float32.

    The deviation is at least 1 / sqrt(elements), so that images of one colour are zeros.
    """
    x = convert(image)
    x = x.astype(np.float32)
    mean = xp.mean(x, axis=(-3, -2, -1), keepdims=True)
    deviation = xp.sqrt(xp.mean(xp.square(x - mean), axis=(-3, -2, -1), keepdims=True))
    least = np.asarray(1 / np.sqrt(np.prod(x.shape[-3:])), x.dtype)
    return (x - mean) / xp.maximum(deviation, least)
