"""Static shapes, which are tf.TensorShape under TensorFlow and tuples on JAX and NumPy.

Each function takes `x.shape` of any of the three, or a list, and gives a tf.TensorShape or what it
holds. `unknown` dimensions and ranks are TensorFlow's; on JAX and NumPy every shape is known.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_substrates.authors import prefer_static


def rank(shape: Any) -> int | None:
    """How many dimensions it has, or None if that is unknown."""
    return tf.TensorShape(shape).rank


def as_list(shape: Any) -> list:
    """The sizes, None for each that is unknown.

    Raises:
      ValueError: the rank is unknown.
    """
    return tf.TensorShape(shape).as_list()


def is_fully_defined(shape: Any) -> bool:
    """Whether the rank and all dimensions are known."""
    return tf.TensorShape(shape).is_fully_defined()


def num_elements(shape: Any) -> int | None:
    """The product of the sizes, or None if one is unknown."""
    return tf.TensorShape(shape).num_elements()


def concatenate(shape: Any, other: Any) -> Any:
    """The dimensions of both, one behind the other."""
    return tf.TensorShape(shape).concatenate(tf.TensorShape(other))


def merge_with(shape: Any, other: Any) -> Any:
    """What both say together.

    Raises:
      ValueError: they differ in a rank or a dimension that both know.
    """
    return tf.TensorShape(shape).merge_with(tf.TensorShape(other))


def broadcast(shape: Any, other: Any) -> Any:
    """The shape to which both broadcast.

    Raises:
      ValueError: they do not.
    """
    return tf.broadcast_static_shape(tf.TensorShape(shape), tf.TensorShape(other))


def is_compatible_with(shape: Any, other: Any) -> bool:
    """Whether both may be the shape of one tensor."""
    return tf.TensorShape(shape).is_compatible_with(tf.TensorShape(other))


def assert_is_compatible_with(shape: Any, other: Any) -> None:
    """Raises a ValueError if both cannot be the shape of one tensor."""
    tf.TensorShape(shape).assert_is_compatible_with(tf.TensorShape(other))


def with_rank(shape: Any, rank: int) -> Any:
    """The shape, of which the rank is then known.

    Raises:
      ValueError: it has another rank.
    """
    return tf.TensorShape(shape).with_rank(rank)


def with_rank_at_least(shape: Any, rank: int) -> Any:
    """The shape.

    Raises:
      ValueError: it has fewer dimensions.
    """
    return tf.TensorShape(shape).with_rank_at_least(rank)


def assert_has_rank(shape: Any, rank: int) -> None:
    """Raises a ValueError if the shape has another rank."""
    tf.TensorShape(shape).assert_has_rank(rank)


def constant_value_as_shape(value: Any) -> Any:
    """The shape whose sizes a vector of integers holds, as far as they are known.

    Args:
      value: a vector, or a list of integers and scalar tensors.
    """
    known = prefer_static.static_value(value)
    if known is not None:
        return tf.TensorShape(known.tolist())
    # TensorFlow infers the shape of what a tensor gives the size of; nothing computes it.
    return tf.zeros(value, tf.bool).shape


def set_static_shape(tensor: Any, shape: Any) -> Any:
    """The tensor, of which the static shape holds what `shape` says too.

    Raises:
      ValueError: its own shape says otherwise.
    """
    assert_is_compatible_with(tensor.shape, shape)
    merged = tf.TensorShape(tensor.shape).merge_with(tf.TensorShape(shape))
    return tensor if is_fully_defined(tensor.shape) else tf.ensure_shape(tensor, merged)
