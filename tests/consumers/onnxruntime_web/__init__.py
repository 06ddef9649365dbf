"""onnxruntime-web in Node.js, which npm installs:

npm install --no-save --prefix FOLDER onnxruntime-web
NODE_PATH=FOLDER/node_modules python -m pytest tests/consumers/test_onnxruntime_web.py
"""

from __future__ import annotations

import base64
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harnesses.engine.consumers.node import lack
from harnesses.engine.consumers.service import Service

# What is missing; None if nothing is.
LACK = lack("onnxruntime-web")

_TIMEOUT = 60.0


class Node:
    """The process that holds one model at a time."""

    def __init__(self) -> None:
        program = pathlib.Path(__file__).with_name("serve.js")
        self._service = Service("Node.js", ["node", str(program)], _TIMEOUT)

    def load(self, file: pathlib.Path) -> list[str]:
        """Loads a model; returns the names of its inputs."""
        return self._service.ask({"load": str(file)})

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
        """The outputs of these names."""
        given = {name: _encoded(array) for name, array in inputs.items()}
        return [_decoded(x) for x in self._service.ask({"run": given, "outputs": list(outputs)})]

    def close(self) -> None:
        """Ends the process."""
        self._service.close()


def _encoded(array: np.ndarray) -> dict[str, Any]:
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"type": array.dtype.name, "shape": array.shape, "content": content}


def _decoded(answer: dict[str, Any]) -> np.ndarray:
    content = base64.b64decode(answer["content"])
    return np.frombuffer(content, answer["type"]).reshape(answer["shape"])
