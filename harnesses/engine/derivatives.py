"""Derivatives by TensorFlow's tapes, in JAX's conventions, for both directions of the judge.

Those of floating results with respect to floating arguments, along cotangents that differ from
element to element: where all are one, those of softmax cancel.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

Function = Callable[..., Any]

# A tape watches no float8.
_WATCHED = frozenset({"bfloat16", "float16", "float32", "float64", "complex64", "complex128"})


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


def direction(value: Any) -> np.ndarray:
    """A tangent or cotangent of an array or tensor: real, between 0.5 and 1.5."""
    shape = tuple(value.shape)
    dtype = value.dtype.as_numpy_dtype if isinstance(value, tf.Tensor) else value.dtype
    return (1 + np.cos(np.arange(np.prod(shape))) / 2).reshape(shape).astype(dtype)


def is_inexact(value: Any) -> bool:
    """Whether JAX differentiates with respect to the array."""
    return jnp.issubdtype(value.dtype, jnp.inexact)


def is_differentiable(value: Any) -> bool:
    """Whether TensorFlow differentiates by the array or tensor."""
    return value.dtype.name in _WATCHED


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
