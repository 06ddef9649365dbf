"""The version of this package, and the versions of JAX and TensorFlow that it was tested with."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from typing import NoReturn

# pyproject.toml reads the version from this line.
__version__ = "0.1.0"

TESTED = {"jax": "0.10 to 0.12", "tensorflow": "2.20 to 2.22"}

_TO_INSTALL = (
    "install it, as by pip install jax tensorflow (or tensorflow-cpu); jax2tf was tested with "
    + " and ".join(f"{name} {versions}" for name, versions in TESTED.items())
)

# The version of a package that is not installed.
_NONE = "-"

# The extra that stands in for TensorFlow's converter.
_WITHOUT = "litert-int8"

# The other packages: the tested versions, the extra that brings them, and their purpose.
_OTHERS = {
    "jaxlib": ("0.10 to 0.12", "", "JAX's compiler"),
    "numpy": ("2.4 to 2.5", "", "arrays"),
    "ml-dtypes": ("0.6", "", "bfloat16 and smaller dtypes"),
    "keras": ("3.15", "tensorflow", "layers of jax2tf.Module, models in call_tf"),
    "ai-edge-litert": ("2.3", "litert", "LiteRT"),
    "litert-quantizer": ("0.11", _WITHOUT, 'LiteRT, quantize="int8" without TensorFlow'),
    "onnx-ir": ("1.1", "onnx", "ONNX, the writer"),
    "onnx": ("1.23", "onnx", "ONNX, the format"),
    "onnxruntime": ("1.31", "onnx", "ONNX, the engine"),
    "openvino": ("2026.4", "openvino", "OpenVINO"),
    "tensorflowjs": ("4.22", "", "TensorFlow.js, the converter"),
    "safetensors": ("0.8", "checkpoints", "checkpoints of jax2tf.export"),
    "orbax-checkpoint": ("0.12", "checkpoints", "checkpoints of jax2tf.export"),
}


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Adds the tested versions to the error of an import that fails."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in TESTED:
            message = (
                f"jax2tf needs {error.name}, which is not installed. What to do: {_TO_INSTALL}"
            )
            if _is_starting_from_command_line():
                _end_command_line(message)
            raise ModuleNotFoundError(message, name=error.name) from error
        tested = " and ".join(f"{name} {versions}" for name, versions in TESTED.items())
        installed = " and ".join(
            f"{name} {getattr(sys.modules.get(name), '__version__', '(none)')}" for name in TESTED
        )
        raise ImportError(
            f"jax2tf does not find what it needs inside of JAX or TensorFlow: {error}. It was "
            f"tested with {tested}; installed are {installed}. What to do: install tested "
            "versions, or a newer jax2tf"
        ) from error


def _is_starting_from_command_line() -> bool:
    """Whether `python -m jax2tf` is importing this package, to find its `__main__`.

    Python sets sys.argv[0] to "-m" until it has found the module.
    """
    words = sys.orig_argv
    runs_this = "-mjax2tf" in words or ("-m", "jax2tf") in itertools.pairwise(words)
    return sys.argv[:1] == ["-m"] and runs_this


def _end_command_line(message: str) -> NoReturn:
    """Exits without a traceback, like other errors; `versions` prints its table first."""
    if sys.argv[1:2] == ["versions"]:
        print(table(), end="\n\n")
    print(f"python -m jax2tf: {message}", file=sys.stderr)
    sys.exit(1)


def table() -> str:
    """A table of the installed and the tested versions, and how to install what is missing.

    Example: `python -m jax2tf versions` prints it.
    """
    rows = [("", "installed", "tested", "extra", "for")]
    for name, tested in TESTED.items():
        extra = "tensorflow" if name == "tensorflow" else ""
        rows.append((name, _marked(_of_module(name), tested), tested, extra, ""))
    for name, (tested, extra, purpose) in _OTHERS.items():
        rows.append((name, _marked(_of_distribution(name), tested), tested, extra, purpose))
    missing = {name: extra for name, installed, _, extra, _ in rows[1:] if installed == _NONE}
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    machine = f"{platform.system()} {platform.machine()}"
    title = f"jax2tf {__version__} on Python {platform.python_version()} ({machine})"
    return "\n".join([title, "", *lines, *_to_install(missing)])


def _to_install(missing: Mapping[str, str]) -> list[str]:
    """The commands that bring missing packages, given with the extra of each."""
    extras = ",".join(dict.fromkeys(e for e in missing.values() if e not in ("", _WITHOUT)))
    commands = [f"pip install 'jax2tf[{extras}]'"] if extras else []
    if "tensorflow" in missing and _WITHOUT in missing.values():
        # It pins ai-edge-litert. Where TensorFlow is installed, TensorFlow does its work.
        commands.append(f"pip install 'jax2tf[{_WITHOUT}]'  # instead, without TensorFlow")
    if "tensorflowjs" in missing:
        # Its dependencies pin an old TensorFlow: no extra can bring it.
        commands.append("pip install --no-deps tensorflowjs")
    return ["", "To install what is missing:", *(f"    {c}" for c in commands)] if commands else []


def _marked(installed: str, tested: str) -> str:
    mark = beside_tested(installed, tested)
    return f"{installed} ({mark})" if mark else installed


def beside_tested(installed: str, tested: str) -> str:
    """Compares a version with the tested ones: "newer", "older", or "" if it is among them.

    >>> beside_tested("1.32.1", "1.31"), beside_tested("0.9.2", "0.10 to 0.12")
    ('newer', 'older')
    >>> beside_tested("0.12.0.1", "0.10 to 0.12"), beside_tested("-", "1.31")
    ('', '')
    """
    first, _, last = tested.partition(" to ")
    version = _numbers(installed)
    if not version or version[: len(_numbers(first))] == _numbers(first):
        return ""
    if version < _numbers(first):
        return "older"
    newest = _numbers(last or first)
    return "newer" if version[: len(newest)] > newest else ""


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version; those of "2.22.0rc1" are 2, 22 and 0."""
    return tuple(map(int, re.findall(r"(?<![a-z0-9])\d+", version.partition("+")[0])))


def _of_module(name: str) -> str:
    """The version of an imported module. TensorFlow's distributions have several names."""
    return str(getattr(sys.modules.get(name), "__version__", _NONE))


def _of_distribution(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return _NONE
