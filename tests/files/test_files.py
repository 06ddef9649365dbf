"""The files of every release load, in these versions, and give the numbers that they gave.

`python -m tests.files` writes those of this release. TensorFlow.js has its test beside others of
its kind, in tests/consumers/test_kept_files.py.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
import jax2tf.keras
from jax2tf._src.export import packages
from tests import files

RELEASES = sorted(path.parent for path in files.FOLDER.glob("*/values.json"))


def test_this_release_has_files():
    assert files.FOLDER / jax2tf.__version__ in RELEASES


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def folder(request):
    return request.param


def held(folder, run, part="model"):
    values = files.values(folder)
    files.assert_gives(run, values["inputs"], values[part])


def test_saved_model(folder):
    """The numbers, and the gradient with respect to the variables."""
    restored = tf.saved_model.load(str(folder / "model"))
    held(folder, lambda inputs: restored.signatures["serving_default"](**tensors(inputs)))
    values = files.values(folder)
    with tf.GradientTape() as tape:
        results = restored.serving_default(**tensors(values["inputs"]))
        loss = tf.reduce_sum(results["probabilities"][:, 0])
    gradient = tape.gradient(loss, restored.parameters["w"])
    np.testing.assert_allclose(gradient, values["gradient"]["w"], rtol=1e-5, atol=1e-6)


def tensors(arrays):
    return {name: tf.constant(array) for name, array in arrays.items()}


def test_saved_model_of_stablehlo(folder):
    restored = tf.saved_model.load(str(folder / "native"))
    held(folder, lambda inputs: restored.signatures["serving_default"](**tensors(inputs)))


def test_stablehlo_read_back(folder):
    """By jax2tf.load, which refuses no age, from the SavedModel and from JAX's own file."""
    values = files.values(folder)
    exported = jax2tf.load(folder / "exported.bin")
    given = values["inputs"]
    files.assert_gives(lambda _: exported(given["x"], given["shift"]), given, values["model"])
    loaded = jax2tf.load(folder / "native")
    files.assert_gives(lambda inputs: loaded(**inputs), given, values["model"])


def test_litert(folder):
    kinds = [tf.lite.Interpreter]
    if packages.is_installed("ai_edge_litert"):
        kinds.append(importlib.import_module("ai_edge_litert.interpreter").Interpreter)
    for kind in kinds:
        interpreter = kind(str(folder / "model.tflite"))
        held(folder, lambda inputs, it=interpreter: it.get_signature_runner()(**inputs))


def test_onnx(folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    held(folder, lambda inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True)))


def test_openvino(folder):
    openvino = pytest.importorskip("openvino")
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.compile_model(str(folder / "model.xml"), "CPU", hint)

    def run(inputs):
        results = compiled(dict(inputs))
        return {port.get_any_name(): results[port] for port in compiled.outputs}

    held(folder, run)


def test_keras_layer(folder):
    assert jax2tf.keras.Layer  # the import registers the class
    model = tf.keras.models.load_model(
        folder / "layer.keras", custom_objects={"layer": files.layer}
    )
    held(folder, lambda inputs: {"output": model(inputs["x"])}, "layer")
