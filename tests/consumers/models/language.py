"""Models of language: encoders, decoders with their caches, and a loop that generates."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.consumers.models.model import Model, Models, floats, integers, weights

_WIDTH, _HEADS, _VOCABULARY = 16, 4, 32
_HEAD = _WIDTH // _HEADS
# The most tokens that a model with learned positions, or with a cache, takes.
_PLACES = 12


def _layer_norm(x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    normalized = (x - mean) * lax.rsqrt(variance + 1e-6)
    return normalized * (1 + weights(_WIDTH)) + weights(_WIDTH, seed=1)


def _rms_norm(x: jax.Array) -> jax.Array:
    scale = lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
    return x * scale * (1 + weights(_WIDTH))


def _embedded(tokens: jax.Array) -> jax.Array:
    return jnp.asarray(weights(_VOCABULARY, _WIDTH, seed=1))[tokens]


def _heads(x: jax.Array, heads: int, seed: int) -> jax.Array:
    """(batch, length, width) to (batch, heads, length, width of a head)."""
    projected = x @ weights(_WIDTH, heads * _HEAD, seed=seed)
    return projected.reshape(*x.shape[:-1], heads, _HEAD).swapaxes(1, 2)


def _attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(np.float32)
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    mixed = jnp.einsum("bhqk,bhkd->bhqd", shares, v).swapaxes(1, 2)
    return mixed.reshape(*mixed.shape[:2], _WIDTH) @ weights(_WIDTH, _WIDTH, seed=4)


def _self_attention(x: jax.Array, mask: jax.Array) -> jax.Array:
    return _attention(*(_heads(x, _HEADS, seed) for seed in (1, 2, 3)), mask)


def _block(
    x: jax.Array, attend: Callable[[jax.Array], jax.Array], approximate: bool = False
) -> jax.Array:
    x = x + attend(_layer_norm(x))
    hidden = jax.nn.gelu(_layer_norm(x) @ weights(_WIDTH, 32), approximate=approximate)
    return x + hidden @ weights(32, _WIDTH)


def _causal(length: int) -> jax.Array:
    places = jnp.arange(length)
    return places[:, None] >= places


def bert(tokens: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sequences and how long each is, to the last states and a pooled one."""
    length = tokens.shape[1]
    x = _layer_norm(_embedded(tokens) + jnp.asarray(weights(_PLACES, _WIDTH))[jnp.arange(length)])
    mask = (jnp.arange(length) < lengths[:, None])[:, None, None]
    for _ in range(2):
        x = _layer_norm(x + _self_attention(x, mask))
        hidden = jax.nn.gelu(x @ weights(_WIDTH, 32) + weights(32), approximate=False)
        x = _layer_norm(x + hidden @ weights(32, _WIDTH) + weights(_WIDTH))
    return x, jnp.tanh(x[:, 0] @ weights(_WIDTH, _WIDTH))


def gpt(tokens: jax.Array) -> jax.Array:
    """The logits of each next token, with the embedding's weights as those of the output."""
    length = tokens.shape[1]
    x = _embedded(tokens) + jnp.asarray(weights(_PLACES, _WIDTH))[jnp.arange(length)]
    for _ in range(2):
        x = _block(x, lambda x: _self_attention(x, _causal(length)), approximate=True)
    return _layer_norm(x) @ weights(_VOCABULARY, _WIDTH, seed=1).T


def gpt_step(
    tokens: jax.Array, position: jax.Array, keys: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One token more: logits, and the cache with its keys and values at the position."""
    x = _embedded(tokens)[:, None] + jnp.asarray(weights(_PLACES, _WIDTH))[position]
    mask = jnp.arange(keys.shape[2]) <= position
    cache = [keys, values]

    def attend(x: jax.Array) -> jax.Array:
        for i, new in enumerate((_heads(x, _HEADS, 2), _heads(x, _HEADS, 3))):
            cache[i] = lax.dynamic_update_slice_in_dim(cache[i], new, position, axis=2)
        return _attention(_heads(x, _HEADS, 1), *cache, mask)

    x = _block(x, attend, approximate=True)[:, 0]
    return _layer_norm(x) @ weights(_VOCABULARY, _WIDTH, seed=1).T, cache[0], cache[1]


# --- Llama: rotary positions, grouped queries, RMS norms, gated units ----------------------------

_KV_HEADS = 2


def _rotated(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary position embedding of (batch, heads, length, width of a head)."""
    frequencies = 1e4 ** (-np.arange(0, _HEAD, 2, dtype=np.float32) / _HEAD)
    angles = positions[:, None].astype(jnp.float32) * frequencies
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


def _grouped_attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    """Attention in which _HEADS // _KV_HEADS queries share a key and a value."""
    k, v = (jnp.repeat(x, _HEADS // _KV_HEADS, axis=1) for x in (k, v))
    return _attention(q, k, v, mask)


def _llama(
    tokens: jax.Array, start: jax.Array, keys: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The logits after the last token; tokens stand at start, start + 1, ...

    keys and values are (layers, batch, heads, places, width of a head).
    """
    positions = start + jnp.arange(tokens.shape[1])
    mask = jnp.arange(keys.shape[3]) <= positions[:, None]
    x = _embedded(tokens)
    for layer in range(2):
        y = _rms_norm(x)
        q, k = (_rotated(_heads(y, n, s), positions) for n, s in ((_HEADS, 1), (_KV_HEADS, 2)))
        at = (layer, 0, 0, start, 0)
        keys = lax.dynamic_update_slice(keys, k[None], at)
        values = lax.dynamic_update_slice(values, _heads(y, _KV_HEADS, 3)[None], at)
        x = x + _grouped_attention(q, keys[layer], values[layer], mask)
        y = _rms_norm(x)
        gated = jax.nn.silu(y @ weights(_WIDTH, 32)) * (y @ weights(_WIDTH, 32, seed=1))
        x = x + gated @ weights(32, _WIDTH)
    return _rms_norm(x[:, -1]) @ weights(_WIDTH, _VOCABULARY), keys, values


def llama_prefill(
    tokens: jax.Array, keys: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    return _llama(tokens, jnp.int32(0), keys, values)


def llama_decode(
    tokens: jax.Array, position: jax.Array, keys: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    return _llama(tokens[:, None], position, keys, values)


# --- An encoder and a decoder that generates ---------------------------------------------------


def translator(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The likeliest tokens one by one, until all sequences have ended, and how many there are."""
    batch, length = tokens.shape
    source = _embedded(tokens) + jnp.asarray(weights(_PLACES, _WIDTH))[jnp.arange(length)]
    source = _block(source, lambda x: _self_attention(x, jnp.ones((1, 1), bool)))
    k, v = _heads(source, _HEADS, 5), _heads(source, _HEADS, 6)
    steps = 6
    end = 3

    def logits_of(written: jax.Array, position: jax.Array) -> jax.Array:
        x = _embedded(written) + weights(_PLACES, _WIDTH)[:steps]
        x = _block(x, lambda x: _self_attention(x, _causal(steps)))
        x = x + _attention(_heads(_layer_norm(x), _HEADS, 7), k, v, jnp.ones((1, 1), bool))
        at = lax.dynamic_index_in_dim(x, position, axis=1, keepdims=False)
        return _layer_norm(at) @ weights(_WIDTH, _VOCABULARY)

    def is_going(state: tuple[jax.Array, ...]) -> jax.Array:
        position, _, ended = state
        return (position < steps - 1) & ~jnp.all(ended)

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        position, written, ended = state
        token = jnp.argmax(logits_of(written, position), -1).astype(jnp.int32)
        token = jnp.where(ended, 0, token)
        written = lax.dynamic_update_slice_in_dim(written, token[:, None], position + 1, axis=1)
        return position + 1, written, ended | (token == end)

    state = (jnp.int32(0), jnp.ones((batch, steps), jnp.int32), jnp.zeros(batch, bool))
    position, written, _ = lax.while_loop(is_going, step, state)
    return written, position


def _tokens(batch: int, length: int) -> tuple[np.ndarray, ...]:
    return (integers(_VOCABULARY, batch, length),)


def _bert_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    return (*_tokens(batch, length), (length - np.arange(batch) % 3).astype(np.int32))


def _step_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    cache = floats(batch, _HEADS, length, _HEAD)
    return integers(_VOCABULARY, batch), np.array(3, np.int32), cache, -cache


def _prefill_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    cache = np.zeros((2, batch, _KV_HEADS, _PLACES, _HEAD), np.float32)
    return (*_tokens(batch, length), cache, cache)


def _decode_inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    cache = floats(2, batch, _KV_HEADS, length, _HEAD)
    return integers(_VOCABULARY, batch), np.array(3, np.int32), cache, -cache


_PREFILL_CACHE = f"2, b, {_KV_HEADS}, {_PLACES}, {_HEAD}"
_DECODE_CACHE = f"2, b, {_KV_HEADS}, l, {_HEAD}"

MODELS: Models = {
    "BERT": Model(bert, _bert_inputs, ("b, l", "b")),
    "GPT": Model(gpt, _tokens, ("b, l",)),
    "GPT, one step": Model(gpt_step, _step_inputs, ("b", "", *[f"b, {_HEADS}, l, {_HEAD}"] * 2)),
    "Llama, prefill": Model(
        llama_prefill,
        _prefill_inputs,
        ("b, l", *[_PREFILL_CACHE] * 2),
        constraints=(f"l <= {_PLACES}",),
    ),
    "Llama, one step": Model(llama_decode, _decode_inputs, ("b", "", *[_DECODE_CACHE] * 2)),
    "encoder and decoder": Model(translator, _tokens, ("b, l",)),
}
