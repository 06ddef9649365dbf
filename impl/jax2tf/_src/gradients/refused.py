"""Results whose derivative fails when it is built, or when it is computed."""

from __future__ import annotations

from collections.abc import Sequence

from jax2tf._src import compat
from jax2tf._src.util.dtypes import DIFFERENTIABLE
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.lazy_imports import tf

# This slope overflows any float32 cotangent except zero.
_STEEP = 1e300


def refuse(result: tf.Tensor, name: str, enable_xla: bool) -> tf.Tensor:
    """The result, for which TensorFlow raises a LookupError when it is asked for a derivative.

    Args:
      result: a tensor of any dtype; integers have no derivative to refuse.
      name: the function's name, for the error.
      enable_xla: whether graphs may hold ops that only TensorFlow has, such as PreventGradient.
    """
    if result.dtype not in DIFFERENTIABLE:
        return result
    if enable_xla or tf.executing_eagerly():
        message = f"jax2tf.convert({name}, with_gradient=False) was asked for its gradient"
        return _prevented(result, message)
    # The Identity has an undefined gradient, which TensorFlow's LookupError names.
    name = f"jax2tf.convert.{identifier(name)}.with_gradient.False"
    with result.graph.gradient_override_map({"Identity": name}):
        return tf.identity(result, name)


def _prevented(result: tf.Tensor, message: str) -> tf.Tensor:
    """The result through a PreventGradient, also where tf.vectorized_map makes it rows."""
    prevented = tf.raw_ops.PreventGradient(input=result, message=message)
    if not tf.executing_eagerly():
        compat.vectorized.map_rows_by(prevented.op, 1, lambda rows: [_prevented(rows[0], message)])
    return prevented


def refuse_when_computed(
    results: Sequence[tf.Tensor], operands: Sequence[tf.Tensor], message: str
) -> list[tf.Tensor]:
    """The results, whose derivatives with respect to the operands fail when they are computed.

    TensorFlow builds the derivatives of all recorded ops, and computes only those that are asked
    for. An op without a gradient would fail for users who ask for no derivative. So the results get
    the sum with a zero that depends on the operands. The slope of that zero overflows its
    cotangent, and the gradient of a CheckNumerics reports the overflow. Graphs that XLA compiles
    have no checks, and their derivative is NaN.

    Args:
      results: tensors of dtypes that TensorFlow differentiates.
      operands: the tensors that the results were computed from.
      message: the message of tf.errors.InvalidArgumentError, behind TensorFlow's own about NaN and
        infinity.
    """
    sums = [_sum(x) for x in operands if x.dtype in DIFFERENTIABLE]
    total = tf.add_n(sums)
    # The forward pass of the check must see neither infinities nor NaN.
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
