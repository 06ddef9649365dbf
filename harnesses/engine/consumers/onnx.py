"""ONNX: the implementation's own writer, run by ONNX Runtime on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from harnesses.engine.adapter import Adapter
from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph

# Names of nodes and tensors, and the places in its own source.
NOISE = (
    (r"In Node, \(\".*?\", (\w+), .*? , (?:Error )?", r"\1: "),
    (r"/onnxruntime_src/\S+ (?:.*?\) )?", ""),
    (r"\bnode \(.*?\)", "node"),
    (r"Name:'.*?'", ""),
)


def convert(graph: Graph) -> Model:
    """The graph of TensorFlow's as an ONNX model in a session of ONNX Runtime."""
    return _loaded(Adapter().onnx.file_of(graph.function), graph.inputs, graph.outputs)


def convert_function(fun: Callable[..., Any], specs: tuple[Any, ...]) -> Model:
    """A JAX function of pytrees of arrays as an ONNX model in a session of ONNX Runtime."""
    return _loaded(Adapter().onnx.file_of_jax(fun, specs))


def _loaded(
    file: bytes, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> Model:
    """The model of a file, with its inputs and outputs in the order of these names."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        feed = dict(zip(inputs or names, arrays, strict=True))
        return session.run(outputs, {name: feed[name] for name in names})

    return run


def count_ops(graph: Graph) -> int:
    """How many nodes the model has, in the bodies of its loops too; constants do not count."""
    return _count(onnx.load_from_string(Adapter().onnx.file_of(graph.function)).graph)


def _count(graph: Any) -> int:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    own = [node for node in graph.node if node.op_type not in ("Constant", "Identity")]
    return len(own) + sum(map(_count, inner))
