"""ONNX: the implementation's own writer, run by ONNX Runtime on the CPU."""

from collections.abc import Sequence
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
    """The graph as an ONNX model in a session of ONNX Runtime."""
    file = Adapter().onnx.file_of(graph.function)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        taken = {node.name for node in session.get_inputs()}
        feed = {n: a for n, a in zip(graph.inputs, arrays, strict=True) if n in taken}
        return session.run(list(graph.outputs), feed)

    return run


def count_ops(graph: Graph) -> int:
    """How many nodes the model has, in the bodies of its loops too; constants do not count."""
    file = Adapter().onnx.file_of(graph.function)
    return _count(onnx.load_from_string(file).graph)


def _count(graph: Any) -> int:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    own = [node for node in graph.node if node.op_type not in ("Constant", "Identity")]
    return len(own) + sum(map(_count, inner))
