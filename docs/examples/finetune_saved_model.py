"""A TensorFlow SavedModel, fine-tuned with a loss that is written in JAX.

First its features are frozen, and JAX alone trains a head on them: jit, grad, no TensorFlow in the
loop. Then the SavedModel's own variables train too: jax2tf.convert makes TensorFlow of the whole
loss, and a tf.GradientTape gives the gradients of both.

    python docs/examples/finetune_saved_model.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf

WIDTH = 16


class Backbone(tf.Module):
    """The model that somebody gave us, in TensorFlow: features [b, WIDTH] of inputs [b, 4]."""

    def __init__(self):
        super().__init__()
        normal = tf.random.Generator.from_seed(0).normal
        self.w = tf.Variable(normal([4, WIDTH]), name="w")
        self.b = tf.Variable(tf.zeros(WIDTH), name="b")

    @tf.function(input_signature=[tf.TensorSpec([None, 4])], autograph=False)
    def features(self, x):
        return tf.nn.relu(x @ self.w + self.b)


def data():
    """Inputs [64, 4] and targets [64]."""
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    return x, np.sin(2 * x[:, 0]) * x[:, 1]


def loss(head, features, target):
    """The mean squared error of a linear head."""
    return jnp.mean((features @ head["w"] + head["b"] - target) ** 2)


def train_head(features, target, steps):
    """Trains a head in JAX on features that stay as they are."""
    head = {"w": jnp.zeros(WIDTH), "b": jnp.zeros(())}

    @jax.jit
    def step(head):
        value, gradient = jax.value_and_grad(loss)(head, features, target)
        return jax.tree.map(lambda p, g: p - 0.02 * g, head, gradient), value

    for _ in range(steps):
        head, value = step(head)
    return head, float(value)


def train_all(restored, head, x, target, steps):
    """Trains the head and the SavedModel's variables on the same loss."""
    backbone = jax2tf.call_tf(restored.features)
    whole = tf.function(
        jax2tf.convert(lambda head, x, target: loss(head, backbone(x), target)), autograph=False
    )
    head = tf.nest.map_structure(tf.Variable, head)
    variables = [*tf.nest.flatten(head), restored.w, restored.b]
    for _ in range(steps):
        with tf.GradientTape() as tape:
            value = whole(head, x, target)
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(0.02 * gradient)
    return float(value)


def main(folder=None):
    """Makes a SavedModel, trains on it in both ways; gives the losses."""
    folder = folder or tempfile.mkdtemp()
    tf.saved_model.save(Backbone(), folder)
    restored = tf.saved_model.load(folder)

    x, target = data()
    features = jax.jit(jax2tf.call_tf(restored.features))(x)
    head, frozen = train_head(features, target, 200)
    print(f"{folder}: loss {np.mean(target**2):.3f} at first, {frozen:.3f} with a trained head")

    tuned = train_all(restored, head, x, target, 200)
    print(f"loss {tuned:.3f} with a trained backbone")
    return float(np.mean(target**2)), frozen, tuned


if __name__ == "__main__":
    main(*sys.argv[1:])
