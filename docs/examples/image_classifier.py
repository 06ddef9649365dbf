"""An image classifier of JAX: saved for every batch size, restored, trained on in TensorFlow.

python docs/examples/image_classifier.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf

CLASSES = 4


def init(key):
    """Random weights of two convolutions and a linear layer."""
    keys = jax.random.split(key, 3)
    return {
        "conv1": 0.3 * jax.random.normal(keys[0], (3, 3, 1, 8)),
        "conv2": 0.1 * jax.random.normal(keys[1], (3, 3, 8, 16)),
        "head": {"w": 0.1 * jax.random.normal(keys[2], (16, CLASSES)), "b": jnp.zeros(CLASSES)},
    }


def classify(params, images):
    """Logits [b, CLASSES] of images [b, 16, 16, 1]."""
    x = images
    for kernel in (params["conv1"], params["conv2"]):
        x = jax.lax.conv_general_dilated(
            x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    # The brightest response of each channel in each half of the rows and of the columns.
    x = x.reshape(-1, 2, 2, 2, 2, 16).max(axis=(2, 4))
    weights = jnp.array([1.0, 2.0, 3.0, 4.0]).reshape(2, 2, 1)
    return (x * weights).sum((1, 2)) @ params["head"]["w"] + params["head"]["b"]


def batch(rng, size):
    """Images with one bright quarter, and which quarter it is."""
    labels = rng.integers(CLASSES, size=size)
    images = rng.normal(size=(size, 16, 16, 1)).astype(np.float32) * 0.1
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
    return images, labels


def save(params, folder):
    """Writes a SavedModel whose batch is open and whose parameters are variables."""
    module = jax2tf.Module(classify, params, polymorphic_shapes="b, ...")
    module.classify = tf.function(
        module,
        input_signature=[tf.TensorSpec([None, 16, 16, 1], tf.float32, name="images")],
        autograph=False,
    )
    tf.saved_model.save(module, folder, signatures={"serving_default": module.classify})


def train(model, steps, rng):
    """Trains a restored model in TensorFlow; gives the accuracy before and after."""
    optimizer = tf.keras.optimizers.Adam(0.01)
    variables = list(model.parameters.values())
    images, labels = batch(rng, 64)

    def accuracy():
        return float(np.mean(np.argmax(model.classify(images), axis=1) == labels))

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model.classify(images))
            loss = tf.reduce_mean(losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    before = accuracy()
    for _ in range(steps):
        step()
    return before, accuracy()


def main(folder=None):
    """Saves, restores, compares and trains; gives what it printed."""
    folder = folder or tempfile.mkdtemp()
    params = init(jax.random.key(0))
    save(params, folder)

    restored = tf.saved_model.load(folder)
    rng = np.random.default_rng(0)
    images, _ = batch(rng, 5)
    difference = float(np.abs(restored.classify(images) - jax.jit(classify)(params, images)).max())
    print(f"{folder}: largest difference to JAX {difference:.1e}")

    before, after = train(restored, 60, rng)
    print(f"accuracy {before:.0%} before training in TensorFlow, {after:.0%} after")
    return difference, before, after


if __name__ == "__main__":
    main(*sys.argv[1:])
