"""tf.image.ssim and ssim_multiscale: the structural similarity of images.

By Wang, Bovik, Sheikh and Simoncelli (2004), "Image quality assessment: from error visibility to
structural similarity", and of several scales by Wang, Simoncelli and Bovik (2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.images.layout import as_dtype
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, operands

# How much each scale counts, from the finest on, by the paper of 2003.
_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@op("image.ssim")
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Any:
    """The structural similarity of two batches of images, float32, at most 1.

    Args:
      img1, img2: `[..., rows, columns, channels]`.
      max_val: the distance of the largest and the smallest value that a pixel can have.
      filter_size, filter_sigma: of the window, whose weights are a Gaussian.
      k1, k2: factors of what keeps quotients finite.
      return_index_map: whether the similarity of each window is given, and not their mean.

    Raises:
      ValueError: the images have fewer than three axes, or other rows, columns or channels.
      tf.errors.InvalidArgumentError: they are smaller than the window, or of two dtypes.
    """
    first, second, limit = _images(img1, img2, max_val)
    whole, _ = _similarities(first, second, limit, _window(filter_size, filter_sigma), k1, k2)
    return xp.mean(whole, axis=-1 if return_index_map else (-3, -2, -1))


@op("image.ssim_multiscale")
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """The structural similarity at several scales, each half of the one before, float32.

    Args:
      power_factors: the power of each scale's similarity in their product, from the finest on.

    The other arguments and the errors are those of tf.image.ssim.
    """
    first, second, limit = _images(img1, img2, max_val)
    window = _window(filter_size, filter_sigma)
    product: Any = 1
    for scale, power in enumerate(power_factors):
        if scale:
            first, second = _halved(first), _halved(second)
        both = _similarities(first, second, limit, window, k1, k2)
        # Without their mean brightness, but for the last scale.
        kept = both[0 if scale == len(power_factors) - 1 else 1]
        factor = xp.mean(kept, axis=(-3, -2))
        product = product * xp.maximum(factor, np.float32(0)) ** np.float32(power)
    return xp.mean(product, axis=-1)


def _images(img1: Any, img2: Any, max_val: Any) -> tuple:
    first, second = operands("ShapeN", img1, img2)
    for image in (first, second):
        if len(image.shape) < 3:
            raise ValueError(f"Shape {tuple(image.shape)} must have rank at least 3")
    if first.shape[-3:] != second.shape[-3:]:
        raise ValueError(
            f"Shapes {tuple(first.shape[-3:])} and {tuple(second.shape[-3:])} are incompatible"
        )
    limit = as_dtype(convert(max_val).astype(first.dtype), np.float32)
    return as_dtype(first, np.float32), as_dtype(second, np.float32), limit


def _window(size: int, sigma: float) -> np.ndarray:
    """The weights along one axis; those of a window are their products."""
    distance = np.arange(size, dtype=np.float64) - (size - 1) / 2
    weights = np.exp(-(distance**2) / (2 * sigma**2))
    return (weights / weights.sum()).astype(np.float32)


def _similarities(x: Any, y: Any, limit: Any, window: np.ndarray, k1: float, k2: float) -> tuple:
    """The similarity of each window, and that of its contrast and structure alone."""
    size = len(window)
    if min(x.shape[-3:-1]) < size:
        raise invalid_argument(f"images of {tuple(x.shape)} are smaller than the window, {size}")
    a, b = (np.float32(k1) * limit) ** 2, (np.float32(k2) * limit) ** 2
    mean_x, mean_y = _means(x, window), _means(y, window)
    product, squares = 2 * mean_x * mean_y, mean_x**2 + mean_y**2
    brightness = (product + a) / (squares + a)
    covariance = 2 * _means(x * y, window) - product
    variances = _means(x**2 + y**2, window) - squares
    structure = (covariance + b) / (variances + b)
    return brightness * structure, structure


def _means(x: Any, window: np.ndarray) -> Any:
    """The weighted mean of each window that lies inside."""
    size = len(window)
    rows, columns = (length - size + 1 for length in x.shape[-3:-1])
    down = sum(window[i] * x[..., i : i + rows, :, :] for i in range(size))
    return sum(window[i] * down[..., :, i : i + columns, :] for i in range(size))


def _halved(x: Any) -> Any:
    """Means of two by two pixels; an odd last row or column counts twice."""
    odd = [(0, length % 2) for length in x.shape[-3:-1]]
    padded = xp.pad(x, [(0, 0)] * (len(x.shape) - 3) + [*odd, (0, 0)], mode="edge")
    upper, lower = padded[..., 0::2, :, :], padded[..., 1::2, :, :]
    rows = upper + lower
    return (rows[..., 0::2, :] + rows[..., 1::2, :]) * np.float32(0.25)
