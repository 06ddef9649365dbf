"""Where programs of tf-quant-finance run."""

from __future__ import annotations

from tests.substrates.libraries.programs import FLOAT32, GRAD, JAX, JIT, NUMPY, VMAP

EVERYWHERE = (NUMPY, NUMPY + FLOAT32, JAX, JIT, JIT + FLOAT32, GRAD, VMAP)
WIDE = (NUMPY, JAX, JIT, GRAD, VMAP)
BATCHED = (NUMPY, JAX, JIT, VMAP)
VALUES = (NUMPY, JAX, JIT)
ONLY_EAGER = (NUMPY, JAX)
