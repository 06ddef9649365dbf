"""The only package that touches private names of JAX or TensorFlow: one small thing each, with the
reason why no public name serves.
"""

# Where it is not installed, the error names TensorFlow and no module inside of it.
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
