"""ONNX, by tf2onnx, run by ONNX Runtime on the CPU."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import onnx_recurrent, onnx_weights, packages
from jax2tf._src.export.job import Job, converting
from jax2tf._src.export.measures import Precision
from jax2tf._src.export.signatures import Signature
from jax2tf._src.lowering.passes import idioms
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.typing import Option

if TYPE_CHECKING:
    import onnx

OPTIONS = {
    "opset": range(7, 19),
    "quantize": (None, "float16", "int8_weights", "int4"),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

# tf2onnx is told what to make of the op of an LSTM, which it does not take by itself. That of ONNX
# Runtime takes a NaN for a number.
TARGET = dataclasses.replace(
    TARGETS["onnx"], finite_idioms=TARGETS["onnx"].finite_idioms | {idioms.LSTM}
)
REWRITERS = (onnx_recurrent.with_lstm,)

# The newest that tf2onnx writes.
_OPSET = 18
# The first whose integers have scales along an axis.
_OPSET_OF_SCALES = 13

_PRECISION = {
    None: Precision.FULL,
    "float16": Precision.FLOAT16_WEIGHTS,
    "int8_weights": Precision.INTEGER_WEIGHTS,
    "int4": Precision.FOUR_BIT_WEIGHTS,
}


def write(job: Job) -> int:
    """Writes the file `job.target`; returns the number of ops."""
    tf2onnx = packages.imported("tf2onnx", "the format 'onnx'")
    onnx = packages.imported("onnx", "the format 'onnx'")
    # It tells of what it cannot convert; the error that comes of it says so too.
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)
    (function,) = job.program().functions.values()
    with converting("tf2onnx", job):
        model, _ = tf2onnx.convert.from_function(
            function,
            input_signature=function.input_signature,
            opset=job.options.get("opset", _OPSET),
            custom_rewriter=list(REWRITERS),
        )
        # It leaves an op that it does not know in the graph as it is.
        onnx.checker.check_model(model)
    kind = job.options.get("quantize")
    if kind is not None:
        onnx_weights.store(model, kind)
        onnx.checker.check_model(model)
    _rename_inputs(model.graph, job.signatures[0])
    onnx.helper.set_model_props(model, dict(job.metadata))
    job.target.write_bytes(model.SerializeToString())
    return sum(node.op_type != "Constant" for node in onnx_weights.nodes(model.graph))


def _rename_inputs(graph: onnx.GraphProto, signature: Signature) -> None:
    """Gives inputs the names of the signature: TensorFlow's graph has them in lower case."""
    names = {spec.name.lower(): spec.name for spec in signature.inputs}
    renamed = {value.name: names[value.name.lower()] for value in graph.input}
    for node in onnx_weights.nodes(graph):
        node.input[:] = [renamed.get(name, name) for name in node.input]
    for value in graph.input:
        value.name = renamed[value.name]


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """What runs the function of the file."""
    onnxruntime = packages.imported("onnxruntime", "trying what was written as 'onnx'")
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    # An input that nothing depends on may be gone.
    taken = [node.name for node in session.get_inputs()]
    names = [node.name for node in session.get_outputs()]

    def run(signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = session.run(names, {name: arrays[name] for name in taken})
        return dict(zip(names, results, strict=True))

    return run


def precision(options: Mapping[str, Option]) -> Precision:
    """By the option `quantize`; ONNX Runtime computes in the dtypes of the graph."""
    return _PRECISION[options.get("quantize")]


def check_options(options: Mapping[str, Option]) -> None:
    """Refuses options that exclude each other.

    Raises:
      ValueError: integers in an opset that has no scales along an axis.
    """
    opset, kind = options.get("opset", _OPSET), options.get("quantize")
    if kind in ("int8_weights", "int4") and opset < _OPSET_OF_SCALES:
        raise ValueError(
            f"jax2tf.export: quantize={kind!r} needs opset={_OPSET_OF_SCALES} or a later one, "
            f"whose integers have scales along an axis, got opset={opset}"
        )


def refuse_large(size: int) -> None:
    """Refuses parameters that one file of ONNX cannot hold.

    Raises:
      ExportError: they have 2 GB or more.
    """
    if size >= 2**31:
        raise ExportError(
            f"jax2tf.export: the parameters have {size / 2**30:.1f} GB, and a file of ONNX holds "
            "less than 2 GB. What to do: write a SavedModel, or parameters of fewer bits"
        )
