"""TensorFlow's API against NumPy: `from tf_substrates.numpy import tf`.

The modules beside this one are written once. `tf_substrates.jax` is made from them by the rewriter,
with two conventions of their own:

- `import numpy as xp` is the substrate's array module (`jax.numpy` on the JAX side); `np` is NumPy
  on both sides, for what is known before anything runs: shapes, dtypes, constants.
- `JAX_MODE = False` becomes `JAX_MODE = True`.
"""

from __future__ import annotations

from tf_substrates.rewriter import own

own.install("numpy")
