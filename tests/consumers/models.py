"""Models in plain JAX, small and with random weights: the kinds that are exported for inference.

Each is a function of its inputs alone; the first dimension of every input that is no scalar is the
batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Model = Callable[..., Any]
Inputs = Callable[[int], tuple]

_WIDTH, _HEADS, _LENGTH, _VOCABULARY = 16, 4, 8, 32


def _weights(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _tokens(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, _VOCABULARY, shape).astype(np.int32)


# --- Images ----------------------------------------------------------------------------------


def _convolution(x: jax.Array, kernel: np.ndarray, stride: int = 1, groups: int = 1) -> jax.Array:
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def _pooled(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _normalized(x: jax.Array) -> jax.Array:
    """Batch normalization with the statistics of training."""
    channels = x.shape[-1]
    mean, variance = _weights(channels), 1 + _weights(channels) ** 2
    return (x - mean) * lax.rsqrt(variance + 1e-3)


def convolutional(images: jax.Array) -> jax.Array:
    x = _pooled(jax.nn.relu(_normalized(_convolution(images, _weights(3, 3, 3, 8)))))
    x = _pooled(jax.nn.relu(_convolution(x, _weights(3, 3, 8, 16))))
    return jax.nn.softmax(x.reshape(x.shape[0], -1) @ _weights(256, 10) + _weights(10))


def mobile(images: jax.Array) -> jax.Array:
    """Inverted residuals: pointwise out, depthwise, pointwise back."""
    x = jax.nn.relu6(_normalized(_convolution(images, _weights(3, 3, 3, 8), 2)))
    for stride in (1, 2, 1):
        y = jax.nn.relu6(_normalized(_convolution(x, _weights(1, 1, 8, 24))))
        y = jax.nn.relu6(_normalized(_convolution(y, _weights(3, 3, 1, 24), stride, 24)))
        y = _normalized(_convolution(y, _weights(1, 1, 24, 8)))
        x = x + y if stride == 1 else y
    return jax.nn.log_softmax(jax.nn.hard_swish(x).mean((1, 2)) @ _weights(8, 10))


# --- Sequences -------------------------------------------------------------------------------


def _layer_norm(x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6)


def _heads(x: jax.Array, weights: np.ndarray) -> jax.Array:
    """(batch, length, width) to (batch, heads, length, width of a head)."""
    projected = (x @ weights).reshape(*x.shape[:-1], _HEADS, _WIDTH // _HEADS)
    return jnp.swapaxes(projected, 1, 2)


def _attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(np.float32)
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    mixed = jnp.swapaxes(jnp.einsum("bhqk,bhkd->bhqd", weights, v), 1, 2)
    return mixed.reshape(*mixed.shape[:2], _WIDTH) @ _weights(_WIDTH, _WIDTH)


def _block(x: jax.Array, attend: Callable[[jax.Array], jax.Array]) -> jax.Array:
    x = x + attend(_layer_norm(x))
    hidden = jax.nn.gelu(_layer_norm(x) @ _weights(_WIDTH, 32), approximate=False)
    return x + hidden @ _weights(32, _WIDTH)


def encoder(tokens: jax.Array) -> jax.Array:
    """Two layers of a transformer over whole sequences."""
    x = jnp.asarray(_weights(_VOCABULARY, _WIDTH))[tokens] + _weights(_LENGTH, _WIDTH)
    mask = jnp.tril(jnp.ones((_LENGTH, _LENGTH), bool))

    def attend(x: jax.Array) -> jax.Array:
        q, k, v = (_heads(x, _weights(_WIDTH, _WIDTH) * s) for s in (1, -1, 2))
        return _attention(q, k, v, mask)

    for _ in range(2):
        x = _block(x, attend)
    return x


def decoder_step(
    tokens: jax.Array, position: jax.Array, keys: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One token more: logits, and the cache with its keys and values at the position."""
    x = jnp.asarray(_weights(_VOCABULARY, _WIDTH))[tokens][:, None]
    mask = jnp.arange(_LENGTH) <= position
    cache = [keys, values]

    def attend(x: jax.Array) -> jax.Array:
        q, *new = (_heads(x, _weights(_WIDTH, _WIDTH) * s) for s in (1, -1, 2))
        for i, update in enumerate(new):
            cache[i] = lax.dynamic_update_slice_in_dim(cache[i], update, position, axis=2)
        return _attention(q, *cache, mask)

    logits = _block(x, attend)[:, 0] @ _weights(_WIDTH, _VOCABULARY)
    return logits, cache[0], cache[1]


def lstm(sequences: jax.Array) -> jax.Array:
    """The last state of an LSTM."""

    def step(carry: tuple, x: jax.Array) -> tuple[tuple, None]:
        cell, hidden = carry
        gates = x @ _weights(4, 32) + hidden @ _weights(8, 32)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(f + 1) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (cell, jax.nn.sigmoid(o) * jnp.tanh(cell)), None

    zeros = jnp.zeros((sequences.shape[0], 8), jnp.float32)
    (_, hidden), _ = lax.scan(step, (zeros, zeros), jnp.swapaxes(sequences, 0, 1))
    return hidden


def _cache(batch: int) -> np.ndarray:
    return _floats(batch, _HEADS, _LENGTH, _WIDTH // _HEADS)


MODELS: dict[str, tuple[Model, Inputs]] = {
    "convolutional": (convolutional, lambda batch: (_floats(batch, 16, 16, 3),)),
    "mobile": (mobile, lambda batch: (_floats(batch, 16, 16, 3),)),
    "encoder": (encoder, lambda batch: (_tokens(batch, _LENGTH),)),
    "decoder step": (
        decoder_step,
        lambda batch: (_tokens(batch), np.array(3, np.int32), _cache(batch), -_cache(batch)),
    ),
    "lstm": (lstm, lambda batch: (_floats(batch, 5, 4),)),
}
