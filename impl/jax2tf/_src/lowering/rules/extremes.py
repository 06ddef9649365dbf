"""Maximum, minimum and clamp, with JAX's treatment of NaN and its order of complex numbers."""

from __future__ import annotations

import functools
import math

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.elementwise import Function, at_least, at_most, in_kernel_dtype
from jax2tf._src.lowering.emit.fusions import before_relu
from jax2tf._src.lowering.emit.known_values import is_all, known_value
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor


@register("max")
def _max(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    # LiteRT's converter turns a maximum with 0 into a Relu.
    x, y = before_relu(ctx, x), before_relu(ctx, y)
    return _extreme(ctx, raw.Maximum, raw.LogicalOr, raw.Greater, x, y)


@register("min")
def _min(ctx: Context, x: Tensor, y: Tensor) -> Tensor:
    return _extreme(ctx, raw.Minimum, raw.LogicalAnd, raw.Less, x, y)


def _extreme(
    ctx: Context, op: Function, logical: Function, beats: Function, x: Tensor, y: Tensor
) -> Tensor:
    if x.dtype == dtypes.bool_:
        return logical(x=x, y=y)
    if x.dtype.is_complex:
        return _lexicographic(beats, x, y)
    return in_kernel_dtype(functools.partial(_with_nan, ctx, op))(x, y)


def _with_nan(ctx: Context, op: Function, x: Tensor, y: Tensor) -> Tensor:
    """`op(x, y)`, with NaN if either operand is NaN.

    TensorFlow's XLA only keeps a NaN of the first operand, and only if the second is not a NaN.
    """
    if not x.dtype.is_floating:
        return op(x=x, y=y)
    # jnp.max starts with the maximum of an empty set.
    neutral = -math.inf if op is raw.Maximum else math.inf
    for one, other in ((x, y), (y, x)):
        if not one.shape.rank and is_all(one, neutral):
            return other
    if ctx.target.assume_finite:
        return op(x=x, y=y)
    for one, other in ((x, y), (y, x)):
        if ctx.is_by_kernels or _free_of_nan(other):
            if not ctx.has(Quirk.EXTREME_KEEPS_A_NAN_OF_THE_SECOND):
                return op(x=one, y=other)
            result = op(x=other, y=one)
            # OpenVINO turns a maximum with 0 into a Relu, which drops a NaN.
            is_relu = op is raw.Maximum and is_all(other, 0)
            return select(ctx, ctx.is_nan(one), one, result) if is_relu else result
    beats = at_least if op is raw.Maximum else at_most
    return select(ctx, ctx.is_nan(x) | beats(x, y), x, y)


def _free_of_nan(x: Tensor) -> bool:
    """Whether x is known to contain no NaN."""
    value = known_value(x)
    return value is not None and not np.isnan(value).any()


def _lexicographic(beats: Function, x: Tensor, y: Tensor) -> Tensor:
    """The complex number that wins by its real part, then by its imaginary part."""
    x_real, y_real = ops.real(x), ops.real(y)
    imag_wins = beats(x=ops.imag(x), y=ops.imag(y))
    x_wins = ops.where(ops.equal(x_real, y_real), imag_wins, beats(x=x_real, y=y_real))
    return ops.where(x_wins, x, y)


@register("clamp")
def _clamp(ctx: Context, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    if x.dtype.is_complex:
        x = ops.where(ops.real(low) >= ops.real(x), low, x)
        return ops.where(ops.real(x) <= ops.real(high), x, high)
    # The order makes `high` win if it is below `low`.
    return _min(ctx, _max(ctx, x, low), high)
