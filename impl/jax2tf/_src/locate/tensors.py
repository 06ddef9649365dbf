"""The tensors inside a file, by name. The file itself is only read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import numpy as np

from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken


class Reader(Protocol):
    """The interface of the modules that read files of a format."""

    @property
    def inputs(self) -> Callable[[Path], dict[str, Taken]]:
        """Takes a file; returns its inputs by name."""

    @property
    def differences(self) -> Callable[[Path, Path], list[Difference]]:
        """Takes a file and one that was written anew; returns what the first has otherwise."""

    @property
    def ends(self) -> Callable[[Path], dict[str, tuple[float, float]]]:
        """Takes a file; returns the least and largest number of each tensor of integers that
        stand for numbers of floating point.
        """

    @property
    def tensors(self) -> Callable[[Path, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        """Takes a file and inputs by name; runs it, and returns all tensors that can be read."""


# The modules that read formats; they import packages that only their format needs.
_READERS = {
    "onnx": "onnx_tensors",
    "litert": "litert_tensors",
    "openvino": "openvino_tensors",
    "savedmodel": "savedmodel_tensors",
    "tfjs": "tfjs_tensors",
}


def reader_of(format_name: str) -> Reader | None:
    """The reader of a format; None if the tensors inside its files cannot be read."""
    name = _READERS.get(format_name)
    if name is None:
        return None
    return cast(Reader, importlib.import_module(f"jax2tf._src.locate.{name}"))


# Takes a file, inputs by name and names of outputs; returns the outputs, and all tensors.
RunWithTensors: TypeAlias = Callable[
    [Path, Mapping[str, np.ndarray], Sequence[str]],
    tuple[dict[str, np.ndarray], dict[str, np.ndarray]],
]


def run_with_tensors(format_name: str) -> RunWithTensors | None:
    """One run for outputs and tensors; None if the engine merges ops unless tensors are read.

    TensorFlow.js merges no ops when it loads a model, and each run starts a process of Node.js.
    """
    if format_name != "tfjs":
        return None
    module = importlib.import_module("jax2tf._src.locate.tfjs_tensors")
    return cast(RunWithTensors, module.outputs_and_tensors)
