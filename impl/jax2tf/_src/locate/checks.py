"""Refuses what cannot be compared: another file, other inputs, a file that cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.formats import FORMATS
from jax2tf._src.export.signatures import Signature
from jax2tf._src.locate import graphs
from jax2tf._src.locate.tensors import reader_of
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util import option_checks


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Gives errors of the checks that `export` makes, too, the name of this function."""
    try:
        yield
    except (TypeError, ValueError, OSError, ExportError) as error:
        text = str(error)
        if text.startswith("jax2tf.export:") and len(error.args) == 1:
            error.args = (text.replace("jax2tf.export:", "jax2tf.locate:", 1),)
        raise


def one_signature(signatures: Sequence[Signature]) -> Signature:
    """The only signature.

    Raises:
      ValueError: there are several.
    """
    if len(signatures) > 1:
        raise ValueError(
            "jax2tf.locate: fun should be one function, got a dict of "
            f"{', '.join(s.name for s in signatures)}. What to do: call it for each of them"
        )
    return signatures[0]


def existing(path_or_target: object) -> Path:
    """The path of a file or folder that exists.

    Raises:
      FileNotFoundError: there is none.
    """
    path = option_checks.path(path_or_target, "jax2tf.locate: path_or_target", "model.onnx")
    if not path.exists():
        known = ", ".join((*graphs.MODES, *TARGETS))
        suffixes = ", ".join(f.suffix for f in FORMATS.values() if f.suffix)
        raise FileNotFoundError(
            f"jax2tf.locate: there is no file {str(path)!r}. What to do: give the path of a file "
            f"({suffixes}, or the folder of a SavedModel), or the name of a graph: {known}"
        )
    return path


def folder_of_tfjs(path: Path, format: str | None) -> tuple[Path, str | None]:
    """The path and its format; for the model.json of TensorFlow.js its folder."""
    if path.name == "model.json" and format in (None, "tfjs"):
        return path.parent, "tfjs"
    return path, format


def interface(path: Path, format_name: str, signature: Signature) -> None:
    """Refuses a file whose inputs have other names, shapes or dtypes than the signature's.

    Raises:
      ValueError: the inputs differ.
      jax2tf.ExportError: the file cannot be read.
    """
    reader = reader_of(format_name)
    if reader is None:
        return
    for part in [path, *path.glob("*.pb"), *path.glob("model.json")]:
        if part.is_file() and not part.stat().st_size:
            raise ExportError(
                f"jax2tf.locate: the file {str(part)!r} is empty (0 bytes). What to do: export it "
                "again"
            )
    try:
        inputs = reader.inputs(path)
    # Each library has errors of its own for a broken file.
    except Exception as error:
        text = str(error).strip().partition("\n")[0][:200]
        raise ExportError(
            f"jax2tf.locate: the file {str(path)!r} cannot be read as {format_name!r}: "
            f"{type(error).__name__}: {text}. What to do: export it again"
        ) from error
    specs = {spec.name: spec for spec in signature.inputs}
    for name, given in inputs.items():
        spec = specs.get(name)
        if spec is None or not given.takes(spec.dtype, spec.shape):
            has = ", ".join(f"{n}: {i}" for n, i in inputs.items())
            wanted = ", ".join(map(str, signature.inputs)) or "none"
            raise ValueError(
                f"jax2tf.locate: the file {str(path)!r} has the inputs {has}, and the function "
                f"{wanted}. What to do: give the function and the specs that the file was "
                "exported with"
            )
