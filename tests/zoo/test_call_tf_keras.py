"""Models of Keras, saved and restored, inside JAX: called, differentiated, batched, trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from jax2tf import call_tf

layers = tf.keras.layers
_RNG = np.random.default_rng(0)
TARGETS = _RNG.normal(size=(2, 3)).astype(np.float32)
RATE = 0.01


def _resnet() -> tf.keras.Model:
    images = tf.keras.Input([16, 16, 3])
    x = layers.Conv2D(8, 3, padding="same")(images)
    for width, stride in ((8, 1), (16, 2)):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        shortcut = layers.Conv2D(width, 1, stride)(y)
        y = layers.Conv2D(width, 3, stride, padding="same", use_bias=False)(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        x = layers.Add()([shortcut, layers.Conv2D(width, 3, padding="same")(y)])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return tf.keras.Model(images, layers.Dense(3)(x))


def _transformer() -> tf.keras.Model:
    vectors = tf.keras.Input([6, 8])
    x = layers.Dense(16)(vectors)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 4)(y, y, use_causal_mask=True)])
        y = layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(16)(y)])
    return tf.keras.Model(vectors, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


MODELS = {"resnet": (_resnet, (2, 16, 16, 3)), "transformer": (_transformer, (2, 6, 8))}


@pytest.fixture(params=MODELS, scope="module")
def model(request, tmp_path_factory):
    """A way to restore the model, each time with variables of its own, and what it is fed."""
    make, shape = MODELS[request.param]
    tf.keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp(request.param)
    make().export(folder, verbose=False)
    inputs = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    return (lambda: tf.saved_model.load(folder)), inputs


def test_jit(model):
    restore, inputs = model
    restored = restore()
    actual = jax.jit(call_tf(restored.serve))(inputs)
    assert_allclose(actual, restored.serve(inputs), rtol=1e-5, atol=1e-6)


def test_grad(model):
    restore, inputs = model
    restored = restore()
    x = tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_mean((restored.serve(x) - TARGETS) ** 2)
    in_jax = jax.grad(lambda x: jnp.mean((call_tf(restored.serve)(x) - TARGETS) ** 2))
    assert_allclose(jax.jit(in_jax)(inputs), tape.gradient(loss, x), rtol=1e-4, atol=1e-6)


def test_vmap(model):
    restore, inputs = model
    restored = restore()
    batches = np.stack([inputs, -inputs, 2 * inputs])
    expected = [restored.serve(batch) for batch in batches]
    actual = jax.jit(jax.vmap(call_tf(restored.serve)))(batches)
    assert_allclose(actual, np.stack(expected), rtol=1e-4, atol=1e-5)


def _loss_and_gradients(restored: Any) -> Callable[..., Any]:
    def function(inputs: Any) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((restored.serve(inputs) - TARGETS) ** 2)
        return loss, tape.gradient(loss, list(restored.trainable_variables))

    return function


def _train_in_jax(restored: Any, inputs: np.ndarray) -> list[float]:
    optimizer = optax.sgd(RATE, momentum=0.9)
    loss_and_gradients = call_tf(_loss_and_gradients(restored))

    @jax.jit
    def step(weights: Any, state: Any) -> tuple[Any, Any, jax.Array]:
        loss, gradients = loss_and_gradients(inputs)
        changes, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, changes), state, loss

    weights = [jnp.asarray(v.numpy()) for v in restored.trainable_variables]
    state = optimizer.init(weights)
    losses = []
    for _ in range(10):
        weights, state, loss = step(weights, state)
        losses.append(float(loss))
        # The compiled step reads the variables anew each time.
        for variable, weight in zip(restored.trainable_variables, weights, strict=True):
            variable.assign(np.asarray(weight))
    return losses


def _train_in_tensorflow(restored: Any, inputs: np.ndarray) -> list[float]:
    loss_and_gradients = tf.function(_loss_and_gradients(restored))
    slots = [tf.Variable(tf.zeros_like(v)) for v in restored.trainable_variables]
    losses = []
    for _ in range(10):
        loss, gradients = loss_and_gradients(inputs)
        losses.append(float(loss))
        for v, slot, g in zip(restored.trainable_variables, slots, gradients, strict=True):
            slot.assign(0.9 * slot + g)
            v.assign_sub(RATE * slot)
    return losses


def test_ten_steps_of_optax_are_those_of_tensorflow(model):
    restore, inputs = model
    in_jax, in_tensorflow = restore(), restore()
    actual = _train_in_jax(in_jax, inputs)
    assert_allclose(actual, _train_in_tensorflow(in_tensorflow, inputs), rtol=1e-4)
    assert actual[-1] < actual[0] / 2
    pairs = zip(in_jax.trainable_variables, in_tensorflow.trainable_variables, strict=True)
    for one, other in pairs:
        assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-5)
