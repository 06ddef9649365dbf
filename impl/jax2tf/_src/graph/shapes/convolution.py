"""Convolutions, pools, and images of other sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Size
from jax2tf._src.graph.shapes.registry import Shape, Sizes, Use, gives
from jax2tf._src.util.typing import PyTree


def _format(use: Use) -> tuple[Callable[[PyTree], PyTree], Callable[[Sizes], Sizes]]:
    """Moves the channels of a sequence to its end, and back to where the op has them."""
    if use.attributes["data_format"] in ("NHWC", "NDHWC"):
        return lambda x: tuple(x), lambda x: x
    return lambda x: (x[0], *x[2:], x[1]), lambda x: (x[0], x[-1], *x[1:-1])


def _windowed(
    use: Use, sizes: Sequence[Size], windows: Sequence[Size], n_spatial: int
) -> list[Size]:
    """The number of windows along each spatial dimension."""
    last, _ = _format(use)
    strides = last(use.attributes["strides"])[1:-1]
    dilations = last(use.attributes.get("dilations") or [1] * (n_spatial + 2))[1:-1]
    explicit = use.attributes.get("explicit_paddings") or [0] * (2 * n_spatial + 4)
    pairs = last([explicit[i : i + 2] for i in range(0, len(explicit), 2)])[1:-1]
    padding = use.attributes["padding"]
    return [
        _count(use, size, window, stride, dilation, padding, pair)
        for size, window, stride, dilation, pair in zip(
            sizes, windows, strides, dilations, pairs, strict=True
        )
    ]


def _count(
    use: Use,
    size: Size,
    window: Size,
    stride: int,
    dilation: int,
    padding: str,
    pair: Sequence[int],
) -> Size:
    if padding == "SAME":
        return dimensions.divide_up(size, stride)
    wide = dimensions.add(dimensions.multiply(dimensions.subtract(window, 1), dilation), 1)
    padded = dimensions.add(size, sum(pair) if padding == "EXPLICIT" else 0)
    room = dimensions.subtract(padded, wide)
    if isinstance(room, int) and room < 0:
        # The convolutions count none; an empty image is one of a size that is known.
        if padding == "VALID" and dimensions.add(room, stride) == 0:
            return 0
        raise use.error(f"a window of size {wide} does not fit into size {padded}")
    return dimensions.add(dimensions.divide(room, stride), 1)


@gives("Conv2D", "Conv3D")
def _convolution(use: Use) -> Shape:
    n = 2 if use.op == "Conv2D" else 3
    last, back = _format(use)
    batch, *sizes, channels = last(use.ranked(0, n + 2))
    *windows, depth, features = use.ranked(1, n + 2)
    if isinstance(channels, int) and isinstance(depth, int) and (depth == 0 or channels % depth):
        raise use.error(f"filters for {depth} channels do not fit {channels} channels")
    return back((batch, *_windowed(use, sizes, windows, n), features))


@gives("DepthwiseConv2dNative")
def _depthwise(use: Use) -> Shape:
    last, back = _format(use)
    batch, *sizes, channels = last(use.ranked(0, 4))
    *windows, depth, multiplier = use.ranked(1, 4)
    features = dimensions.multiply(use.merge(channels, depth), multiplier)
    return back((batch, *_windowed(use, sizes, windows, 2), features))


@gives("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _transposed(use: Use) -> Shape:
    rank = 4 if use.op == "Conv2DBackpropInput" else 5
    shape = use.shape_in(0)
    use.ranked(1, rank)
    gradient = use.ranked(2, rank)
    if shape is None:
        return (gradient[0], *(None,) * (rank - 1))
    if len(shape) == 2:
        # The sizes of the images; batch and channels are those of the other operands.
        return (gradient[0], *shape, use.shape(1)[-2])
    if len(shape) != rank:
        raise use.error(f"the stated shape has rank {len(shape)}, not {rank}")
    return shape if shape[0] is not None else (gradient[0], *shape[1:])


@gives("AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D")
def _pool(use: Use) -> Shape:
    n = 3 if use.op.endswith("3D") else 2
    last, back = _format(use)
    shape = last(use.ranked(0, n + 2))
    if any(last(use.attributes[name])[i] != 1 for name in ("ksize", "strides") for i in (0, -1)):
        return (None,) * (n + 2)
    windows = last(use.attributes["ksize"])[1:-1]
    return back((shape[0], *_windowed(use, shape[1:-1], windows, n), shape[-1]))


@gives("ResizeBilinear", "ResizeNearestNeighbor")
def _resized(use: Use) -> Shape:
    batch, _, _, channels = use.ranked(0, 4)
    sizes = use.vector(1) or (None, None)
    if len(sizes) != 2:
        raise use.error(f"{len(sizes)} sizes are stated, not 2")
    return (batch, *sizes, channels)
