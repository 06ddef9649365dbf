"""Convolutions, pools and resizing of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jax2tf._src.export.tflite.model import Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.arrays import transposed
from jax2tf._src.export.tflite.rules.elementwise import static_shape
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree

_PADDINGS = {"SAME": 0, "VALID": 1}


@writes("Conv2D")
def _conv2d(w: Writer, node: Node, x: Value, kernel: Value) -> Value:
    channels = _known(kernel)[-1]
    weights = transposed(w, kernel, (3, 0, 1, 2))
    x, padding = _padded(w, node, x)
    bias = w.constant(np.zeros(channels, np.float32))
    return w.op("CONV_2D", x, weights, bias, like=node.outputs[0], padding=padding, **_steps(node))


@writes("DepthwiseConv2dNative")
def _depthwise(w: Writer, node: Node, x: Value, kernel: Value) -> Value:
    height, width, channels, multiplier = _known(kernel)
    shape = (1, height, width, channels * multiplier)
    if kernel.array is not None:
        weights = w.turned(kernel.array, (0, 1, 2, 3), shape)
    else:
        lengths = w.constant(np.array(shape, np.int32))
        weights = w.op(
            "RESHAPE", kernel, lengths, dtype=kernel.dtype, shape=shape, newShape=[*shape]
        )
    x, padding = _padded(w, node, x)
    bias = w.constant(np.zeros(channels * multiplier, np.float32))
    return w.op(
        "DEPTHWISE_CONV_2D",
        x,
        weights,
        bias,
        like=node.outputs[0],
        padding=padding,
        depthMultiplier=multiplier,
        **_steps(node),
    )


@writes("Conv3D")
def _conv3d(w: Writer, node: Node, x: Value, kernel: Value) -> Value:
    x, padding = _padded(w, node, x)
    bias = w.constant(np.zeros(_known(kernel)[-1], np.float32))
    return w.op("CONV_3D", x, kernel, bias, like=node.outputs[0], padding=padding, **_steps(node))


def _known(kernel: Value) -> tuple[int, ...]:
    shape = static_shape(kernel)
    if shape is None:
        raise NotImplementedError(f"a convolution with a kernel of open sizes {kernel.shape}")
    return shape


# By the number of spatial dimensions.
_AXES = {2: "HW", 3: "DHW"}


def _steps(node: Node) -> dict[str, PyTree]:
    """The strides and dilations of the spatial dimensions, which come before the last."""
    strides, dilations = (
        [int(n) for n in node.attributes.get(name) or ()][1:-1] for name in ("strides", "dilations")
    )
    axes = _AXES[len(strides)]
    found = {f"stride{axis}": n for axis, n in zip(axes, strides, strict=True)}
    dilations = dilations or [1] * len(strides)
    return {**found, **{f"dilation{a}Factor": n for a, n in zip(axes, dilations, strict=True)}}


def _padded(w: Writer, node: Node, x: Value) -> tuple[Value, int]:
    """The operand and the padding; numbers become a PAD before the op."""
    kind = node.attributes["padding"]
    if kind != "EXPLICIT":
        return x, _PADDINGS[kind]
    numbers = np.reshape(node.attributes["explicit_paddings"], (-1, 2))
    if not numbers.any():
        return x, _PADDINGS["VALID"]
    shape = _added(x.shape, numbers.sum(axis=1).tolist())
    paddings = w.constant(numbers.astype(np.int32))
    return w.op("PAD", x, paddings, dtype=x.dtype, shape=shape), _PADDINGS["VALID"]


def _added(shape: PyTree, more: Sequence[int]) -> PyTree:
    if shape is None:
        return None
    return tuple(
        n + m if isinstance(n, int) else n if not m else None
        for n, m in zip(shape, more, strict=True)
    )


@writes("Conv2DBackpropInput")
def _conv2d_transposed(w: Writer, node: Node, lengths: Value, kernel: Value, x: Value) -> Value:
    if node.attributes["padding"] == "EXPLICIT" or any(
        n != 1 for n in node.attributes["dilations"]
    ):
        raise NotImplementedError("LiteRT has no transposed convolution with paddings in numbers")
    weights = transposed(w, kernel, (2, 0, 1, 3))
    strides = {name: n for name, n in _steps(node).items() if name.startswith("stride")}
    padding = _PADDINGS[node.attributes["padding"]]
    return w.op(
        "TRANSPOSE_CONV", lengths, weights, x, like=node.outputs[0], padding=padding, **strides
    )


@writes("Conv3DBackpropInputV2")
def _conv3d_transposed(w: Writer, node: Node, lengths: Value, kernel: Value, x: Value) -> Value:
    padding = _PADDINGS[node.attributes["padding"]]
    return w.op(
        "CONV_3D_TRANSPOSE",
        lengths,
        kernel,
        x,
        like=node.outputs[0],
        padding=padding,
        **_steps(node),
    )


_POOLS = {"AvgPool": "AVERAGE_POOL_2D", "MaxPool": "MAX_POOL_2D"}


@writes(*_POOLS)
def _pool(w: Writer, node: Node, x: Value) -> Value:
    _, height, width, _ = node.attributes["ksize"]
    _, down, right, _ = node.attributes["strides"]
    return w.op(
        _POOLS[node.op],
        x,
        like=node.outputs[0],
        padding=_PADDINGS[node.attributes["padding"]],
        strideH=int(down),
        strideW=int(right),
        filterHeight=int(height),
        filterWidth=int(width),
    )


_RESIZES = {"ResizeBilinear": "RESIZE_BILINEAR", "ResizeNearestNeighbor": "RESIZE_NEAREST_NEIGHBOR"}


@writes(*_RESIZES)
def _resize(w: Writer, node: Node, x: Value, lengths: Value) -> Value:
    return w.op(
        _RESIZES[node.op],
        x,
        lengths,
        like=node.outputs[0],
        alignCorners=bool(node.attributes["align_corners"]),
        halfPixelCenters=bool(node.attributes["half_pixel_centers"]),
    )
