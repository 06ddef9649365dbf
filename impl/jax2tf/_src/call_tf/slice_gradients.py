"""Gradients of XLA's dynamic slices, which TensorFlow lacks.

In functions that XLA compiles, TensorFlow's gradient of a slice is an XlaDynamicUpdateSlice.
Without these gradients jax.hessian of such a function fails under jax.jit.
"""

from __future__ import annotations

import contextlib

from jax2tf._src.compat.xla import xla_ops
from jax2tf._src.util.lazy_imports import has_tensorflow, tf


def _of_update(op: tf.Operation, cotangent: tf.Tensor) -> list[tf.Tensor]:
    """The operand's cotangent is zero where it was overwritten; the update gets that slice."""
    _, update, indices = op.inputs
    sizes = tf.cast(tf.shape(update), indices.dtype)
    of_operand = xla_ops.xla_dynamic_update_slice(cotangent, tf.zeros_like(update), indices)
    return [of_operand, xla_ops.xla_dynamic_slice(cotangent, indices, sizes), None]


def _of_slice(op: tf.Operation, cotangent: tf.Tensor) -> list[tf.Tensor]:
    operand, indices, _ = op.inputs
    of_operand = xla_ops.xla_dynamic_update_slice(tf.zeros_like(operand), cotangent, indices)
    return [of_operand, None, None]


_GRADIENTS = {"XlaDynamicUpdateSlice": _of_update, "XlaDynamicSlice": _of_slice}
for _op, _gradient in _GRADIENTS.items() if has_tensorflow() else ():
    # KeyError: this version of TensorFlow has the gradient.
    with contextlib.suppress(KeyError):
        tf.RegisterGradient(_op)(_gradient)
