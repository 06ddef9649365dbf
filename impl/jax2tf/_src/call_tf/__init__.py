"""`call_tf`: a TensorFlow function as a function of JAX, under every transformation.

The way of a call, one module a step:

    call.py         the public function: pytrees, which values are operands
    primitive.py    the one JAX primitive: what impl, jvp, transpose, vmap and tracing do
    functions.py    a TensorFlow function of flat tensors; its trace for a signature
    wide_arguments.py  arguments that the function wants in 64 bits, which JAX has not
    effects.py      whether a graph has state, and what it writes to
    variables.py    variables that a function captures, as operands of its call
    derived.py      what is derived from one: its jvp, its vjp, itself over a batch
    slice_gradients.py  gradients that TensorFlow lacks
    failures.py     what TensorFlow raises over a batch, in one line
    polymorphic.py  shapes of results where those of arguments are symbolic
    trial_runs.py   shapes of results that TensorFlow knows only once the function has run
    exchange.py     arrays as tensors and back, without a copy where both share memory
    embedding.py    TensorFlow's XLA compilation of a signature inside JAX's module
"""

from __future__ import annotations

from jax2tf._src.call_tf import slice_gradients  # noqa: F401  registers them
