"""`python -m harnesses locate CELL`: the equation at which a cell begins to differ from JAX.

The implementation's own `locate` answers, on the harness's function and arguments. A converter
without one cannot be asked.
"""

import importlib
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harnesses.cell.names import LOWERINGS
from harnesses.harness import Harness, all_harnesses

# The suffix of the file of each engine; other modes are graphs.
_SUFFIXES = {
    "savedmodel": "",
    "litert": ".tflite",
    "onnx": ".onnx",
    "openvino": ".xml",
    "tfjs": ".tfjs",
}
_GRAPHS = ("eager", "graph", "compiled")


class CellError(Exception):
    """A cell that `locate` cannot take."""


def located(cell: str, impl: str) -> Any:
    """The answer of an implementation's `locate` on a cell.

    Args:
      cell: its name, such as "sin_float32-cpu-xla-litert".
      impl: the module of the implementation.

    Raises:
      CellError: there is no such cell, or the implementation has no `locate`.
    """
    name, _, lowering, mode = (*cell.rsplit("-", 3), "", "", "")[:4]
    harness = _harness(name)
    if lowering not in LOWERINGS or mode not in (*_SUFFIXES, *_GRAPHS):
        raise CellError(
            f"{cell}: locate takes the lowerings {', '.join(LOWERINGS)} and the modes "
            f"{', '.join((*_GRAPHS, *_SUFFIXES))}"
        )
    module = importlib.import_module(impl)
    if not hasattr(module, "locate"):
        raise CellError(f"--impl {impl} has no function locate")
    with jax.enable_x64(harness.x64):
        args = jax.tree.map(np.asarray, harness.make_args())
        specs = tuple(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args))
        if mode in _GRAPHS:
            return module.locate(harness.fun, None, specs, mode, args, **LOWERINGS[lowering])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{harness.primitive}{_SUFFIXES[mode]}"
            module.export(harness.fun, None, specs, path, verify=False, progress=False)
            return module.locate(harness.fun, None, specs, path, args)


def _harness(name: str) -> Harness:
    for harness in all_harnesses():
        if harness.name == name:
            return harness
    raise CellError(f"there is no harness {name!r}; python -m harnesses list names them")
