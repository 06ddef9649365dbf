"""Results whose derivative is refused: at once, or only where it is computed."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jax2tf._src.util.dtypes import DIFFERENTIABLE
from jax2tf._src.util.identifiers import identifier

# The slope that makes any cotangent of float32 infinite, and leaves one that is zero as it is.
_STEEP = 1e300


def refuse(result: tf.Tensor, name: str, enable_xla: bool) -> tf.Tensor:
    """The result of the function `name`, for which TensorFlow raises a LookupError when it is asked
    for a derivative.

    Args:
      result: a tensor of any dtype; integers have no derivative to refuse.
      name: the function's name, for the error.
      enable_xla: whether graphs may hold ops that are TensorFlow's alone, as PreventGradient is.
    """
    if result.dtype not in DIFFERENTIABLE:
        return result
    if enable_xla or tf.executing_eagerly():
        message = f"jax2tf.convert({name}, with_gradient=False) was asked for its gradient"
        return tf.raw_ops.PreventGradient(input=result, message=message)
    # An Identity whose gradient nobody defined: TensorFlow's LookupError names it.
    name = f"jax2tf.convert.{identifier(name)}.with_gradient.False"
    with result.graph.gradient_override_map({"Identity": name}):
        return tf.identity(result, name)


def refuse_when_computed(
    results: Sequence[tf.Tensor], operands: Sequence[tf.Tensor], message: str
) -> list[tf.Tensor]:
    """The results, whose derivatives with respect to the operands fail when they are computed.

    TensorFlow builds derivatives of all that an outer tape records, and computes only those that
    are asked for: an op without a gradient would fail for whoever wants no derivative. So a zero
    that is made of the operands is added to the results. Its slope is so steep that its cotangent
    overflows, and a CheckNumerics on the way sees that. What XLA compiles has no checks: there the
    derivative is NaN.

    Args:
      results: tensors of dtypes that TensorFlow differentiates.
      operands: what they were computed from.
      message: what tf.errors.InvalidArgumentError says, after TensorFlow's words about NaN and
        infinity.
    """
    sums = [_sum(x) for x in operands if x.dtype in DIFFERENTIABLE]
    total = tf.add_n(sums)
    # Bounded, whatever the operands: infinities and NaN must not reach the check on the way there.
    bounded = tf.tanh(tf.where(tf.math.is_nan(total), tf.zeros_like(total), total))
    zero = tf.debugging.check_numerics(tf.square(bounded) * 0.0, message)
    steep = tf.cast(tf.cast(zero, tf.float64) * _STEEP, tf.float32)
    # Adding -0.0 changes nothing, not even the sign of a zero.
    negative_zero = -steep
    return [tf.stop_gradient(r) + _as(negative_zero, r.dtype) for r in results]


def _sum(operand: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.reduce_sum(tf.math.real(operand)), tf.float32)


def _as(zero: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    if not dtype.is_complex:
        return tf.cast(zero, dtype)
    part = tf.cast(zero, dtype.real_dtype)
    return tf.complex(part, part)
