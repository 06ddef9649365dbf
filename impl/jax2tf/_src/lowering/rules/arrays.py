"""Arrays: reshape, broadcast, concatenate, pad, slice, select and other movements of elements.

No rule here computes a value, so dtypes matter in one way only: the CPU kernels of a TensorFlow op
may lack some. Then the elements travel in a dtype that holds them exactly (conversions.in_carrier).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.emit.compute_dtypes import (
    HOLDS_INT4,
    HOLDS_NARROW,
    PADDED_WIDE,
    PADDED_WITHOUT_BOOL,
    TILED,
)
from jax2tf._src.lowering.emit.known_values import is_zero, known_value
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import Context, register
from jax2tf._src.lowering.rules.casts import cast, in_carrier
from jax2tf._src.lowering.supported import is_computed
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Dim, Shape

# An iota of at most so many elements is a constant: it takes less room than the ops that make it.
_IOTA_AS_CONSTANT = 64

# So many dimensions TensorFlow's CPU kernels take at most; those of tf.pad six, after neighbours
# that are not padded are merged. JAX has no bound, so beyond it ops see one axis at a time.
_MAX_RANK = 8
_PAD_MAX_RANK = 6


@register("reshape")
def _reshape(
    ctx: Context, x: tf.Tensor, *, new_sizes: Shape, dimensions: Sequence[int] | None
) -> tf.Tensor:
    if dimensions is not None:
        x = _permuted(ctx, x, dimensions)
    return ctx.reshaped(x, new_sizes)


@register("transpose")
def _transpose(ctx: Context, x: tf.Tensor, *, permutation: Sequence[int]) -> tf.Tensor:
    return _permuted(ctx, x, permutation)


def _permuted(ctx: Context, x: tf.Tensor, permutation: Sequence[int]) -> tf.Tensor:
    if list(permutation) == list(range(len(permutation))):
        return x
    perm = ctx.vector(permutation)
    return in_carrier(HOLDS_INT4, lambda t: ops.raw.Transpose(x=t, perm=perm), x)


@register("squeeze", takes_keys=True)
def _squeeze(ctx: Context, x: tf.Tensor, *, dimensions: Sequence[int]) -> tf.Tensor:
    # Those of a key's own data come last. tf.squeeze takes an empty list for all of size one.
    return ops.squeeze(x, dimensions) if dimensions else x


@register("broadcast_in_dim")
def _broadcast_in_dim(
    ctx: Context, x: tf.Tensor, *, shape: Shape, broadcast_dimensions: Sequence[int]
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
    for step in _steps_of_broadcast(expanded, shape):
        x = _broadcast_to(ctx, x, step)
    return x


def _broadcast_to(ctx: Context, x: tf.Tensor, shape: Shape) -> tf.Tensor:
    sizes = ctx.vector(shape)
    return in_carrier(HOLDS_INT4, lambda t: ops.raw.BroadcastTo(input=t, shape=sizes), x)


def _steps_of_broadcast(expanded: Shape, shape: Shape) -> list[list[Dim]]:
    """The shapes to broadcast to, one after the other.

    TensorFlow's kernels see neighbours that are all repeated, or all kept, as one dimension, and
    take five: two groups that are repeated, and what is between and around them.
    """
    places = enumerate(zip(expanded, shape, strict=True))
    groups = itertools.groupby(places, lambda place: place[1][0] == place[1][1])
    ends = [max(d for d, _ in group) + 1 for is_kept, group in groups if not is_kept]
    at_once = (ends[i : i + _REPEATED_AT_ONCE][-1] for i in range(0, len(ends), _REPEATED_AT_ONCE))
    return [[*shape[:end], *expanded[end:]] for end in at_once]


_REPEATED_AT_ONCE = 2


def _expanded(ctx: Context, x: tf.Tensor, shape: Shape, places: Sequence[int]) -> tf.Tensor:
    """Inserts the dimensions of size one of `shape` that are not among `places`."""
    new = sorted(set(range(len(shape))) - set(places))
    if len(new) == 1:
        return ops.raw.ExpandDims(input=x, axis=ctx.number(new[0]))
    return ctx.reshaped(x, shape) if new else x


@register("rev")
def _rev(ctx: Context, x: tf.Tensor, *, dimensions: Sequence[int]) -> tf.Tensor:
    # One element, or none, is its own reverse. OpenVINO drops a dimension that it is gathered from.
    dimensions = [d for d in dimensions if ctx.avals_in[0].shape[d] not in (0, 1)]
    if not dimensions:
        return x
    in_floats = x.dtype == tf.int32 and ctx.has(Quirk.ORDERS_INTEGERS_AS_FLOATS)
    if in_floats or not ctx.takes("ReverseV2"):
        for dim in dimensions:
            last = ctx.dim(ctx.avals_in[0].shape[dim]) - 1
            x = in_carrier(
                HOLDS_INT4,
                lambda t, d=dim, n=last: ops.gather(t, n - ops.range(n + 1), axis=d),
                x,
            )
        return x
    if x.shape.rank > _MAX_RANK:
        shape = ctx.avals_in[0].shape
        return _axis_by_axis(ctx, x, shape, shape, dimensions, lambda view, *_: flipped(view, [1]))
    return flipped(x, dimensions, at_once=not ctx.has(Quirk.ONE_REVERSE_AT_A_TIME))


def flipped(x: tf.Tensor, axes: Sequence[int], at_once: bool = True) -> tf.Tensor:
    """`x` in reverse along some axes; not at once for readers of graphs that flip one alone."""
    if not (at_once or tf.executing_eagerly()) and x.op.type == "Const":
        # Form: constants_reversed.
        return ops.constant(np.flip(tf.get_static_value(x), tuple(axes)))
    for group in [list(axes)] if at_once else [[axis] for axis in axes]:
        axis = ops.constant(group)
        x = in_carrier(HOLDS_NARROW, lambda t, axis=axis: ops.raw.ReverseV2(tensor=t, axis=axis), x)
    return x


@register("concatenate")
def _concatenate(ctx: Context, *operands: tf.Tensor, dimension: int) -> tf.Tensor:
    if len(operands) == 1:
        return operands[0]
    axis = ctx.number(dimension)
    joined = in_carrier(HOLDS_INT4, lambda *ts: ops.concat(ts, axis), *operands)
    if not ctx.has(Quirk.NO_CONCAT_OF_PARTS):
        return joined
    # Nobody asks for what a gather reads in parts.
    size = ctx.dim(ctx.avals_out[0].shape[dimension])
    return in_carrier(HOLDS_INT4, lambda t: ops.gather(t, ops.range(size), axis=dimension), joined)


@register("stack")
def _stack(ctx: Context, *operands: tf.Tensor, axis: int) -> tf.Tensor:
    return in_carrier(HOLDS_INT4, lambda *ts: stacked(ctx, ts, axis), *operands)


def stacked(ctx: Context, tensors: Sequence[tf.Tensor], axis: int) -> tf.Tensor:
    """As tf.stack, in ops that Grappler leaves as they are.

    Of a Pack of equal operands it makes a Tile, and there takes the first output of an op for any
    other: of TopKV2's indices, stacked, it makes its values (TensorFlow 2.21).
    """
    number = ctx.number(axis)
    return ops.concat([ops.expand_dims(t, number) for t in tensors], number)


@register("unstack")
def _unstack(ctx: Context, x: tf.Tensor, *, axis: int) -> list[tf.Tensor]:
    n = len(ctx.avals_out)
    if ctx.has(Quirk.NO_UNPACK_OF_PARTS):
        starts = [[0] * axis + [i] + [0] * (x.shape.rank - axis - 1) for i in range(n)]
        sizes = [1 if d == axis else -1 for d in range(x.shape.rank)]
        return in_carrier(
            HOLDS_INT4, lambda t: [ops.squeeze(ops.slice(t, s, sizes), axis) for s in starts], x
        )
    return in_carrier(HOLDS_INT4, lambda t: ops.unstack(t, n, axis), x)


@register("split")
def _split(ctx: Context, x: tf.Tensor, *, sizes: Shape, axis: int) -> list[tf.Tensor]:
    if len(sizes) == 1:
        return [x]
    are_equal = all(size == sizes[0] for size in sizes)
    if not ctx.takes("Split" if are_equal else "SplitV", x.dtype.name):
        return _split_by_slices(ctx, x, sizes, axis)
    parts = len(sizes) if are_equal else ctx.vector(sizes)
    results: list[tf.Tensor] = ops.split(x, parts, ctx.number(axis), num=len(sizes))
    return results


def _split_by_slices(ctx: Context, x: tf.Tensor, sizes: Shape, axis: int) -> list[tf.Tensor]:
    shape = ctx.avals_in[0].shape
    parts, start = [], 0
    for size in sizes:
        begin = [start if i == axis else 0 for i in range(len(shape))]
        new_shape = [size if i == axis else d for i, d in enumerate(shape)]
        limit = [a + d for a, d in zip(begin, new_shape, strict=True)]
        parts.append(_sliced(ctx, x, shape, begin, limit, [1] * len(shape), new_shape))
        start += size
    return parts


@register("tile")
def _tile(ctx: Context, x: tf.Tensor, *, reps: Sequence[int]) -> tf.Tensor:
    multiples = ctx.vector(reps)
    return in_carrier(TILED, lambda t: ops.raw.Tile(input=t, multiples=multiples), x)


@register("slice")
def _slice(
    ctx: Context,
    x: tf.Tensor,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Sequence[int] | None,
) -> tf.Tensor:
    shape, new_shape = ctx.avals_in[0].shape, ctx.avals_out[0].shape
    strides = strides or [1] * len(shape)
    return _sliced(ctx, x, shape, start_indices, limit_indices, strides, new_shape)


def _sliced(
    ctx: Context,
    x: tf.Tensor,
    shape: Shape,
    start: Shape,
    limit: Shape,
    strides: Sequence[int],
    new_shape: Shape,
) -> tf.Tensor:
    if not shape:
        return x
    if len(shape) > _MAX_RANK:

        def slice_axis(view: tf.Tensor, axis: int, before: Dim, after: Dim) -> tf.Tensor:
            sizes = [[before, of[axis], after] for of in (shape, limit, new_shape)]
            first, step = [0, start[axis], 0], [1, strides[axis], 1]
            return _sliced(ctx, view, sizes[0], first, sizes[1], step, sizes[2])

        axes = [i for i, (old, new) in enumerate(zip(shape, new_shape, strict=True)) if old != new]
        return _axis_by_axis(ctx, x, shape, new_shape, axes, slice_axis)
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


@register("select_n")
def _select_n(ctx: Context, which: tf.Tensor, *cases: tf.Tensor) -> tf.Tensor:
    """cases[which], where a selector out of range takes the nearest case, as it does in XLA."""
    if len(cases) == 1:
        return cases[0]
    if max(which.shape.rank, cases[0].shape.rank) > _MAX_RANK:
        flat = [ops.reshape(t, [-1]) if t.shape.rank else t for t in (which, *cases)]
        which, cases = flat[0], tuple(flat[1:])
    result = in_carrier(HOLDS_NARROW, lambda *ts: _selected(ctx, which, ts), *cases)
    shape = ctx.avals_out[0].shape
    return ctx.reshaped(result, shape) if len(shape) > _MAX_RANK else result


def _selected(ctx: Context, which: tf.Tensor, cases: Sequence[tf.Tensor]) -> tf.Tensor:
    if which.dtype == tf.bool:
        return select(ctx, which, cases[1], cases[0])
    result = cases[-1]
    for index in reversed(range(len(cases) - 1)):
        result = select(ctx, which <= index, cases[index], result)
    return result


@register("iota")
def _iota(ctx: Context, *, dtype: np.dtype, shape: Shape, dimension: int) -> tf.Tensor:
    along = [size if axis == dimension else 1 for axis, size in enumerate(shape)]
    is_whole = along == list(shape)
    if _is_static(shape) and np.prod(shape) <= _IOTA_AS_CONSTANT:
        return cast(ops.constant(np.broadcast_to(_counting(along), shape)), dtypes.to_tf(dtype))
    size = shape[dimension]
    if _is_static([size]) and size <= _IOTA_AS_CONSTANT:
        x = ops.constant(_counting(along))
    else:
        x = ops.range(ctx.dim(size))
        # Broadcasting adds the axes before its own.
        if len(shape) > dimension + 1 or (is_whole and dimension):
            x = ctx.reshaped(x, along)
    x = cast(x, dtypes.to_tf(dtype))
    return x if is_whole else _broadcast_to(ctx, x, shape)


def _counting(shape: Sequence[int]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@register("empty", "empty2")
def _empty(ctx: Context, *, dtype: np.dtype, shape: Shape | None = None) -> tf.Tensor:
    del shape  # which empty2 does not have; the result's aval does
    zero = cast(ops.constant(0), dtypes.to_tf(dtype))
    return _broadcast_to(ctx, zero, ctx.avals_out[0].shape)


@register("dim_as_value")
def _dim_as_value(ctx: Context, *, dim: Dim) -> tf.Tensor:
    return ops.cast(ctx.dim(dim), ctx.out)


@register("pad")
def _pad(
    ctx: Context,
    x: tf.Tensor,
    padding_value: tf.Tensor,
    *,
    padding_config: Sequence[tuple[Dim, Dim, Dim]],
) -> tf.Tensor:
    low, high, interior = ([config[i] for config in padding_config] for i in range(3))
    return padded(ctx, x, padding_value, ctx.avals_in[0].shape, low, high, interior)


def padded(
    ctx: Context,
    x: tf.Tensor,
    padding_value: tf.Tensor,
    shape: Shape,
    low: Shape,
    high: Shape,
    interior: Sequence[int],
) -> tf.Tensor:
    """StableHLO's pad of `x`, of JAX's `shape`: elements are put apart, then edges added or cut."""
    size = [
        d + gap * _positive(d - 1) + a + b
        for d, a, b, gap in zip(shape, low, high, interior, strict=True)
    ]
    if any(interior):
        if ctx.wants("XlaPad") and _is_static([*shape, *low, *high]):
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
    # Cut last: what is cut on one side may be padding of the other.
    uncut = [d - _negative(a) - _negative(b) for d, a, b in zip(size, low, high, strict=True)]
    begin = [-_negative(edge) for edge in low]
    end = [b + d for b, d in zip(begin, size, strict=True)]
    cut = _sliced(ctx, x, uncut, begin, end, [1] * len(size), size)
    return _with_known_sizes(ctx, cut, size, by=(*begin, *end))


def _with_known_sizes(ctx: Context, x: tf.Tensor, shape: Shape, by: Iterable[Dim]) -> tf.Tensor:
    """What is padded or cut `by` some sizes, as the quirk "pads_lose_sizes" asks."""
    if tf.executing_eagerly() or not ctx.has(Quirk.PADS_LOSE_SIZES) or _is_static(by):
        return x
    return ctx.reshaped(x, shape)


def _dilated(
    ctx: Context,
    x: tf.Tensor,
    padding_value: tf.Tensor,
    shape: Shape,
    high: Shape,
    interior: Sequence[int],
) -> tuple[tf.Tensor, list[Dim], list[Dim]]:
    """`x` with padding values after each element, its shape, and `high` less those at the end."""
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
    x: tf.Tensor,
    shape: Shape,
    padding_value: tf.Tensor,
    edges: Sequence[tuple[Dim, Dim]],
) -> tf.Tensor:
    """Adds (before, after) padding values along each axis."""
    axes = [axis for axis, edge in enumerate(edges) if any(edge)]
    new_shape = [size + a + b for size, (a, b) in zip(shape, edges, strict=True)]
    if len(shape) > _PAD_MAX_RANK or not ctx.takes_rank("PadV2", len(shape)):

        def pad_axis(view: tf.Tensor, axis: int, *_: Dim) -> tf.Tensor:
            return _padded(ctx, view, padding_value, [(0, 0), edges[axis], (0, 0)])

        return _axis_by_axis(ctx, x, shape, new_shape, axes, pad_axis)
    if not axes:
        return x
    made = _padded(ctx, x, padding_value, edges)
    return _with_known_sizes(ctx, made, new_shape, by=itertools.chain(*edges))


def _padded(
    ctx: Context, x: tf.Tensor, padding_value: tf.Tensor, edges: Sequence[tuple[Dim, Dim]]
) -> tf.Tensor:
    if ctx.has(Quirk.PADS_WITH_CONSTANTS_ALONE) and is_computed(padding_value):
        inside = _padded(ctx, ops.ones_like(x, tf.int32), ops.zeros([], tf.int32), edges)
        zeros_around = _padded(ctx, x, ops.zeros([], x.dtype), edges)
        return ops.where(ops.cast(inside, tf.bool), zeros_around, padding_value)
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


def _is_rounded(x: tf.Tensor) -> bool:
    """Whether x is an int32 constant of the graph that float32 cannot represent."""
    value = None if x.dtype != tf.int32 else known_value(x)
    return value is not None and int(np.float32(value)) != int(value)


def _axis_by_axis(
    ctx: Context,
    x: tf.Tensor,
    shape: Shape,
    new_shape: Shape,
    axes: Sequence[int],
    op: Callable[..., tf.Tensor],
) -> tf.Tensor:
    """Applies op(view, axis, before, after) along each axis in turn, to views of shape
    (before, shape[axis], after), and gives the result the new shape.
    """
    sizes = list(shape)
    for axis in axes:
        before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
        view = ctx.reshaped(x, (before, sizes[axis], after))
        x = op(view, axis, before, after)
        sizes[axis] = new_shape[axis]
    return ctx.reshaped(x, new_shape)


def _is_static(dims: Iterable[Dim]) -> bool:
    return all(isinstance(d, int | np.integer) for d in dims)


def _positive(edge: Dim) -> Dim:
    return jax.core.max_dim(edge, 0)


def _negative(edge: Dim) -> Dim:
    return jax.core.min_dim(edge, 0)
