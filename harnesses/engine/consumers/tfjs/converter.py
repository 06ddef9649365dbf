"""SavedModels to models of TensorFlow.js, by the converter of the package tensorflowjs.

    python -m harnesses.engine.consumers.tfjs SAVED_MODEL FOLDER

As `tensorflowjs_converter --strip_debug_ops=True` does it, with three differences:

- The package imports, for readers of other formats, libraries that pin other versions of TensorFlow
  and JAX. The reader of SavedModels needs none of them, so it is imported with nothing in their
  place, and the package is installed without its dependencies (pip's --no-deps).
- The graph optimizer's pass "remap" is left out. It fuses a matrix product with the function that
  follows, and TensorFlow.js has the fused op for some of the functions alone: not for tanh.
- A size of 0 is written into the shapes of model.json. The package writes them by protobuf's rules,
  which leave out what is 0, and TensorFlow.js takes what is left out for NaN.
"""

import functools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

_OTHER_FORMATS = (
    "tensorflow_decision_forests",
    "tensorflow_hub",
    "tf_keras",
    "tensorflowjs.converters.jax_conversion",
)


def write(saved_model: Path, folder: Path) -> None:
    """Writes the SavedModel's serving signature as a model.json and its weights into the folder.

    Raises:
      ValueError: if there are ops that TensorFlow.js does not know; it names them.
    """
    conversion = _conversion()
    with _without_remap(conversion):
        conversion.convert_tf_saved_model(
            str(saved_model),
            str(folder),
            # What a polymorphic shape assumes is asserted, which TensorFlow.js has no op for.
            strip_debug_ops=True,
        )
    path = folder / "model.json"
    model = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(with_sizes(model)), encoding="utf-8")


def with_sizes(model: Any) -> Any:
    """The contents of a model.json with `"size": "0"` for each dimension that says nothing."""
    if isinstance(model, list):
        return [with_sizes(member) for member in model]
    if not isinstance(model, dict):
        return model
    return {
        key: [{"size": "0"} | dim for dim in value] if key == "dim" else with_sizes(value)
        for key, value in model.items()
    }


@functools.cache
def _conversion() -> Any:
    absent = [name for name in _OTHER_FORMATS if name not in sys.modules]
    sys.modules.update({name: mock.MagicMock() for name in absent})
    try:
        from tensorflowjs.converters import tf_saved_model_conversion_v2
    finally:
        for name in absent:
            del sys.modules[name]
    return tf_saved_model_conversion_v2


@contextmanager
def _without_remap(conversion: Any) -> Iterator[None]:
    optimize = conversion.tf_optimizer.OptimizeGraph

    def optimize_otherwise(config: Any, *graph: Any, **settings: Any) -> Any:
        passes = config.graph_options.rewrite_options.optimizers
        passes[:] = [name for name in passes if name != "remap"]
        return optimize(config, *graph, **settings)

    with mock.patch.object(conversion.tf_optimizer, "OptimizeGraph", optimize_otherwise):
        yield
