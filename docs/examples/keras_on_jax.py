"""A model of Keras on its JAX backend: trained by JAX, exported as a SavedModel and for LiteRT.

    python docs/examples/keras_on_jax.py [FOLDER]

Keras exports with jax.experimental.jax2tf; `jax2tf.install()` puts this one in its place.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

os.environ["KERAS_BACKEND"] = "jax"  # before anything imports Keras

import keras
import numpy as np
import tensorflow as tf

import jax2tf


def classifier():
    """Strided convolutions over images [b, 16, 16, 1]."""
    return keras.Sequential(
        [
            keras.Input([16, 16, 1]),
            keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )


def images(count, rng):
    """Images whose upper or lower half is bright, and which of them."""
    labels = rng.integers(2, size=count)
    x = rng.normal(size=(count, 16, 16, 1)).astype(np.float32) * 0.1
    for image, label in zip(x, labels, strict=True):
        image[8 * label : 8 * label + 8] += 1
    return x, labels


def main(folder=None):
    """Trains, exports and restores; gives the accuracy and the largest differences to Keras."""
    assert keras.backend.backend() == "jax"
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    model = classifier()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    model.fit(*images(128, rng), epochs=8, verbose=0)
    x, labels = images(5, rng)
    expected = model.predict(x, verbose=0)
    accuracy = float((expected.argmax(axis=1) == labels).mean())

    jax2tf.install()
    # Standard ops, which engines read too; by default Keras asks for one op of StableHLO.
    ops = {"native_serialization": False, "enable_xla": False}
    model.export(folder / "saved", verbose=False, jax2tf_kwargs=ops)
    restored = tf.saved_model.load(str(folder / "saved"))
    in_tensorflow = float(np.abs(restored.serve(x) - expected).max())

    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved"))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    run = interpreter.get_signature_runner()
    (name,) = run.get_input_details()
    (result,) = run(**{name: x}).values()
    in_litert = float(np.abs(result - expected).max())
    jax2tf.uninstall()
    print(f"accuracy {accuracy:.0%}; {folder / 'saved'}: largest difference to Keras")
    print(f"{in_tensorflow:.1e} in TensorFlow, {in_litert:.1e} in LiteRT")
    return accuracy, in_tensorflow, in_litert


if __name__ == "__main__":
    main(*sys.argv[1:])
