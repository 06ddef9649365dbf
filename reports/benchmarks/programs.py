"""Whole programs in plain JAX, for the benchmark and for the tests that convert them.

A `Program` is a function of pytrees of arrays and the arrays to call it with: parameters are
arguments, so a converted program takes them as tensors. Weights are random, small and made by
numpy from a fixed seed: two processes see the same numbers whatever JAX they run.

`programs(size)` gives them all; "small" ones are for tests, "full" ones for measurements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from reports.benchmarks import by_hand

Size = Literal["small", "full"]


@dataclass(frozen=True)
class Program:
    """A function and how to make its arguments (a tuple of pytrees of numpy arrays).

    The first dimension of the last argument is a batch, unless `has_batch` is false. JAX compiles
    some programs to calls of its own code (`has_custom_calls`): their StableHLO does not run in
    TensorFlow. `by_hand` is the same function as one writes it in TensorFlow. Programs of small ops
    have a table of their own.
    """

    name: str
    fun: Callable[..., Any]
    make_args: Callable[[], tuple[Any, ...]]
    has_batch: bool = True
    has_custom_calls: bool = False
    by_hand: Callable[..., Any] | None = None
    has_small_ops: bool = False


def programs(size: Size = "full") -> list[Program]:
    """Every program, at a size."""
    full = size == "full"
    resnet_args = partial(resnet18_args, width=64 if full else 8, batch=2, image=64 if full else 32)
    transformer_args = partial(
        decoder_args,
        layers=12,
        width=256 if full else 16,
        vocabulary=1000 if full else 50,
        batch=2,
        length=64 if full else 8,
    )
    heads = 8 if full else 2
    return [
        Program(
            "mlp",
            mlp,
            partial(mlp_args, width=512 if full else 16, batch=32),
            by_hand=by_hand.mlp,
        ),
        Program("resnet18", resnet18, resnet_args),
        *(
            Program(
                name,
                partial(transformer, heads=heads, inner_jit=inner_jit),
                transformer_args,
                by_hand=partial(by_hand.transformer, heads=heads),
            )
            for name, inner_jit in (("transformer", True), ("transformer, no inner jit", False))
        ),
        Program(
            "random-heavy",
            random_heavy,
            partial(random_args, size=4096 if full else 64),
            has_batch=False,
        ),
    ]


# --- MLP ------------------------------------------------------------------------------------


def mlp(params: list[dict[str, Any]], images: jax.Array) -> jax.Array:
    """Log-probabilities `[batch, 10]` of flattened images `[batch, 784]`."""
    *hidden, last = params
    for layer in hidden:
        images = jax.nn.relu(dense(layer, images))
    return jax.nn.log_softmax(dense(last, images))


def mlp_args(*, width: int, batch: int) -> tuple[Any, ...]:
    """Three dense layers of `width`, and a batch of images."""
    make = Maker(seed=0)
    sizes = [784, width, width, 10]
    layers = [make.dense(a, b) for a, b in itertools.pairwise(sizes)]
    return layers, make.normal(batch, 784)


def dense(layer: dict[str, Any], x: jax.Array) -> jax.Array:
    return x @ layer["kernel"] + layer["bias"]


# --- ResNet-18 ------------------------------------------------------------------------------

_STAGES = ((1, 1), (2, 2), (4, 2), (8, 2))  # width as a multiple of the stem's, first stride


def resnet18(params: dict[str, Any], images: jax.Array) -> jax.Array:
    """Logits `[batch, 10]` of images `[batch, height, width, 3]`, batch norm in inference form.

    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015 (table 1).
    """
    return resnet(params, images, _residual_block, [stride for _, stride in _STAGES])


def resnet(
    params: dict[str, Any],
    images: jax.Array,
    block: Callable[..., jax.Array],
    strides: Sequence[int],
) -> jax.Array:
    """Stem, stages of blocks and head; a stage begins with its stride."""
    x = jax.nn.relu(batch_norm(params["stem_norm"], conv(images, params["stem"], stride=2)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stride, blocks in zip(strides, params["stages"], strict=True):
        for i, weights in enumerate(blocks):
            x = block(weights, x, stride=stride if i == 0 else 1)
    return dense(params["head"], x.mean(axis=(1, 2)))


def _residual_block(block: dict[str, Any], x: jax.Array, *, stride: int) -> jax.Array:
    y = conv(x, block["conv1"], stride=stride)
    y = jax.nn.relu(batch_norm(block["norm1"], y))
    y = batch_norm(block["norm2"], conv(y, block["conv2"], stride=1))
    if "shortcut" in block:
        x = batch_norm(block["shortcut_norm"], conv(x, block["shortcut"], stride=stride))
    return jax.nn.relu(x + y)


def conv(x: jax.Array, kernel: jax.Array, *, stride: int) -> jax.Array:
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def batch_norm(norm: dict[str, Any], x: jax.Array) -> jax.Array:
    return (x - norm["mean"]) * lax.rsqrt(norm["var"] + 1e-5) * norm["scale"] + norm["offset"]


def resnet18_args(*, width: int, batch: int, image: int) -> tuple[Any, ...]:
    """Four stages of two blocks, `width` channels in the first; square images."""
    make = Maker(seed=1)
    params: dict[str, Any] = {
        "stem": make.conv(7, 3, width),
        "stem_norm": make.batch_norm(width),
        "stages": [],
    }
    channels = width
    for multiple, stride in _STAGES:
        blocks = []
        for i in range(2):
            out = width * multiple
            block = {
                "conv1": make.conv(3, channels, out),
                "norm1": make.batch_norm(out),
                "conv2": make.conv(3, out, out),
                "norm2": make.batch_norm(out),
            }
            if i == 0 and (stride != 1 or channels != out):
                block |= {"shortcut": make.conv(1, channels, out)}
                block |= {"shortcut_norm": make.batch_norm(out)}
            blocks.append(block)
            channels = out
        params["stages"].append(blocks)
    params["head"] = make.dense(channels, 10)
    return params, make.normal(batch, image, image, 3)


# --- Transformer ----------------------------------------------------------------------------


def transformer(
    params: dict[str, Any], tokens: jax.Array, *, heads: int, inner_jit: bool = True
) -> jax.Array:
    """Next-token logits `[batch, length, vocabulary]` of a decoder over `tokens` `[batch, length]`.

    With `inner_jit` the layer is one jitted function, called once a layer: JAX traces it once,
    and a converter can lower it once. Without, every layer's equations are written out.
    """
    layer = _jitted_layer if inner_jit else decoder_layer
    x = params["embedding"][tokens] + params["positions"]
    for layer_params in params["layers"]:
        x = layer(layer_params, x, heads=heads)
    return layer_norm(params["norm"], x) @ params["embedding"].T


def decoder_layer(params: dict[str, Any], x: jax.Array, *, heads: int) -> jax.Array:
    """One pre-norm decoder block over `x` `[batch, length, width]`: attention, then an MLP."""
    x = x + causal_attention(params["attention"], layer_norm(params["norm1"], x), heads=heads)
    hidden = jax.nn.gelu(dense(params["up"], layer_norm(params["norm2"], x)))
    return x + dense(params["down"], hidden)


_jitted_layer = jax.jit(decoder_layer, static_argnames="heads")


def causal_attention(params: dict[str, Any], x: jax.Array, *, heads: int) -> jax.Array:
    """Multi-head attention of `x` `[batch, length, width]` over itself and what came before."""
    batch, length, width = x.shape
    q, k, v = (
        dense(params[name], x).reshape(batch, length, heads, width // heads)
        for name in ("query", "key", "value")
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
    return dense(params["out"], mixed)


def layer_norm(norm: dict[str, Any], x: jax.Array) -> jax.Array:
    mean = x.mean(axis=-1, keepdims=True)
    var = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * norm["scale"] + norm["offset"]


def decoder_layer_params(make: Maker, width: int) -> dict[str, Any]:
    """The weights of one `decoder_layer`."""
    names = ("query", "key", "value", "out")
    return {
        "norm1": make.norm(width),
        "attention": {name: make.dense(width, width) for name in names},
        "norm2": make.norm(width),
        "up": make.dense(width, 4 * width),
        "down": make.dense(4 * width, width),
    }


def decoder_layer_args(*, width: int, batch: int, length: int) -> tuple[Any, ...]:
    """The arguments of one `decoder_layer`."""
    make = Maker(seed=2)
    return decoder_layer_params(make, width), make.normal(batch, length, width)


def decoder_args(
    *, layers: int, width: int, vocabulary: int, batch: int, length: int
) -> tuple[Any, ...]:
    """The parameters of a decoder-only transformer, and a batch of tokens."""
    make = Maker(seed=3)
    params = {
        "embedding": make.normal(vocabulary, width, scale=0.1),
        "positions": make.normal(length, width, scale=0.1),
        "layers": [decoder_layer_params(make, width) for _ in range(layers)],
        "norm": make.norm(width),
    }
    return params, make.integers(vocabulary, batch, length)


# --- Random numbers -------------------------------------------------------------------------


def random_heavy(key: jax.Array, x: jax.Array) -> jax.Array:
    """Draws from a dozen distributions, mixed into `x` `[size]`; `key` is raw key data.

    Every draw has a key of its own, so no two of them can share their bits.
    """
    keys = jax.random.split(jax.random.wrap_key_data(key), 16)
    draws = [
        jax.random.normal,
        jax.random.uniform,
        jax.random.gumbel,
        jax.random.laplace,
        jax.random.logistic,
        jax.random.exponential,
        jax.random.cauchy,
        jax.random.rademacher,
    ]
    for i, draw in enumerate(draws):
        x = jnp.tanh(x + draw(keys[i], x.shape).astype(x.dtype))
    x = x + jax.random.truncated_normal(keys[8], -2.0, 2.0, x.shape)
    x = jnp.where(jax.random.bernoulli(keys[9], 0.9, x.shape), x / 0.9, 0.0)  # dropout
    x = x * jax.random.randint(keys[10], x.shape, 1, 5)
    x = jax.random.permutation(keys[11], x)
    logits = jnp.stack([x, -x], axis=-1)
    x = x + jax.random.categorical(keys[12], logits)
    for step in range(3):
        noise = jax.random.normal(jax.random.fold_in(keys[13], step), x.shape)
        x = 0.9 * x + 0.1 * noise
    return x


def random_args(*, size: int) -> tuple[Any, ...]:
    """A raw threefry key and a vector."""
    return np.array([0, 42], np.uint32), Maker(seed=4).normal(size)


# --- Weights --------------------------------------------------------------------------------


class Maker:
    """Makes float32 weights, scaled so that activations stay near one."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * self._rng.standard_normal(shape)).astype(np.float32)

    def integers(self, bound: int, *shape: int) -> np.ndarray:
        return self._rng.integers(bound, size=shape, dtype=np.int32)

    def dense(self, fan_in: int, fan_out: int) -> dict[str, Any]:
        kernel = self.normal(fan_in, fan_out, scale=1 / math.sqrt(fan_in))
        return {"kernel": kernel, "bias": self.normal(fan_out, scale=0.1)}

    def conv(self, window: int, fan_in: int, fan_out: int) -> np.ndarray:
        scale = math.sqrt(2 / (window * window * fan_in))
        return self.normal(window, window, fan_in, fan_out, scale=scale)

    def norm(self, width: int) -> dict[str, Any]:
        return {"scale": 1 + self.normal(width, scale=0.1), "offset": self.normal(width, scale=0.1)}

    def batch_norm(self, width: int) -> dict[str, Any]:
        var = 1 + np.abs(self.normal(width, scale=0.1))
        return self.norm(width) | {"mean": self.normal(width, scale=0.1), "var": var}
