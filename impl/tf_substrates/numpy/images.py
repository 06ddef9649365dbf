"""tf.image: patches of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import OutOfRangeError, UnimplementedError, invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, static_value


@op("image.extract_patches")
def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: Any, name: Any = None
) -> Any:
    """The patches of images `[batch, rows, columns, depth]`, each as one row of numbers.

    Args:
      images: the images.
      sizes: `[1, rows, columns, 1]`, how large a patch is.
      strides: `[1, rows, columns, 1]`, how far it is to the next patch.
      rates: `[1, rows, columns, 1]`, how far it is to the next pixel of a patch.
      padding: "VALID", for patches that are inside of an image, or "SAME", for one at each stride,
        with zeros outside of the image.

    Returns:
      `[batch, rows of patches, columns of patches, rows * columns * depth]`.
    """
    x = convert(images)
    if padding not in ("VALID", "SAME"):
        raise invalid_argument(
            f"Value for attr 'padding' of \"{padding}\" is not in the list of allowed values:"
            ' "SAME", "VALID"'
        )
    if x.ndim != 4:
        raise invalid_argument(f"input must be 4-dimensional{list(x.shape)}")
    given = {"ksizes": sizes, "strides": strides, "rates": rates}
    (size, stride, rate) = (_of_space(key, value) for key, value in given.items())
    rows, columns = (
        _pixels(x.shape[axis + 1], size[axis], stride[axis], rate[axis], padding) for axis in (0, 1)
    )
    (before, after), (left, right) = (
        _outside(p, n) for p, n in ((rows, x.shape[1]), (columns, x.shape[2]))
    )
    x = xp.pad(x, [(0, 0), (before, after), (left, right), (0, 0)])
    patches = x[:, (rows + before)[:, None, :, None], (columns + left)[None, :, None, :]]
    return patches.reshape((x.shape[0], len(rows), len(columns), size[0] * size[1] * x.shape[3]))


def _of_space(what: str, value: Any) -> tuple[int, int]:
    numbers = [int(n) for n in np.ravel(static_value(value, what))]
    if len(numbers) != 4:
        raise invalid_argument(f"Length for attr '{what}' must be 4, and is {len(numbers)}")
    if numbers[0] != 1 or numbers[3] != 1:
        raise UnimplementedError(None, None, f"Only support {what} across space.")
    if min(numbers) < 1:
        raise OutOfRangeError(None, None, f"{what} is out of range.")
    return numbers[1], numbers[2]


def _pixels(length: int, size: int, stride: int, rate: int, padding: str) -> np.ndarray:
    """The indices of each patch's pixels along an axis; outside of the image they are padding."""
    span = (size - 1) * rate + 1
    if padding == "VALID":
        if length < span:
            raise invalid_argument(
                f"Computed output size would be negative: {(length - span) // stride + 1}"
            )
        count, before = (length - span) // stride + 1, 0
    else:
        count = -(-length // stride)
        before = max((count - 1) * stride + span - length, 0) // 2
    return np.arange(count)[:, None] * stride + np.arange(size) * rate - before


def _outside(pixels: np.ndarray, length: int) -> tuple[int, int]:
    """How many pixels before and after the image patches reach."""
    if not pixels.size:
        return 0, 0
    return max(0, -int(pixels.min())), max(0, int(pixels.max()) + 1 - length)
