"""Scalars that rules need: held as tensors in eager mode, where making one on each call is slow."""

from __future__ import annotations

import tensorflow as tf

from jax2tf._src import ops

_HELD: dict[tuple[str, tf.DType], tf.Tensor] = {}


def scalar(value: float, dtype: tf.DType) -> tf.Tensor:
    """A scalar constant of `dtype`."""
    if not tf.executing_eagerly():
        return ops.constant(value, dtype)
    # As text, because 0.0 and -0.0 are one key.
    key = str(value), dtype
    if key not in _HELD:
        _HELD[key] = ops.constant(value, dtype)
    return _HELD[key]
