"""Runs a sample of harnesses in onnxruntime-web, and in ONNX Runtime, and says where they differ.

    NODE_PATH=FOLDER/node_modules python -m tests.consumers.onnxruntime_web 500

The last line tells how many of the harnesses pass in each. The harnesses are of float32, int32 and
bool, the same ones every time.
"""

from __future__ import annotations

import collections
import pathlib
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from harnesses.engine.adapter import Adapter
from harnesses.engine.consumers import Model, onnx
from harnesses.engine.consumers.graph import Graph
from harnesses.engine.consumers.judge import ConsumerJudge
from harnesses.engine.selection import Selection
from tests.consumers.onnxruntime_web import LACK, Node


def model_in(node: Node, graph: Graph) -> Model:
    """The graph as an ONNX model in onnxruntime-web."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "m.onnx"
        file.write_bytes(Adapter().onnx.file_of(graph.function))
        taken = node.load(file)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = dict(zip(graph.inputs, arrays, strict=True))
        return node.run({name: given[name] for name in taken}, graph.outputs)

    return run


def main(count: int) -> None:
    """Runs the sample."""
    selection = Selection(
        dtype=("float32", "int32", "bool"), lowering=("no_xla",), mode=("onnx",), sample=count
    )
    node, native = Node(), onnx.convert
    passed: collections.Counter[str] = collections.Counter()
    for cell in selection.cells():
        rows = {}
        for name, convert in (("native", native), ("web", lambda graph: model_in(node, graph))):
            onnx.convert = convert  # type: ignore[assignment]
            rows[name] = ConsumerJudge("jax2tf").run(cell)
            passed[name] += rows[name]["outcome"] == "pass"
        first, second = rows["native"], rows["web"]
        if first["outcome"] != second["outcome"]:
            told = str(second.get("message"))[:200]
            print(f"{cell}: {first['outcome']}, in onnxruntime-web {second['outcome']}: {told}")
    node.close()
    print(f"{passed['native']} pass in ONNX Runtime, {passed['web']} in onnxruntime-web")


if __name__ == "__main__":
    if LACK is not None:
        sys.exit(LACK)
    main(int(sys.argv[1]))
