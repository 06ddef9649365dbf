"""OpenVINO: reads the SavedModel, runs on the CPU."""

import sys
from collections.abc import Sequence

import numpy as np

from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph, saved

# Where it finds its telemetry it forks a process at each conversion to report it.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

import openvino  # noqa: E402

_SETTINGS = {
    # On processors with faster units for bfloat16 it would compute float32 in those.
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": 1,
}

# The places in its own source, names of nodes, and where its documentation is.
NOISE = (
    (r"(?:Exception from src/\S+: ?\s*)+", ""),
    (r" at src/\S+", ""),
    (r"FrontEnd API failed with OpConversionFailure:\n", ""),
    (r"(?s)Check 'false' failed\nModel wasn't fully converted.*?-- ", ""),
    (r"(?s)\nTo facilitate the conversion.*", ""),
)


_NOT_COUNTED = ("Constant", "Parameter", "Result")


def count_ops(graph: Graph) -> int:
    """How many ops the model has; a loop is one."""
    with saved(graph) as folder:
        ops = openvino.convert_model(folder).get_ops()
    return sum(op.get_type_name() not in _NOT_COUNTED for op in ops)


def convert(graph: Graph) -> Model:
    """The graph as a compiled OpenVINO model."""
    # From the function itself names of outputs are lost, and with them which is which.
    with saved(graph) as folder:
        model = openvino.convert_model(folder)
    known = {name for output in model.outputs for name in output.get_names()}
    missing = [name for name in graph.outputs if name not in known]
    if missing:
        raise LookupError(f"OpenVINO's model has {len(missing)} outputs too few")
    taken = {name for port in model.inputs for name in port.get_names()}
    compiled = openvino.compile_model(model, "CPU", _SETTINGS)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        feed = {n: a for n, a in zip(graph.inputs, arrays, strict=True) if n in taken}
        results = compiled(feed)
        return [results[name] for name in graph.outputs]

    return run
