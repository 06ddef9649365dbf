"""Scalars that rules need: held as tensors in eager mode, where making one on each call is slow."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Aval

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


def without_elements(ctx: Context, aval: Aval) -> tf.Tensor:
    """The array of this aval, which has no elements; of keys it is the data."""
    known = ctx.static_shape(dtypes.physical_shape(aval))
    sizes = [size for size in known if size is not None]
    if len(sizes) == len(known):
        return ctx.constant(np.zeros(sizes, dtypes.to_tf(aval.dtype).as_numpy_dtype))
    # Not a Reshape, because an engine takes the size of 0 for the size that the operand has.
    return ctx.zeros(aval)
