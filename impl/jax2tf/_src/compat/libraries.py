"""Of libraries around TensorFlow: Keras and LiteRT."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import tensorflow as tf


def keras_layer_under_way() -> tf.keras.layers.Layer | None:
    """The outermost layer of Keras whose call is under way, or None.

    Keras keeps it for itself, in a module that is there where Keras was imported.
    """
    state = sys.modules.get("keras.src.backend.common.global_state")
    context = state and state.get_global_attribute("current_call_ctx")
    return context.entry_layer if context else None


def litert_schema() -> ModuleType:
    """The classes of the parts of a LiteRT file.

    TensorFlow has them for its own tools alone; the package ai-edge-litert, which has them as
    public ones, may not be there.
    """
    return importlib.import_module("tensorflow.lite.python.schema_py_generated")
