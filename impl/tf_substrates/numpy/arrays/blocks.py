"""Blocks of the spatial axes as batch entries or channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, static_value


def _spatial(x: Any, block: np.ndarray, widths: np.ndarray) -> tuple:
    rest = len(x.shape) - 1 - len(block)
    return [(0, 0), *map(tuple, widths.tolist()), *[(0, 0)] * rest], rest


@op("space_to_batch", "space_to_batch_nd", "nn.space_to_batch")
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: Any = None) -> Any:
    """Blocks of the spatial axes, zero padded, become batch entries."""
    x = convert(input)
    block = np.ravel(static_value(block_shape, "block_shape"))
    pairs, _ = _spatial(x, block, np.array(static_value(convert(paddings), "paddings")))
    x = xp.pad(x, pairs)
    m = len(block)
    shape = [x.shape[0]]
    for i, b in enumerate(block):
        shape += [x.shape[i + 1] // int(b), int(b)]
    y = x.reshape(shape + list(x.shape[m + 1 :]))
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    y = xp.transpose(y, order + list(range(2 * m + 1, len(y.shape))))
    return y.reshape((x.shape[0] * int(np.prod(block)), *y.shape[m + 1 :]))


@op("batch_to_space")
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: Any = None) -> Any:
    """The inverse of tf.space_to_batch, with elements cropped from both ends."""
    x = convert(input)
    block = [int(b) for b in np.ravel(static_value(block_shape, "block_shape"))]
    cuts = np.array(static_value(convert(crops), "crops"))
    m = len(block)
    batch = x.shape[0] // math.prod(block)
    y = x.reshape((*block, batch, *x.shape[1:]))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    y = xp.transpose(y, order + list(range(2 * m + 1, len(y.shape))))
    y = y.reshape(
        (batch, *(n * b for n, b in zip(x.shape[1:], block, strict=False)), *x.shape[m + 1 :])
    )
    key = [slice(None)] + [slice(int(a), y.shape[i + 1] - int(b)) for i, (a, b) in enumerate(cuts)]
    return y[tuple(key)]


def _pixels(x: Any, data_format: str, op_name: str) -> Any:
    if len(x.shape) != 4:
        raise invalid_argument(f"Input rank should be 4 instead of {len(x.shape)} [Op:{op_name}]")
    if data_format not in ("NHWC", "NCHW"):
        raise invalid_argument(f"no data format of four axes: {data_format} [Op:{op_name}]")
    return xp.moveaxis(x, 1, -1) if data_format == "NCHW" else x


@op("nn.space_to_depth")
def space_to_depth(input: Any, block_size: int, data_format: Any = "NHWC", name: Any = None) -> Any:
    """Blocks of pixels of images `[batch, rows, columns, channels]` become channels.

    Raises:
      tf.errors.InvalidArgumentError: an axis is no multiple of the block's size.
    """
    x = _pixels(convert(input), data_format, "SpaceToDepth")
    batch, rows, columns, channels = x.shape
    b = int(block_size)
    if rows % b or columns % b:
        raise invalid_argument(
            f"Image width and height {columns}, {rows} should be divisible by block_size: {b}"
            " [Op:SpaceToDepth]"
        )
    y = x.reshape((batch, rows // b, b, columns // b, b, channels))
    y = xp.transpose(y, (0, 1, 3, 2, 4, 5))
    y = y.reshape((batch, rows // b, columns // b, b * b * channels))
    return xp.moveaxis(y, -1, 1) if data_format == "NCHW" else y


@op("nn.depth_to_space")
def depth_to_space(input: Any, block_size: int, data_format: Any = "NHWC", name: Any = None) -> Any:
    """The inverse of tf.nn.space_to_depth.

    Raises:
      tf.errors.InvalidArgumentError: the channels are no multiple of the block's pixels.
    """
    x = _pixels(convert(input), data_format, "DepthToSpace")
    batch, rows, columns, channels = x.shape
    b = int(block_size)
    if channels % (b * b):
        raise invalid_argument(
            f"Input depth dimension {channels} should be divisible by: {b * b} [Op:DepthToSpace]"
        )
    y = x.reshape((batch, rows, columns, b, b, channels // (b * b)))
    y = xp.transpose(y, (0, 1, 3, 2, 4, 5))
    y = y.reshape((batch, rows * b, columns * b, channels // (b * b)))
    return xp.moveaxis(y, -1, 1) if data_format == "NCHW" else y
