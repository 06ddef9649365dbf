"""Writes LiteRT files (.tflite) by tf.lite's converter, with builtin ops only."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.export import litert_weights, packages
from jax2tf._src.export.job import Job, converting
from jax2tf._src.export.signatures import Signature
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Option, PyTree

OPTIONS = {
    "quantize": (None, "dynamic", "float16", "int8", "int4"),
    "representative_data": None,
    "integer_io": (False, True),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

# LiteRT's converter stores every constant as float16, even 1e-8, and has no int4. We store these.
_STORED_BY_US = ("float16", "int4")

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
    """
    is_integer = options.get("quantize") == "int8"
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


def write(job: Job) -> int:
    """Writes the file `job.target`; returns the number of ops."""
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
    kind = job.options.get("quantize")
    if kind in _STORED_BY_US:
        content = litert_weights.stored(content, kind)
    job.target.write_bytes(content)
    # LiteRT keeps files of metadata in a zip archive at the end of the model.
    with zipfile.ZipFile(job.target, "a") as archive:
        archive.writestr(METADATA, json.dumps(job.metadata, indent=2) + "\n")
    return _count_ops(content)


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
