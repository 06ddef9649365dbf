"""Libraries around TensorFlow: Keras and LiteRT."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

from jax2tf._src.util.lazy_imports import tf


def keras_layer_under_way() -> tf.keras.layers.Layer | None:
    """The outermost Keras layer whose call is running, or None.

    Only a private module of Keras knows it; the module exists if Keras was imported.
    """
    state = sys.modules.get("keras.src.backend.common.global_state")
    context = state and state.get_global_attribute("current_call_ctx")
    return context.entry_layer if context else None


def litert_schema() -> ModuleType:
    """The classes of the flatbuffer of a LiteRT file.

    They are private in TensorFlow. ai-edge-litert has them publicly, but may not be installed.
    """
    if importlib.util.find_spec("ai_edge_litert") is not None:
        return importlib.import_module("ai_edge_litert.schema_py_generated")
    return importlib.import_module("tensorflow.lite.python.schema_py_generated")
