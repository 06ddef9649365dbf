"""Arrays: reshape, broadcast, concatenate, pad, slice, select and other movements of elements.

No rule here computes a value, so dtypes matter in one way only: the CPU kernels of a TensorFlow op
may lack some. Then the elements travel in a dtype that holds them exactly (`conversions.carried`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jax2tf import dtypes
from jax2tf.compat import xla_ops
from jax2tf.lowering.conversions import FLOAT8_CARRIER, INT4_CARRIER, carried, cast
from jax2tf.lowering.rules import Context, register

# Ops that lack the kernels for float8, or for 16-bit unsigned integers; all lack those for int4.
_NARROW_CARRIER = {**FLOAT8_CARRIER, **INT4_CARRIER}
_TILE_CARRIER = {**_NARROW_CARRIER, tf.uint16: tf.int32}

# An iota of at most so many elements is a constant: it takes less room than the ops that make it.
_IOTA_AS_CONSTANT = 64

# tf.pad's CPU kernel takes six dimensions, after those that it does not pad are merged.
_PAD_MAX_RANK = 6


@register("reshape")
def _reshape(
    ctx: Context, x: tf.Tensor, *, new_sizes: Sequence[Any], dimensions: Sequence[int] | None
) -> tf.Tensor:
    if dimensions is not None:
        x = _permuted(ctx, x, dimensions)
    return tf.reshape(x, ctx.shape(new_sizes))


@register("transpose")
def _transpose(ctx: Context, x: tf.Tensor, *, permutation: Sequence[int]) -> tf.Tensor:
    return _permuted(ctx, x, permutation)


def _permuted(ctx: Context, x: tf.Tensor, permutation: Sequence[int]) -> tf.Tensor:
    if list(permutation) == list(range(len(permutation))):
        return x
    return carried(INT4_CARRIER, lambda t: tf.transpose(t, permutation), x)


@register("squeeze")
def _squeeze(ctx: Context, x: tf.Tensor, *, dimensions: Sequence[int]) -> tf.Tensor:
    # tf.squeeze takes an empty list for all dimensions of size one.
    return tf.squeeze(x, dimensions) if dimensions else x


@register("broadcast_in_dim")
def _broadcast_in_dim(
    ctx: Context, x: tf.Tensor, *, shape: Sequence[Any], broadcast_dimensions: Sequence[int]
) -> tf.Tensor:
    operand, shape = ctx.avals_in[0].shape, list(shape)
    expanded = [1] * len(shape)
    for place, size in zip(broadcast_dimensions, operand, strict=True):
        expanded[place] = size
    aligned = list(range(len(shape) - len(operand), len(shape)))
    # tf.broadcast_to adds leading dimensions by itself.
    if expanded == shape or list(broadcast_dimensions) != aligned:
        x = _expanded(ctx, x, expanded, broadcast_dimensions)
    if expanded == shape:
        return x
    return carried(INT4_CARRIER, lambda t: tf.broadcast_to(t, ctx.shape(shape)), x)


def _expanded(ctx: Context, x: tf.Tensor, shape: Sequence[Any], places: Sequence[int]) -> tf.Tensor:
    """Inserts the dimensions of size one of `shape` that are not among `places`."""
    new = sorted(set(range(len(shape))) - set(places))
    if len(new) == 1:
        return tf.expand_dims(x, new[0])
    return tf.reshape(x, ctx.shape(shape)) if new else x


@register("rev")
def _rev(ctx: Context, x: tf.Tensor, *, dimensions: Sequence[int]) -> tf.Tensor:
    if not dimensions:
        return x
    return carried(_NARROW_CARRIER, lambda t: tf.reverse(t, dimensions), x)


@register("concatenate")
def _concatenate(ctx: Context, *operands: tf.Tensor, dimension: int) -> tf.Tensor:
    if len(operands) == 1:
        return operands[0]
    return carried(INT4_CARRIER, lambda *ts: tf.concat(ts, dimension), *operands)


@register("stack")
def _stack(ctx: Context, *operands: tf.Tensor, axis: int) -> tf.Tensor:
    # Grappler makes a Tile of a Pack of equal operands.
    return carried(_TILE_CARRIER, lambda *ts: tf.stack(ts, axis), *operands)


@register("unstack")
def _unstack(ctx: Context, x: tf.Tensor, *, axis: int) -> list[tf.Tensor]:
    return carried(INT4_CARRIER, lambda t: tf.unstack(t, len(ctx.avals_out), axis), x)


@register("split")
def _split(ctx: Context, x: tf.Tensor, *, sizes: Sequence[Any], axis: int) -> list[tf.Tensor]:
    if len(sizes) == 1:
        return [x]
    if all(size == sizes[0] for size in sizes):
        return tf.split(x, len(sizes), axis)
    return tf.split(x, ctx.shape(sizes), axis, num=len(sizes))


@register("tile")
def _tile(ctx: Context, x: tf.Tensor, *, reps: Sequence[int]) -> tf.Tensor:
    return carried(_TILE_CARRIER, lambda t: tf.tile(t, ctx.shape(reps)), x)


@register("slice")
def _slice(
    ctx: Context,
    x: tf.Tensor,
    *,
    start_indices: Sequence[Any],
    limit_indices: Sequence[Any],
    strides: Sequence[int] | None,
) -> tf.Tensor:
    begin = ctx.shape(start_indices)
    if strides is None or all(stride == 1 for stride in strides):
        size = ctx.shape(ctx.avals_out[0].shape)
        return carried(INT4_CARRIER, lambda t: tf.slice(t, begin, size), x)
    end = ctx.shape(limit_indices)
    return carried(INT4_CARRIER, lambda t: tf.strided_slice(t, begin, end, strides), x)


@register("select_n")
def _select_n(ctx: Context, which: tf.Tensor, *cases: tf.Tensor) -> tf.Tensor:
    """cases[which], where a selector out of range takes the nearest case, as it does in XLA."""
    if len(cases) == 1:
        return cases[0]
    return carried(_NARROW_CARRIER, lambda *ts: _selected(which, ts), *cases)


def _selected(which: tf.Tensor, cases: Sequence[tf.Tensor]) -> tf.Tensor:
    if which.dtype == tf.bool:
        return tf.raw_ops.SelectV2(condition=which, t=cases[1], e=cases[0])
    result = cases[-1]
    for index in reversed(range(len(cases) - 1)):
        result = tf.raw_ops.SelectV2(condition=which <= index, t=cases[index], e=result)
    return result


@register("iota")
def _iota(ctx: Context, *, dtype: Any, shape: Sequence[Any], dimension: int) -> tf.Tensor:
    along = [size if axis == dimension else 1 for axis, size in enumerate(shape)]
    if _is_static(shape) and np.prod(shape) <= _IOTA_AS_CONSTANT:
        return cast(tf.constant(np.broadcast_to(_counting(along), shape)), dtypes.to_tf(dtype))
    size = shape[dimension]
    if _is_static([size]) and size <= _IOTA_AS_CONSTANT:
        x = tf.constant(_counting(along))
    else:
        x = tf.range(ctx.dim(size))
        x = tf.reshape(x, ctx.shape(along)) if len(shape) > dimension + 1 else x
    x = cast(x, dtypes.to_tf(dtype))
    if along == list(shape):
        return x
    return carried(INT4_CARRIER, lambda t: tf.broadcast_to(t, ctx.shape(shape)), x)


def _counting(shape: Sequence[int]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@register("empty", "empty2")
def _empty(ctx: Context, *, shape: Sequence[Any], dtype: Any) -> tf.Tensor:
    zero = cast(tf.constant(0), dtypes.to_tf(dtype))
    return carried(INT4_CARRIER, lambda t: tf.broadcast_to(t, ctx.shape(shape)), zero)


@register("dim_as_value")
def _dim_as_value(ctx: Context, *, dim: Any) -> tf.Tensor:
    return tf.cast(ctx.dim(dim), ctx.out)


@register("pad")
def _pad(
    ctx: Context, x: tf.Tensor, padding_value: tf.Tensor, *, padding_config: Sequence[Any]
) -> tf.Tensor:
    low, high, interior = ([config[i] for config in padding_config] for i in range(3))
    return padded(ctx, x, padding_value, ctx.avals_in[0].shape, low, high, interior)


def padded(
    ctx: Context,
    x: tf.Tensor,
    padding_value: tf.Tensor,
    shape: Sequence[Any],
    low: Sequence[Any],
    high: Sequence[Any],
    interior: Sequence[int],
) -> tf.Tensor:
    """StableHLO's pad of `x`, of JAX's `shape`: elements are put apart, then edges added or cut."""
    cut_shape = [
        d + (gap * (d - 1) if gap and not (_is_static([d]) and d == 0) else 0) + a + b
        for d, a, b, gap in zip(shape, low, high, interior, strict=True)
    ]
    if any(interior):
        if ctx.enable_xla and _is_static([*shape, *low, *high]):
            return carried(
                INT4_CARRIER,
                lambda t, v: xla_ops.xla_pad(t, v, low, high, interior),
                x,
                padding_value,
            )
        x, high = _dilated(ctx, x, padding_value, shape, high, interior)
    grown = [(_positive(a), _positive(b)) for a, b in zip(low, high, strict=True)]
    x = _with_edges(ctx, x, padding_value, grown)
    if not any(_is_negative(edge) for edge in (*low, *high)):
        return x
    # Cut last: what is cut on one side may be padding of the other.
    begin = ctx.shape([-edge if _is_negative(edge) else 0 for edge in low])
    size = ctx.shape(cut_shape)
    return carried(INT4_CARRIER, lambda t: tf.slice(t, begin, size), x)


def _dilated(
    ctx: Context,
    x: tf.Tensor,
    padding_value: tf.Tensor,
    shape: Sequence[Any],
    high: Sequence[Any],
    interior: Sequence[int],
) -> tuple[tf.Tensor, list[Any]]:
    """`x` with padding values after each element, and `high` less those at the ends."""
    shape, high = list(shape), list(high)
    for axis, gap in enumerate(interior):
        if gap and not (_is_static([shape[axis]]) and shape[axis] == 0):
            edges = [(0, gap if i == axis + 1 else 0) for i in range(len(shape) + 1)]
            x = _with_edges(ctx, tf.expand_dims(x, axis + 1), padding_value, edges)
            shape[axis] = shape[axis] * (1 + gap)
            high[axis] = high[axis] - gap
            x = tf.reshape(x, ctx.shape(shape))
    return x, high


def _with_edges(
    ctx: Context, x: tf.Tensor, padding_value: tf.Tensor, edges: Sequence[tuple[Any, Any]]
) -> tf.Tensor:
    """Adds (before, after) padding values along each axis."""
    padded = [axis for axis, edge in enumerate(edges) if any(edge)]
    # Padding two axes at once leaves at most five dimensions after merging.
    at_once = 2 if len(edges) > _PAD_MAX_RANK else max(len(padded), 1)
    for first in range(0, len(padded), at_once):
        axes = padded[first : first + at_once]
        paddings = [ctx.shape(edge) if i in axes else (0, 0) for i, edge in enumerate(edges)]

        def pad(t: tf.Tensor, value: tf.Tensor, paddings: Any = paddings) -> tf.Tensor:
            return tf.raw_ops.PadV2(input=t, paddings=paddings, constant_values=value)

        x = carried(_NARROW_CARRIER, pad, x, padding_value)
    return x


def _is_static(dims: Sequence[Any]) -> bool:
    return all(isinstance(d, int | np.integer) for d in dims)


def _positive(edge: Any) -> Any:
    return 0 if _is_negative(edge) else edge


def _is_negative(edge: Any) -> bool:
    return _is_static([edge]) and edge < 0
