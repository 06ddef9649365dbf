"""Where programs of GPflow run."""

from __future__ import annotations

from tests.substrates.libraries.programs import GRAD, JAX, JIT, NUMPY, VMAP

EVERYWHERE = (NUMPY, JAX, JIT, GRAD, VMAP)
VALUES = (NUMPY, JAX, JIT)
# Programs that assign variables, which JAX does not trace.
ONLY_EAGER = (NUMPY, JAX)
# Those that take gradients.
TRAINED = (JAX,)
