"""StableHLO's pad, with negative edges and interior padding, in TensorFlow's standard ops."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import jax
import numpy as np

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.arrays import axis_by_axis, sliced
from jax2tf._src.lowering.emit.casts import in_carrier
from jax2tf._src.lowering.emit.compute_dtypes import (
    HOLDS_INT4,
    HOLDS_NARROW,
    PADDED_WIDE,
    PADDED_WITHOUT_BOOL,
)
from jax2tf._src.lowering.emit.known_values import is_zero, known_value
from jax2tf._src.lowering.supported import is_computed
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape

# The most dimensions of TensorFlow's Pad kernels, which merge neighbours without padding first.
_MAX_RANK = 6


def padded(
    ctx: Context,
    x: Tensor,
    padding_value: Tensor,
    shape: Shape,
    low: Shape,
    high: Shape,
    interior: Sequence[int],
) -> Tensor:
    """StableHLO's pad of `x`, whose JAX shape is `shape`: interior padding, then the edges."""
    size = [
        d + gap * _positive(d - 1) + a + b
        for d, a, b, gap in zip(shape, low, high, interior, strict=True)
    ]
    if any(interior):
        if ctx.wants("XlaPad") and dims.is_static([*shape, *low, *high]):
            return in_carrier(
                HOLDS_INT4,
                lambda t, v: ops.xla.xla_pad(t, v, low, high, interior),
                x,
                padding_value,
            )
        x, shape, high = _dilated(ctx, x, padding_value, shape, high, interior)
    edges = [(_positive(a), _positive(b)) for a, b in zip(low, high, strict=True)]
    x = _with_edges(ctx, x, shape, padding_value, edges)
    if not any(map(_negative, (*low, *high))):
        return x
    # The cut comes last: one side may cut padding of the other side.
    uncut = [d - _negative(a) - _negative(b) for d, a, b in zip(size, low, high, strict=True)]
    begin = [-_negative(edge) for edge in low]
    end = [b + d for b, d in zip(begin, size, strict=True)]
    cut = sliced(ctx, x, uncut, begin, end, [1] * len(size), size)
    return _with_known_sizes(ctx, cut, size, by=(*begin, *end))


def _with_known_sizes(ctx: Context, x: Tensor, shape: Shape, by: Iterable[Dim]) -> Tensor:
    """Restores the static sizes after a pad or cut `by` sizes; see the quirk "pads_lose_sizes"."""
    if ops.executing_eagerly() or not ctx.has(Quirk.PADS_LOSE_SIZES) or dims.is_static(by):
        return x
    return ctx.reshaped(x, shape)


def _dilated(
    ctx: Context,
    x: Tensor,
    padding_value: Tensor,
    shape: Shape,
    high: Shape,
    interior: Sequence[int],
) -> tuple[Tensor, list[Dim], list[Dim]]:
    """Pads after each element; returns the result, its shape and `high` without the last gap."""
    shape, high = list(shape), list(high)
    for axis, gap in enumerate(interior):
        if gap:
            apart = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
            edges = [(0, gap if i == axis + 1 else 0) for i in range(len(apart))]
            x = _with_edges(ctx, ops.expand_dims(x, axis + 1), apart, padding_value, edges)
            high[axis] = high[axis] - gap * jax.core.min_dim(shape[axis], 1)
            shape[axis] = shape[axis] * (1 + gap)
            x = ctx.reshaped(x, shape)
    return x, shape, high


def _with_edges(
    ctx: Context,
    x: Tensor,
    shape: Shape,
    padding_value: Tensor,
    edges: Sequence[tuple[Dim, Dim]],
) -> Tensor:
    """Adds (before, after) padding values along each axis."""
    axes = [axis for axis, edge in enumerate(edges) if any(edge)]
    new_shape = [size + a + b for size, (a, b) in zip(shape, edges, strict=True)]
    if len(shape) > _MAX_RANK or not ctx.target.takes_rank("PadV2", len(shape)):

        def pad_axis(view: Tensor, axis: int, *_: Dim) -> Tensor:
            return _padded(ctx, view, padding_value, [(0, 0), edges[axis], (0, 0)])

        return axis_by_axis(ctx, x, shape, new_shape, axes, pad_axis)
    if not axes:
        return x
    made = _padded(ctx, x, padding_value, edges)
    return _with_known_sizes(ctx, made, new_shape, by=itertools.chain(*edges))


def _padded(
    ctx: Context, x: Tensor, padding_value: Tensor, edges: Sequence[tuple[Dim, Dim]]
) -> Tensor:
    if ctx.has(Quirk.PADS_WITH_CONSTANTS_ALONE) and is_computed(padding_value):
        inside = _padded(ctx, ops.ones_like(x, dtypes.int32), ops.zeros([], dtypes.int32), edges)
        zeros_around = _padded(ctx, x, ops.zeros([], x.dtype), edges)
        return ops.where(ops.cast(inside, dtypes.bool_), zeros_around, padding_value)
    if ctx.has(Quirk.PADS_INTEGERS_AS_FLOATS) and _is_rounded(padding_value):
        zeros_around = _padded(ctx, x - padding_value, ops.zeros([], x.dtype), edges)
        return zeros_around + padding_value
    paddings = ctx.vector(edges)
    if not ctx.takes("PadV2", x.dtype.name):
        if x.dtype in PADDED_WIDE and not ctx.takes("Pad", x.dtype.name):
            return in_carrier(PADDED_WIDE, lambda t, v: _padded(ctx, t, v, edges), x, padding_value)
        if is_zero(padding_value):
            return ops.raw.Pad(input=x, paddings=paddings)
        if x.dtype.is_integer:
            return ops.raw.Pad(input=x - padding_value, paddings=paddings) + padding_value
    return in_carrier(
        HOLDS_NARROW if ctx.wants("PadV2", "bool") else PADDED_WITHOUT_BOOL,
        lambda t, v: ops.raw.PadV2(input=t, paddings=paddings, constant_values=v),
        x,
        padding_value,
    )


def _is_rounded(x: Tensor) -> bool:
    """Whether x is an int32 constant of the graph that float32 cannot represent."""
    value = None if x.dtype != dtypes.int32 else known_value(x)
    return value is not None and int(np.float32(value)) != int(value)


def _positive(edge: Dim) -> Dim:
    return jax.core.max_dim(edge, 0)


def _negative(edge: Dim) -> Dim:
    return jax.core.min_dim(edge, 0)
