"""Shapes of results, found by running the function.

The function runs with several fills of the arguments; the shapes count if all runs agree. Functions
with state are not run, as nobody asked for their effects.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jax2tf._src.call_tf.functions import Signature
from jax2tf._src.util.lazy_imports import tf

# The n-th number of an argument is (n + shift) % modulus: indices stay small, and the fills differ
# in how many numbers are equal or zero.
_FILLS = ((0, 1), (1, 2), (3, 7))


def result_shapes(
    signature: Signature, specs: Sequence[tf.TensorSpec]
) -> list[list[int | None]] | None:
    """The shapes of the results for arguments of these static shapes.

    Args:
      signature: the function, traced for shapes that include these.
      specs: shapes and dtypes of the arguments.

    Returns:
      None if they depend on values, or if the function cannot be run to see them.
    """
    if signature.is_stateful or signature.writes:
        return None
    # init_scope, because JAX or TensorFlow may be tracing.
    with tf.init_scope():
        traced = tf.function(lambda *tensors: signature.function.run(tensors), autograph=False)
        runs = [_shapes(traced, [_filled(spec, *fill) for spec in specs]) for fill in _FILLS]
    known = [shapes for shapes in runs if shapes is not None]
    if len(known) < 2 or any(shapes != known[0] for shapes in known):
        return None
    return known[0]


def _shapes(
    function: tf.types.experimental.PolymorphicFunction, tensors: Sequence[tf.Tensor]
) -> list[list[int | None]] | None:
    try:
        return [t.shape.as_list() for t in function(*tensors)]
    except (ValueError, tf.errors.OpError):
        return None  # the function refuses the numbers: indices out of bounds, an assertion


def _filled(spec: tf.TensorSpec, shift: int, modulus: int) -> tf.Tensor:
    size = spec.shape.num_elements()
    return tf.cast(((np.arange(size) + shift) % modulus).reshape(spec.shape), spec.dtype)
