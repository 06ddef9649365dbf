"""Elementwise arithmetic, comparison and logic."""

from __future__ import annotations

import tensorflow as tf

from jax2tf.lowering.rules import register_table

register_table(
    {
        "add": tf.add,
        "cos": tf.cos,
        "max": tf.maximum,
        "mul": tf.multiply,
        "sin": tf.sin,
        "sub": tf.subtract,
    }
)
