"""The ops of a LiteRT model for one call, as the guide of engines shows them."""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import tensorflow as tf

import jax2tf
from harnesses.engine.consumers import litert
from harnesses.engine.consumers.graph import graph_of

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/engines.md"


def layer_norm(x):
    mean, variance = (of(x, axis=-1, keepdims=True) for of in (jnp.mean, jnp.var))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6)


CALLS = {
    "`jax.nn.softmax`": jax.nn.softmax,
    "`jax.nn.gelu`": jax.nn.gelu,
    "`jax.nn.gelu(..., approximate=False)`": functools.partial(jax.nn.gelu, approximate=False),
    "`jax.nn.elu`": jax.nn.elu,
    "layer norm by `jnp.mean` and `jnp.var`": layer_norm,
    "`jnp.argmax`": functools.partial(jnp.argmax, axis=-1),
    "`jax.lax.top_k`": functools.partial(jax.lax.top_k, k=3),
}
TARGETS = [jax2tf.TARGETS["tensorflow"], jax2tf.TARGETS["litert"]]
TARGETS.append(dataclasses.replace(TARGETS[1], assume_finite=True))


def count(function, target) -> int:
    converted = jax2tf.convert(function, target=target, with_gradient=False)
    return litert.count_ops(graph_of(converted, [tf.TensorSpec([4, 8], tf.float32)]))


def test_the_guide_has_the_ops_of_each_function():
    rows = [
        f"| {name} | {' | '.join(str(count(function, target)) for target in TARGETS)} |"
        for name, function in CALLS.items()
    ]
    table = "\n".join(rows)
    assert table in GUIDE.read_text(), f"docs/guides/engines.md should have\n{table}"
