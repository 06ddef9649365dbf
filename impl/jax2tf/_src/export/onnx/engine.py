"""Writes ONNX files, with our writer or with tf2onnx, and runs them in ONNX Runtime on the CPU."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import packages
from jax2tf._src.export.job import Job, converting
from jax2tf._src.export.onnx import pairs, recurrent, weights
from jax2tf._src.export.signatures import Signature
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes import idioms
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.typing import Option

if TYPE_CHECKING:
    import onnx

    from jax2tf._src.export.onnx import storage

# Which writes the file.
_OURS, _TF2ONNX = _WRITERS = ("jax2tf", "tf2onnx")
_DEFAULT_WRITER = _OURS

# The opsets of our writer. The newest is that of ONNX Runtime 1.31.
_OLDEST_OPSET, _NEWEST_OPSET = 18, 25

OPTIONS = {
    "opset": range(7, _NEWEST_OPSET + 1),
    "writer": _WRITERS,
    "quantize": (None, "float16", "int8_weights", "int4"),
    "external_data": (None, False, True),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

# A rewriter tells tf2onnx how to convert our LSTM op. The LSTM of ONNX Runtime is wrong for NaN.
TARGET = dataclasses.replace(
    TARGETS["onnx"], finite_idioms=TARGETS["onnx"].finite_idioms | {idioms.LSTM}
)
REWRITERS = (recurrent.with_lstm,)

# The newest opset that tf2onnx writes, and its default.
_OPSET = 18
# The first opset whose DequantizeLinear has scales along an axis.
_OPSET_OF_SCALES = 13

_PRECISION = {
    None: Precision.FULL,
    "float16": Precision.FLOAT16_WEIGHTS,
    "int8_weights": Precision.INTEGER_WEIGHTS,
    "int4": Precision.FOUR_BIT_WEIGHTS,
}


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Hides the log of tf2onnx, which names each op that it cannot convert. So does our error."""
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def write(job: Job) -> int:
    """Writes the file `job.target`; returns the number of ops.

    Raises:
      ExportError: the function has no results, or one file cannot hold the model.
    """
    onnx = packages.import_package("onnx", "the format 'onnx'")
    packages.require(["onnx_ir"], "the format 'onnx'")
    # It imports onnx and onnx-ir.
    storage = importlib.import_module("jax2tf._src.export.onnx.storage")
    ours = _writer(job.options) == _OURS
    parts = _written(job) if ours else storage.Parts(_written_by_tf2onnx(job), {})
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


def _writer(options: Mapping[str, Option]) -> Option:
    return options.get("writer", _DEFAULT_WRITER)


def _written(job: Job) -> storage.Parts:
    """The model of our writer."""
    functions = importlib.import_module("jax2tf._src.export.onnx.functions")
    (function,) = job.program().functions.values()
    (signature,) = job.signatures
    with converting("the writer of ONNX", job):
        return functions.parts_of(
            function.get_concrete_function(),
            signature,
            job.params,
            job.options.get("opset", functions.OPSET),
        )


def _written_by_tf2onnx(job: Job) -> onnx.ModelProto:
    tf2onnx = packages.import_package("tf2onnx", "the format 'onnx'")
    onnx = packages.import_package("onnx", "the format 'onnx'")
    (function,) = job.program().functions.values()
    with converting("tf2onnx", job), _without_log():
        model, _ = tf2onnx.convert.from_function(
            function,
            input_signature=function.input_signature,
            opset=job.options.get("opset", _OPSET),
            custom_rewriter=list(REWRITERS),
        )
        # tf2onnx keeps an unknown op in the graph; the checker refuses it.
        onnx.checker.check_model(model)
    _rename_inputs(model.graph, job.signatures[0])
    return model


def _rename_inputs(graph: onnx.GraphProto, signature: Signature) -> None:
    """Restores the names of the inputs, which TensorFlow's graph has in lower case."""
    names = {spec.name.lower(): spec.name for spec in signature.inputs}
    renamed = {value.name: names[value.name.lower()] for value in graph.input}
    for node in weights.nodes(graph):
        node.input[:] = [renamed.get(name, name) for name in node.input]
    for value in graph.input:
        value.name = renamed[value.name]


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


def check_options(options: Mapping[str, Option]) -> None:
    """Refuses options that exclude each other.

    Raises:
      ValueError: the opset has no scales along an axis, which integer weights need, or the writer
        does not write it.
    """
    opset, kind = options.get("opset", _OPSET), options.get("quantize")
    writer = _writer(options)
    if (opset < _OLDEST_OPSET) if writer == _OURS else (opset > _OPSET):
        others = f"{_OLDEST_OPSET} to {_NEWEST_OPSET}" if writer == _OURS else f"7 to {_OPSET}"
        raise ValueError(
            f"jax2tf.export: writer={writer!r} writes the opsets {others}, got opset={opset}"
        )
    if kind in ("int8_weights", "int4") and opset < _OPSET_OF_SCALES:
        raise ValueError(
            f"jax2tf.export: quantize={kind!r} needs opset={_OPSET_OF_SCALES} or a later one, "
            f"whose integers have scales along an axis, got opset={opset}"
        )
