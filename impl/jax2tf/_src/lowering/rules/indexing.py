"""Indexing: dynamic_slice, dynamic_update_slice and gather.

Out of bounds follows JAX: slices and the windows of a gather are clamped into bounds, or a gather
fills the whole window. TensorFlow's kernels would raise on a CPU and read zeros on a GPU, so they
only get clamped indices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import lax

from jax2tf._src import ops
from jax2tf._src.compat.xla import xla_data
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import index_geometry as iw
from jax2tf._src.lowering.emit.index_geometry import Windows, wide
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Param, Shape


@register("dynamic_slice")
def _dynamic_slice(ctx: Context, operand: Tensor, *starts: Tensor, slice_sizes: Shape) -> Tensor:
    begin = _slice_begin(ctx, ctx.avals_in[0].shape, slice_sizes, starts)
    if begin is None:
        return ops.identity(operand)
    moved, sizes = wide(operand), ctx.shape(slice_sizes)
    is_compiled = surroundings.in_compiled_function()
    if is_compiled and ctx.has(Quirk.SEEKS_STARTS_OF_SLICES):
        sliced = ops.xla.xla_dynamic_slice(moved, begin, ops.cast(sizes, begin.dtype))
    else:
        sliced = ops.slice(moved, begin, sizes)
    return ops.cast(sliced, operand.dtype)


@register("dynamic_update_slice", op="XlaDynamicUpdateSlice")
def _dynamic_update_slice(ctx: Context, operand: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    if not starts:
        return ops.identity(update)
    begin = iw.as_one_index(starts)
    result = ops.dynamic_update_slice(wide(operand), wide(update), begin)
    return ops.cast(result, operand.dtype)


@register("dynamic_update_slice")
def _dynamic_update_slice_without_xla(
    ctx: Context, operand: Tensor, update: Tensor, *starts: Tensor
) -> Tensor:
    # A select over a range, not a scatter, because engines support it inside their loops.
    shape, sizes = (aval.shape for aval in ctx.avals_in[:2])
    result, inside = wide(update), None
    for d, start in enumerate(starts):
        if shape[d] == sizes[d]:
            continue
        start = _clamped_start(ctx, start, shape[d], sizes[d])
        offset = ops.range(ops.cast(ctx.dim(shape[d]), start.dtype)) - start
        size = ops.cast(ctx.dim(sizes[d]), start.dtype)
        if sizes[d] == 0:
            return ops.identity(operand)
        if sizes[d] != 1:
            result = ops.gather(result, iw.clipped(offset, size - 1), axis=d)
            here = ops.logical_and(ops.greater_equal(offset, 0), ops.less(offset, size))
        else:
            here = ops.equal(offset, 0)
        here = ops.reshape(here, [-1] + [1] * (len(shape) - 1 - d))
        inside = here if inside is None else ops.logical_and(inside, here)
    if inside is None:
        return ops.identity(update)
    return ops.cast(select(ctx, inside, result, wide(operand)), operand.dtype)


def _slice_begin(
    ctx: Context, shape: Shape, sizes: Shape, starts: Sequence[Tensor]
) -> Tensor | None:
    """The clamped start of a slice; None if the slice can only start at 0."""
    begin: list[Dim] = [0] * len(shape)
    free = [d for d in range(len(starts)) if shape[d] != sizes[d]]
    for d in free:
        begin[d] = _clamped_start(ctx, starts[d], shape[d], sizes[d])
    if not free:
        return None
    common = dtypes.int64 if any(begin[d].dtype == dtypes.int64 for d in free) else dtypes.int32
    return ops.stack([ops.cast(b, common) for b in begin])


def _clamped_start(ctx: Context, start: Tensor, dim: Dim, size: Dim) -> Tensor:
    start = iw.as_index(start)
    return iw.clipped(start, ops.cast(ctx.dim(dim - size), start.dtype))


@register("gather")
def _gather(
    ctx: Context,
    operand: Tensor,
    indices: Tensor,
    *,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Shape,
    mode: lax.GatherScatterMode,
    fill_value: Param,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Tensor:
    del indices_are_sorted, unique_indices  # Hints to XLA; they change no value.
    shape, indices_shape = (aval.shape for aval in ctx.avals_in)
    out_shape = ctx.avals_out[0].shape
    windows = iw.gather_windows(
        shape, indices_shape, len(out_shape), dimension_numbers, slice_sizes
    )
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP
    # To fill, JAX reads only the low 32 bits, which suffice for an index in bounds.
    starts = ops.cast(indices, dtypes.int32) if fills else iw.as_index(indices)
    moved = wide(operand)
    if ctx.wants("XlaGather") and not _reads_directly(windows):
        # XlaGather clamps indices, even if the caller promised JAX that they are in bounds.
        result = _xla_gather(ctx, moved, starts, windows, dimension_numbers)
        in_bounds = iw.clamped(ctx, starts, windows) if fills else None
    else:
        in_bounds = iw.clamped(ctx, starts, windows)
        result = _read(ctx, moved, in_bounds, windows)
    if in_bounds is not None and fills and windows.indexed:
        inside = iw.in_bounds(starts, in_bounds)
        inside = iw.spread(ctx, inside, windows, windows.batch_labels, windows.layout)
        fill = np.asarray(fill_value).astype(ctx.avals_out[0].dtype)
        fill = fill.astype(result.dtype.as_numpy_dtype)
        result = select(ctx, inside, result, ops.constant(fill))
    return ops.cast(result, operand.dtype)


def _reads_directly(windows: Windows) -> bool:
    """Whether one tf.gather or tf.gather_nd suffices, with no transpose or reshape around it."""
    if windows.partial or any(windows.sizes[d] != 1 for d in windows.varying):
        return False
    if not windows.varying:
        return not windows.batching
    operand = [d for d in range(len(windows.shape)) if d not in windows.aligned]
    batch = [i for i in range(len(windows.batch_shape)) if ("batch", i) not in _aligned(windows)]
    batching = [("batch", i) for _, i in windows.batching]
    if len(windows.varying) == 1:
        at = operand.index(windows.varying[0])
        order = [
            *batching,
            *(("window", d) for d in operand[:at]),
            *(("batch", i) for i in batch),
            *(("window", d) for d in operand[at + 1 :]),
        ]
        in_front = iw.is_identity([*windows.aligned, *operand]) and iw.is_identity(
            [*(i for _, i in windows.batching), *batch]
        )
    else:
        depth = len(windows.varying)
        order = [*windows.batch_labels, *(("window", d) for d in operand[depth:])]
        in_front = windows.varying == windows.indexed == tuple(range(depth)) and not batching
    layout = [label for label in windows.layout if label in order]
    return in_front and layout == [label for label in order if label in windows.layout]


def _aligned(windows: Windows) -> list[iw.Label]:
    return [("batch", i) for _, i in windows.batching]


def _read(ctx: Context, x: Tensor, starts: Tensor, windows: Windows) -> Tensor:
    """A gather in standard ops; all windows are in bounds."""
    if windows.partial:
        sizes = [
            s if d in windows.partial else n
            for d, (s, n) in enumerate(zip(windows.sizes, windows.shape, strict=True))
        ]
        x = ops.slice(x, [0] * len(sizes), ctx.shape(sizes))
    if len(windows.varying) == 0:
        result, labels = _read_everything(ctx, x, windows)
    elif len(windows.varying) == 1 and not _is_read_by_points(ctx, windows):
        result, labels = _read_along(ctx, x, starts, windows, windows.varying[0])
    else:
        result, labels = _read_points(ctx, x, starts, windows)
    return iw.rearranged(ctx, result, windows, labels, windows.layout)


def _is_read_by_points(ctx: Context, windows: Windows) -> bool:
    return bool(windows.aligned) and ctx.has(Quirk.NO_GATHER_IN_BATCHES)


def _read_everything(ctx: Context, x: Tensor, windows: Windows) -> tuple[Tensor, list[iw.Label]]:
    """Repeats the operand along the batch: every window is the whole operand."""
    rest = [d for d in range(len(windows.shape)) if d not in windows.aligned]
    x = iw.transposed(x, [*windows.aligned, *rest])
    window = [("window", d) for d in rest]
    labels = [*windows.batch_labels, *window]
    x = iw.spread(ctx, x, windows, [*_aligned(windows), *window], labels)
    return ops.broadcast_to(x, ctx.shape([windows.size(n) for n in labels])), labels


def _read_along(
    ctx: Context, x: Tensor, starts: Tensor, windows: Windows, dim: int
) -> tuple[Tensor, list[iw.Label]]:
    """For windows that differ in one dimension: tf.gather, with the aligned ones as batch_dims."""
    rest = [d for d in range(len(windows.shape)) if d not in windows.aligned]
    x = iw.transposed(x, [*windows.aligned, *rest])
    indices = iw.coordinate(starts, windows, dim)
    aligned = [i for _, i in windows.batching]
    batch = [i for i in range(len(windows.batch_shape)) if i not in aligned]
    indices = iw.transposed(indices, [*aligned, *batch])
    read = [("batch", i) for i in batch]
    if windows.sizes[dim] != 1:
        steps = ops.range(ops.cast(ctx.dim(windows.sizes[dim]), indices.dtype))
        window: iw.Label = ("window", dim)
        if not aligned and windows.layout[0] == window:
            # Form: indices_as_the_result.
            steps = ops.reshape(steps, [-1, *[1] * len(batch)])
            indices = ops.expand_dims(indices, 0) + steps
            read.insert(0, window)
        else:
            indices = ops.expand_dims(indices, -1) + steps
            read.append(window)
    at = rest.index(dim)
    labels = [
        *_aligned(windows),
        *(("window", d) for d in rest[:at]),
        *read,
        *(("window", d) for d in rest[at + 1 :]),
    ]
    result = ops.gather(x, indices, axis=len(aligned) + at, batch_dims=len(aligned))
    return result, labels


def _read_points(
    ctx: Context, x: Tensor, starts: Tensor, windows: Windows
) -> tuple[Tensor, list[iw.Label]]:
    """For windows that differ in several dimensions: tf.gather_nd of each of their points."""
    first = sorted((*windows.aligned, *windows.varying))
    rest = [d for d in range(len(windows.shape)) if d not in first]
    indices, labels = iw.grid(ctx, starts, windows, first)
    result = ops.gather_nd(iw.transposed(x, [*first, *rest]), indices)
    return result, [*labels, *(("window", d) for d in rest)]


def _xla_gather(
    ctx: Context,
    x: Tensor,
    starts: Tensor,
    windows: Windows,
    numbers: lax.GatherDimensionNumbers,
) -> Tensor:
    message = xla_data.GatherDimensionNumbers(
        offset_dims=numbers.offset_dims,
        collapsed_slice_dims=numbers.collapsed_slice_dims,
        start_index_map=numbers.start_index_map,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.start_indices_batching_dims,
        index_vector_dim=len(windows.batch_shape),
    )
    return ops.xla.xla_gather(
        operand=x,
        start_indices=starts,
        slice_sizes=ops.cast(ctx.shape(windows.sizes), starts.dtype),
        dimension_numbers=message.SerializeToString(),
        indices_are_sorted=False,
    )
