"""Convolutions, pools, activations along an axis, resized images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from harnesses.probes.probe import FLOATS, REALS, Of, Probe

_RAW = tf.raw_ops
_IMAGES = Of((1, 5, 5, 2), edges=False)
_VOLUMES = Of((1, 4, 4, 4, 2), edges=False)
_CONVOLVED = (*FLOATS, "int32")
_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


def probes() -> list[Probe]:
    """Uses of channels last, which is what graphs have."""
    return [*_convolutions(), *_pools(), *_others()]


def _convolution(**options: Any) -> Callable[..., Any]:
    settings = {"strides": [1, 1, 1, 1], "padding": "SAME"} | options
    return lambda x, kernel: _RAW.Conv2D(input=x, filter=kernel, **settings)


def _convolutions() -> list[Probe]:
    kernel = Of((3, 3, 2, 4), edges=False)
    explicit = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}
    return [
        Probe("Conv2D", _convolution(), (_IMAGES, kernel), _CONVOLVED),
        Probe(
            "Conv2D",
            _convolution(**explicit),
            (_IMAGES, kernel),
            ("float32",),
            "with paddings in numbers",
        ),
        Probe(
            "Conv2D",
            _convolution(dilations=[1, 2, 2, 1]),
            (_IMAGES, kernel),
            ("float32",),
            "with dilations",
        ),
        Probe(
            "Conv2D",
            _convolution(),
            (_IMAGES, Of((3, 3, 1, 4), edges=False)),
            ("float32",),
            "in groups",
        ),
        Probe(
            "Conv3D",
            lambda x, k: _RAW.Conv3D(input=x, filter=k, strides=[1] * 5, padding="SAME"),
            (_VOLUMES, Of((2, 2, 2, 2, 3), edges=False)),
            FLOATS,
        ),
        Probe(
            "DepthwiseConv2dNative",
            lambda x, k: _RAW.DepthwiseConv2dNative(
                input=x, filter=k, strides=[1, 1, 1, 1], padding="SAME"
            ),
            (_IMAGES, Of((3, 3, 2, 2), edges=False)),
            FLOATS,
        ),
        *_transposed("Conv2DBackpropInput", (3, 3, 2, 4), (1, 5, 5, 4), _CONVOLVED),
        *_transposed("Conv3DBackpropInputV2", (3, 3, 3, 2, 4), (1, 4, 4, 4, 4), FLOATS),
    ]


def _transposed(
    op: str, kernel: tuple[int, ...], gradient: tuple[int, ...], dtypes: tuple[str, ...]
) -> list[Probe]:
    """A transposed convolution to images of twice the size, by a kernel and by a constant one."""
    of_kernel, of_gradient = Of(kernel, edges=False), Of(gradient, edges=False)
    batch, *sizes, _ = gradient
    convolve = functools.partial(
        getattr(_RAW, op),
        input_sizes=[batch, *(2 * size for size in sizes), kernel[-2]],
        strides=[1, *(2 for _ in sizes), 1],
        padding="SAME",
    )

    def by_constant(x: tf.Tensor) -> tf.Tensor:
        constant = of_kernel.array(x.dtype.name, 0)
        return convolve(filter=tf.constant(constant, x.dtype), out_backprop=x)

    return [
        Probe(
            op, lambda k, x: convolve(filter=k, out_backprop=x), (of_kernel, of_gradient), dtypes
        ),
        Probe(op, by_constant, (of_gradient,), dtypes, "by a constant kernel"),
    ]


def _pools() -> list[Probe]:
    images = Of((1, 4, 4, 2))
    return [
        Probe("MaxPool", lambda x: _RAW.MaxPool(input=x, **_POOL), (images,), REALS),
        Probe("AvgPool", lambda x: _RAW.AvgPool(value=x, **_POOL), (images,), FLOATS),
    ]


def _others() -> list[Probe]:
    images = Of((1, 2, 3, 2), edges=False)
    return [
        Probe("Softmax", lambda x: _RAW.Softmax(logits=x), (Of(),), FLOATS),
        Probe("LogSoftmax", lambda x: _RAW.LogSoftmax(logits=x), (Of(),), FLOATS),
        Probe("BiasAdd", lambda x, y: _RAW.BiasAdd(value=x, bias=y), (Of(), Of((4,))), REALS),
        Probe(
            "ResizeBilinear",
            lambda x: _RAW.ResizeBilinear(images=x, size=[4, 6], half_pixel_centers=True),
            (images,),
            (*FLOATS, "uint8", "int32"),
        ),
        Probe(
            "ResizeNearestNeighbor",
            lambda x: _RAW.ResizeNearestNeighbor(images=x, size=[4, 6], half_pixel_centers=True),
            (images,),
            (*FLOATS, "uint8", "int32"),
        ),
    ]
