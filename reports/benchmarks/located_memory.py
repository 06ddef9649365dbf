"""The memory that a search takes, beside that of an export with verification, each in a process."""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jax2tf
from reports.benchmarks import memory
from reports.benchmarks.located_models import Model

# The program has this number of parameters of 4 MB: enough to tell them from the libraries.
_LAYERS = 16
_SIZE = 1024


def peaks(engine: str, suffix: str) -> dict[str, int]:
    """The largest memory of a process that exports and verifies, and of one that locates, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{engine}{suffix}"
        # The second process reads the file that the first one writes.
        return {what: _in_a_process(what, path) for what in ("verified", "located")}


def _in_a_process(what: str, path: Path) -> int:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (what, path))


def _peak(what: str, path: Path) -> int:
    model = large()
    if what == "verified":
        jax2tf.export(model.function, model.params, model.specs, path, progress=False)
    else:
        model.params["w7"] = model.params["w7"] * np.float32(1.05)
        found = jax2tf.locate(model.function, model.params, model.specs, path)
        assert found.layer == "['w7']", found
    # The maximum of getrusage counts what the process had that started this one.
    return memory.resident("VmHWM") >> 20


def large() -> Model:
    """A program with large parameters."""
    rng = np.random.default_rng(0)
    params = {
        f"w{i}": (rng.normal(size=(_SIZE, _SIZE)) / np.sqrt(_SIZE)).astype(np.float32)
        for i in range(_LAYERS)
    }
    return Model(_products, params, f"4, {_SIZE}")


def _products(params: Any, x: jax.Array) -> dict[str, jax.Array]:
    for i in range(_LAYERS):
        x = jnp.tanh(x @ params[f"w{i}"])
    return {"y": x}
