"""Folders of versions, as servers read them: `net/1`, `net/2` and so on.

    TensorFlow Serving: net/1/saved_model.pb, net/1/assets.extra/tf_serving_warmup_requests
    OpenVINO Model Server: net/1/model.xml and model.bin, or net/1/model.onnx
    Triton: net/1/model.onnx or net/1/model.xml, and net/config.pbtxt

A server finds a new version when its folder appears, so the folder is renamed there, whole.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import obstacles
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Option

# The name and the inputs or outputs of a model: name, dtype, sizes with -1 for open dimensions.
Port = tuple[str, np.dtype, Sequence[int]]
# All inputs, and all outputs.
Ports = tuple[Sequence[Port], Sequence[Port]]

WARM_UP = Path("assets.extra/tf_serving_warmup_requests")
CONFIG = "config.pbtxt"

# TensorFlow Serving refuses a file with more requests.
_MOST_REQUESTS = 1000

# The names of Triton's backends. It has one for SavedModels too, with another layout.
_BACKENDS = {"onnx": "onnxruntime", "openvino": "openvino"}

_TRITON_DTYPES = {
    "bool": "TYPE_BOOL",
    "float16": "TYPE_FP16",
    "bfloat16": "TYPE_BF16",
    "float32": "TYPE_FP32",
    "float64": "TYPE_FP64",
    **{f"int{n}": f"TYPE_INT{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"TYPE_UINT{n}" for n in (8, 16, 32, 64)},
}


@dataclasses.dataclass(frozen=True)
class Place:
    """A version in a folder of versions.

    Attributes:
      base: the folder, whose name is the model's.
      version: the number of the version.
      file: the name of the file in the version's folder; empty for formats that are folders.
    """

    base: Path
    version: int
    file: str

    @property
    def folder(self) -> Path:
        """The folder of the version."""
        return self.base / str(self.version)


def place_of(
    base: Path, asked: Option, format: str, suffix: str, verify: Option, overwrite: bool
) -> Place | None:
    """The place that `serving=` asks for, or None for False.

    Args:
      base: the path of the export.
      asked: True for the next free version, or the number of a version.
      format: the name of the format.
      suffix: the suffix of its files.
      verify: the option of the export; its inputs are the warm-up requests.
      overwrite: whether a version may be replaced.

    Raises:
      TypeError: `asked` is neither a bool nor an int.
      ValueError: the version is not positive, no server reads the format, the path has a file's
        suffix, or there are no inputs for the warm-up requests.
      FileExistsError: the version exists, or the folder holds something else.
    """
    if isinstance(asked, bool | np.bool_):
        if not asked:
            return None
    elif not isinstance(asked, int | np.integer):
        raise TypeError(
            "jax2tf.export: serving should be True, False or the number of a version, got "
            f"{option_checks.shown(asked)}"
        )
    elif asked < 1:
        raise ValueError(
            f"jax2tf.export: serving should be the number of a version from 1 on, got {asked}"
        )
    if format != "savedmodel" and format not in _BACKENDS:
        raise ValueError(
            f"jax2tf.export: serving= writes folders of the formats savedmodel, "
            f"{', '.join(_BACKENDS)}, which servers read; got {format!r}. What to do: leave "
            "serving out"
        )
    if base.suffix and base.suffix == suffix:
        raise ValueError(
            "jax2tf.export: with serving= the path is the folder of all versions, and the file in "
            f"it is model{suffix}; got {os.fspath(base)!r}. What to do: give "
            f"{os.fspath(base.with_suffix(''))!r} and format={format!r}"
        )
    if format == "savedmodel" and verify is False:
        raise ValueError(
            "jax2tf.export: the warm-up requests of serving= are the inputs that verify= runs, and "
            "there are none. What to do: give verify=True, or a list of inputs"
        )
    versions = _versions(base, format)
    if isinstance(asked, bool | np.bool_):
        version = max(versions, default=0) + 1
    else:
        version = int(asked)
        if version in versions and not overwrite:
            raise FileExistsError(
                f"jax2tf.export: version {version} of {base} exists. What to do: pass serving=True "
                "for the next version, another number, or overwrite=True to replace it"
            )
    return Place(base, version, f"model{suffix}" if suffix else "")


def _versions(base: Path, format: str) -> set[int]:
    """The versions in a folder.

    Raises:
      FileExistsError: the path is not a folder of versions.
    """
    if not os.path.lexists(base):
        return set()
    if not base.is_dir():
        raise _not_versions(base, "it is a file")
    versions = set()
    for name in sorted(obstacles.names(base)):
        is_version = name.isascii() and name.isdigit() and (base / name).is_dir()
        if is_version:
            versions.add(int(name))
        # What another export is writing has such a name.
        elif not name.startswith(".jax2tf-") and (format == "savedmodel" or name != CONFIG):
            raise _not_versions(base, f"it holds {name}")
    return versions


def _not_versions(base: Path, reason: str) -> FileExistsError:
    return FileExistsError(
        f"jax2tf.export: {base} is no folder of versions: {reason}. What to do: give the path of a "
        "folder that is new, empty or holds versions (1, 2, ...) of one model"
    )


def obstacle(folder: Path) -> str:
    """The reason why the folder of a version must not be replaced; empty if it may be.

    A version of files may be replaced if it holds a model and what belongs to it.
    """
    if not folder.is_dir():
        return "it is a file, and what is written is a folder"
    for name in sorted(obstacles.names(folder)):
        if not name.startswith("model."):
            return f"{name} is not of the model"
    return ""


def write_warm_up(
    saved_model: Path, model: str, requests: Sequence[tuple[str, Mapping[str, np.ndarray]]]
) -> None:
    """Writes the requests that TensorFlow Serving runs before it serves a version.

    The file is a TFRecord of `tensorflow.serving.PredictionLog`.

    Args:
      saved_model: the folder of the version.
      model: the name of the model.
      requests: the signature and the inputs of each.
    """
    path = saved_model / WARM_UP
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests[:_MOST_REQUESTS]:
            writer.write(_prediction_log(model, signature, inputs))


def _prediction_log(model: str, signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """A PredictionLog, by the numbers of its fields.

    The classes are those of tensorflow-serving-api, which pins the TensorFlow that it installs.
    """
    spec = _field(1, model.encode()) + _field(3, signature.encode())
    request = _field(1, spec)
    for name, array in inputs.items():
        tensor = tf.make_tensor_proto(array).SerializeToString(deterministic=True)
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, of the kind that has a length."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def config(model: str, format: str, ports: Ports) -> str:
    """Triton's description of a model.

    Its batch is one of the open dimensions (`max_batch_size: 0`), so that Triton makes no batches
    of several requests; that takes a function whose every input and output has a batch in front.

    Raises:
      ExportError: Triton has no such dtype.
    """
    lines = [f'name: "{model}"', f'backend: "{_BACKENDS[format]}"', "max_batch_size: 0"]
    for kind, of_kind in zip(("input", "output"), ports, strict=True):
        for name, dtype, sizes in of_kind:
            if dtype.name not in _TRITON_DTYPES:
                raise ExportError(
                    f"jax2tf.export: Triton has no arrays of {dtype.name}, which {kind} {name!r} "
                    "is. What to do: leave serving out, or cast it"
                )
            dims = ", ".join(map(str, sizes))
            lines.append(
                f'{kind} {{ name: "{name}" data_type: {_TRITON_DTYPES[dtype.name]} '
                f"dims: [ {dims} ] }}"
            )
    return "\n".join(lines) + "\n"


def config_step(place: Place, written: Path, text: str) -> list[tuple[Path, Path]]:
    """Writes the description beside the versions, unless it is there; returns its rename.

    Raises:
      FileExistsError: the description there is of another interface.
    """
    existing = place.base / CONFIG
    if existing.exists():
        known = existing.read_text(encoding="utf-8")
        if _interface(known) != _interface(text):
            raise FileExistsError(
                f"jax2tf.export: {existing} says other inputs or outputs than version "
                f"{place.version} has, and holds for all versions. What to do: give the path of a "
                "new folder, or delete the description"
            )
        return []
    written.write_text(text, encoding="utf-8")
    return [(written, existing)]


def _interface(text: str) -> set[str]:
    """The lines of inputs and outputs; others are the user's to change."""
    return {line for line in text.splitlines() if line.startswith(("input ", "output "))}
