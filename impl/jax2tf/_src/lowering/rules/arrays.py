"""Arrays: reshape, broadcast, concatenate, pad, slice, select and other moves of elements.

No rule here computes values. If the CPU kernels of an op lack a dtype, the elements are moved in a
carrier that holds them exactly (casts.in_carrier).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.arrays import MAX_RANK, axis_by_axis, flipped, sliced, stacked
from jax2tf._src.lowering.emit.casts import cast, in_carrier
from jax2tf._src.lowering.emit.compute_dtypes import (
    HOLDS_INT4,
    HOLDS_NARROW,
    TILED,
)
from jax2tf._src.lowering.emit.padding import padded
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import register
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape

# An iota with at most this number of elements is a constant, which is smaller than the ops.
_IOTA_AS_CONSTANT = 64


@register("reshape")
def _reshape(
    ctx: Context, x: Tensor, *, new_sizes: Shape, dimensions: Sequence[int] | None
) -> Tensor:
    if dimensions is not None:
        x = _permuted(ctx, x, dimensions)
    return ctx.reshaped(x, new_sizes)


@register("transpose")
def _transpose(ctx: Context, x: Tensor, *, permutation: Sequence[int]) -> Tensor:
    return _permuted(ctx, x, permutation)


def _permuted(ctx: Context, x: Tensor, permutation: Sequence[int]) -> Tensor:
    if list(permutation) == list(range(len(permutation))):
        return x
    perm = ctx.vector(permutation)
    return in_carrier(HOLDS_INT4, lambda t: ops.raw.Transpose(x=t, perm=perm), x)


@register("squeeze", takes_keys=True)
def _squeeze(ctx: Context, x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    # A key's data dimensions come last. tf.squeeze of [] would drop all dimensions of size 1.
    return ops.squeeze(x, dimensions) if dimensions else x


@register("broadcast_in_dim")
def _broadcast_in_dim(
    ctx: Context, x: Tensor, *, shape: Shape, broadcast_dimensions: Sequence[int]
) -> Tensor:
    operand, shape = ctx.avals_in[0].shape, list(shape)
    expanded = [1] * len(shape)
    for place, size in zip(broadcast_dimensions, operand, strict=True):
        expanded[place] = size
    aligned = list(range(len(shape) - len(operand), len(shape)))
    # tf.broadcast_to adds leading dimensions itself.
    if expanded == shape or list(broadcast_dimensions) != aligned:
        x = _expanded(ctx, x, expanded, broadcast_dimensions)
    if expanded == shape:
        return x
    for step in _steps_of_broadcast(expanded, shape):
        x = _broadcast_to(ctx, x, step)
    return x


def _broadcast_to(ctx: Context, x: Tensor, shape: Shape) -> Tensor:
    sizes = ctx.vector(shape)
    return in_carrier(HOLDS_INT4, lambda t: ops.raw.BroadcastTo(input=t, shape=sizes), x)


def _steps_of_broadcast(expanded: Shape, shape: Shape) -> list[list[Dim]]:
    """The shapes to broadcast to, one after the other.

    TensorFlow's kernels merge neighbours that are all repeated, or all kept, and take five
    dimensions: two repeated groups, and the dimensions between and around them.
    """
    places = enumerate(zip(expanded, shape, strict=True))
    groups = itertools.groupby(places, lambda place: place[1][0] == place[1][1])
    ends = [max(d for d, _ in group) + 1 for is_kept, group in groups if not is_kept]
    at_once = (ends[i : i + _REPEATED_AT_ONCE][-1] for i in range(0, len(ends), _REPEATED_AT_ONCE))
    return [[*shape[:end], *expanded[end:]] for end in at_once]


_REPEATED_AT_ONCE = 2


def _expanded(ctx: Context, x: Tensor, shape: Shape, places: Sequence[int]) -> Tensor:
    """Inserts the dimensions of size one of `shape` that are not among `places`."""
    new = sorted(set(range(len(shape))) - set(places))
    if len(new) == 1:
        return ops.raw.ExpandDims(input=x, axis=ctx.number(new[0]))
    return ctx.reshaped(x, shape) if new else x


@register("rev")
def _rev(ctx: Context, x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    # One element needs no reverse, and OpenVINO would lose the dimension in a gather.
    dimensions = [d for d in dimensions if ctx.avals_in[0].shape[d] not in (0, 1)]
    if not dimensions:
        return x
    in_floats = x.dtype == dtypes.int32 and ctx.has(Quirk.ORDERS_INTEGERS_AS_FLOATS)
    if in_floats or not ctx.takes("ReverseV2"):
        for dim in dimensions:
            last = ctx.dim(ctx.avals_in[0].shape[dim]) - 1
            x = in_carrier(
                HOLDS_INT4,
                lambda t, d=dim, n=last: ops.gather(t, n - ops.range(n + 1), axis=d),
                x,
            )
        return x
    if x.shape.rank > MAX_RANK:
        shape = ctx.avals_in[0].shape
        return axis_by_axis(ctx, x, shape, shape, dimensions, lambda view, *_: flipped(view, [1]))
    return flipped(x, dimensions, at_once=not ctx.has(Quirk.ONE_REVERSE_AT_A_TIME))


@register("concatenate")
def _concatenate(ctx: Context, *operands: Tensor, dimension: int) -> Tensor:
    if len(operands) == 1:
        return operands[0]
    axis = ctx.number(dimension)
    joined = in_carrier(HOLDS_INT4, lambda *ts: ops.concat(ts, axis), *operands)
    if not ctx.has(Quirk.NO_CONCAT_OF_PARTS):
        return joined
    # DTensor never wants the operand of a gather in parts.
    size = ctx.dim(ctx.avals_out[0].shape[dimension])
    return in_carrier(HOLDS_INT4, lambda t: ops.gather(t, ops.range(size), axis=dimension), joined)


@register("stack")
def _stack(ctx: Context, *operands: Tensor, axis: int) -> Tensor:
    return in_carrier(HOLDS_INT4, lambda *ts: stacked(ctx, ts, axis), *operands)


@register("unstack")
def _unstack(ctx: Context, x: Tensor, *, axis: int) -> list[Tensor]:
    n = len(ctx.avals_out)
    if ctx.has(Quirk.NO_UNPACK_OF_PARTS):
        starts = [[0] * axis + [i] + [0] * (x.shape.rank - axis - 1) for i in range(n)]
        sizes = [1 if d == axis else -1 for d in range(x.shape.rank)]
        return in_carrier(
            HOLDS_INT4, lambda t: [ops.squeeze(ops.slice(t, s, sizes), axis) for s in starts], x
        )
    return in_carrier(HOLDS_INT4, lambda t: ops.unstack(t, n, axis), x)


@register("split")
def _split(ctx: Context, x: Tensor, *, sizes: Shape, axis: int) -> list[Tensor]:
    if len(sizes) == 1:
        return [x]
    are_equal = all(size == sizes[0] for size in sizes)
    if not ctx.takes("Split" if are_equal else "SplitV", x.dtype.name):
        return _split_by_slices(ctx, x, sizes, axis)
    parts = len(sizes) if are_equal else ctx.vector(sizes)
    return ops.split(x, parts, ctx.number(axis), num=len(sizes))


def _split_by_slices(ctx: Context, x: Tensor, sizes: Shape, axis: int) -> list[Tensor]:
    shape = ctx.avals_in[0].shape
    parts, start = [], 0
    for size in sizes:
        begin = [start if i == axis else 0 for i in range(len(shape))]
        new_shape = [size if i == axis else d for i, d in enumerate(shape)]
        limit = [a + d for a, d in zip(begin, new_shape, strict=True)]
        parts.append(sliced(ctx, x, shape, begin, limit, [1] * len(shape), new_shape))
        start += size
    return parts


@register("tile")
def _tile(ctx: Context, x: Tensor, *, reps: Sequence[int]) -> Tensor:
    multiples = ctx.vector(reps)
    return in_carrier(TILED, lambda t: ops.raw.Tile(input=t, multiples=multiples), x)


@register("slice")
def _slice(
    ctx: Context,
    x: Tensor,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Sequence[int] | None,
) -> Tensor:
    shape, new_shape = ctx.avals_in[0].shape, ctx.avals_out[0].shape
    strides = strides or [1] * len(shape)
    return sliced(ctx, x, shape, start_indices, limit_indices, strides, new_shape)


@register("select_n")
def _select_n(ctx: Context, which: Tensor, *cases: Tensor) -> Tensor:
    """cases[which]; as in XLA, a selector out of range takes the nearest case."""
    if len(cases) == 1:
        return cases[0]
    if max(which.shape.rank, cases[0].shape.rank) > MAX_RANK:
        flat = [ops.reshape(t, [-1]) if t.shape.rank else t for t in (which, *cases)]
        which, cases = flat[0], tuple(flat[1:])
    result = in_carrier(HOLDS_NARROW, lambda *ts: _selected(ctx, which, ts), *cases)
    shape = ctx.avals_out[0].shape
    return ctx.reshaped(result, shape) if len(shape) > MAX_RANK else result


def _selected(ctx: Context, which: Tensor, cases: Sequence[Tensor]) -> Tensor:
    if which.dtype == dtypes.bool_:
        return select(ctx, which, cases[1], cases[0])
    result = cases[-1]
    for index in reversed(range(len(cases) - 1)):
        result = select(ctx, which <= index, cases[index], result)
    return result


@register("iota")
def _iota(ctx: Context, *, dtype: np.dtype, shape: Shape, dimension: int) -> Tensor:
    along = [size if axis == dimension else 1 for axis, size in enumerate(shape)]
    is_whole = along == list(shape)
    if dims.is_static(shape) and np.prod(shape) <= _IOTA_AS_CONSTANT:
        return cast(ops.constant(np.broadcast_to(_counting(along), shape)), dtypes.to_tf(dtype))
    size = shape[dimension]
    if dims.is_static([size]) and size <= _IOTA_AS_CONSTANT:
        x = ops.constant(_counting(along))
    else:
        x = ops.range(ctx.dim(size))
        # Broadcasting adds the leading axes.
        if len(shape) > dimension + 1 or (is_whole and dimension):
            x = ctx.reshaped(x, along)
    x = cast(x, dtypes.to_tf(dtype))
    return x if is_whole else _broadcast_to(ctx, x, shape)


def _counting(shape: Sequence[int]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@register("empty", "empty2")
def _empty(ctx: Context, *, dtype: np.dtype, shape: Shape | None = None) -> Tensor:
    del shape  # empty2 has no shape; the result's aval has one
    zero = cast(ops.constant(0), dtypes.to_tf(dtype))
    return _broadcast_to(ctx, zero, ctx.avals_out[0].shape)


@register("dim_as_value")
def _dim_as_value(ctx: Context, *, dim: Dim) -> Tensor:
    return ops.cast(ctx.dim(dim), ctx.out)


@register("pad")
def _pad(
    ctx: Context,
    x: Tensor,
    padding_value: Tensor,
    *,
    padding_config: Sequence[tuple[Dim, Dim, Dim]],
) -> Tensor:
    low, high, interior = ([config[i] for config in padding_config] for i in range(3))
    return padded(ctx, x, padding_value, ctx.avals_in[0].shape, low, high, interior)
