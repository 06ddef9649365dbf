"""Writes OpenVINO models (.xml and .bin), and runs them on the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from jax2tf._src.export import disk, openvino_weights, packages, serving
from jax2tf._src.export.job import Job, converting
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.util.typing import Option, PyTree

OPTIONS = {
    "compress_to_fp16": (False, True),
    "quantize": (None, "int8_weights", "int4"),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

_PRECISION = {
    "int8_weights": Precision.INTEGER_WEIGHTS,
    "int4": Precision.FOUR_BIT_WEIGHTS,
}

# Without this hint OpenVINO computes float32 as bfloat16 on processors with units for it.
_SETTINGS = {"INFERENCE_PRECISION_HINT": "f32"}

_NOT_COUNTED = frozenset({"Constant", "Parameter", "Result"})


def _openvino() -> PyTree:
    with _without_telemetry():
        return packages.import_package("openvino", "the format 'openvino'")


@contextlib.contextmanager
def _without_telemetry() -> Iterator[None]:
    """Hides OpenVINO's telemetry package, by which OpenVINO reports conversions to its makers."""
    is_hidden = "openvino_telemetry" not in sys.modules
    if is_hidden:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_hidden:
            sys.modules.pop("openvino_telemetry", None)


def write(job: Job) -> int:
    """Writes the file `job.target` and a .bin beside it; returns the number of ops."""
    openvino = _openvino()
    # OpenVINO loses the names of outputs when it converts a tf.function instead of a SavedModel.
    folder = job.saved_model()
    with converting("the converter of OpenVINO", job), _without_telemetry():
        model = openvino.convert_model(str(folder))
    kind = job.options.get("quantize")
    if kind is not None:
        openvino_weights.store(model, kind)
    # OpenVINO writes the path of what it read, which was a temporary folder.
    model.set_rt_info("saved_model", ["conversion_parameters", "input_model"])
    for key, value in job.metadata.items():
        model.set_rt_info(value, ["jax2tf", key])
    with disk.saved_by("OpenVINO"):
        openvino.save_model(
            model, str(job.target), compress_to_fp16=job.options.get("compress_to_fp16", False)
        )
    return sum(op.get_type_name() not in _NOT_COUNTED for op in model.get_ops())


def add_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    """Adds entries to the metadata in the .xml."""
    text = target.read_text(encoding="utf-8")
    before, end, after = text.rpartition("\t\t</jax2tf>")
    more = "".join(f"\t\t\t<{key} value={quoteattr(value)} />\n" for key, value in metadata.items())
    target.write_text(before + more + end + after, encoding="utf-8")


def ports(target: Path) -> serving.Ports:
    """The inputs and the outputs of the model."""
    model = read(target)
    given, results = (list(map(_port, side)) for side in (model.inputs, model.outputs))
    return given, results


def _port(port: PyTree) -> serving.Port:
    sizes = [-1 if d.is_dynamic else d.get_length() for d in port.get_partial_shape()]
    return port.get_any_name(), np.dtype(port.get_element_type().to_dtype()), sizes


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Compiles the model; returns a function that runs it."""
    compiled = compiled_of(str(target))
    # The model may lack inputs that no output depends on.
    inputs = {name for port in compiled.inputs for name in port.get_names()}

    def run(signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = compiled({name: a for name, a in arrays.items() if name in inputs})
        return {name: results[port] for port in compiled.outputs for name in port.get_names()}

    return run


def compiled_of(model: PyTree) -> PyTree:
    """A model, or the path of one, compiled for the CPU with the precision of its numbers."""
    return _openvino().compile_model(model, "CPU", _SETTINGS)


def read(path: Path) -> PyTree:
    """The model in a file."""
    return _openvino().Core().read_model(str(path))


def precision(options: Mapping[str, Option]) -> Precision:
    """The precision that the options `quantize` and `compress_to_fp16` allow."""
    if options.get("quantize") is not None:
        return _PRECISION[options["quantize"]]
    is_half = options.get("compress_to_fp16", False)
    return Precision.FLOAT16_WEIGHTS if is_half else Precision.FULL
