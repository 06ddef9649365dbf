"""A TensorFlow function that JAX calls (call_tf), called in place: its ops become ordinary ops."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jax2tf.lowering.rules import Context, register


@register("call_tf")
def _call_tf(ctx: Context, *operands: tf.Tensor, function: Any) -> list[tf.Tensor]:
    return function.run(operands)
