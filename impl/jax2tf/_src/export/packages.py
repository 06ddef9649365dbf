"""Imports optional packages when they are first needed, and says how to install them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

from jax2tf._src.api.errors import MissingPackageError
from jax2tf._src.util.typing import PyTree

_INSTALLED_BY = {
    "tensorflow": "pip install tensorflow, or tensorflow-cpu",
    "onnx": "the extra `onnx` (pip install 'jax2tf[onnx]')",
    "onnx_ir": "the extra `onnx` (pip install 'jax2tf[onnx]')",
    "onnxruntime": "the extra `onnx` (pip install 'jax2tf[onnx]')",
    "ai_edge_litert": "the extra `litert` (pip install 'jax2tf[litert]')",
    "litert_quantizer": "the extra `litert-int8` (pip install 'jax2tf[litert-int8]')",
    "flatbuffers": "the extra `litert` (pip install 'jax2tf[litert]')",
    "openvino": "the extra `openvino` (pip install 'jax2tf[openvino]')",
    "tensorflowjs": "pip install --no-deps tensorflowjs, whose dependencies pin a TensorFlow",
    "safetensors": "the extra `checkpoints` (pip install 'jax2tf[checkpoints]')",
    "orbax.checkpoint": "the extra `checkpoints` (pip install 'jax2tf[checkpoints]')",
}


def require(names: Sequence[str], purpose: str, otherwise: str = "") -> None:
    """Refuses to begin without these modules, and does not import them.

    Raises:
      MissingPackageError: one or more of them are not installed. The message names all of them.
    """
    if missing := [name for name in names if not is_installed(name)]:
        raise _missing(missing, purpose, otherwise)


def import_package(name: str, purpose: str) -> PyTree:
    """Imports the module.

    Raises:
      MissingPackageError: it is not installed.
    """
    require([name], purpose)
    return importlib.import_module(name)


def is_installed(name: str) -> bool:
    """Whether a module can be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    # Its parent package is missing, or sys.modules has None under the name.
    except (ModuleNotFoundError, ValueError):
        return False


def _missing(names: Sequence[str], purpose: str, otherwise: str) -> MissingPackageError:
    several = len(names) > 1
    needed, are, it = ("packages", "are", "them") if several else ("package", "is", "it")
    ways = " and ".join(dict.fromkeys(_INSTALLED_BY[name] for name in names))
    also = f"; or {otherwise}" if otherwise else ""
    return MissingPackageError(
        f"jax2tf.export: {purpose} needs the {needed} {' and '.join(names)}, which {are} not "
        f"installed. What to do: install {it} with {ways}{also}",
        name=names[0],
    )
