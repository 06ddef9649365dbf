"""Host callbacks: pure_callback, io_callback, debug.callback, debug.print, as tf.numpy_function.

They run in the Python process that converted the function. XLA cannot compile them and a SavedModel
cannot hold them: the first is refused at conversion, the second by TensorFlow.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jax2tf import compat, dtypes
from jax2tf.lowering.rules import Context, register

CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})


@register(*CALLBACKS)
def _callback(ctx: Context, *operands: tf.Tensor, **params: Any) -> list[tf.Tensor]:
    if compat.in_compiled_function():
        raise ctx.unsupported(
            "XLA cannot compile a call back into Python",
            "convert without jit_compile=True, or take the callback (a print, an error check) out",
        )
    primitive = ctx.eqn.primitive
    x64 = jax.config.read("jax_enable_x64")

    def on_host(*arrays: np.ndarray) -> list[np.ndarray]:
        # TensorFlow calls from a thread of its own, which has the default configuration of JAX.
        with jax.enable_x64(x64):
            return [np.asarray(r) for r in primitive.bind(*arrays, **params)]

    results = tf.numpy_function(
        on_host,
        operands,
        [dtypes.to_tf(aval.dtype) for aval in ctx.avals_out],
        # A pure one too: TensorFlow folds a stateless op on constants while it optimises the graph,
        # in branches that are never taken, and an error check would complain.
        stateful=True,
    )
    results = results if isinstance(results, list | tuple) else [results]
    return [
        tf.ensure_shape(r, ctx.shape(aval.shape))
        for r, aval in zip(results, ctx.avals_out, strict=False)
    ]
