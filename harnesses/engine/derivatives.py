"""Derivatives by TensorFlow's tapes, in JAX's conventions, for both directions of the judge."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from harnesses.engine.vjps import direction, is_differentiable

Function = Callable[..., Any]


def gradients(
    function: Function,
    args: Sequence[tf.Tensor],
    wrt: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor] | None = None,
) -> list[tf.Tensor]:
    """The vjp of `function` at `args` with respect to `wrt`, which are among them.

    Args:
      function: of tensors, gives a nest of tensors.
      args: where it is differentiated.
      wrt: the arguments that have gradients.
      cotangents: one for each floating result; by default its `direction`.
    """
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(wrt)
        results = [r for r in tf.nest.flatten(function(*args)) if is_differentiable(r)]
    if cotangents is None:
        cotangents = [tf.constant(direction(r)) for r in results]
    found = tape.gradient(
        results,
        wrt,
        output_gradients=list(map(_conjugate, cotangents)),
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return [_conjugate(tf.convert_to_tensor(g)) for g in found]


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
