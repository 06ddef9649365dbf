"""What uses are tried in: the engines of the matrix, TensorFlow itself, XLA, and a converter."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from harnesses.engine import consumers
from harnesses.engine.consumers import EngineError, Model
from harnesses.engine.consumers.graph import Graph


def engine_of(target: str) -> Any:
    """What converts and runs a graph for a target, with `convert` and `NOISE`.

    Raises:
      EngineError: what it needs is not installed.
    """
    own = {"xla": _compiled, "tensorflow": _run, "coreml": _converted}
    if target in own:
        if target == "coreml" and importlib.util.find_spec("coremltools") is None:
            raise EngineError(
                "coremltools cannot be imported; python -m pip install coremltools installs it"
            )
        return types.SimpleNamespace(convert=own[target], NOISE=_NOISE.get(target, ()))
    if (problem := consumers.lack(target)) is not None:
        raise EngineError(f"{target}: {problem}")
    return consumers.engine(target)


# coremltools numbers the ops of a process, and names them after the call of the graph. TensorFlow
# numbers the functions of a process.
_NOISE = {
    "coreml": ((r"PartitionedCall/", ""), (r"(?<=[a-z])_\d+(?=[\"',])", "")),
    "xla": (
        (r" graph __inference_\S+?\[.*?\] on ", " the graph on "),
        (r"(?s)(No registered '\w+' OpKernel).*", r"\1)"),
    ),
}


def _run(graph: Graph) -> Model:
    """TensorFlow's own kernels, in a graph."""
    return _called(graph, graph.function)


def _compiled(graph: Graph) -> Model:
    """The graph compiled by TensorFlow's XLA."""
    return _called(graph, tf.function(graph.function, jit_compile=True, autograph=False))


def _called(graph: Graph, function: Any) -> Model:
    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with tf.device("CPU:0"):
            results = function(*(tf.constant(array) for array in arrays))
        return [results[name].numpy() for name in graph.outputs]

    return run


def _converted(graph: Graph) -> None:
    """coremltools makes a model of the graph, which runs on Apple's systems alone."""
    import coremltools

    shapes = [spec.shape for spec in graph.function.input_signature]

    # A model has no scalars among its arguments: each is an array of one number.
    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec(spec.shape if spec.shape.rank else [1], spec.dtype, spec.name)
            for spec in graph.function.input_signature
        ],
    )
    def function(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        given = zip(tensors, shapes, strict=True)
        return graph.function(*(x if shape.rank else tf.reshape(x, []) for x, shape in given))

    with contextlib.redirect_stderr(io.StringIO()):
        coremltools.convert(
            [function.get_concrete_function()],
            source="tensorflow",
            convert_to="mlprogram",
            skip_model_load=True,
        )
