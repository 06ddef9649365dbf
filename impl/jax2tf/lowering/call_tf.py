"""A TensorFlow function that JAX calls (call_tf), called in place: its ops become ordinary ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from jax2tf import compat
from jax2tf.call_tf.primitive import call_tf_p
from jax2tf.lowering.rules import Context, register


@register(call_tf_p)
def _call_tf(ctx: Context, *operands: tf.Tensor, function: Any) -> list[tf.Tensor]:
    with compat.recorded_again():  # derivatives have tapes of their own
        results = function.run(operands)
    checks = [
        check
        for result, aval in zip(results, ctx.avals_out, strict=True)
        for check in _shape_checks(ctx, function.name, result, aval.shape)
    ]
    if not checks:
        return results
    with tf.control_dependencies(checks):
        return [tf.identity(result) for result in results]


def _shape_checks(
    ctx: Context, name: str, result: tf.Tensor, shape: tuple[Any, ...]
) -> Iterator[Any]:
    """Checks of symbolic dimensions, which call_tf was told or has inferred from examples."""
    for axis, dim in enumerate(shape):
        if isinstance(dim, int):
            continue
        expected, actual = ctx.dim(dim), result.shape[axis]
        if isinstance(expected, int) and actual == expected:
            continue
        yield tf.debugging.assert_equal(
            tf.shape(result)[axis],
            expected,
            message=f"jax2tf.call_tf({name}): dimension {axis} of a result is not {dim}",
        )
