"""Writes LiteRT files (.tflite) with builtin ops only.

Where TensorFlow is installed, tf.lite's converter writes them; elsewhere our writer does (tflite/).
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.export import packages
from jax2tf._src.export.job import REFUSALS, Job, converting
from jax2tf._src.export.signatures import Signature
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.util.lazy_imports import has_tensorflow, tf
from jax2tf._src.util.typing import Option, PyTree

OPTIONS = {
    "quantize": (None, "dynamic", "float16", "int8", "int4"),
    "representative_data": None,
    "integer_io": (False, True),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

_WRITER = "the writer of LiteRT files"

# LiteRT's converter stores every constant as float16, even 1e-8, and has no int4. We store these.
_STORED_BY_US = ("float16", "int4")
# Without TensorFlow we store these too.
_STORED_WITHOUT_TENSORFLOW = (*_STORED_BY_US, "dynamic")

METADATA = "jax2tf.json"

_PRECISION = {
    None: Precision.FULL,
    "float16": Precision.FLOAT16_WEIGHTS,
    "dynamic": Precision.INTEGER_WEIGHTS,
    "int8": Precision.INTEGER,
    "int4": Precision.FOUR_BIT_WEIGHTS,
}


def check_options(options: Mapping[str, Option]) -> None:
    """Refuses options that need each other.

    Raises:
      ValueError: full-integer quantisation without representative data, or the other way round.
      MissingPackageError: the integers are those of TensorFlow's converter, which is not installed.
    """
    kind = options.get("quantize")
    if kind == "int8" and not has_tensorflow():
        packages.require(
            ["litert_quantizer"],
            "quantize='int8' of the format 'litert' where TensorFlow is not installed",
            "pass another quantize, which needs neither",
        )
    is_integer = kind == "int8"
    has_data = options.get("representative_data") is not None
    if is_integer and not has_data:
        raise ValueError(
            "jax2tf.export: quantize='int8' needs representative_data, inputs from which the "
            "ranges of all tensors are learned: representative_data=[inputs, ...], each given as "
            "the specs are"
        )
    if not is_integer:
        for name in ("representative_data", "integer_io"):
            # The truth value of an array is an error.
            if options.get(name) is not None and options[name] is not False:
                raise ValueError(
                    f"jax2tf.export: the option {name!r} belongs to quantize='int8', and quantize "
                    f"is {options.get('quantize')!r}"
                )


def require_writer() -> None:
    """Refuses to begin without the package that writes the file.

    Raises:
      MissingPackageError: neither TensorFlow nor ai-edge-litert is installed.
    """
    if not has_tensorflow():
        packages.require(
            ["ai_edge_litert", "flatbuffers"],
            "the format 'litert' where TensorFlow is not installed",
        )


def write(job: Job) -> int:
    """Writes the file `job.target`; returns the number of ops."""
    content, ops = _by_tensorflow(job) if has_tensorflow() else _without_tensorflow(job)
    job.target.write_bytes(content)
    _append(job.target, job.metadata)
    return ops


def add_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    """Adds entries to the metadata of the file."""
    with zipfile.ZipFile(target) as archive:
        entry = archive.getinfo(METADATA)
        known = json.loads(archive.read(entry))
    os.truncate(target, entry.header_offset)
    _append(target, {**known, **metadata})


def _append(target: Path, metadata: Mapping[str, str]) -> None:
    # LiteRT keeps files of metadata in a zip archive at the end of the model.
    # It has a fixed time, so that the same model is the same bytes.
    entry = zipfile.ZipInfo(METADATA)
    entry.external_attr = 0o600 << 16
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr(entry, json.dumps(metadata, indent=2) + "\n")


def _by_tensorflow(job: Job) -> tuple[bytes, int]:
    """The content of the file by TensorFlow's converter, and the number of ops."""
    names = [signature.name for signature in job.signatures]
    with _without_advice():
        converter = tf.lite.TFLiteConverter.from_saved_model(
            str(job.saved_model()), signature_keys=names
        )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    # LiteRT's converter would write the largest finite number for an infinite constant.
    converter.canonicalizing_inf_as_min_max_float = False
    _quantize(converter, job)
    with converting("the converter of LiteRT", job), _without_advice():
        content = converter.convert()
    if job.options.get("quantize") in _STORED_BY_US:
        return _stored(content, job)
    return content, _count_ops(content)


def _without_tensorflow(job: Job) -> tuple[bytes, int]:
    """The content of the file by our writer, and the number of ops."""
    own_graphs = importlib.import_module("jax2tf._src.export.tflite.own_graphs")
    programs = own_graphs.programs_of(job.signatures, job.params, job.convert)
    with converting(_WRITER, job, refusals=REFUSALS):
        content, ops = own_graphs.content_of(programs)
        if job.options.get("quantize") in _STORED_WITHOUT_TENSORFLOW:
            content, ops = _stored(content, job)
    if job.options.get("quantize") == "int8":
        content, ops = _in_integers(content, job)
    # The interpreter refuses a use of an op that it lacks when it loads the file.
    with converting("the interpreter of LiteRT", job):
        importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_content=content)
    return content, ops


def _stored(content: bytes, job: Job) -> tuple[bytes, int]:
    """The content with the weights in fewer bits, and the number of ops."""
    weights = importlib.import_module("jax2tf._src.export.litert_files.weights")
    stored: tuple[bytes, int] = weights.stored(content, job.options["quantize"])
    return stored


def _in_integers(content: bytes, job: Job) -> tuple[bytes, int]:
    """The content with integers for weights and activations, and the number of ops."""
    integers = importlib.import_module("jax2tf._src.export.litert_files.integers")
    feeds = _feeds(job.signatures, job.options["representative_data"])
    ranges = integers.ranges_of(content, feeds)
    with converting("litert-quantizer", job):
        quantized: tuple[bytes, int] = integers.quantized(
            content, ranges, integer_io=job.options.get("integer_io", False)
        )
    return quantized


def _quantize(converter: tf.lite.TFLiteConverter, job: Job) -> None:
    kind = job.options.get("quantize")
    if kind is None or kind in _STORED_BY_US:
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "int8":
        samples = job.options["representative_data"]
        converter.representative_dataset = lambda: _feeds(job.signatures, samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        if job.options.get("integer_io"):
            converter.inference_input_type = tf.int8
            converter.inference_output_type = tf.int8


def _feeds(
    signatures: Sequence[Signature], samples: Mapping[str, Sequence[Sequence[np.ndarray]]]
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for signature in signatures:
        names = [spec.name for spec in signature.inputs]
        for arrays in samples[signature.name]:
            yield signature.name, dict(zip(names, arrays, strict=True))


def _count_ops(content: bytes) -> int:
    with contextlib.redirect_stdout(io.StringIO()) as report:
        tf.lite.experimental.Analyzer.analyze(model_content=content)
    return len(re.findall(r"^\s*Op#\d+ ", report.getvalue(), flags=re.MULTILINE))


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Loads the file into ai-edge-litert's interpreter if installed, else into tf.lite's."""
    interpreter = _interpreter(str(target))

    def run(signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        runner = interpreter.get_signature_runner(signature)
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
        feed = {name: _quantized(arrays[name], detail) for name, detail in inputs.items()}
        results = runner(**feed)
        return {name: _dequantized(result, outputs[name]) for name, result in results.items()}

    return run


def _interpreter(path: str) -> PyTree:
    if packages.is_installed("ai_edge_litert"):
        module = importlib.import_module("ai_edge_litert.interpreter")
        return module.Interpreter(path)
    with _without_advice():
        return tf.lite.Interpreter(path)


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Hides two warnings of TensorFlow that do not concern LiteRT files.

    One says that ai-edge-litert replaces tf.lite.Interpreter, which the converter uses to
    calibrate. The other says that the graph has no gradients, which no LiteRT file has.
    """
    logger = logging.getLogger("absl")
    logger.addFilter(_is_not_of_gradients)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\s*Warning: tf\.lite\.Interpreter", UserWarning)
            yield
    finally:
        logger.removeFilter(_is_not_of_gradients)


def _is_not_of_gradients(record: logging.LogRecord) -> bool:
    return "unsaved custom gradients" not in record.getMessage()


def _quantized(array: np.ndarray, detail: Mapping[str, PyTree]) -> np.ndarray:
    scale, zero = detail["quantization"]
    if not scale or array.dtype == detail["dtype"]:
        return array
    limits = np.iinfo(detail["dtype"])
    integers = np.clip(np.round(array / scale) + zero, limits.min, limits.max)
    return integers.astype(detail["dtype"])


def _dequantized(array: np.ndarray, detail: Mapping[str, PyTree]) -> np.ndarray:
    scale, zero = detail["quantization"]
    if not scale:
        return array
    return (array.astype(np.float32) - zero) * np.float32(scale)


def precision(options: Mapping[str, Option]) -> Precision:
    """The precision that the option `quantize` allows."""
    return _PRECISION[options.get("quantize")]
