"""Packages that are imported when something asks for them, and what brings them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

from jax2tf._src.api.errors import MissingPackageError
from jax2tf._src.util.typing import PyTree

# What brings each module.
_BROUGHT_BY = {
    "tf2onnx": "the extra `consumers` (pip install 'jax2tf[consumers]')",
    "onnx": "the extra `consumers` (pip install 'jax2tf[consumers]')",
    "onnxruntime": "the extra `consumers` (pip install 'jax2tf[consumers]')",
    "openvino": "the extra `consumers` (pip install 'jax2tf[consumers]')",
    "tensorflowjs": "pip install --no-deps tensorflowjs, whose dependencies pin a TensorFlow",
    "safetensors": "the extra `checkpoints` (pip install 'jax2tf[checkpoints]')",
    "orbax.checkpoint": "the extra `checkpoints` (pip install 'jax2tf[checkpoints]')",
}


def require(names: Sequence[str], purpose: str, otherwise: str = "") -> None:
    """Refuses to begin without these modules. It imports none of them.

    Raises:
      MissingPackageError: one of them is not installed.
    """
    for name in names:
        if not _is_installed(name):
            raise _missing(name, purpose, otherwise)


def imported(name: str, purpose: str) -> PyTree:
    """The module of that name.

    Raises:
      MissingPackageError: it is not installed.
    """
    require([name], purpose)
    return importlib.import_module(name)


def is_installed(name: str) -> bool:
    """Whether a module can be imported."""
    return _is_installed(name)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    # The package around it is not there, or something put None in its place.
    except (ModuleNotFoundError, ValueError):
        return False


def _missing(name: str, purpose: str, otherwise: str) -> MissingPackageError:
    also = f"; or {otherwise}" if otherwise else ""
    return MissingPackageError(
        f"jax2tf.export: {purpose} needs the package {name}, which is not installed. What to do: "
        f"install it with {_BROUGHT_BY[name]}{also}",
        name=name,
    )
