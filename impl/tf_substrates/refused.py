"""Names of TensorFlow's that the substrates refuse, each with the reason and what to do instead.

A name that is neither here nor in the substrates is missing: nobody has written it yet.
"""

from __future__ import annotations

_GRAPHS = (
    "the substrates build no graphs. What to do: call the functions, which run at once; jax.jit"
    " compiles them"
)
_SYNTAX = (
    "it makes graphs of Python's syntax. What to do: write tf.cond and tf.while_loop, or those of"
    " jax.lax"
)
_FILES = "it reads or writes files. What to do: hand arrays to the program"
_KERAS = (
    "it is of Keras, a library of its own. What to do: use Keras 3 on JAX, or a library of JAX for"
    " layers and optimizers"
)
_RUNTIME = "it is a tool of TensorFlow's runtime, which does not run here"
_DEVICES = "devices are JAX's. What to do: use jax.devices and jax.sharding"
_QUANTIZED = "NumPy and JAX have no arrays of that kind"
_TRAINING = (
    "it is of TensorFlow 1, with graphs and sessions. What to do: use a library of JAX for"
    " optimizers"
)

# By name without its leading `tf.`; a name stands for what is below it too. What is below one and
# is there is not refused.
_REASONS: dict[str, str] = {
    "keras": _KERAS,
    "initializers": _KERAS,
    "losses": _KERAS,
    "metrics": _KERAS,
    "optimizers": _KERAS,
    "compat.v1.keras": _KERAS,
    "compat.v1.layers": _KERAS,
    "compat.v1.train": _TRAINING,
    "compat.v1.Session": _GRAPHS,
    "Operation": _GRAPHS,
    "graph_util": _GRAPHS,
    "python.eager": _GRAPHS,
    "__internal__.SymbolicTensor": _GRAPHS,
    "autograph": _SYNTAX,
    "python.autograph": _SYNTAX,
    "xla.experimental.compile": "it is deprecated in TensorFlow. What to do: use jax.jit",
    "compiler": (
        "it is of TensorFlow's compiler. What to do: on JAX call jax.lax, as under `if JAX_MODE:`"
    ),
    "test.Benchmark": _RUNTIME,
    "python.framework.test_util.InstallStackTraceHandler": _RUNTIME,
    "profiler": _RUNTIME,
    "sysconfig": _RUNTIME,
    "tools": _RUNTIME,
    "lite": _RUNTIME,
    "io": _FILES,
    "audio": _FILES,
    "saved_model": _FILES,
    "summary": _FILES,
    "train": _FILES,
    "data.experimental.service": _FILES,
    "data.TFRecordDataset": _FILES,
    "data.TextLineDataset": _FILES,
    "data.FixedLengthRecordDataset": _FILES,
    "feature_column": _FILES,
    "lookup": _FILES,
    "queue": _FILES,
    "distribute": _DEVICES,
    "dtensor": _DEVICES,
    "experimental.dtensor": _DEVICES,
    "tpu": _DEVICES,
    "quantization": _QUANTIZED,
    "ragged": "the substrates have no tensors with rows of several lengths",
    "RaggedTensor": "the substrates have no tensors with rows of several lengths",
    "RaggedTensorSpec": "the substrates have no tensors with rows of several lengths",
    "python.ops.nn_ops": (
        "TensorFlow does not document that module. What to do: call the functions of tf.nn"
    ),
    "python.ops.random_ops": (
        "TensorFlow does not document that module. What to do: call the functions of tf.random"
    ),
}


def names() -> tuple[str, ...]:
    """The names that are refused, each with what is below it."""
    return tuple(_REASONS)


def reason_for(name: str) -> str:
    """Why a name is refused, and what to do instead; empty if it is not.

    >>> reason_for("tf.lite.Interpreter")
    "it is a tool of TensorFlow's runtime, which does not run here"
    """
    parts = name.removeprefix("tf.").removeprefix("compat.v2.").split(".")
    above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_REASONS[name] for name in above if name in _REASONS), "")
