"""Engines that read TensorFlow graphs, as modes of the matrix that a run has to ask for.

    savedmodel   TensorFlow itself, in a process without JAX, from the SavedModel on disk
    litert       tf.lite's converter, builtin ops only, and LiteRT's interpreter
    onnx         the implementation's own writer, and ONNX Runtime
    openvino     OpenVINO, in float32 also where the processor has something faster
    tfjs         the converter of tensorflowjs, and TensorFlow.js in Node.js

A module of the same name makes a model of a graph: `convert(graph)` gives a function from the
input arrays to the output arrays. What fails in `convert` belongs to the phase "lower", what fails
in the function to "run"; `NOISE` is what changes in messages from cell to cell, as patterns and
what to put in their place. The engines but the first read standard ops alone: cells of the lowering
no_xla, converted for the target that has the engine's name.
"""

import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harnesses.engine.consumers import node
from harnesses.engine.selection import Selection

Model = Callable[[Sequence[np.ndarray]], list[np.ndarray]]

# The modules that an engine needs beside TensorFlow.
NEEDS: Mapping[str, Sequence[str]] = {
    "savedmodel": (),
    "litert": ("ai_edge_litert",),
    "onnx": ("onnx_ir", "onnxruntime"),
    "openvino": ("openvino",),
    "tfjs": ("tensorflowjs",),
}

# The engines whose module has `convert_function(fun, specs)` too: it makes that of a JAX function,
# without a graph of TensorFlow's. A judge of harnesses calls it.
OF_FUNCTIONS = frozenset({"onnx"})

_FLOAT8 = frozenset(
    {
        *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    }
)
_NARROW = _FLOAT8 | {"float4_e2m1fn", "int2", "int4", "uint2", "uint4"}
_COMPLEX = frozenset({"complex64", "complex128"})
_WIDE_AND_SHORT = frozenset(
    {
        *("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("bfloat16", "float16", "float64"),
    }
)
# The dtypes of which an engine, or what converts graphs for it, has no arrays that go in or come
# out. No op of LiteRT makes complex numbers of their parts; ONNX Runtime is given the parts.
NO_ARRAYS_OF: Mapping[str, frozenset[str]] = {
    "savedmodel": frozenset(),
    "litert": _NARROW | _COMPLEX,
    "onnx": _NARROW | {"bfloat16"},
    "openvino": _NARROW | _COMPLEX | {"bfloat16"},
    "tfjs": _NARROW | _WIDE_AND_SHORT | {"complex128"},
}

# What installs that; TensorFlow.js is no matter of pip alone.
_EXTRA = "python -m pip install -e .[consumers] installs what the engines need"
_INSTALLS = {"tfjs": "tox run -e tfjs installs what it needs, where there is Node.js"}


class EngineError(ValueError):
    """An engine that a run asks for is not installed, or cannot do what is asked of it."""


def check(selection: Selection) -> None:
    """Raises EngineError, in one line, if the engines among the modes cannot run the selection."""
    for mode in selection.mode:
        if mode in NEEDS:
            _check(mode, selection)


def _check(mode: str, selection: Selection) -> None:
    problem = lack(mode)
    if problem is not None:
        installs = _INSTALLS.get(mode, _EXTRA)
        raise EngineError(f"--mode {mode}: {problem}; {installs}")
    if selection.device != ("cpu",):
        raise EngineError(f"--mode {mode} runs on the CPU: leave out --device")
    if mode != "savedmodel" and selection.lowering != ("no_xla",):
        raise EngineError(f"--mode {mode} reads standard ops alone: add --lowering no_xla")


def lack(mode: str) -> str | None:
    """What is missing for an engine; None if nothing is."""
    missing = [module for module in NEEDS[mode] if importlib.util.find_spec(module) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be imported"
    return node.lack("@tensorflow/tfjs") if mode == "tfjs" else None


def engine(mode: str) -> Any:
    """The engine's module, which imports the engine."""
    return importlib.import_module(f"{__name__}.{mode}")


def words_of(error: BaseException, engine: Any) -> str:
    """The message of an error of an engine, without what changes from cell to cell."""
    words = str(error)
    for pattern, replacement in engine.NOISE:
        words = re.sub(pattern, replacement, words)
    return words
