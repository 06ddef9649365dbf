"""Models of images: classifiers, a segmentation, a detector."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.consumers.models.model import Model, Models, floats, weights

_LAYOUT = ("NHWC", "HWIO", "NHWC")


def _conv(
    x: jax.Array, size: int, channels: int, stride: int = 1, groups: int = 1, seed: int = 0
) -> jax.Array:
    kernel = weights(size, size, x.shape[-1] // groups, channels, seed=seed)
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=_LAYOUT,
        feature_group_count=groups,
    )


def _max_pool(x: jax.Array, size: int = 2, padding: str = "VALID") -> jax.Array:
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, (1, 2, 2, 1), padding)


def _batch_norm(x: jax.Array) -> jax.Array:
    """Batch normalization with the statistics of training."""
    channels = x.shape[-1]
    mean, variance = weights(channels), 1 + weights(channels) ** 2
    scale, bias = 1 + weights(channels, seed=1), weights(channels, seed=2)
    return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + bias


def _dense(x: jax.Array, width: int) -> jax.Array:
    return x @ weights(x.shape[-1], width) + weights(width)


def convolutional(images: jax.Array) -> jax.Array:
    x = _max_pool(jax.nn.relu(_batch_norm(_conv(images, 3, 8))))
    x = _max_pool(jax.nn.relu(_conv(x, 3, 16)))
    return jax.nn.softmax(_dense(x.reshape(x.shape[0], -1), 10))


def mobile(images: jax.Array) -> jax.Array:
    """MobileNet's inverted residuals: pointwise out, depthwise, pointwise back."""
    x = jax.nn.relu6(_batch_norm(_conv(images, 3, 8, 2)))
    for stride in (1, 2, 1):
        y = jax.nn.relu6(_batch_norm(_conv(x, 1, 24)))
        y = jax.nn.relu6(_batch_norm(_conv(y, 3, 24, stride, groups=24)))
        y = _batch_norm(_conv(y, 1, 8))
        x = x + y if stride == 1 else y
    return jax.nn.log_softmax(_dense(jax.nn.hard_swish(x).mean((1, 2)), 10))


def resnet(images: jax.Array) -> jax.Array:
    """A strided stem and pool, then residual blocks, the second with a projection."""
    x = jax.nn.relu(_batch_norm(_conv(images, 7, 8, 2)))
    x = _max_pool(x, 3, "SAME")
    for channels, stride in ((8, 1), (16, 2)):
        y = jax.nn.relu(_batch_norm(_conv(x, 3, channels, stride)))
        y = _batch_norm(_conv(y, 3, channels, seed=1))
        if stride != 1:
            x = _batch_norm(_conv(x, 1, channels, stride))
        x = jax.nn.relu(x + y)
    return _dense(jnp.mean(x, axis=(1, 2)), 10)


def efficient(images: jax.Array) -> jax.Array:
    """EfficientNet's blocks: inverted residuals with squeeze and excitation, and swish."""
    x = jax.nn.silu(_batch_norm(_conv(images, 3, 8, 2)))
    for size, stride in ((3, 1), (5, 2)):
        y = jax.nn.silu(_batch_norm(_conv(x, 1, 16)))
        y = jax.nn.silu(_batch_norm(_conv(y, size, 16, stride, groups=16)))
        squeezed = jax.nn.silu(_dense(y.mean((1, 2)), 4))
        y = y * jax.nn.sigmoid(_dense(squeezed, 16))[:, None, None]
        y = _batch_norm(_conv(y, 1, 8))
        x = x + y if stride == 1 else y
    return jax.nn.softmax(_dense(x.mean((1, 2)), 10))


def unet(images: jax.Array) -> jax.Array:
    """Down, and up again by a transposed convolution and by a resize, with skips."""
    first = jax.nn.relu(_conv(images, 3, 8))
    second = jax.nn.relu(_conv(_max_pool(first), 3, 16))
    bottom = jax.nn.relu(_conv(_max_pool(second), 3, 16, seed=1))
    up = lax.conv_transpose(
        bottom, weights(2, 2, 16, 16), (2, 2), "SAME", dimension_numbers=_LAYOUT
    )
    x = jax.nn.relu(_conv(jnp.concatenate([up, second], -1), 3, 16))
    batch, height, width, channels = x.shape
    up = jax.image.resize(x, (batch, 2 * height, 2 * width, channels), "bilinear")
    x = jax.nn.relu(_conv(jnp.concatenate([up, first], -1), 3, 8))
    return jax.nn.sigmoid(_conv(x, 1, 1))


def _boxes(x: jax.Array) -> jax.Array:
    """Corners of the boxes of all cells: (batch, boxes, 4)."""
    centers = (np.stack(np.mgrid[:4, :4], -1) + 0.5).reshape(-1, 2).astype(np.float32) / 4
    offsets, sizes = jnp.split(jnp.tanh(_conv(x, 3, 4)).reshape(x.shape[0], -1, 4), 2, -1)
    middle, half = centers + 0.2 * offsets, 0.15 * jnp.exp(sizes)
    return jnp.concatenate([middle - half, middle + half], -1)


def _overlap(box: jax.Array, boxes: jax.Array) -> jax.Array:
    """Intersection over union of one box with each."""
    low, high = jnp.maximum(box[:2], boxes[:, :2]), jnp.minimum(box[2:], boxes[:, 2:])
    common = jnp.prod(jnp.maximum(high - low, 0), -1)
    area = jnp.prod(boxes[:, 2:] - boxes[:, :2], -1)
    return common / (jnp.prod(box[2:] - box[:2]) + area - common)


def _suppressed(boxes: jax.Array, scores: jax.Array, count: int = 5) -> tuple[jax.Array, jax.Array]:
    """The boxes with the highest scores that do not overlap a higher one: a loop over them."""

    def choose(i: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        left, chosen, chosen_scores = state
        best = jnp.argmax(left)
        chosen = chosen.at[i].set(boxes[best])
        chosen_scores = chosen_scores.at[i].set(jnp.maximum(left[best], 0.0))
        dropped = (_overlap(boxes[best], boxes) > 0.3) | (jnp.arange(left.size) == best)
        return jnp.where(dropped, -1.0, left), chosen, chosen_scores

    state = (scores, jnp.zeros((count, 4)), jnp.zeros(count))
    _, chosen, chosen_scores = lax.fori_loop(0, count, choose, state)
    return chosen, chosen_scores


def detector(images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Boxes and scores of a grid of cells, after non-maximum suppression."""
    x = jax.nn.relu(_batch_norm(_conv(images, 3, 8, 2)))
    x = jax.nn.relu(_batch_norm(_conv(x, 3, 16, 2)))
    scores = jax.nn.sigmoid(_conv(x, 1, 1)).reshape(x.shape[0], -1)
    return jax.vmap(_suppressed)(_boxes(x), scores)


def _images(batch: int, length: int) -> tuple[np.ndarray, ...]:
    del length
    return (floats(batch, 16, 16, 3),)


_SHAPES: Sequence[str] = ("b, 16, 16, 3",)

MODELS: Models = {
    "convolutional": Model(convolutional, _images, _SHAPES),
    "MobileNet": Model(mobile, _images, _SHAPES),
    "ResNet": Model(resnet, _images, _SHAPES),
    "EfficientNet": Model(efficient, _images, _SHAPES),
    "UNet": Model(unet, _images, _SHAPES),
    "detector": Model(detector, _images, _SHAPES),
}
