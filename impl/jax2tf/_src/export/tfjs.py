"""Writes models of TensorFlow.js (a folder with model.json and weights), and runs them in Node.js.

The converter of the package tensorflowjs writes them, with three changes:

- The package imports libraries for other formats, which pin other versions of TensorFlow and JAX.
  SavedModels do not need these libraries, so empty modules replace them during the import.
- The graph optimizer runs without its pass "remap", which fuses a matrix product with the function
  that follows. TensorFlow.js has the fused op only for some functions.
- Two defects of model.json are corrected. The package omits sizes of 0, and confuses the names of
  inputs and outputs of equal dtype and shape.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.api.errors import ExportError, MissingPackageError
from jax2tf._src.export.job import Job, converting
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.lowering.passes.value_checks import CHOICES
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Option, PyTree

OPTIONS = {
    "quantize": (None, "float16", "uint16", "uint8"),
    "assume_finite": (False, True),
    "value_checks": CHOICES,
}

_PRECISION = {
    None: Precision.FULL,
    "float16": Precision.FLOAT16_WEIGHTS,
    "uint16": Precision.FLOAT16_WEIGHTS,
    "uint8": Precision.INTEGER_WEIGHTS,
}

_OTHER_FORMATS = (
    "tensorflow_decision_forests",
    "tensorflow_hub",
    "tf_keras",
    "tensorflowjs.converters.jax_conversion",
)
_PROGRAM = Path(__file__).with_name("run_tfjs.js")
_NOT_COUNTED = frozenset({"Const", "Placeholder", "NoOp", "Identity"})


def write(job: Job) -> int:
    """Writes the folder `job.target`; returns the number of ops."""
    folder = job.saved_model()
    quantize = job.options.get("quantize")
    with _converter() as converter, converting("the converter of TensorFlow.js", job):
        converter.convert_tf_saved_model(
            str(folder),
            str(job.target),
            quantization_dtype_map={quantize: "*"} if quantize else None,
            strip_debug_ops=True,
            metadata={"jax2tf": dict(job.metadata)},
        )
    path = job.target / "model.json"
    model = _with_sizes(json.loads(path.read_text(encoding="utf-8")))
    _restore_names(model["signature"], job)
    # Attributes come in the order of protobuf's maps, which is another one in each process.
    model["modelTopology"] = json.loads(json.dumps(model["modelTopology"], sort_keys=True))
    path.write_text(json.dumps(model), encoding="utf-8")
    topology = model["modelTopology"]
    functions = topology.get("library", {}).get("function", [])
    nodes = [*topology["node"], *(node for f in functions for node in f.get("nodeDef", []))]
    return sum(node["op"] not in _NOT_COUNTED for node in nodes)


def add_metadata(target: Path, metadata: Mapping[str, str]) -> None:
    """Adds entries to the metadata of the folder."""
    path = target / "model.json"
    model = json.loads(path.read_text(encoding="utf-8"))
    model["userDefinedMetadata"]["jax2tf"].update(metadata)
    path.write_text(json.dumps(model), encoding="utf-8")


def _with_sizes(model: tf.compat.v1.GraphDef) -> PyTree:
    """The contents of a model.json with the size 0 for dimensions without a size."""
    if isinstance(model, list):
        return [_with_sizes(member) for member in model]
    if not isinstance(model, dict):
        return model
    return {
        key: [{"size": "0"} | dim for dim in value] if key == "dim" else _with_sizes(value)
        for key, value in model.items()
    }


def _restore_names(signature: tf.compat.v1.SignatureDef, job: Job) -> None:
    """Gives inputs and outputs the names that they have in the SavedModel.

    The nodes of inputs have the inputs' names in lower case. The nodes of outputs are Identity,
    Identity_1 and so on, in the order of the outputs' names.
    """
    (exported,) = job.signatures
    outputs = job.outputs[exported.name]
    names = {spec.name.lower(): spec.name for spec in exported.inputs}
    inputs = signature.get("inputs", {}).values()
    by_input = {t["name"].partition(":")[0].lower(): t for t in inputs}
    # In the order of the function: protobuf's is another one in each process.
    signature["inputs"] = {name: by_input[key] for key, name in names.items() if key in by_input}
    by_node = {t["name"].partition(":")[0]: t for t in signature["outputs"].values()}
    nodes = [f"Identity_{i}" if i else "Identity" for i in range(len(outputs))]
    signature["outputs"] = {
        name: by_node[node] for name, node in zip(sorted(outputs), nodes, strict=True)
    }


@contextlib.contextmanager
def _converter() -> Iterator[PyTree]:
    """The package's converter of SavedModels, without the pass "remap"."""
    absent = [name for name in _OTHER_FORMATS if name not in sys.modules]
    sys.modules.update({name: _EmptyModule(name) for name in absent})
    try:
        converter: PyTree = importlib.import_module(
            "tensorflowjs.converters.tf_saved_model_conversion_v2"
        )
    finally:
        for name in absent:
            del sys.modules[name]
    optimizer = converter.tf_optimizer
    converter.tf_optimizer = types.SimpleNamespace(
        OptimizeGraph=lambda config, *graph, **settings: optimizer.OptimizeGraph(
            _without_remap(config), *graph, **settings
        )
    )
    try:
        yield converter
    finally:
        converter.tf_optimizer = optimizer


def _without_remap(config: tf.compat.v1.ConfigProto) -> PyTree:
    passes = config.graph_options.rewrite_options.optimizers
    passes[:] = [name for name in passes if name != "remap"]
    return config


class _EmptyModule(types.ModuleType):
    """A module in which every public name is an empty class."""

    def __getattr__(self, name: str) -> PyTree:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def require_node() -> None:
    """Refuses to begin without Node.js and its package @tensorflow/tfjs.

    Raises:
      MissingPackageError: one of them is not installed.
    """
    if shutil.which("node") is None:
        _raise_missing("the program node (Node.js 18 or later)")
    find = "require.resolve('@tensorflow/tfjs', {paths: ['.']})"
    if subprocess.run(["node", "--eval", find], capture_output=True, check=False).returncode:
        _raise_missing("the Node.js package @tensorflow/tfjs (npm install @tensorflow/tfjs)")


def _raise_missing(lack: str) -> None:
    raise MissingPackageError(
        f"jax2tf.export: trying what was written as 'tfjs' needs {lack}, which is not installed. "
        "What to do: install it where this program runs, or point the environment variable "
        "NODE_PATH to its node_modules; or pass verify=False to leave it untried"
    )


def load(
    target: Path, job: Job
) -> Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Returns a function that runs the model, in a new process of Node.js for each call."""
    outputs = job.outputs[job.signatures[0].name]
    return lambda signature, arrays: run(target, arrays, outputs)


def run(
    target: Path, arrays: Mapping[str, np.ndarray], outputs: Sequence[str]
) -> dict[str, np.ndarray]:
    """The results of a model in a new process of Node.js.

    Args:
      target: the folder of the model.
      arrays: the inputs by name.
      outputs: the names of outputs, or of results of nodes.

    Raises:
      jax2tf.ExportError: the model cannot be read, or does not run.
    """
    inputs = {name: _encoded(array) for name, array in arrays.items()}
    request = {"folder": str(target), "inputs": inputs, "outputs": list(outputs)}
    done = subprocess.run(
        ["node", str(_PROGRAM)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ExportError(f"TensorFlow.js: {done.stderr.strip()[-2000:]}")
    return {name: _decoded(answer) for name, answer in json.loads(done.stdout).items()}


def _encoded(array: np.ndarray) -> dict[str, object]:
    content = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": array.shape, "content": content}


def _decoded(answer: Mapping[str, PyTree]) -> np.ndarray:
    content = base64.b64decode(answer["content"])
    return np.frombuffer(content, answer["dtype"]).reshape(answer["shape"])


def precision(options: Mapping[str, Option]) -> Precision:
    """The precision that the option `quantize` allows."""
    return _PRECISION[options.get("quantize")]
