"""tf.image: images turned, cut and padded; their dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.math.conversions import saturate_cast
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.tensors import convert, static_value, wrap


def image_of(value: Any, what: str = "image") -> Any:
    """An image `[rows, columns, channels]`, or a batch of images.

    Raises:
      ValueError: it has another number of axes.
    """
    x = convert(value)
    if len(x.shape) not in (3, 4):
        raise ValueError(f"'{what}' must have either 3 or 4 dimensions.")
    return x


def _flip(name: str, axis: int, text: str) -> None:
    def call(image: Any) -> Any:
        return xp.flip(image_of(image), axis)

    op(f"image.{name}")(named(call, name, text))


_flip("flip_left_right", -2, "The columns of images in reverse.")
_flip("flip_up_down", -3, "The rows of images in reverse.")


@op("image.transpose")
def transpose(image: Any, name: Any = None) -> Any:
    """Rows and columns of images exchanged."""
    return xp.swapaxes(image_of(image), -3, -2)


@op("image.rot90")
def rot90(image: Any, k: Any = 1, name: Any = None) -> Any:
    """Images turned `k` times by 90 degrees against the clock."""
    return xp.rot90(image_of(image), int(static_value(k, "k")) % 4, axes=(-3, -2))


def _number(value: Any, what: str) -> int:
    return int(static_value(value, what))


@op("image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """A rectangle of images.

    Raises:
      ValueError: it is not inside, or is empty.
    """
    x = image_of(image)
    top, left = _number(offset_height, "offset_height"), _number(offset_width, "offset_width")
    rows, columns = _number(target_height, "target_height"), _number(target_width, "target_width")
    _refuse(left < 0, "offset_width must be >= 0.")
    _refuse(top < 0, "offset_height must be >= 0.")
    _refuse(columns <= 0, "target_width must be > 0.")
    _refuse(rows <= 0, "target_height must be > 0.")
    _refuse(x.shape[-2] < columns + left, "width must be >= target + offset.")
    _refuse(x.shape[-3] < rows + top, "height must be >= target + offset.")
    return x[..., top : top + rows, left : left + columns, :]


@op("image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """Images in a larger rectangle of zeros.

    Raises:
      ValueError: they do not fit.
    """
    x = image_of(image)
    top, left = _number(offset_height, "offset_height"), _number(offset_width, "offset_width")
    rows, columns = _number(target_height, "target_height"), _number(target_width, "target_width")
    below, right = rows - top - x.shape[-3], columns - left - x.shape[-2]
    _refuse(top < 0, "offset_height must be >= 0")
    _refuse(left < 0, "offset_width must be >= 0")
    _refuse(right < 0, "width must be <= target - offset")
    _refuse(below < 0, "height must be <= target - offset")
    return xp.pad(x, [(0, 0)] * (len(x.shape) - 3) + [(top, below), (left, right), (0, 0)])


def _refuse(is_wrong: bool, text: str) -> None:
    if is_wrong:
        raise ValueError(text)


@op("image.resize_with_crop_or_pad")
def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """The middle of images that are too large, zeros around those that are too small."""
    x = image_of(image)
    for axis, wanted in ((-3, target_height), (-2, target_width)):
        length = _number(wanted, "the target")
        _refuse(length <= 0, f"{'target_height' if axis == -3 else 'target_width'} must be > 0.")
        missing = length - x.shape[axis]
        if missing < 0:
            start = -missing // 2
            x = xp.moveaxis(xp.moveaxis(x, axis, 0)[start : start + length], 0, axis)
        else:
            widths = [(0, 0)] * len(x.shape)
            widths[axis] = (missing // 2, missing - missing // 2)
            x = xp.pad(x, widths)
    return x


@op("image.central_crop")
def central_crop(image: Any, central_fraction: Any) -> Any:
    """The middle of images, this fraction of their rows and columns.

    Raises:
      ValueError: the fraction is not in (0, 1].
    """
    fraction = float(static_value(central_fraction, "central_fraction"))
    _refuse(not 0 < fraction <= 1, "central_fraction must be within (0, 1]")
    x = image_of(image)
    if fraction == 1.0:
        return x
    starts = [int((n - n * fraction) / 2) for n in x.shape[-3:-1]]
    (top, bottom), (left, right) = ((s, n - s) for s, n in zip(starts, x.shape[-3:-1], strict=True))
    return x[..., top:bottom, left:right, :]


# dtypes: floats go from 0 to 1, integers from 0 to the largest.


@op("image.convert_image_dtype")
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: Any = None) -> Any:
    """Images whose values fill the range of another dtype: floats are from 0 to 1.

    Args:
      image: of any shape.
      dtype: of the result, a float or an integer.
      saturate: whether what is outside of an integer's range becomes its nearest value.
    """
    return as_dtype(convert(image), dtype, saturate)


def as_dtype(x: Any, dtype: Any, saturate: bool = False) -> Any:
    wanted, here = dtypes.as_dtype(dtype), dtypes.dtype_of(x)
    target = dtypes.numpy_dtype(wanted)
    if wanted == here:
        return x
    if here.is_integer and wanted.is_integer:
        if here.max > wanted.max:
            x = x // np.asarray((here.max + 1) // (wanted.max + 1), x.dtype)
            return _cast(x, wanted, saturate)
        return _cast(x, wanted, saturate) * np.asarray((wanted.max + 1) // (here.max + 1), target)
    if here.is_floating and wanted.is_floating:
        return x.astype(target)
    if here.is_integer:
        return x.astype(target) * np.asarray(1.0 / here.max, target)
    return _cast(x * np.asarray(wanted.max + 0.5, x.dtype), wanted, saturate)


def _cast(x: Any, wanted: Any, saturate: bool) -> Any:
    return convert(saturate_cast(wrap(x), wanted)) if saturate else x.astype(wanted.as_numpy_dtype)
