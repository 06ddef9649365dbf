"""The tensors inside an ONNX file: a copy of it returns the results of all its nodes."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jax2tf._src.export import packages
from jax2tf._src.export.onnx import pairs
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.typing import PyTree


def inputs(path: Path) -> dict[str, Taken]:
    """The inputs of a file by name."""
    model = _loaded(path)
    made = {tensor.name for tensor in model.graph.initializer}
    return {x.name: _taken(x.type.tensor_type) for x in model.graph.input if x.name not in made}


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """None: results of ops are floats in the ONNX files of jax2tf, whatever their weights are."""
    return {}


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a file has otherwise than one that was written anew."""
    onnx_differences = importlib.import_module("jax2tf._src.locate.onnx_differences")
    found: list[Difference] = onnx_differences.between(_loaded(path), _loaded(fresh))
    return found


def names_in(path: Path, fresh: Path) -> dict[str, str]:
    """The names in a file written anew of the tensors that have other ones in this one."""
    onnx_differences = importlib.import_module("jax2tf._src.locate.onnx_differences")
    found: dict[str, str] = onnx_differences.names_in(_loaded(path), _loaded(fresh))
    return found


def tensors(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of all nodes of the main graph, in their order."""
    onnxruntime = packages.import_package("onnxruntime", "running an ONNX file")
    data = pairs.data_beside(path)
    model = _loaded(path)
    names = returning_all(model)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(model.SerializeToString())
        if data.exists():
            (Path(folder) / data.name).symlink_to(data.absolute())
        options = onnxruntime.SessionOptions()
        # Ops that are merged would not make the results of their parts.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            str(copy), options, providers=["CPUExecutionProvider"]
        )
        given = {x.name: feeds[x.name] for x in session.get_inputs() if x.name in feeds}
        results = session.run(names, given)
    return {
        name: result
        for name, result in zip(names, results, strict=True)
        if isinstance(result, np.ndarray)
    }


def _loaded(path: Path) -> PyTree:
    onnx = packages.import_package("onnx", "reading the tensors of an ONNX file")
    return onnx.load(str(path), load_external_data=False)


def _taken(kind: PyTree) -> Taken:
    helper = importlib.import_module("onnx.helper")
    sizes = tuple(
        d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim
    )
    return Taken(np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)), sizes)


def returning_all(model: PyTree) -> list[str]:
    """Makes outputs of all results of nodes, in place; returns their names."""
    graph = model.graph
    known = {output.name for output in graph.output}
    names = [name for node in graph.node for name in node.output if name]
    for name in names:
        if name not in known:
            graph.output.add().name = name
    return names
