"""Libraries written against TensorFlow, on NumPy and on JAX, without TensorFlow.

`from tf_substrates.numpy import tf` and `from tf_substrates.jax import tf` are TensorFlow's API.
`install` makes of an installed package written against TensorFlow one on a substrate, while it is
imported; `python -m tf_substrates rewrite` writes it into a folder. `functional` makes a pure
function of one that uses variables, and `Optimizer` gives optax's rules the methods of Keras's.
"""

from __future__ import annotations

from tf_substrates.functional_state import functional
from tf_substrates.optimizers import Optimizer
from tf_substrates.rewriter.hook import install

__all__ = ["Optimizer", "functional", "install"]
