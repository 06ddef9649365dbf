"""Keras on its JAX backend exports what jax2tf converts."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "docs/examples"


def test_keras_on_jax(tmp_path):
    """In a process of its own: Keras reads its backend once."""
    code = "import json, sys, keras_on_jax; print(json.dumps(keras_on_jax.main(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    accuracy, in_tensorflow, in_litert = json.loads(done.stdout.splitlines()[-1])
    assert accuracy > 0.9
    assert in_tensorflow < 1e-5
    assert in_litert < 1e-5


MODELS = """
import sys
import jax2tf
import keras
import numpy as np
import tensorflow as tf

jax2tf.install()
layers = keras.layers
MODELS = {
    "dropout": ((4,), (2, 4), [layers.Dense(3), layers.Dropout(0.5), layers.GaussianNoise(0.1)]),
    "lstm": ((None, 4), (1, 5, 4), [layers.LSTM(3)]),
    "gru": ((None, 4), (1, 5, 4), [layers.GRU(3, return_sequences=True)]),
}
kind, of_batch, parts = MODELS[sys.argv[1]]
model = keras.Sequential([keras.Input(kind), *parts])
kwargs = {"native_serialization": False, "target": "litert"}
model.export(sys.argv[2], is_static=True, jax2tf_kwargs=kwargs, verbose=False)
content = tf.lite.TFLiteConverter.from_saved_model(sys.argv[2]).convert()
interpreter = tf.lite.Interpreter(model_content=content)
run = interpreter.get_signature_runner()
x = np.random.default_rng(0).normal(size=of_batch).astype(np.float32)
(result,) = run(**{next(iter(run.get_input_details())): x}).values()
np.testing.assert_allclose(result, np.asarray(model(x)), rtol=1e-5, atol=1e-6)
print("as Keras")
"""


@pytest.mark.parametrize("model", ["dropout", "lstm", "gru"])
def test_seeds_and_open_lengths_in_litert(model, tmp_path):
    """As the guide has it: Keras would assign its seeds, and LiteRT has no unsigned variables."""
    done = subprocess.run(
        [sys.executable, "-c", MODELS, model, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.stdout.endswith("as Keras\n"), done.stderr[-3000:]
