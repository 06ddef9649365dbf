"""tf.image: differences between images, and between the neighbours of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.images.layout import as_dtype
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, require


@op("image.psnr")
def psnr(a: Any, b: Any, max_val: Any, name: Any = None) -> Any:
    """The peak signal-to-noise ratio of two batches of images, in decibels, float32."""
    first, second = convert(a), convert(b)
    peak = as_dtype(convert(max_val).astype(first.dtype), np.float32)
    difference = as_dtype(first, np.float32) - as_dtype(second, np.float32)
    error = xp.mean(xp.square(difference), axis=(-3, -2, -1))
    return (np.float32(20) * xp.log(peak) - np.float32(10) * xp.log(error)) / np.float32(np.log(10))


@op("image.total_variation")
def total_variation(images: Any, name: Any = None) -> Any:
    """The sum of absolute differences between neighbours, of each image."""
    x = convert(images)
    if len(x.shape) not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")
    steps = [x[..., 1:, :, :] - x[..., :-1, :, :], x[..., 1:, :] - x[..., :-1, :]]
    first, second = (xp.sum(xp.abs(step), axis=(-3, -2, -1)) for step in steps)
    return (first + second).astype(x.dtype)


@op("image.image_gradients")
def image_gradients(image: Any) -> Any:
    """The differences to the next row and to the next column, 0 at the last ones.

    Raises:
      ValueError: `image` is no batch of images.
    """
    x = convert(image)
    if len(x.shape) != 4:
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}."
        )
    down, right = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return (
        xp.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]),
        xp.pad(right, [(0, 0), (0, 0), (0, 1), (0, 0)]),
    )


@op("image.sobel_edges")
def sobel_edges(image: Any) -> Any:
    """Sobel's differences down and right, `[batch, rows, columns, channels, 2]`."""
    x = require("DepthwiseConv2dNative", convert(image), REAL_FLOATS)
    padded = xp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")

    def smoothed_difference(along: int, across: int) -> Any:
        def part(axis: int, array: Any, start: int) -> Any:
            key = [slice(None)] * 4
            key[axis] = slice(start, start + array.shape[axis] - 2)
            return array[tuple(key)]

        step = part(along, padded, 2) - part(along, padded, 0)
        return part(across, step, 0) + 2 * part(across, step, 1) + part(across, step, 2)

    return xp.stack([smoothed_difference(1, 2), smoothed_difference(2, 1)], axis=-1)
