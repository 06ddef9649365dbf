"""Scatter: scatter, scatter_add, _sub, _mul, _min, _max and scatter_apply of any function.

A window of updates that is not in bounds as a whole is dropped. Updates of the same element are
combined one after the other, in the order of the indices.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

from jax2tf import dtypes
from jax2tf.compat import xla_data, xla_ops
from jax2tf.dims import may_be_zero
from jax2tf.identity import Identity
from jax2tf.lowering import index_windows as iw
from jax2tf.lowering.conversions import FLOAT8_CARRIER
from jax2tf.lowering.index_windows import Windows, wide
from jax2tf.lowering.rules import Context, register

Write = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]

_COMBINERS: dict[str, Callable[..., jax.Array]] = {
    "scatter-add": lax.add,
    "scatter-sub": lax.sub,
    "scatter-mul": lax.mul,
    "scatter-min": lax.min,
    "scatter-max": lax.max,
}


_KERNELS = {
    "scatter-add": tf.raw_ops.TensorScatterAdd,
    "scatter-sub": tf.raw_ops.TensorScatterSub,
    "scatter-min": tf.raw_ops.TensorScatterMin,
    "scatter-max": tf.raw_ops.TensorScatterMax,
}

_EXTREMES = ("scatter-min", "scatter-max")


def _add_scattered(tensor: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor, **_: Any) -> Any:
    """TensorScatterAdd of indices in bounds, for engines that scatter into zeros alone."""
    sums = tf.raw_ops.ScatterNd(indices=indices, updates=updates, shape=tf.shape(tensor))
    # What no update was for keeps the sign of its zero.
    return tf.where(tf.equal(sums, 0), tensor, tensor + sums)


def _subtract_scattered(tensor: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor, **_: Any) -> Any:
    return _add_scattered(tensor, indices, -updates)


_KERNELS_OF_ZEROS = {"scatter-add": _add_scattered, "scatter-sub": _subtract_scattered}


@register("scatter", *_COMBINERS)
def _scatter(
    ctx: Context,
    operand: tf.Tensor,
    indices: tf.Tensor,
    updates: tf.Tensor,
    *,
    dimension_numbers: lax.ScatterDimensionNumbers,
    mode: lax.GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
    update_jaxpr: jex_core.Jaxpr | None,
    update_consts: Sequence[Any],
) -> tf.Tensor:
    del indices_are_sorted  # A hint to XLA; it changes no value.
    shape, indices_shape, updates_shape = (aval.shape for aval in ctx.avals_in)
    if 0 in shape or 0 in updates_shape:
        return tf.identity(operand)
    # Over parts, DTensor's TensorScatterAdd fails on shapes that do not match.
    operand, indices, updates = (ctx.whole(x) for x in (operand, indices, updates))
    windows = iw.scatter_windows(shape, indices_shape, updates_shape, dimension_numbers)
    starts = iw.as_index(indices)
    clips = mode == lax.GatherScatterMode.CLIP
    if clips:
        starts = iw.clamped(ctx, starts, windows)
    name, dtype = ctx.eqn.primitive.name, operand.dtype
    if name in _EXTREMES:
        operand, updates = (_as_ordered(x, name) for x in (operand, updates))
    combiner: Any = _combiner(ctx, name, operand.dtype, update_jaxpr, update_consts)
    kernel = _kernel(ctx, name, operand.dtype, combiner, clips)
    args = wide(operand), starts, wide(updates), windows
    # XLA's scatter loses updates when index vectors are empty.
    use_xla = ctx.enable_xla and windows.indexed and not (kernel and _writes_directly(windows))
    if use_xla:
        result = _xla_scatter(ctx, *args, dimension_numbers, combiner)
    else:
        result = _write(ctx, *args, kernel or _fold(ctx, combiner, unique_indices), clips)
    if name in _EXTREMES:
        return ctx.whole(_from_ordered(tf.cast(result, operand.dtype), dtype))
    return ctx.whole(tf.cast(result, dtype))


def _combiner(
    ctx: Context, name: str, dtype: tf.DType, jaxpr: jex_core.Jaxpr | None, consts: Sequence[Any]
) -> jex_core.ClosedJaxpr | None:
    """What makes an element of an element and its update; None if the update replaces it."""
    if name in _COMBINERS:
        return _named_combiner(name, dtype)
    return None if jaxpr is None else ctx.closed(jaxpr, consts)


@functools.cache
def _named_combiner(name: str, dtype: tf.DType) -> jex_core.ClosedJaxpr:
    with jax.enable_x64(True):
        scalar = jax.ShapeDtypeStruct((), dtype.as_numpy_dtype)
        return jax.make_jaxpr(_COMBINERS[name])(scalar, scalar)


def _kernel(
    ctx: Context,
    name: str,
    dtype: tf.DType,
    combiner: jex_core.ClosedJaxpr | None,
    in_bounds: bool,
) -> Write | None:
    """The TensorFlow op that writes all updates at once, if one does what JAX does."""
    if combiner is None:
        return _dropping(ctx, tf.raw_ops.TensorScatterUpdate, in_bounds=in_bounds)
    if dtype in FLOAT8_CARRIER:
        # In a wider dtype, sums would be rounded once instead of at each step.
        return None
    if name not in _KERNELS or (name in _EXTREMES and dtype.is_complex):
        return None
    neutral = _current if name in _EXTREMES else _zero
    kernels: Mapping[str, Callable[..., tf.Tensor]] = _KERNELS
    if ctx.has_quirk("no_scatter_into"):
        kernels = _KERNELS_OF_ZEROS
    return _dropping(ctx, kernels[name], neutral, in_bounds=in_bounds) if name in kernels else None


def _dropping(
    ctx: Context,
    op: Callable[..., tf.Tensor],
    neutral: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None,
    *,
    in_bounds: bool = False,
) -> Write:
    """The op, which writes nothing where an index is out of bounds.

    TensorFlow's kernels are told so. Other readers of its graphs know no such policy: without XLA
    ops all indices are in bounds, and what is to be dropped writes what changes nothing, or into a
    row after the last one.

    Args:
      neutral: of an array and indices, the updates that change nothing, however many.
      in_bounds: whether nothing is out of bounds anyway.
    """

    def write(x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
        return op(tensor=x, indices=indices, updates=updates, bad_indices_policy="IGNORE")

    def write_inside(x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
        depth = indices.shape[-1]
        bounds = tf.cast(tf.shape(x)[:depth], indices.dtype)
        near = iw.clipped(indices, bounds - 1)
        inside = tf.reduce_all(tf.equal(near, indices), -1, keepdims=True)
        one = indices.shape[:-1].num_elements() == 1
        if neutral or one:
            nothing = (neutral or _current)(x, near)
            window = [1] * (updates.shape.rank - indices.shape.rank + 1)
            mask = tf.reshape(inside, tf.concat([tf.shape(inside)[:-1], window], 0))
            return write(x, near, tf.where(mask, updates, nothing))
        beyond = tf.concat([bounds[:1], tf.zeros_like(bounds[1:])], 0)
        longer = tf.concat([x, x[:1]], 0)
        written = write(longer, tf.where(inside, near, beyond), updates)
        return tf.slice(written, [0] * x.shape.rank, tf.shape(x))

    return write if ctx.enable_xla or in_bounds else write_inside


def _zero(x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    # Of zeros the negative one: the positive one would be the sum of itself and -0.
    del indices
    return tf.constant(-0.0 if x.dtype.is_floating else 0, x.dtype)


def _current(x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    return tf.gather_nd(x, indices)


def _as_ordered(x: tf.Tensor, name: str) -> tf.Tensor:
    """`x` as integers in the same order, for a minimum or maximum; complex numbers as they are.

    TensorFlow's kernels lose NaN and do not tell the zeros apart. As integers, the bits of floats
    are in order once those of negative numbers are flipped; NaN goes to whichever end wins.
    """
    if x.dtype.is_bool:
        return tf.cast(x, tf.int8)
    if not x.dtype.is_floating:
        return x
    x = tf.cast(x, tf.float64 if x.dtype == tf.float64 else tf.float32)
    nan = tf.constant(math.nan if name == "scatter-max" else -math.nan, x.dtype)
    return _flipped(tf.bitcast(tf.where(tf.math.is_nan(x), nan, x), _BITS[x.dtype]))


def _from_ordered(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """What `_as_ordered` made integers of."""
    if dtype.is_floating:
        x = tf.bitcast(_flipped(x), tf.float64 if dtype == tf.float64 else tf.float32)
    return tf.cast(x, dtype)


_BITS = {tf.float32: tf.int32, tf.float64: tf.int64}


def _flipped(bits: tf.Tensor) -> tf.Tensor:
    return tf.where(bits < 0, tf.bitwise.bitwise_xor(bits, bits.dtype.max), bits)


def _fold(ctx: Context, combiner: jex_core.ClosedJaxpr, unique: bool) -> Write:
    """Any combiner: the first update of each element at once, then the second of each, ..."""

    def write(x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
        depth = indices.shape[-1]
        indices = tf.reshape(indices, [-1, depth])
        updates = tf.reshape(updates, tf.concat([[-1], tf.shape(x)[depth:]], 0))
        bounds = tf.cast(tf.shape(x)[:depth], indices.dtype)
        near = iw.clipped(indices, bounds - 1)
        inside = tf.reduce_all(tf.equal(near, indices), -1)
        replace = _dropping(ctx, tf.raw_ops.TensorScatterUpdate)

        def step(chosen: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            combined = _elementwise(ctx, combiner, tf.gather_nd(x, near), updates)
            return replace(x, tf.where(tf.expand_dims(chosen, -1), near, -1), combined)

        if unique:
            return step(inside, x)
        turn = tf.where(inside, _occurrence(near, bounds), -1)
        return tf.while_loop(
            lambda i, _: tf.less_equal(i, tf.reduce_max(turn)),
            lambda i, x: (i + 1, step(tf.equal(turn, i), x)),
            (tf.zeros([], turn.dtype), x),
        )[1]

    return write


def _occurrence(indices: tf.Tensor, bounds: tf.Tensor) -> tf.Tensor:
    """For each index vector, how many equal ones come before it."""
    strides = tf.math.cumprod(bounds, exclusive=True, reverse=True)
    places = tf.reduce_sum(indices * strides, -1)
    order = tf.argsort(places, stable=True)
    ordered = tf.gather(places, order)
    first = tf.searchsorted(ordered, ordered, side="left")
    turns = tf.range(tf.size(order)) - first
    return tf.gather(turns, tf.argsort(order))


def _elementwise(
    ctx: Context, combiner: jex_core.ClosedJaxpr, current: tf.Tensor, updates: tf.Tensor
) -> tf.Tensor:
    """The combiner, which is a jaxpr of scalars, on arrays."""
    dtype = combiner.in_avals[0].dtype
    length = math.prod(ctx.avals_in[2].shape)

    def make() -> jex_core.ClosedJaxpr:
        vector = jax.ShapeDtypeStruct((length,), dtype)
        function = jax.vmap(jex_core.jaxpr_as_fun(combiner))
        return jax.make_jaxpr(function)(vector, vector)

    vectorized = ctx.cached(("elementwise", Identity(combiner.jaxpr), length), make)
    inner = dtypes.to_tf(dtype)
    vectors = (tf.cast(tf.reshape(v, [-1]), inner) for v in (current, updates))
    (result,) = ctx.inline(vectorized, *vectors)
    return tf.reshape(tf.cast(result, updates.dtype), tf.shape(updates))


def _writes_directly(windows: Windows) -> bool:
    """Whether updates are rows of the operand as they are, with nothing to move."""
    depth = len(windows.indexed)
    return (
        depth > 0
        and windows.varying == windows.indexed == tuple(range(depth))
        and all(windows.sizes[d] == 1 for d in windows.indexed)
        and not windows.batching
        and not windows.partial
        and list(windows.layout)
        == [*windows.batch_labels, *(("window", d) for d in range(depth, len(windows.shape)))]
    )


def _write(
    ctx: Context,
    x: tf.Tensor,
    starts: tf.Tensor,
    updates: tf.Tensor,
    windows: Windows,
    write: Write,
    in_bounds: bool,
) -> tf.Tensor:
    """A scatter in standard ops: rows of the operand, indexed by the dimensions that vary."""
    dims = sorted({*windows.aligned, *windows.varying, *windows.partial})
    rest = [d for d in range(len(windows.shape)) if d not in dims]
    rows = iw.transposed(x, [*dims, *rest])
    if dims:
        indices, labels = iw.grid(ctx, starts, windows, dims)
    else:
        # Every window is the whole operand: it becomes the one row of an array.
        rows, labels = tf.expand_dims(rows, 0), windows.batch_labels
        indices = tf.zeros(ctx.shape([*windows.batch_shape, 1]), starts.dtype)
    if not in_bounds and any(windows.sizes[d] != 1 or d not in dims for d in windows.indexed):
        # The kernel drops elements out of bounds one by one; a window is dropped as a whole.
        inside = iw.in_bounds(starts, iw.clamped(ctx, starts, windows))
        inside = iw.spread(ctx, inside, windows, windows.batch_labels, [*labels, ("index", 0)])
        indices = tf.where(inside, indices, -1)
    window = [("window", d) for d in rest]
    updates = iw.rearranged(ctx, updates, windows, windows.layout, [*labels, *window])
    if not labels:
        # TensorFlow's kernels want at least one batch dimension.
        indices, updates = tf.expand_dims(indices, 0), tf.expand_dims(updates, 0)
    if any(may_be_zero(size) for size in windows.shape):
        # TensorFlow's kernels refuse to drop what is written to an array without elements.
        count = tf.where(tf.size(rows) > 0, tf.shape(indices)[0], 0)
        indices, updates = indices[:count], updates[:count]
    rows = write(rows, indices, updates)
    if not dims:
        return tf.squeeze(rows, 0)
    return iw.transposed(rows, np.argsort([*dims, *rest]).tolist())


def _xla_scatter(
    ctx: Context,
    x: tf.Tensor,
    starts: tf.Tensor,
    updates: tf.Tensor,
    windows: Windows,
    numbers: lax.ScatterDimensionNumbers,
    combiner: jex_core.ClosedJaxpr | None,
) -> tf.Tensor:
    message = xla_data.ScatterDimensionNumbers(
        update_window_dims=numbers.update_window_dims,
        inserted_window_dims=numbers.inserted_window_dims,
        scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
        input_batching_dims=numbers.operand_batching_dims,
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        index_vector_dim=len(windows.batch_shape),
    )
    return xla_ops.xla_scatter(
        operand=x,
        scatter_indices=starts,
        updates=updates,
        update_computation=(
            _replacement(x.dtype) if combiner is None else ctx.computation(combiner, x.dtype)
        ),
        dimension_numbers=message.SerializeToString(),
        indices_are_sorted=False,
    )


@functools.cache
def _replacement(dtype: tf.DType) -> Any:
    scalar = tf.TensorSpec([], dtype)
    with tf.init_scope():
        function = tf.function(lambda current, update: update, autograph=False)
        return function.get_concrete_function(scalar, scalar)
