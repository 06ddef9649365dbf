"""TensorFlow's public API: what the modules beside this one register, laid out as TensorFlow does.

`tf.math.exp` is an attribute, and `tf.math` also a module to import from. A name that is not here
says whether TensorFlow has it, and what is near.
"""

from __future__ import annotations

import sys
from typing import Any

from tf_substrates.numpy import (  # noqa: F401  # each registers its names
    arrays,
    binomial_samples,
    branches,
    composite_tensors,
    control_flow,
    convolutions,
    cosine_transforms,
    datasets,
    debugging,
    dtypes,
    errors,
    forward_accumulator,
    functions,
    gamma_samples,
    gradient_tape,
    graph_names,
    images,
    indexed_slices,
    initializers,
    linalg,
    linear_operators,
    linear_systems,
    logging_functions,
    losses,
    math,
    matrix_functions,
    modules,
    namespaces,
    nest,
    nest_up_to,
    neural_networks,
    operands,
    poisson_samples,
    pooling,
    printing,
    private_names,
    python_functions,
    random,
    raw_ops,
    reductions,
    sets,
    shapes,
    signal,
    sparse,
    spectrograms,
    statistics,
    tensor_array,
    tensors,
    testing,
    variables,
    while_loops,
)
from tf_substrates.numpy.namespaces import EXPORTS, Namespace
from tf_substrates.tensorflow_names import VERSION


def _build(root: Any) -> None:
    sys.modules[root.__name__] = root
    for public, symbol in EXPORTS.items():
        *path, last = public.split(".")
        setattr(_namespace(root, path), last, symbol)
    for version in ("v1", "v2"):
        alias = _namespace(root, ["compat", version])
        for name, symbol in vars(root).items():
            if name != "compat" and not name.startswith("_"):
                _add(alias, name, symbol)


def _add(owner: Any, name: str, symbol: Any) -> None:
    """A symbol beside those that a version has of its own, in the modules below it too."""
    if name in vars(owner) and isinstance(symbol, Namespace):
        for inner, below in list(vars(symbol).items()):
            if not inner.startswith("_"):
                _add(vars(owner)[name], inner, below)
    else:
        vars(owner).setdefault(name, symbol)


def _namespace(root: Any, path: list[str]) -> Any:
    owner = root
    for part in path:
        if part not in vars(owner):
            full = f"{owner.__name__}.{part}"
            made = Namespace(full)
            # So that `import tf_substrates.numpy.tf.math` finds it among the loaded modules.
            made.__path__ = []
            sys.modules[full] = made
            setattr(owner, part, made)
        owner = vars(owner)[part]
    return owner


_tf = Namespace(__name__, __doc__)
for _name in ("__spec__", "__file__", "__loader__", "__package__"):
    setattr(_tf, _name, globals()[_name])
_tf.__path__ = []
EXPORTS["newaxis"] = None
# Of the TensorFlow that this is the API of; libraries refuse one that is too old for them.
EXPORTS["__version__"] = EXPORTS["version.VERSION"] = f"{VERSION}.0"
_build(_tf)
