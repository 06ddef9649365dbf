"""tf.image.resize: each axis of an image is a matrix of weights times the axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.images.layout import image_of
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.tensors import static_value


@export("image.ResizeMethod")
class ResizeMethod:
    """The names of ways to resize."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(0, 1 - np.abs(x))


def _lanczos(radius: int) -> Callable:
    def kernel(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) > radius, 0, np.sinc(x) * np.sinc(x / radius))

    return kernel


def _gaussian(x: np.ndarray) -> np.ndarray:
    # Of a radius of 1.5, three times the standard deviation.
    return np.where(np.abs(x) >= 1.5, 0, np.exp(-np.square(x) / (2 * 0.5**2)))


def _cubic(b: float, c: float) -> Callable:
    """Mitchell and Netravali, "Reconstruction filters in computer graphics", 1988."""

    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = ((12 - 9 * b - 6 * c) * x + (-18 + 12 * b + 6 * c)) * x * x + (6 - 2 * b)
        far = (((-b - 6 * c) * x + (6 * b + 30 * c)) * x + (-12 * b - 48 * c)) * x
        return np.where(x < 1, near, np.where(x < 2, far + (8 * b + 24 * c), 0)) / 6

    return kernel


_KERNELS: dict[str, Callable] = {
    "bilinear": _triangle,
    "bicubic": _cubic(0, 0.5),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": _gaussian,
    "mitchellcubic": _cubic(1 / 3, 1 / 3),
}

# Those that change an image of the same size.
_SMOOTHING = ("gaussian", "mitchellcubic")


@op("image.resize")
def resize(
    images: Any,
    size: Any,
    method: Any = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: Any = None,
) -> Any:
    """Images of another size; pixels are squares, whose centres are in between.

    Args:
      images: an image or a batch of images.
      size: rows and columns, known under jax.jit.
      method: one of tf.image.ResizeMethod.
      preserve_aspect_ratio: whether the result is the largest within `size` of the same shape.
      antialias: whether a smaller image's pixels are means of many.

    Returns:
      float32; for "nearest" the dtype of the images.

    Raises:
      ValueError: there is no such method, or `size` has not two numbers.
    """
    x = image_of(images, "images")
    wanted = np.ravel(static_value(size, "size"))
    if wanted.shape != (2,):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    lengths = x.shape[-3:-1]
    if preserve_aspect_ratio:
        scale = np.min(wanted.astype(np.float32) / np.asarray(lengths, np.float32))
        wanted = np.round(scale * np.asarray(lengths, np.float32))
    goal = [int(n) for n in wanted]
    if method == "nearest":
        return _nearest(x, lengths, goal)
    if method not in _KERNELS and method != "area":
        raise ValueError(f"Resize method is not implemented: {method}")
    x = x.astype(np.float32)
    for axis, length, new in zip((-3, -2), lengths, goal, strict=True):
        if length != new or method in _SMOOTHING:
            weights = _weights(method, length, new, antialias).astype(np.float32)
            x = xp.moveaxis(xp.tensordot(x, weights, [[axis], [1]]), -1, axis)
    return x


def _nearest(x: Any, lengths: tuple, goal: list[int]) -> Any:
    for axis, length, new in zip((-3, -2), lengths, goal, strict=True):
        scale = np.float32(length) / np.float32(new)
        places = np.floor((np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale)
        x = xp.take(x, np.minimum(places.astype(np.int64), length - 1), axis=axis)
    return x


def _weights(method: str, length: int, new: int, antialias: bool) -> np.ndarray:
    """`[new, length]`: of each pixel in each new one; the weights of a new one add up to 1."""
    pixels = np.arange(length)
    if method == "area":
        start, end = (np.arange(new)[:, None] * (length / new) + k for k in (0, length / new))
        overlap = np.minimum(end, pixels + 1) - np.maximum(start, pixels)
        weights = np.maximum(overlap, 0)
    else:
        # In float32, as in TensorFlow: a Gaussian ends in a step, just at a pixel of many sizes.
        one = np.float32(1)
        scale = one / (np.float32(new) / np.float32(length))
        width = max(scale, one) if antialias else one
        centres = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale
        if method == "bicubic" and not antialias:
            # TensorFlow looks weights up in a table for each 1024th of a pixel.
            centres = np.round((centres - np.float32(0.5)) * 1024) / 1024 + np.float32(0.5)
        places = pixels.astype(np.float32) + np.float32(0.5)
        weights = _KERNELS[method]((places - centres[:, None]) * (one / width))
    return weights / weights.sum(axis=1, keepdims=True)
