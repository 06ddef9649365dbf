"""The only package that uses private names of JAX and TensorFlow.

Each function says why no public name serves.
"""

from jax2tf._src.compat import (
    containers,
    exports,
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
    "exports",
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
