"""tensorflow-hub reads a SavedModel of jax2tf as a layer of Keras 2, as the guide shows; Keras 3
refuses that layer, as it says too.
"""

from __future__ import annotations

import re
import textwrap

import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub

import jax2tf
from tests.test_documentation import ROOT

PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}
X = np.linspace(-2, 2, 20, dtype=np.float32).reshape(5, 4)


def apply(params, x):
    return jnp.tanh(x @ params["w"]) + params["b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A SavedModel that can be called."""
    path = str(tmp_path_factory.mktemp("hub") / "model")
    module = jax2tf.Module(apply, PARAMS, polymorphic_shapes="b, _")
    rows = [tf.TensorSpec([None, 4], name="x")]
    module.__call__ = tf.function(module, input_signature=rows, autograph=False)
    tf.saved_model.save(module, path)
    return path


def test_a_layer_that_trains_on(folder):
    """The lines of the guide."""
    page = (ROOT / "docs/guides/saved_model.md").read_text()
    lines = re.search(
        r"^    import tensorflow_hub as hub.*?\n\n(?! )", page, re.DOTALL | re.MULTILINE
    )
    names = {"callable_folder": folder, "x": X, "target": X}
    exec(textwrap.dedent(lines.group()), names)
    losses = names["old"].history.history["loss"]
    assert losses[-1] < losses[0]
    assert len(names["layer"].trainable_weights) == 2
    assert all(np.any(w.numpy() != PARAMS[w.name[0]]) for w in names["layer"].trainable_weights)


def test_the_numbers(folder):
    np.testing.assert_allclose(hub.KerasLayer(folder)(X), apply(PARAMS, X), rtol=1e-5)
    np.testing.assert_allclose(hub.load(folder)(X), apply(PARAMS, X), rtol=1e-5)


def test_keras_3_refuses_the_layer(folder):
    with pytest.raises(ValueError, match=r"Only instances of `keras.Layer` can be added"):
        keras.Sequential([keras.Input([4]), hub.KerasLayer(folder)])


class Around(keras.layers.Layer):
    """A layer of Keras 3 that has a KerasLayer as an attribute."""

    def __init__(self, folder):
        super().__init__()
        self.inner = hub.KerasLayer(folder, trainable=True)

    def call(self, x):
        return self.inner(x)


def test_keras_3_does_not_train_it_as_an_attribute(folder):
    model = keras.Sequential([keras.Input([4]), Around(folder), keras.layers.Dense(1)])
    assert [tuple(weight.shape) for weight in model.trainable_weights] == [(3, 1), (1,)]


def test_a_signature_of_an_export_runs_and_cannot_train(tmp_path):
    path = jax2tf.export(apply, PARAMS, "b, 4", tmp_path / "model", progress=False).path
    with pytest.raises(ValueError, match="Signature name has to be specified"):
        hub.KerasLayer(str(path))
    named = {"signature": "serving_default", "output_key": "output"}
    np.testing.assert_allclose(hub.KerasLayer(str(path), **named)(X), apply(PARAMS, X), rtol=1e-5)
    with pytest.raises(ValueError, match="trainable = True is unsupported"):
        hub.KerasLayer(str(path), trainable=True, **named)(X)
