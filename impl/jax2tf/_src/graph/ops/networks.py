"""Functions of networks: convolutions, pools, activations."""

from __future__ import annotations

from collections.abc import Sequence

from jax2tf._src.graph.ops.elementwise import cast, pow, tanh
from jax2tf._src.graph.ops.operands import integers
from jax2tf._src.graph.symbols import Symbol, converted, raw
from jax2tf._src.util.typing import PyTree


def conv2d(
    input: PyTree, filters: PyTree, strides: PyTree, padding: PyTree, *, dilations: PyTree
) -> Symbol:
    """The convolution of images whose channels come last; strides and dilations are pairs."""
    return raw.Conv2D(
        input=input,
        filter=filters,
        strides=_of_all(strides, 2),
        dilations=_of_all(dilations, 2),
        **_padded(padding),
    )


def conv3d(input: PyTree, filters: PyTree, strides: PyTree, padding: str) -> Symbol:
    """The convolution of volumes whose channels come last; there is a stride for each dimension."""
    return raw.Conv3D(input=input, filter=filters, strides=list(strides), padding=padding)


def conv2d_transpose(
    input: PyTree,
    filters: PyTree,
    output_shape: PyTree,
    strides: PyTree,
    padding: PyTree = "SAME",
) -> Symbol:
    """The gradient of a convolution of images: it gives the images."""
    return raw.Conv2DBackpropInput(
        input_sizes=integers(output_shape),
        filter=filters,
        out_backprop=input,
        strides=_of_all(strides, 2),
        **_padded(padding),
    )


def conv3d_transpose(
    input: PyTree, filters: PyTree, output_shape: PyTree, strides: PyTree, padding: str = "SAME"
) -> Symbol:
    """The gradient of a convolution of volumes: it gives the volumes."""
    return raw.Conv3DBackpropInputV2(
        input_sizes=integers(output_shape),
        filter=filters,
        out_backprop=input,
        strides=_of_all(strides, 3),
        padding=padding,
    )


def max_pool2d(input: PyTree, ksize: PyTree, strides: PyTree, padding: PyTree) -> Symbol:
    """The largest element of each window of images whose channels come last."""
    return raw.MaxPool(
        input=input, ksize=_of_all(ksize, 2), strides=_of_all(strides, 2), **_padded(padding)
    )


def avg_pool2d(input: PyTree, ksize: PyTree, strides: PyTree, padding: str) -> Symbol:
    """The mean of each window of images whose channels come last."""
    return raw.AvgPool(
        value=input, ksize=_of_all(ksize, 2), strides=_of_all(strides, 2), padding=padding
    )


def _of_all(sizes: PyTree, n_spatial: int) -> Sequence[int]:
    """Sizes of the spatial dimensions as sizes of all: one for each, or one for all."""
    listed = [sizes] if isinstance(sizes, int) else list(sizes)
    if len(listed) == n_spatial + 2:
        return listed
    return [1, *(listed * n_spatial if len(listed) == 1 else listed), 1]


def _padded(padding: PyTree) -> dict[str, PyTree]:
    """The attributes of a padding: its name, or pairs of numbers for all dimensions."""
    if isinstance(padding, str):
        return {"padding": padding, "explicit_paddings": []}
    return {"padding": "EXPLICIT", "explicit_paddings": [n for pair in padding for n in pair]}


def gelu(features: PyTree, approximate: bool = False) -> Symbol:
    """x times the normal distribution at x; the approximation is by tanh."""
    of = features.dtype
    if approximate:
        coefficient: PyTree = cast(converted(0.044715), of)
        cubes = coefficient * pow(features, 3)
        curve: PyTree = tanh(0.7978845608028654 * (features + cubes))
        return 0.5 * features * (1.0 + curve)
    half = 0.5 * features
    scaled = -features * cast(converted(0.7071067811865476), of)
    return half * raw.Erfc(x=scaled)


def leaky_relu(features: PyTree, alpha: float = 0.2) -> Symbol:
    """x, or alpha*x where x is negative."""
    return raw.LeakyRelu(features=features, alpha=alpha)


def softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.Softmax(logits=logits)


def log_softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The logarithm of the softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.LogSoftmax(logits=logits)


def _check_last(x: PyTree, axis: int) -> None:
    if axis not in (-1, x.shape.rank - 1):
        raise NotImplementedError(f"softmax along axis {axis} of {x!r}")
