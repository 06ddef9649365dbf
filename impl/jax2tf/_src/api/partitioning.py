"""TensorFlow code that is split over logical devices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.errors import ConversionError
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf


def refuse_eager(name: str) -> None:
    """Raises a ConversionError in eager mode, which has nothing to partition."""
    if tf.executing_eagerly():
        raise ConversionError(
            f"{name}: a value is sharded over the devices of a mesh, and TensorFlow partitions "
            "graphs, not eager operations. What to do: call it inside a tf.function"
        )


def split_to_logical_devices(
    tensor: tf.Tensor, partition_dimensions: Sequence[int] | None
) -> tf.Tensor:
    """The tensor, split over logical devices in the order of their numbers.

    For TensorFlow code around a converted function: what `jax.lax.with_sharding_constraint` is
    inside. Graphs alone hold it, and only TPUs partition by it.

    >>> @tf.function
    ... def rows_apart(x):
    ...     return split_to_logical_devices(x, (4, 1))
    >>> rows_apart(tf.ones([8, 2])).shape
    TensorShape([8, 2])

    Args:
      tensor: of any shape.
      partition_dimensions: into how many parts each dimension is split, one number a dimension;
        None leaves the tensor whole.

    Raises:
      ValueError: their number is not the tensor's rank, or a size is not divisible by its number.
      ConversionError: in eager mode.
    """
    if partition_dimensions is None:
        return tensor
    where = "jax2tf.split_to_logical_devices"
    if not isinstance(tensor, tf.Tensor):
        raise TypeError(f"{where}: tensor should be a tf.Tensor, got {type(tensor).__name__}")
    argument = f"{where}: partition_dimensions"
    given = option_checks.sequence(partition_dimensions, argument, "numbers", "(2, 1)")
    remedy = "give 1 for a dimension that is not split"
    parts = tuple(option_checks.whole_number(n, argument, 1, remedy) for n in given)
    if tensor.shape.rank != len(parts):
        raise ValueError(
            f"jax2tf.split_to_logical_devices: partition_dimensions={parts} should have one number "
            f"for each dimension of the tensor, whose shape is {tensor.shape}"
        )
    for size, count in zip(tensor.shape, parts, strict=True):
        if count < 1 or (size is not None and size % count):
            raise ValueError(
                f"jax2tf.split_to_logical_devices: partition_dimensions={parts} should divide the "
                f"tensor's shape {tensor.shape}; {size} into {count} parts does not go"
            )
    if math.prod(parts) == 1:
        return tensor
    refuse_eager("jax2tf.split_to_logical_devices")
    return compat.xla.tiled(tensor, np.arange(math.prod(parts)).reshape(parts))
