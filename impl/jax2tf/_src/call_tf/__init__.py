"""`call_tf`: a TensorFlow function as a function of JAX, under every transformation.

The modules, in the order in which a call passes through them:

    call.py         the public function: pytrees, which values are operands
    primitive.py    the one JAX primitive: its rules for impl, jvp, transpose, vmap and tracing
    functions.py    a TensorFlow function of flat tensors; its trace for each signature
    wide_arguments.py  arguments that the function takes in 64 bits and JAX holds in 32
    effects.py      whether a graph has state, and the variables that it writes to
    variables.py    captured variables as operands of the call
    derived.py      the jvp, the vjp and the batch of a function
    slice_gradients.py  gradients that TensorFlow lacks
    failures.py     errors that TensorFlow raises over a batch, cut to one line
    polymorphic.py  shapes of results for arguments of symbolic shapes
    trial_runs.py   shapes of results, found by running the function
    exchange.py     arrays as tensors and back, without a copy where both share memory
    embedding.py    TensorFlow's XLA compilation of a signature inside JAX's module
"""

from __future__ import annotations

from jax2tf._src.call_tf import slice_gradients  # noqa: F401  registers them
