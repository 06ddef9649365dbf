"""Convolutions and pools.

TensorFlow's arrays have their channels last, those of ONNX first: Transposes go around the op.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.arrays import transposed
from jax2tf._src.export.onnx.rules.dtypes import compute
from jax2tf._src.export.onnx.rules.sizes import int64s
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.export.windows import same_padding
from jax2tf._src.graph.graph import Node, Size, Tensor
from jax2tf._src.util.typing import PyTree

# By the number of spatial dimensions.
CHANNELS_FIRST: Mapping[int, Sequence[int]] = {2: (0, 3, 1, 2), 3: (0, 4, 1, 2, 3)}
CHANNELS_LAST: Mapping[int, Sequence[int]] = {2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}
_KERNELS: Mapping[int, Sequence[int]] = {2: (3, 2, 0, 1), 3: (4, 3, 0, 1, 2)}


@writes("Conv2D", "Conv3D")
def _conv(w: Writer, node: Node, x: ir.Value, kernel: ir.Value) -> ir.Value:
    image, filters = node.inputs
    rank = sizes.rank_of(image) - 2
    groups = _groups(image, _channel_axis(node), filters, rank)
    return _convolved(w, node, x, transposed(w, kernel, _KERNELS[rank]), groups)


def _groups(image: Tensor, channel_axis: int, filters: Tensor, axis: int) -> int:
    """How many times the image has the channels of the filters; once if the sizes are one name."""
    if image.shape is not None and filters.shape is not None:
        channels, inner = image.shape[channel_axis], filters.shape[axis]
        if channels is not None and channels == inner:
            return 1
    channels, inner = _size(image, channel_axis), _size(filters, axis)
    return channels // inner if inner else 1


@writes("DepthwiseConv2dNative")
def _depthwise(w: Writer, node: Node, x: ir.Value, kernel: ir.Value) -> ir.Value:
    height, width, channels, multiplier = (_size(node.inputs[1], i) for i in range(4))
    array = sizes.array_of(kernel)
    shape = (channels * multiplier, 1, height, width)
    if array is not None:
        kernel = w.constant(np.ascontiguousarray(array.transpose(2, 3, 0, 1)).reshape(shape))
    elif multiplier == 1:
        kernel = w.op("Transpose", kernel, perm=[2, 3, 0, 1])
    else:
        kernel = w.op("Reshape", w.op("Transpose", kernel, perm=[2, 3, 0, 1]), int64s(w, *shape))
    return _convolved(w, node, x, kernel, channels)


def _convolved(w: Writer, node: Node, x: ir.Value, kernel: ir.Value, groups: int) -> ir.Value:
    image, filters = node.inputs
    rank = sizes.rank_of(image) - 2
    strides, dilations = (_spatial(node, name) for name in ("strides", "dilations"))
    given = () if filters.shape is None else filters.shape[:rank]
    window = [size for size in given if isinstance(size, int)]
    if len(window) < rank and node.attributes["padding"] == "SAME":
        raise NotImplementedError(f"a SAME convolution whose window is open {tuple(given)}")
    extent = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=False)]
    result = compute(
        w,
        "Conv",
        sizes.dtype_of(image),
        _first(w, node, x),
        kernel,
        group=groups if groups != 1 else None,
        kernel_shape=window if len(window) == rank else None,
        strides=_unless_ones(strides),
        dilations=_unless_ones(dilations),
        **_padding(node, image, extent, strides, dilations),
    )
    return _last(w, node, result)


def _size(tensor: Tensor, axis: int) -> int:
    size = tensor.shape[axis] if tensor.shape is not None else None
    if not isinstance(size, int):
        raise NotImplementedError(f"a convolution of an open number of channels ({size})")
    return size


def _channel_axis(node: Node) -> int:
    return 1 if _has_channels_first(node) else -1


def _has_channels_first(node: Node) -> bool:
    return str(node.attributes.get("data_format", "NHWC")).startswith("NC")


def _first(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    rank = sizes.rank_of(node.outputs[0]) - 2
    return x if _has_channels_first(node) else transposed(w, x, CHANNELS_FIRST[rank])


def _last(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    rank = sizes.rank_of(node.outputs[0]) - 2
    return x if _has_channels_first(node) else transposed(w, x, CHANNELS_LAST[rank])


def _spatial(node: Node, name: str) -> list[int]:
    """The strides, or the like, of the spatial dimensions."""
    rank = sizes.rank_of(node.outputs[0]) - 2
    given = list(node.attributes.get(name) or [1] * (rank + 2))
    return given[2:] if _has_channels_first(node) else given[1:-1]


def _spatial_sizes(node: Node, tensor: Tensor) -> list[Size]:
    shape = list(tensor.shape or ())
    return shape[2:] if _has_channels_first(node) else shape[1:-1]


def _unless_ones(numbers: Sequence[int]) -> list[int] | None:
    return None if all(n == 1 for n in numbers) else list(numbers)


def _padding(
    node: Node,
    image: Tensor,
    extent: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> dict[str, PyTree]:
    """The attributes that say how much is added on each side."""
    kind = node.attributes["padding"]
    if kind == "EXPLICIT":
        pairs = _explicit(node)
    elif kind == "VALID":
        return {}
    else:
        found = [
            same_padding(n, k, s)
            for n, k, s in zip(_spatial_sizes(node, image), extent, strides, strict=True)
        ]
        pairs = [pair for pair in found if pair is not None]
        if len(pairs) != len(found):
            if _unless_ones(dilations):
                raise NotImplementedError("a dilated convolution of an open size that is padded")
            return {"auto_pad": "SAME_UPPER"}
    return {"pads": _in_order(pairs)} if any(itertools.chain(*pairs)) else {}


def _explicit(node: Node) -> list[tuple[int, int]]:
    numbers = list(node.attributes["explicit_paddings"])
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    return pairs[2:] if _has_channels_first(node) else pairs[1:-1]


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[int]:
    return [*(low for low, _ in pairs), *(high for _, high in pairs)]


@writes("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _conv_backprop_input(
    w: Writer, node: Node, lengths: ir.Value, kernel: ir.Value, x: ir.Value
) -> ir.Value:
    filters, result = node.inputs[1], node.outputs[0]
    rank = sizes.rank_of(result) - 2
    strides, dilations = (_spatial(node, name) for name in ("strides", "dilations"))
    window = [_size(filters, i) for i in range(rank)]
    extent = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    wanted = _wanted(node)
    edges = [_edges(node, i, wanted[i], extent[i], strides[i]) for i in range(rank)]
    pairs, extra = [(low, high) for low, high, _ in edges], [n for *_, n in edges]
    groups = _size(result, _channel_axis(node)) // _size(filters, rank)
    out = compute(
        w,
        "ConvTranspose",
        sizes.dtype_of(result),
        _first(w, node, x),
        transposed(w, kernel, _KERNELS[rank]),
        group=groups if groups != 1 else None,
        kernel_shape=window,
        strides=_unless_ones(strides),
        dilations=_unless_ones(dilations),
        pads=_in_order(pairs) if any(itertools.chain(*pairs)) else None,
        output_padding=extra if any(extra) else None,
    )
    longer = [i for i in range(rank) if extra[i] and not isinstance(wanted[i], int)]
    if longer:
        ends = sizes.joined(w, [wanted[i] for i in longer])
        axes = int64s(w, *(i + 2 for i in longer))
        out = w.op("Slice", out, int64s(w, *[0] * len(longer)), ends, axes)
    return _last(w, node, out)


def _wanted(node: Node) -> list[sizes.Entry]:
    """The spatial sizes of a transposed convolution."""
    known = _spatial_sizes(node, node.outputs[0])
    given = sizes.entries(node.inputs[0])
    if given is None:
        raise NotImplementedError(f"a {node.op} of an unknown number of dimensions")
    if len(given) != len(known):
        given = given[2:] if _has_channels_first(node) else given[1:-1]
    return [n if isinstance(n, int) else m for n, m in zip(known, given, strict=True)]


def _edges(
    node: Node, axis: int, wanted: sizes.Entry, extent: int, stride: int
) -> tuple[int, int, int]:
    """What is cut off on both sides of the full result, and what is added behind it.

    An open size is made as long as it can be.
    """
    given = _spatial_sizes(node, node.inputs[2])[axis]
    kind = node.attributes["padding"]
    low, high = _explicit(node)[axis] if kind == "EXPLICIT" else (0, 0)
    if kind == "SAME":
        pair = same_padding(wanted if isinstance(wanted, int) else None, extent, stride)
        if pair is None:
            raise NotImplementedError(f"a {node.op} of an open size with the padding SAME")
        low, high = pair
    if not isinstance(wanted, int) or not isinstance(given, int):
        return low, high, stride - 1
    return low, high, wanted - (stride * (given - 1) + extent - low - high)


_POOLS = {
    "MaxPool": "MaxPool",
    "AvgPool": "AveragePool",
    "MaxPool3D": "MaxPool",
    "AvgPool3D": "AveragePool",
}


@writes(*_POOLS)
def _pool(w: Writer, node: Node, x: ir.Value) -> ir.Value:
    image = node.inputs[0]
    window, strides = (_spatial(node, name) for name in ("ksize", "strides"))
    out = compute(
        w,
        _POOLS[node.op],
        sizes.dtype_of(image),
        _first(w, node, x),
        kernel_shape=window,
        strides=_unless_ones(strides),
        **_padding(node, image, window, strides, [1] * len(window)),
    )
    return _last(w, node, out)
