"""ONNX: tf2onnx, run by ONNX Runtime on the CPU.

With the environment variable ONNX_WRITER=jax2tf the implementation's own writer takes the place of
tf2onnx.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tf2onnx

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine.adapter import Adapter
from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph

# The newest that tf2onnx writes.
OPSET = 18

WRITER = "ONNX_WRITER"

# It tells of what it cannot convert; the error that comes of it says so too.
logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)

# Names of nodes and tensors, and the places in its own source.
NOISE = (
    (r"In Node, \(\".*?\", (\w+), .*? , (?:Error )?", r"\1: "),
    (r"/onnxruntime_src/\S+ (?:.*?\) )?", ""),
    (r"\bnode \(.*?\)", "node"),
    (r"Name:'.*?'", ""),
)


def convert(graph: Graph) -> Model:
    """The graph as an ONNX model in a session of ONNX Runtime."""
    model = model_of(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        taken = {node.name for node in session.get_inputs()}
        feed = {n: a for n, a in zip(graph.inputs, arrays, strict=True) if n in taken}
        return session.run(list(graph.outputs), feed)

    return run


def count_ops(graph: Graph) -> int:
    """How many nodes the model has, in the bodies of its loops too; constants do not count."""
    return _count(model_of(graph).graph)


def model_of(graph: Graph) -> Any:
    """The graph as an ONNX model."""
    if os.environ.get(WRITER) == DEFAULT_IMPLEMENTATION:
        file = Adapter().onnx_of(graph.function.get_concrete_function())
        return onnx.load_from_string(file)
    model, _ = tf2onnx.convert.from_function(
        graph.function,
        input_signature=graph.function.input_signature,
        opset=OPSET,
        custom_rewriter=list(graph.rewriters) or None,
    )
    return model


def _count(graph: Any) -> int:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    own = [node for node in graph.node if node.op_type not in ("Constant", "Identity")]
    return len(own) + sum(map(_count, inner))
