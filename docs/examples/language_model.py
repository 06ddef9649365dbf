"""A language model of JAX in LiteRT: prefill and decode, two signatures that share the weights.

Prefill reads a prompt of any length and gives the cache; decode takes one token and the cache on.

    python docs/examples/language_model.py [FOLDER]
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf

VOCABULARY, WIDTH, HEADS, LAYERS, CACHE = 64, 32, 4, 2, 24


def init(key):
    """Random weights; the layers are stacked, for a scan over them."""
    keys = iter(jax.random.split(key, 6))

    def weights(*shape):
        return jax.random.normal(next(keys), shape) / np.sqrt(shape[-2])

    return {
        "embedding": weights(VOCABULARY, WIDTH),
        "positions": weights(CACHE, WIDTH),
        "qkv": weights(LAYERS, WIDTH, 3 * WIDTH),
        "out": weights(LAYERS, WIDTH, WIDTH),
        "up": weights(LAYERS, WIDTH, 4 * WIDTH),
        "down": weights(LAYERS, 4 * WIDTH, WIDTH),
    }


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def forward(params, tokens, position, keys, values):
    """Logits of the last token; the cache with the tokens' keys and values put in at a position.

    Args:
      params: of `init`.
      tokens: [s], int32.
      position: of the first token, a scalar.
      keys, values: the cache, [LAYERS, CACHE, WIDTH].
    """
    length = tokens.shape[0]
    places = position + jnp.arange(length)
    visible = jnp.arange(CACHE)[None, :] <= places[:, None]  # [s, CACHE]

    def layer(x, slices):
        weights, keys, values = slices
        q, k, v = jnp.split(norm(x) @ weights["qkv"], 3, axis=-1)
        keys = jax.lax.dynamic_update_slice(keys, k, (position, 0))
        values = jax.lax.dynamic_update_slice(values, v, (position, 0))
        q, k, v = (a.reshape(-1, HEADS, WIDTH // HEADS) for a in (q, keys, values))
        scores = jnp.einsum("shd,chd->hsc", q, k) / np.sqrt(WIDTH // HEADS)
        attention = jax.nn.softmax(jnp.where(visible, scores, -1e9), axis=-1)
        mixed = jnp.einsum("hsc,chd->shd", attention, v).reshape(-1, WIDTH)
        x = x + mixed @ weights["out"]
        x = x + jax.nn.gelu(norm(x) @ weights["up"]) @ weights["down"]
        return x, (keys, values)

    x = params["embedding"][tokens] + params["positions"][places]
    stacked = {name: params[name] for name in ("qkv", "out", "up", "down")}
    x, (keys, values) = jax.lax.scan(layer, x, (stacked, keys, values))
    return {"logits": norm(x)[-1] @ params["embedding"].T, "keys": keys, "values": values}


def prefill(params, tokens):
    """`forward` of a prompt of any length, into an empty cache."""
    empty = jnp.zeros((LAYERS, CACHE, WIDTH))
    return forward(params, tokens, 0, empty, empty)


def decode(params, token, position, keys, values):
    """`forward` of one token at a position."""
    return forward(params, token[None], position, keys, values)


def export(params, path):
    """Writes the .tflite file, which is run and held against JAX before it gets its name."""
    cache = f"{LAYERS}, {CACHE}, {WIDTH}"
    signatures = {
        "prefill": (prefill, "s:int32"),
        "decode": (decode, (":int32", ":int32", cache, cache)),
    }
    # Given and not drawn: tokens of the vocabulary, a position inside of the cache.
    rng = np.random.default_rng(0)
    tokens = rng.integers(VOCABULARY, size=5).astype(np.int32)
    state = [rng.normal(size=(LAYERS, CACHE, WIDTH)).astype(np.float32) for _ in range(2)]
    inputs = {"prefill": [tokens], "decode": [(np.int32(3), np.int32(7), *state)]}
    return jax2tf.export(
        signatures,
        params,
        None,
        path,
        verify=inputs,
        polymorphic_constraints=[f"s <= {CACHE}"],
    )


def generate(prefill, decode, prompt, count):
    """The tokens after a prompt, each the most likely one."""
    state, tokens = prefill(tokens=np.asarray(prompt, np.int32)), []
    for position in range(len(prompt), len(prompt) + count):
        tokens.append(int(np.argmax(state["logits"])))
        state = decode(
            token=np.int32(tokens[-1]),
            position=np.int32(position),
            keys=state["keys"],
            values=state["values"],
        )
    return tokens


def main(folder=None):
    """Exports, generates in LiteRT and in JAX; gives both texts and the difference seen."""
    path = pathlib.Path(folder or tempfile.mkdtemp(), "language_model.tflite")
    params = init(jax.random.key(0))
    result = export(params, path)
    print(result)

    interpreter = tf.lite.Interpreter(str(path))
    in_litert = [interpreter.get_signature_runner(name) for name in ("prefill", "decode")]
    in_jax = [jax.jit(lambda f=f, **inputs: f(params, **inputs)) for f in (prefill, decode)]
    prompt = [5, 17, 3, 42]
    texts = [generate(*functions, prompt, 12) for functions in (in_litert, in_jax)]
    print(f"LiteRT: {texts[0]}\nJAX:    {texts[1]}")
    return (*texts, result)


if __name__ == "__main__":
    main(*sys.argv[1:])
