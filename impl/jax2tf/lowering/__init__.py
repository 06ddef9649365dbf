"""jaxpr -> TensorFlow ops. Importing this package registers the rules of every family."""

from __future__ import annotations

from jax2tf.lowering import (
    arrays,
    call_tf,
    callbacks,
    calls,
    contractions,
    control_flow,
    conversions,
    convolution,
    cumulative,
    elementwise,
    fft,
    indexing,
    integers,
    linalg,
    random,
    reductions,
    scatter,
    sorting,
    special,
    state,
    windows,
)
from jax2tf.lowering.interpreter import Lowering

__all__ = [
    "Lowering",
    "arrays",
    "call_tf",
    "callbacks",
    "calls",
    "contractions",
    "control_flow",
    "conversions",
    "convolution",
    "cumulative",
    "elementwise",
    "fft",
    "indexing",
    "integers",
    "linalg",
    "random",
    "reductions",
    "scatter",
    "sorting",
    "special",
    "state",
    "windows",
]
