"""Slices, reversals and other moves of elements that several rules share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import in_carrier
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_INT4, HOLDS_NARROW
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape

# The most dimensions that TensorFlow's CPU kernels take. JAX has no such limit: an array with more
# dimensions goes through an op one axis at a time.
MAX_RANK = 8


def flipped(x: Tensor, axes: Sequence[int], at_once: bool = True) -> Tensor:
    """`x` reversed along `axes`; without `at_once`, one ReverseV2 reverses one axis."""
    if not (at_once or ops.executing_eagerly()) and x.op.type == "Const":
        # Form: constants_reversed.
        return ops.constant(np.flip(ops.get_static_value(x), tuple(axes)))
    for group in [list(axes)] if at_once else [[axis] for axis in axes]:
        axis = ops.constant(group)
        x = in_carrier(HOLDS_NARROW, lambda t, axis=axis: ops.raw.ReverseV2(tensor=t, axis=axis), x)
    return x


def stacked(ctx: Context, tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Does the same as tf.stack, with ops that Grappler does not rewrite.

    Grappler turns a Pack of equal operands into a Tile, and there confuses the outputs of an op:
    for a stack of TopKV2's indices it reads TopKV2's values (TensorFlow 2.21).
    """
    number = ctx.number(axis)
    return ops.concat([ops.expand_dims(t, number) for t in tensors], number)


def sliced(
    ctx: Context,
    x: Tensor,
    shape: Shape,
    start: Shape,
    limit: Shape,
    strides: Sequence[int],
    new_shape: Shape,
) -> Tensor:
    if not shape:
        return x
    if len(shape) > MAX_RANK:

        def slice_axis(view: Tensor, axis: int, before: Dim, after: Dim) -> Tensor:
            sizes = [[before, of[axis], after] for of in (shape, limit, new_shape)]
            first, step = [0, start[axis], 0], [1, strides[axis], 1]
            return sliced(ctx, view, sizes[0], first, sizes[1], step, sizes[2])

        axes = [i for i, (old, new) in enumerate(zip(shape, new_shape, strict=True)) if old != new]
        return axis_by_axis(ctx, x, shape, new_shape, axes, slice_axis)
    begin = ctx.vector(start)
    if all(stride == 1 for stride in strides):
        size = ctx.vector(new_shape)
        return in_carrier(HOLDS_INT4, lambda t: ops.raw.Slice(input=t, begin=begin, size=size), x)
    end, step = ctx.vector(limit), ctx.vector(strides)
    return in_carrier(
        HOLDS_INT4,
        lambda t: ops.raw.StridedSlice(input=t, begin=begin, end=end, strides=step),
        x,
    )


def axis_by_axis(
    ctx: Context,
    x: Tensor,
    shape: Shape,
    new_shape: Shape,
    axes: Sequence[int],
    op: Callable[..., Tensor],
) -> Tensor:
    """Applies op(view, axis, before, after) along each axis in turn, then sets the new shape.

    Each view has the shape (before, shape[axis], after).
    """
    sizes = list(shape)
    for axis in axes:
        before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
        view = ctx.reshaped(x, (before, sizes[axis], after))
        x = op(view, axis, before, after)
        sizes[axis] = new_shape[axis]
    return ctx.reshaped(x, new_shape)
