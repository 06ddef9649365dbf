"""TensorFlow's single ops, as in tf.raw_ops: `raw.AddV2(x=x, y=y)`.

In eager mode tf.raw_ops makes them. In a graph they may be written (see ops/writing.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax2tf._src.ops import writing


class _RawOps:
    """The function of each op, made on first use."""

    def __getattr__(self, op: str) -> Callable[..., Any]:
        writer = writing.writer_of(op)
        setattr(self, op, writer)
        return writer


raw = _RawOps()
