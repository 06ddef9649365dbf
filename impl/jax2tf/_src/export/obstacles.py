"""Finds obstacles to replacing an existing path by a model, one function for each kind of format.

Each function returns the reason why the path must not be replaced, such as files of the user in a
folder. The text is empty if the path may be replaced.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

# Operating systems leave these files in folders.
_SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db"})
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb")
_BESIDE_SAVED_MODEL = ("fingerprint.pb", "keras_metadata.pb", "assets", "debug")
# Our own files in the folder that SavedModels have for files of the user.
_EXTRA = ("assets.extra/jax2tf.json", "assets.extra/tf_serving_warmup_requests")


def of_file(target: Path) -> str:
    """For formats of one file: a file or a link may be replaced."""
    if target.is_dir():
        return "it is a folder, and what is written is a file"
    if target.exists() and not target.is_file():
        return "it is neither file nor folder"
    return ""


def of_saved_model(target: Path) -> str:
    """For SavedModels: a SavedModel or an empty folder may be replaced."""
    if not target.is_dir():
        return _obstacle_to_folder(target)
    found = names(target)
    if found and not found.intersection(_SAVED_MODELS):
        return "it is not a SavedModel: it has no saved_model.pb"
    for name in sorted(found.difference(_SAVED_MODELS, _BESIDE_SAVED_MODEL)):
        if name in ("variables", "assets.extra") and (target / name).is_dir():
            for inner in sorted(names(target / name)):
                if f"{name}/{inner}" not in _EXTRA and not inner.startswith("variables."):
                    return f"{name}/{inner} is not of the SavedModel"
        else:
            return f"{name} is not of the SavedModel"
    return ""


def of_tfjs(target: Path) -> str:
    """For TensorFlow.js: a model of TensorFlow.js or an empty folder may be replaced."""
    if not target.is_dir():
        return _obstacle_to_folder(target)
    found = names(target)
    if not found:
        return ""
    own = _files_of_tfjs(target / "model.json")
    if not own:
        return "it is no model of TensorFlow.js: it has no model.json of one"
    others = sorted(found - own)
    return f"{others[0]} is not of the model" if others else ""


def _files_of_tfjs(file: Path) -> set[str]:
    """A model.json and the files that belong to it; empty if it is not one of TensorFlow.js."""
    try:
        model = json.loads(file.read_text(encoding="utf-8"))
        shards = [path for group in model["weightsManifest"] for path in group["paths"]]
    # The file is missing, or it is not the JSON of a model.
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {file.name, *map(str, shards)} if "modelTopology" in model else set()


def of_openvino(target: Path) -> str:
    """For OpenVINO: a .xml may be replaced, and a .bin beside a .xml of OpenVINO."""
    reason = of_file(target)
    if reason or target.suffix != ".bin" or not os.path.lexists(target):
        return reason
    graph = target.with_suffix(".xml")
    if graph.is_file() and b"<net " in _beginning(graph):
        return ""
    return f"it belongs to no model: there is no {graph.name} of OpenVINO beside it"


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(1024)


def _obstacle_to_folder(target: Path) -> str:
    """For paths that are not folders: only a dangling link may be replaced by a folder."""
    return "it is a file, and what is written is a folder" if target.exists() else ""


def names(folder: Path) -> set[str]:
    """The names in a folder, without those that operating systems leave there."""
    return set(os.listdir(folder)) - _SYSTEM_FILES
