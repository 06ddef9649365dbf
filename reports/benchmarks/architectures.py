"""Six architectures, each in JAX and in Keras, with the same weights: for the benchmark of engines.

The two of a pair are written as users of each write them. Both draw their weights in the same
order from the same random numbers, so that they compute the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax import lax
from keras import layers

LAYOUT = ("NHWC", "HWIO", "NHWC")
_EPSILON = 1e-3
_WIDTH, _HEADS, _VOCABULARY, _LENGTH, _LAYERS = 128, 4, 1000, 64, 2
_HEAD = _WIDTH // _HEADS
_UNITS, _FEATURES = 128, 64


class Weights:
    """Random weights of the size with which a product keeps that of its operand."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def __call__(self, *shape: int) -> np.ndarray:
        scale = 1 / math.sqrt(math.prod(shape[:-1]))
        return (scale * self._rng.normal(size=shape)).astype(np.float32)

    def scale(self, size: int) -> np.ndarray:
        """Numbers near 1."""
        return 1 + self(size) / 4


@dataclasses.dataclass(frozen=True)
class Pair:
    """One architecture in both.

    Attributes:
      in_jax: a function of the inputs.
      in_keras: makes the Keras model of the same inputs.
      specs: shape and dtype of each input, without the batch, which is open.
      high: integers among the inputs are below it.
      refused: the engines that do not take Keras's model, with words of their message.
    """

    in_jax: Callable[..., Any]
    in_keras: Callable[[], keras.Model]
    specs: Sequence[tuple[tuple[int, ...], str]]
    high: int = _VOCABULARY
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def inputs(self, batch: int) -> list[np.ndarray]:
        """Random inputs."""
        rng = np.random.default_rng(1)
        return [
            rng.normal(size=(batch, *shape)).astype(dtype)
            if dtype == "float32"
            else rng.integers(0, self.high, (batch, *shape)).astype(dtype)
            for shape, dtype in self.specs
        ]


# --- images ---------------------------------------------------------------------------------------


def _conv(
    w: Weights, x: jax.Array, size: int, channels: int, stride: int = 1, groups: int = 1
) -> jax.Array:
    kernel = jnp.asarray(w(size, size, x.shape[-1] // groups, channels))
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT, feature_group_count=groups
    )


def _batch_norm(w: Weights, x: jax.Array) -> jax.Array:
    size = x.shape[-1]
    scale, offset, mean, variance = w.scale(size), w(size), w(size), w.scale(size)
    return (x - mean) * lax.rsqrt(variance + _EPSILON) * scale + offset


def _dense(w: Weights, x: jax.Array, width: int) -> jax.Array:
    return x @ w(x.shape[-1], width) + w(width)


def _max_pool(x: jax.Array, size: int, padding: str) -> jax.Array:
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, (1, 2, 2, 1), padding)


def _given(weights: np.ndarray) -> Any:
    return lambda shape, dtype=None: weights.reshape(shape)


def _keras_conv(w: Weights, x: Any, size: int, channels: int, stride: int = 1) -> Any:
    kernel = _given(w(size, size, x.shape[-1], channels))
    return layers.Conv2D(channels, size, stride, "same", use_bias=False, kernel_initializer=kernel)(
        x
    )


def _keras_depthwise(w: Weights, x: Any, size: int, stride: int) -> Any:
    kernel = _given(w(size, size, 1, x.shape[-1]))
    return layers.DepthwiseConv2D(
        size, stride, "same", use_bias=False, depthwise_initializer=kernel
    )(x)


def _keras_batch_norm(w: Weights, x: Any) -> Any:
    size = x.shape[-1]
    given = [_given(a) for a in (w.scale(size), w(size), w(size), w.scale(size))]
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    initializers = {f"{n}_initializer": g for n, g in zip(names, given, strict=True)}
    return layers.BatchNormalization(epsilon=_EPSILON, **initializers)(x)


def _keras_dense(w: Weights, x: Any, width: int, activation: str | None = None) -> Any:
    kernel, bias = _given(w(x.shape[-1], width)), _given(w(width))
    return layers.Dense(width, activation, kernel_initializer=kernel, bias_initializer=bias)(x)


_MOBILE_BLOCKS = ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1))


def mobilenet(images: jax.Array) -> jax.Array:
    """MobileNetV2: inverted residuals."""
    w = Weights()
    x = jax.nn.relu6(_batch_norm(w, _conv(w, images, 3, 16, 2)))
    for channels, stride in _MOBILE_BLOCKS:
        inner = 6 * x.shape[-1]
        y = jax.nn.relu6(_batch_norm(w, _conv(w, x, 1, inner)))
        y = jax.nn.relu6(_batch_norm(w, _conv(w, y, 3, inner, stride, groups=inner)))
        y = _batch_norm(w, _conv(w, y, 1, channels))
        x = x + y if x.shape == y.shape else y
    x = jax.nn.relu6(_batch_norm(w, _conv(w, x, 1, 256)))
    return jax.nn.softmax(_dense(w, x.mean((1, 2)), 100))


def keras_mobilenet() -> keras.Model:
    w = Weights()
    images = keras.Input((96, 96, 3), name="x0")
    x = layers.ReLU(6.0)(_keras_batch_norm(w, _keras_conv(w, images, 3, 16, 2)))
    for channels, stride in _MOBILE_BLOCKS:
        inner = 6 * x.shape[-1]
        y = layers.ReLU(6.0)(_keras_batch_norm(w, _keras_conv(w, x, 1, inner)))
        y = layers.ReLU(6.0)(_keras_batch_norm(w, _keras_depthwise(w, y, 3, stride)))
        y = _keras_batch_norm(w, _keras_conv(w, y, 1, channels))
        x = layers.Add()([x, y]) if x.shape == y.shape else y
    x = layers.ReLU(6.0)(_keras_batch_norm(w, _keras_conv(w, x, 1, 256)))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(images, _keras_dense(w, x, 100, "softmax"))


_RES_BLOCKS = ((32, 1), (32, 1), (64, 2), (64, 1))


def resnet(images: jax.Array) -> jax.Array:
    """Residual blocks; the third has a projection."""
    w = Weights()
    x = jax.nn.relu(_batch_norm(w, _conv(w, images, 7, 32, 2)))
    x = _max_pool(x, 3, "SAME")
    for channels, stride in _RES_BLOCKS:
        y = jax.nn.relu(_batch_norm(w, _conv(w, x, 3, channels, stride)))
        y = _batch_norm(w, _conv(w, y, 3, channels))
        if stride != 1:
            x = _batch_norm(w, _conv(w, x, 1, channels, stride))
        x = jax.nn.relu(x + y)
    return _dense(w, jnp.mean(x, (1, 2)), 100)


def keras_resnet() -> keras.Model:
    w = Weights()
    images = keras.Input((64, 64, 3), name="x0")
    x = layers.ReLU()(_keras_batch_norm(w, _keras_conv(w, images, 7, 32, 2)))
    x = layers.MaxPooling2D(3, 2, "same")(x)
    for channels, stride in _RES_BLOCKS:
        y = layers.ReLU()(_keras_batch_norm(w, _keras_conv(w, x, 3, channels, stride)))
        y = _keras_batch_norm(w, _keras_conv(w, y, 3, channels))
        if stride != 1:
            x = _keras_batch_norm(w, _keras_conv(w, x, 1, channels, stride))
        x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(images, _keras_dense(w, layers.GlobalAveragePooling2D()(x), 100))


def unet(images: jax.Array) -> jax.Array:
    """Down, and up again by transposed convolutions and a resize, with skips."""
    w = Weights()
    first = jax.nn.relu(_conv(w, images, 3, 16))
    second = jax.nn.relu(_conv(w, _max_pool(first, 2, "VALID"), 3, 32))
    bottom = jax.nn.relu(_conv(w, _max_pool(second, 2, "VALID"), 3, 64))
    kernel = jnp.asarray(w(2, 2, 64, 32))
    up = lax.conv_transpose(bottom, kernel, (2, 2), "SAME", dimension_numbers=LAYOUT)
    x = jax.nn.relu(_conv(w, jnp.concatenate([up, second], -1), 3, 32))
    batch, height, width, channels = x.shape
    up = jax.image.resize(x, (batch, 2 * height, 2 * width, channels), "bilinear")
    x = jax.nn.relu(_conv(w, jnp.concatenate([up, first], -1), 3, 16))
    return jax.nn.sigmoid(_conv(w, x, 1, 1))


def keras_unet() -> keras.Model:
    w = Weights()
    images = keras.Input((64, 64, 3), name="x0")
    first = layers.ReLU()(_keras_conv(w, images, 3, 16))
    second = layers.ReLU()(_keras_conv(w, layers.MaxPooling2D(2)(first), 3, 32))
    bottom = layers.ReLU()(_keras_conv(w, layers.MaxPooling2D(2)(second), 3, 64))
    # Keras transposes a convolution, and so turns the kernel around.
    kernel = _given(w(2, 2, 64, 32)[::-1, ::-1].swapaxes(2, 3))
    up = layers.Conv2DTranspose(32, 2, 2, "same", use_bias=False, kernel_initializer=kernel)(bottom)
    x = layers.ReLU()(_keras_conv(w, layers.Concatenate()([up, second]), 3, 32))
    up = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.ReLU()(_keras_conv(w, layers.Concatenate()([up, first]), 3, 16))
    return keras.Model(images, keras.activations.sigmoid(_keras_conv(w, x, 1, 1)))


# --- language -------------------------------------------------------------------------------------


def _layer_norm(w: Weights, x: jax.Array) -> jax.Array:
    scale, offset = w.scale(_WIDTH), w(_WIDTH)
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + _EPSILON) * scale + offset


def _embedded(w: Weights, tokens: jax.Array) -> jax.Array:
    words, places = jnp.asarray(w(_VOCABULARY, _WIDTH)), jnp.asarray(w(_LENGTH, _WIDTH))
    return words[tokens] + places[jnp.arange(tokens.shape[1])]


def _attention(w: Weights, x: jax.Array, mask: jax.Array) -> jax.Array:
    q, k, v = (
        _dense(w, x, _WIDTH).reshape(*x.shape[:2], _HEADS, _HEAD).swapaxes(1, 2) for _ in range(3)
    )
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * _HEAD**-0.5
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    mixed = jnp.einsum("bhqk,bhkd->bhqd", shares, v).swapaxes(1, 2).reshape(x.shape)
    return _dense(w, mixed, _WIDTH)


def bert(tokens: jax.Array, kept: jax.Array) -> jax.Array:
    """An encoder with norms behind the sums; `kept` is 0 where there is no token."""
    w = Weights()
    x = _layer_norm(w, _embedded(w, tokens))
    mask = (kept > 0)[:, None, None]
    for _ in range(_LAYERS):
        x = _layer_norm(w, x + _attention(w, x, mask))
        hidden = jax.nn.gelu(_dense(w, x, 4 * _WIDTH), approximate=False)
        x = _layer_norm(w, x + _dense(w, hidden, _WIDTH))
    return jnp.tanh(_dense(w, x[:, 0], _WIDTH))


def gpt(tokens: jax.Array) -> jax.Array:
    """A decoder with norms before its layers, and the logits of each next token."""
    w = Weights()
    x = _embedded(w, tokens)
    places = jnp.arange(tokens.shape[1])
    mask = places[:, None] >= places
    for _ in range(_LAYERS):
        x = x + _attention(w, _layer_norm(w, x), mask)
        hidden = jax.nn.gelu(_dense(w, _layer_norm(w, x), 4 * _WIDTH), approximate=True)
        x = x + _dense(w, hidden, _WIDTH)
    return _dense(w, _layer_norm(w, x), _VOCABULARY)


_PLACES = 4 * _LENGTH


def gpt_step(token: jax.Array, place: jax.Array, *cache: jax.Array) -> list[jax.Array]:
    """One token more: logits `[1, vocabulary]`, and the cache with its keys and values.

    Args:
      token: int32, of shape `[1]`.
      place: the int32 at which the token stands.
      cache: the keys and the values of each layer, float32 `[1, heads, places, size]`.
    """
    w = Weights()
    words, places = jnp.asarray(w(_VOCABULARY, _WIDTH)), jnp.asarray(w(_PLACES, _WIDTH))
    x = words[token] + places[place]
    mask = jnp.arange(_PLACES) <= place
    written = []
    for layer in range(_LAYERS):
        y = _layer_norm(w, x)
        q, *new = (_dense(w, y, _WIDTH).reshape(1, _HEADS, 1, _HEAD) for _ in range(3))
        keys, values = (
            lax.dynamic_update_slice_in_dim(old, one, place, axis=2)
            for old, one in zip(cache[2 * layer :][:2], new, strict=True)
        )
        written += [keys, values]
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, keys) * _HEAD**-0.5
        shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        mixed = jnp.einsum("bhqk,bhkd->bhqd", shares, values).reshape(1, _WIDTH)
        x = x + _dense(w, mixed, _WIDTH)
        hidden = jax.nn.gelu(_dense(w, _layer_norm(w, x), 4 * _WIDTH), approximate=True)
        x = x + _dense(w, hidden, _WIDTH)
    return [_dense(w, _layer_norm(w, x), _VOCABULARY), *written]


def gpt_step_inputs() -> list[np.ndarray]:
    """A token, its place, and a full cache."""
    rng = np.random.default_rng(1)
    shape = (1, _HEADS, _PLACES, _HEAD)
    cache = [rng.normal(size=shape).astype(np.float32) for _ in range(2 * _LAYERS)]
    return [np.array([7], np.int32), np.array(_PLACES // 2, np.int32), *cache]


def _keras_layer_norm(w: Weights, x: Any) -> Any:
    scale, offset = _given(w.scale(_WIDTH)), _given(w(_WIDTH))
    return layers.LayerNormalization(
        epsilon=_EPSILON, gamma_initializer=scale, beta_initializer=offset
    )(x)


class _Positions(layers.Layer):
    """Adds a learned vector for each place."""

    def __init__(self, places: np.ndarray) -> None:
        super().__init__(name="positions")
        self.places = self.add_weight(shape=places.shape, initializer=_given(places))

    def call(self, x: Any) -> Any:
        return x + self.places


def _keras_embedded(w: Weights, tokens: Any) -> Any:
    words, places = w(_VOCABULARY, _WIDTH), w(_LENGTH, _WIDTH)
    return _Positions(places)(layers.Embedding(_VOCABULARY, _WIDTH, _given(words))(tokens))


def _keras_attention(w: Weights, x: Any, **options: Any) -> Any:
    attention = layers.MultiHeadAttention(_HEADS, _HEAD)
    # Of query, key, value and output.
    given = [array for _ in range(4) for array in (w(_WIDTH, _WIDTH), w(_WIDTH))]
    attention.build(x.shape, x.shape)
    shapes = [variable.shape for variable in attention.get_weights()]
    attention.set_weights([a.reshape(s) for a, s in zip(given, shapes, strict=True)])
    return attention(x, x, **options)


def _keras_feed_forward(w: Weights, x: Any, approximate: bool) -> Any:
    hidden = keras.activations.gelu(_keras_dense(w, x, 4 * _WIDTH), approximate=approximate)
    return _keras_dense(w, hidden, _WIDTH)


def keras_bert() -> keras.Model:
    w = Weights()
    tokens = keras.Input((_LENGTH,), dtype="int32", name="x0")
    kept = keras.Input((_LENGTH,), dtype="int32", name="x1")
    x = _keras_layer_norm(w, _keras_embedded(w, tokens))
    mask = (kept > 0)[:, None]
    for _ in range(_LAYERS):
        x = _keras_layer_norm(w, x + _keras_attention(w, x, attention_mask=mask))
        x = _keras_layer_norm(w, x + _keras_feed_forward(w, x, approximate=False))
    return keras.Model([tokens, kept], _keras_dense(w, x[:, 0], _WIDTH, "tanh"))


def keras_gpt() -> keras.Model:
    w = Weights()
    tokens = keras.Input((_LENGTH,), dtype="int32", name="x0")
    x = _keras_embedded(w, tokens)
    for _ in range(_LAYERS):
        x = x + _keras_attention(w, _keras_layer_norm(w, x), use_causal_mask=True)
        x = x + _keras_feed_forward(w, _keras_layer_norm(w, x), approximate=True)
    return keras.Model(tokens, _keras_dense(w, _keras_layer_norm(w, x), _VOCABULARY))


# --- sequences ------------------------------------------------------------------------------------


def lstm(sequences: jax.Array) -> jax.Array:
    """The last state of an LSTM, classified."""
    w = Weights()
    of_input, of_state = w(_FEATURES, 4 * _UNITS), w(_UNITS, 4 * _UNITS)
    bias = w(4 * _UNITS)

    def step(state: tuple[jax.Array, jax.Array], x: jax.Array) -> Any:
        hidden, cell = state
        i, f, g, o = jnp.split(x @ of_input + hidden @ of_state + bias, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell), None

    zeros = jnp.zeros((sequences.shape[0], _UNITS), jnp.float32)
    (hidden, _), _ = lax.scan(step, (zeros, zeros), sequences.swapaxes(0, 1))
    return jax.nn.softmax(_dense(w, hidden, 10))


def keras_lstm() -> keras.Model:
    w = Weights()
    sequences = keras.Input((_LENGTH, _FEATURES), name="x0")
    given = [_given(w(*s)) for s in ((_FEATURES, 4 * _UNITS), (_UNITS, 4 * _UNITS), (4 * _UNITS,))]
    names = ("kernel", "recurrent", "bias")
    initializers = {f"{n}_initializer": g for n, g in zip(names, given, strict=True)}
    hidden = layers.LSTM(_UNITS, unit_forget_bias=False, **initializers)(sequences)
    return keras.Model(sequences, _keras_dense(w, hidden, 10, "softmax"))


_TOKENS = ((_LENGTH,), "int32")

PAIRS = {
    "MobileNet": Pair(mobilenet, keras_mobilenet, [((96, 96, 3), "float32")]),
    "ResNet": Pair(resnet, keras_resnet, [((64, 64, 3), "float32")]),
    "UNet": Pair(unet, keras_unet, [((64, 64, 3), "float32")]),
    # The writer of ONNX knows the ops that JAX's functions become, and Keras's gelu has another.
    "BERT": Pair(bert, keras_bert, [_TOKENS, _TOKENS], refused={"onnx": "Erfc"}),
    "GPT": Pair(gpt, keras_gpt, [_TOKENS]),
    # Keras's loop has a list of arrays of unknown shape.
    "LSTM": Pair(
        lstm,
        keras_lstm,
        [((_LENGTH, _FEATURES), "float32")],
        refused={"litert": "TensorListReserve", "onnx": "a list of tensors"},
    ),
}
