"""The only package that uses private names of JAX and TensorFlow.

Each function says why no public name serves.
"""

# Imported first so that, without TensorFlow, the error names TensorFlow and not a module inside it.
import tensorflow  # noqa: F401

from jax2tf._src.compat import (
    containers,
    functions,
    graphs,
    jaxprs,
    jitted,
    libraries,
    primitives,
    tapes,
    vectorized,
    xla,
)

__all__ = [
    "containers",
    "functions",
    "graphs",
    "jaxprs",
    "jitted",
    "libraries",
    "primitives",
    "tapes",
    "vectorized",
    "xla",
]
