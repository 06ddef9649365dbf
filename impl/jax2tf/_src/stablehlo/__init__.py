"""StableHLO read back: modules of jax.export, SavedModels and .mlir files as JAX functions.

`reading` makes a `program.Program` of bytes or text, `evaluator` runs it with jax.lax, one rule for
each op (`rules/`), and `loading` has `jax2tf.load`.
"""
