"""tf.image: patches of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import OutOfRangeError, UnimplementedError, invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, static_value
from tf_substrates.numpy.windows import pads, windows


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
    size, stride, rate = (_of_space(key, value) for key, value in given.items())
    around = pads(x.shape[1:3], size, stride, rate, padding, "ExtractImagePatches")
    return xp.concatenate(windows(x, size, stride, rate, around, 0), axis=-1)


def _of_space(what: str, value: Any) -> tuple[int, int]:
    numbers = [int(n) for n in np.ravel(static_value(value, what))]
    if len(numbers) != 4:
        raise invalid_argument(f"Length for attr '{what}' must be 4, and is {len(numbers)}")
    if numbers[0] != 1 or numbers[3] != 1:
        raise UnimplementedError(None, None, f"Only support {what} across space.")
    if min(numbers) < 1:
        raise OutOfRangeError(None, None, f"{what} is out of range.")
    return numbers[1], numbers[2]
