"""Exports all models to an engine in a process in which `import tensorflow` raises.

    python -m tests.consumers.models.without_tensorflow FOLDER .onnx

The batch is open, and the length too where the model takes any; for LiteRT each model is exported
once. `export` compares the results of the engine with those of JAX. The program prints a line of
JSON for each export.
"""

from __future__ import annotations

import json
import pathlib
import sys

if __name__ == "__main__":
    sys.modules["tensorflow"] = None  # type: ignore[assignment]

import jax2tf
from tests.consumers.models import MODELS, Model

BATCHES = (1, 3)


def cases(suffix: str) -> list[tuple[str, bool]]:
    """The models by name, and whether the length is open."""
    if suffix == ".tflite":
        return [(name, model.has_length) for name, model in MODELS.items()]
    return [
        (n, is_open) for n, m in MODELS.items() for is_open in (False, True)[: 1 + m.has_length]
    ]


def error_of(model: Model, is_open: bool, path: pathlib.Path) -> str:
    """The error of an export; empty if there is none."""
    shapes = list(model.shapes) if is_open else model.shapes_with(l=model.length)
    inputs = [model.inputs(batch, model.length) for batch in BATCHES]
    specs = tuple(f"{s}:{x.dtype.name}" for s, x in zip(shapes, inputs[0], strict=True))
    try:
        jax2tf.export(
            model.function,
            None,
            specs,
            path,
            polymorphic_constraints=model.constraints if is_open else (),
            verify=inputs,
            progress=False,
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    for name, is_open in cases(sys.argv[2]):
        path = pathlib.Path(sys.argv[1]) / f"{name}_{is_open}{sys.argv[2]}"
        print(json.dumps([name, is_open, error_of(MODELS[name], is_open, path)]), flush=True)
