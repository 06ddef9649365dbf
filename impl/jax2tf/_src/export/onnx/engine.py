"""Writes ONNX files, and runs them in ONNX Runtime on the CPU."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import packages, serving, traced
from jax2tf._src.export.job import REFUSALS, Job, converting
from jax2tf._src.export.onnx import opsets, pairs, weights
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes import idioms
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.typing import Option, PyTree

if TYPE_CHECKING:
    from jax2tf._src.export.onnx import storage

OPTIONS = {
    "opset": opsets.Opsets(),
    "quantize": (None, "float16", "int8_weights", "int4"),
    "external_data": (None, False, True),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

_WRITER = "the writer of ONNX"

# Only our writer knows the op of an LSTM. The LSTM of ONNX Runtime is wrong for NaN.
TARGET = dataclasses.replace(
    TARGETS["onnx"], finite_idioms=TARGETS["onnx"].finite_idioms | {idioms.LSTM}
)

_PRECISION = {
    None: Precision.FULL,
    "float16": Precision.FLOAT16_WEIGHTS,
    "int8_weights": Precision.INTEGER_WEIGHTS,
    "int4": Precision.FOUR_BIT_WEIGHTS,
}


def write(job: Job) -> int:
    """Writes the file `job.target`; returns the number of ops.

    Raises:
      ExportError: the function has no results, or one file cannot hold the model.
    """
    onnx = packages.import_package("onnx", "the format 'onnx'")
    packages.require(["onnx_ir"], "the format 'onnx'")
    # It imports onnx and onnx-ir.
    storage = importlib.import_module("jax2tf._src.export.onnx.storage")
    parts = _written(job)
    if not parts.proto.graph.output:
        raise ExportError(
            "jax2tf.export: the function returns no array, and ONNX Runtime loads no model without "
            "outputs. What to do: return an array"
        )
    kind = job.options.get("quantize")
    if kind is not None:
        weights.store(parts, kind)
        storage.check(parts)
    onnx.helper.set_model_props(parts.proto, dict(job.metadata))
    ops = sum(node.op_type != "Constant" for node in weights.nodes(parts.proto.graph))
    storage.write(parts, job.target, job.options.get("external_data"))
    return ops


def add_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    """Adds entries to the metadata of the file.

    A message of protobuf that follows another one in a file adds to its lists, so the model itself
    is not written again.
    """
    onnx = packages.import_package("onnx", "the format 'onnx'")
    more = onnx.ModelProto()
    onnx.helper.set_model_props(more, dict(metadata))
    with target.open("ab") as file:
        file.write(more.SerializeToString(deterministic=True))


def ports(target: Path) -> serving.Ports:
    """The inputs and the outputs of the model."""
    onnx = packages.import_package("onnx", "the format 'onnx'")
    graph = onnx.load(target, load_external_data=False).graph
    given, results = (list(map(_port, values)) for values in (graph.input, graph.output))
    return given, results


def _port(value: PyTree) -> serving.Port:
    onnx = packages.import_package("onnx", "the format 'onnx'")
    kind = value.type.tensor_type
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
    return value.name, dtype, sizes


def _written(job: Job) -> storage.Parts:
    (signature,) = job.signatures
    # It imports onnx-ir.
    own_graphs = importlib.import_module("jax2tf._src.export.onnx.own_graphs")
    made = traced.Traced(signature, job.params, job.convert)
    if made.calls_tensorflow:
        return _written_by_tensorflow(job)
    job.complexes += made.complexes()
    program = made.program()
    with converting(_WRITER, job, refusals=REFUSALS):
        return own_graphs.parts_of(program, job.options.get("opset"))


def _written_by_tensorflow(job: Job) -> storage.Parts:
    """The model of TensorFlow's graph, which has the ops of functions that call_tf calls."""
    functions = importlib.import_module("jax2tf._src.export.onnx.functions")
    (function,) = job.program().functions.values()
    (signature,) = job.signatures
    with converting(_WRITER, job, refusals=REFUSALS):
        return functions.parts_of(
            function.get_concrete_function(),
            signature,
            job.params,
            job.options.get("opset", functions.OPSET),
        )


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Loads the file into ONNX Runtime; returns a function that runs it."""
    onnxruntime = packages.import_package("onnxruntime", "trying what was written as 'onnx'")
    options = onnxruntime.SessionOptions()
    if pairs.data_beside(target).exists():
        # The arrays stay in the file, which the system maps into memory.
        options.add_session_config_entry("session.disable_prepacking", "1")
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    # The file may lack inputs that no output depends on.
    inputs = [node.name for node in session.get_inputs()]
    names = [node.name for node in session.get_outputs()]

    def run(signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = session.run(names, {name: arrays[name] for name in inputs})
        return dict(zip(names, results, strict=True))

    return run


def precision(options: Mapping[str, Option]) -> Precision:
    """The precision that the option `quantize` allows."""
    return _PRECISION[options.get("quantize")]
