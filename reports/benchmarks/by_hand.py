"""Programs of the benchmark as one writes them in TensorFlow: what TensorFlow itself can reach.

Each takes the arguments of the program of its name and gives the same numbers, by the ops that
TensorFlow has for it.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf


def mlp(params: list[dict[str, Any]], images: tf.Tensor) -> tf.Tensor:
    *hidden, last = params
    for layer in hidden:
        images = tf.nn.relu(_dense(layer, images))
    return tf.nn.log_softmax(_dense(last, images))


def transformer(params: dict[str, Any], tokens: tf.Tensor, *, heads: int) -> tf.Tensor:
    x = tf.gather(params["embedding"], tokens) + params["positions"]
    for layer in params["layers"]:
        x += _causal_attention(layer["attention"], _layer_norm(layer["norm1"], x), heads=heads)
        hidden = tf.nn.gelu(_dense(layer["up"], _layer_norm(layer["norm2"], x)), approximate=True)
        x += _dense(layer["down"], hidden)
    return tf.matmul(_layer_norm(params["norm"], x), params["embedding"], transpose_b=True)


def lstm(params: dict[str, Any], sequences: tf.Tensor) -> tf.Tensor:
    batch, length, _ = sequences.shape
    steps = tf.TensorArray(tf.float32, length).unstack(tf.transpose(sequences, [1, 0, 2]))

    def step(k: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor) -> tuple[tf.Tensor, ...]:
        gates = _dense(params["input"], steps.read(k)) + tf.matmul(hidden, params["recurrent"])
        i, f, g, o = tf.split(gates, 4, axis=-1)
        cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
        return k + 1, tf.sigmoid(o) * tf.tanh(cell), cell

    begin = tf.zeros([batch, params["recurrent"].shape[0]])
    _, hidden, _ = tf.while_loop(
        lambda k, *_: k < length, step, (0, begin, begin), maximum_iterations=length
    )
    return _dense(params["head"], hidden)


def _dense(layer: dict[str, Any], x: tf.Tensor) -> tf.Tensor:
    return tf.nn.bias_add(tf.matmul(x, layer["kernel"]), layer["bias"])


def _layer_norm(norm: dict[str, Any], x: tf.Tensor) -> tf.Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, norm["offset"], norm["scale"], 1e-5)


def _causal_attention(params: dict[str, Any], x: tf.Tensor, *, heads: int) -> tf.Tensor:
    batch, length, width = x.shape

    def split(name: str) -> tf.Tensor:
        each = tf.reshape(_dense(params[name], x), [batch, length, heads, width // heads])
        return tf.transpose(each, [0, 2, 1, 3])

    q, k, v = map(split, ("query", "key", "value"))
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(width // heads)
    causal = tf.linalg.band_part(tf.ones([length, length], tf.bool), -1, 0)
    weights = tf.nn.softmax(tf.where(causal, scores, -math.inf))
    mixed = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
    return _dense(params["out"], tf.reshape(mixed, [batch, length, width]))
