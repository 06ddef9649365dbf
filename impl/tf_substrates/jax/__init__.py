"""TensorFlow's API on JAX: `from tf_substrates.jax import tf`.

Every module below is one of `tf_substrates.numpy`, rewritten while it is imported.
"""

from __future__ import annotations

from tf_substrates.rewriter import own

own.install("jax")
