"""Which models run in which engine, as the guide of engines says it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.consumers.models import FIELDS, Model

_ENGINES = {
    "litert": "LiteRT",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO",
    "tfjs": "TensorFlow.js",
}

# What the target of an engine refuses when a model is converted for it: the words of the message.
REFUSED: Mapping[tuple[str, str], str] = {}

# Where all sizes are known the engine ends the process: see "OpenVINO" in the guide.
ENDS_THE_PROCESS = {("openvino", "policy")}


def table() -> str:
    """The table: what of each model's sizes may be open, or that the target refuses it."""
    lines = [
        f"| Model | {' | '.join(_ENGINES.values())} |",
        "| --- " * (len(_ENGINES) + 1) + "|",
    ]
    for field, models in FIELDS.items():
        for name, model in models.items():
            cells = [_cell(engine, name, model) for engine in _ENGINES]
            lines.append(f"| {field}: {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(engine: str, name: str, model: Model) -> str:
    if (engine, name) in REFUSED:
        return "refused"
    if (engine, name) in ENDS_THE_PROCESS:
        return "batch, open alone"
    return "batch, length" if model.has_length else "batch"
