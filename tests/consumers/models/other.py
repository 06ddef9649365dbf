"""Models of other fields: a policy, a network of graphs, a step of diffusion."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.consumers.models.model import Model, Models, floats, integers, weights


def policy(key: jax.Array, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Actions drawn by a key, whose data are given as int32, and their log-probabilities."""
    hidden = jnp.tanh(observations @ weights(6, 16) + weights(16))
    logits = hidden @ weights(16, 5)
    data = lax.bitcast_convert_type(key, jnp.uint32)
    actions = jax.random.categorical(jax.random.wrap_key_data(data), logits)
    shares = jax.nn.log_softmax(logits)
    return actions, jnp.take_along_axis(shares, actions[:, None], 1)[:, 0]


_NODES = 6


def graphs(nodes: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
    """Messages along the edges of one graph, summed at their receivers, for each of a batch."""

    def passed(features: jax.Array) -> jax.Array:
        pairs = jnp.concatenate([features[senders], features[receivers]], -1)
        messages = jax.nn.relu(pairs @ weights(16, 8) + weights(8))
        summed = jax.ops.segment_sum(messages, receivers, _NODES)
        degree = jax.ops.segment_sum(jnp.ones(receivers.shape), receivers, _NODES)
        mixed = jnp.concatenate([features, summed / jnp.maximum(degree, 1)[:, None]], -1)
        return jax.nn.relu(mixed @ weights(16, 8, seed=1))

    features = nodes @ weights(4, 8)
    for _ in range(2):
        features = jax.vmap(passed)(features)
    return features.sum(1) @ weights(8, 3)


def _time_embedding(times: jax.Array) -> jax.Array:
    frequencies = np.exp(-np.log(1e4) * np.arange(8, dtype=np.float32) / 8).astype(np.float32)
    angles = times[:, None] * frequencies
    embedded = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
    return jax.nn.silu(embedded @ weights(16, 16)) @ weights(16, 16, seed=1)


def _group_norm(x: jax.Array, groups: int = 4) -> jax.Array:
    grouped = x.reshape(*x.shape[:-1], groups, -1)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    variance = grouped.var((1, 2, 4), keepdims=True)
    normalized = ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return normalized * (1 + weights(x.shape[-1])) + weights(x.shape[-1], seed=1)


def _conv(x: jax.Array, channels: int, seed: int = 0) -> jax.Array:
    kernel = weights(3, 3, x.shape[-1], channels, seed=seed)
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def diffusion(images: jax.Array, times: jax.Array, noise: jax.Array) -> jax.Array:
    """One step back in time: the noise that a network sees, taken out, and a little put in."""
    x = _conv(images, 16)
    y = _conv(jax.nn.silu(_group_norm(x)), 16, seed=1)
    y = y + _time_embedding(times)[:, None, None]
    x = x + _conv(jax.nn.silu(_group_norm(y)), 16, seed=2)
    predicted = _conv(jax.nn.silu(_group_norm(x)), 3)
    betas = jnp.linspace(1e-4, 0.02, 50, dtype=jnp.float32)
    kept = jnp.cumprod(1 - betas)
    step = times.astype(jnp.int32)
    beta, share = (values[step][:, None, None, None] for values in (betas, kept))
    mean = (images - beta / jnp.sqrt(1 - share) * predicted) / jnp.sqrt(1 - beta)
    return mean + jnp.where(step > 0, 1.0, 0.0)[:, None, None, None] * jnp.sqrt(beta) * noise


def _policy_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    del length
    return np.array([7, 0xDEADBEEF], np.uint32).view(np.int32), floats(batch, 6)


def _graph_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    edges = integers(_NODES, 2, length)
    return floats(batch, _NODES, 4), edges[0], edges[1]


def _diffusion_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    del length
    times = (np.arange(batch) * 7).astype(np.float32)
    return floats(batch, 8, 8, 3), times, floats(batch, 8, 8, 3, seed=1)


MODELS: Models = {
    "policy": Model(policy, _policy_inputs, ("2", "b, 6")),
    "graph network": Model(graphs, _graph_inputs, (f"b, {_NODES}, 4", "l", "l"), length=9),
    "diffusion step": Model(
        diffusion, _diffusion_inputs, ("b, 8, 8, 3", "b", "b, 8, 8, 3"), least=1.0
    ),
}
