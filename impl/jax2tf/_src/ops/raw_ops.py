"""TensorFlow's single ops, as in tf.raw_ops: `raw.AddV2(x=x, y=y)`.

In eager mode they are those of tf.raw_ops. In a graph they may be written (see ops/writing.py).
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from jax2tf._src.ops import writing


class _RawOps:
    """The function of each op, made when it is first asked for."""

    def __getattr__(self, op: str) -> Callable[..., tf.Tensor]:
        made = writing.writer_of(op, getattr(tf.raw_ops, op))
        setattr(self, op, made)
        return made


raw = _RawOps()
