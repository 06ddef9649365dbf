"""A small model and its parameters, and what tests of `jax2tf.export` read of what it writes."""

from __future__ import annotations

import functools
import os
import warnings

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf
from jax2tf._src.export import packages

RNG = np.random.default_rng(0)
PARAMS = {
    "w1": RNG.normal(size=(4, 8)).astype(np.float32),
    "w2": jnp.asarray(RNG.normal(size=(8, 3)).astype(np.float32)),
}
X = RNG.normal(size=(5, 4)).astype(np.float32)

# A file of each format whose library is installed. tests/impl runs without engines in CI, and
# tests/consumers with all of them.
_PACKAGES = {
    "savedmodel": "tensorflow",
    "litert": "tensorflow",
    "onnx": "onnx_ir",
    "openvino": "openvino",
}
_FILES = {"savedmodel": "m", "litert": "m.tflite", "onnx": "m.onnx", "openvino": "m.xml"}
FILES = {name: file for name, file in _FILES.items() if packages.is_installed(_PACKAGES[name])}

export = functools.partial(jax2tf.export, progress=False)


def mlp(params, x):
    return {"y": jnp.tanh(x @ params["w1"]) @ params["w2"]}


def interpreter(path):
    with warnings.catch_warnings():
        # It says that ai-edge-litert takes its place.
        warnings.simplefilter("ignore", UserWarning)
        return tf.lite.Interpreter(str(path))


def left(folder):
    """What stands in a folder, hidden files too."""
    return sorted(os.listdir(folder))
