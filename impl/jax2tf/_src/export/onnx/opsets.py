"""The versions of ONNX's ops that can be written: those that ONNX Runtime loads."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence

from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

OLDEST = 18
DEFAULT = 21


class Opsets(Sequence[int]):
    """The opsets from 18 to the newest of the installed packages, which are asked at first use."""

    def __getitem__(self, place: PyTree) -> PyTree:
        return range(OLDEST, newest() + 1)[place]

    def __len__(self) -> int:
        return newest() + 1 - OLDEST

    def __iter__(self) -> Iterator[int]:
        return iter(range(OLDEST, newest() + 1))


@cached
def newest() -> int:
    """The newest opset that the installed onnx has and that the installed ONNX Runtime loads."""
    if importlib.util.find_spec("onnx") is None:
        return DEFAULT
    onnx = importlib.import_module("onnx")
    of_onnx: int = onnx.defs.onnx_opset_version()
    if importlib.util.find_spec("onnxruntime") is None:
        return of_onnx
    return next(opset for opset in range(of_onnx, OLDEST - 1, -1) if _is_loaded(onnx, opset))


def _is_loaded(onnx: PyTree, opset: int) -> bool:
    """Whether ONNX Runtime loads a model of the opset; no function of its own tells the newest."""
    onnxruntime = importlib.import_module("onnxruntime")
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "opset", [x], [y])
    imports = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(imports)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    # The base class of its errors is in a private module.
    except Exception:
        return opset <= OLDEST
    return True
