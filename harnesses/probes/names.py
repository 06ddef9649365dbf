"""What ops are tried in, by name: nothing of an engine is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The modules whose versions say what was tried, by target.
ENGINES: Mapping[str, Sequence[str]] = {
    "xla": ("tensorflow",),
    "tensorflow": ("tensorflow",),
    "litert": ("tensorflow", "ai_edge_litert"),
    "onnx": ("tensorflow", "onnx_ir", "onnxruntime"),
    "openvino": ("tensorflow", "openvino"),
    "tfjs": ("tensorflow", "tensorflowjs"),
    "coreml": ("tensorflow", "coremltools"),
}


# The dtypes that uses are tried with, where these are not all: those of Core ML's arrays.
DTYPES: Mapping[str, Sequence[str]] = {"coreml": ("bool", "int32", "float16", "float32")}
