"""Constants: scalars, arrays without elements, and constants that are results of a graph."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Aval

_HELD: dict[tuple[str, tf.DType], tf.Tensor] = {}


def scalar(value: float, dtype: tf.DType) -> tf.Tensor:
    """A scalar constant of `dtype`, kept in eager mode: to make one on each call is slow."""
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


def as_result(result: tf.Tensor) -> tf.Tensor:
    """The result; a constant goes through an op, as the quirk "drops_constant_results" asks."""
    value = tf.get_static_value(result)
    if value is None:
        return result
    if result.dtype == tf.float16:
        # The result of a Reshape is dropped too; that of a Cast is kept.
        return ops.cast(as_result(ops.constant(value.astype(np.float32))), tf.float16)
    return ops.raw.Reshape(tensor=result, shape=ops.constant(result.shape.as_list(), tf.int32))
