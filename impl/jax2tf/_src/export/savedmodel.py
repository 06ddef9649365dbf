"""Writes SavedModels with variables and gradients, and runs them in TensorFlow."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.graphs import count_ops
from jax2tf._src.export.job import Job
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Option

# These options of `convert` and `Module` change a SavedModel.
OPTIONS = {
    "trainable": None,
    "with_gradient": (True, False),
    "saved_gradient_order": None,
    "enable_xla": (True, False),
    "value_checks": CHOICES,
}

# SavedModels have the folder assets.extra for files of the user.
METADATA = Path("assets.extra/jax2tf.json")


def write(job: Job) -> int:
    """Writes the folder `job.target`; returns the number of ops."""
    program = job.program(**job.options)
    with _saving_gradients():
        program.save(job.target, with_gradients=job.options.get("with_gradient", True))
    (job.target / METADATA).parent.mkdir()
    _write_metadata(job.target, job.metadata)
    fingerprint = job.target / "fingerprint.pb"
    fingerprint.write_bytes(compat.graphs.with_derived_identifier(fingerprint.read_bytes()))
    functions = [f.get_concrete_function() for f in program.functions.values()]
    return sum(count_ops(function.graph.as_graph_def()) for function in functions)


def add_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    """Adds entries to the metadata of the SavedModel."""
    known = json.loads((target / METADATA).read_text(encoding="utf-8"))
    _write_metadata(target, {**known, **metadata})


def _write_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    (target / METADATA).write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _saving_gradients() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        # TensorFlow logs the cause and raises this error instead.
        if "tracing gradients for SavedModel" not in str(error):
            raise
        raise ExportError(
            "jax2tf.export: the SavedModel cannot hold the gradients of the function: "
            f"jax2tf cannot lower them: {_reason(error)}. What to do: pass "
            "with_gradient=False, which saves it without gradients"
        ) from error


def _reason(error: BaseException) -> str:
    """The first line of the error about the gradient."""
    return str(error.__context__ or error).partition("\n")[0].rstrip(".")


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Restores the SavedModel; returns a function that runs its signatures."""
    restored = tf.saved_model.load(str(target))

    def run(signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        results = restored.signatures[signature](**tensors)
        return {name: result.numpy() for name, result in results.items()}

    return run


def precision(options: Mapping[str, Option]) -> Precision:
    """The full precision, because no option changes it."""
    return Precision.FULL
