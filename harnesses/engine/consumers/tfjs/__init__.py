"""TensorFlow.js: the converter of tensorflowjs, and the CPU backend of @tensorflow/tfjs in Node.js.

Node.js runs `serve.js` in one process for all cells, because the library takes a second to load.
"""

import atexit
import base64
import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph, saved
from harnesses.engine.consumers.service import Service
from harnesses.engine.consumers.tfjs.converter import write

# Names of nodes and of functions.
NOISE = ((r"\bnode '[^']*'", "node"),)

# Less than what a cell has: who ends a hanging Node.js says so, and keeps the worker.
_TIMEOUT = 60.0


def convert(graph: Graph) -> Model:
    """The graph as a model of TensorFlow.js, loaded in Node.js."""
    node = _node()
    with saved(graph) as folder, tempfile.TemporaryDirectory(prefix="tfjs-") as web:
        write(folder, Path(web))
        node.ask({"load": web})

    nodes = _output_nodes(graph)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        inputs = {n: _encoded(a) for n, a in zip(graph.inputs, arrays, strict=True)}
        return [_decoded(y) for y in node.ask({"run": inputs, "outputs": nodes})]

    return run


def _output_nodes(graph: Graph) -> list[str]:
    """The nodes of the graph's outputs.

    The model's signature loses which is which among those of one dtype and shape. The results of
    a SavedModel's signature are the first nodes of that name, in the order of their keys.
    """
    ordered = sorted(graph.outputs)
    numbers = [ordered.index(name) for name in graph.outputs]
    return [f"Identity_{number}" if number else "Identity" for number in numbers]


def _encoded(array: np.ndarray) -> dict[str, Any]:
    content = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": array.shape, "content": content}


def _decoded(answer: dict[str, Any]) -> np.ndarray:
    content = base64.b64decode(answer["content"])
    return np.frombuffer(content, answer["dtype"]).reshape(answer["shape"])


@functools.cache
def _node() -> Service:
    program = Path(__file__).with_name("serve.js")
    service = Service("Node.js", ["node", str(program)], _TIMEOUT)
    atexit.register(service.close)
    return service
