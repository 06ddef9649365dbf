"""Scatter: scatter, scatter_add, _sub, _mul, _min, _max and scatter_apply of any function.

A window of updates that is partly out of bounds is dropped. Updates of the same element are
combined one after the other, in the order of the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import ops
from jax2tf._src.compat.xla import xla_data
from jax2tf._src.dims import may_be_zero
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import index_geometry as iw
from jax2tf._src.lowering.emit import scatter_kernels as kernels
from jax2tf._src.lowering.emit.index_geometry import Windows, wide
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor

_COMBINERS: dict[str, Callable[..., jax.Array]] = {
    "scatter-add": lax.add,
    "scatter-sub": lax.sub,
    "scatter-mul": lax.mul,
    "scatter-min": lax.min,
    "scatter-max": lax.max,
}


@register("scatter", *_COMBINERS)
def _scatter(
    ctx: Context,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    dimension_numbers: lax.ScatterDimensionNumbers,
    mode: lax.GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
    update_jaxpr: jex_core.Jaxpr | None,
    update_consts: Sequence[ArrayLike],
) -> Tensor:
    del indices_are_sorted  # A hint to XLA; it changes no value.
    shape, indices_shape, updates_shape = (aval.shape for aval in ctx.avals_in)
    if 0 in shape or 0 in updates_shape:
        return ops.identity(operand)
    # DTensor's TensorScatterAdd of sharded arrays fails with shapes that do not match.
    operand, indices, updates = (_whole(ctx, x) for x in (operand, indices, updates))
    windows = iw.scatter_windows(shape, indices_shape, updates_shape, dimension_numbers)
    starts = iw.as_index(indices)
    clips = mode == lax.GatherScatterMode.CLIP
    if clips:
        starts = iw.clamped(ctx, starts, windows)
    name, dtype = ctx.eqn.primitive.name, operand.dtype
    is_ordered = kernels.is_ordered(ctx, name, dtype)
    if is_ordered:
        operand, updates = (kernels.as_ordered(x, name) for x in (operand, updates))
    combiner = _combiner(ctx, name, operand.dtype, update_jaxpr, update_consts)
    # A single window has distinct elements.
    unique = unique_indices or all(n == 1 for n in windows.batch_shape)
    kernel = kernels.at_once(ctx, name, operand.dtype, combiner, in_bounds=clips, unique=unique)
    args = wide(operand), starts, wide(updates), windows
    # XLA's scatter loses updates if the index vectors are empty.
    use_xla = (
        ctx.wants("XlaScatter") and windows.indexed and not (kernel and _writes_directly(windows))
    )
    if use_xla:
        result = _xla_scatter(ctx, *args, dimension_numbers, combiner)
    else:
        if kernel is None:
            assert combiner is not None, name
            kernel = kernels.in_turns(ctx, combiner, unique)
        result = _write(ctx, *args, kernel, clips)
    result = ops.cast(result, operand.dtype)
    result = kernels.from_ordered(result, dtype) if is_ordered else ops.cast(result, dtype)
    return _whole(ctx, result)


def _whole(ctx: Context, x: Tensor) -> Tensor:
    """The tensor, replicated on every device if the graph is spread over a mesh."""
    return x if ctx.target.placement is None else ctx.target.placement.whole(x)


def _combiner(
    ctx: Context,
    name: str,
    dtype: DType,
    jaxpr: jex_core.Jaxpr | None,
    consts: Sequence[ArrayLike],
) -> jex_core.ClosedJaxpr | None:
    """Computes an element from the element and its update; None if the update replaces it."""
    if name in _COMBINERS:
        return _named_combiner(name, dtype)
    return None if jaxpr is None else ctx.closed(jaxpr, consts)


@cached
def _named_combiner(name: str, dtype: DType) -> jex_core.ClosedJaxpr:
    with jax.enable_x64(True):
        scalar = jax.ShapeDtypeStruct((), dtype.as_numpy_dtype)
        return jax.make_jaxpr(_COMBINERS[name])(scalar, scalar)


def _writes_directly(windows: Windows) -> bool:
    """Whether the updates are rows of the operand without a transpose or reshape."""
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
    x: Tensor,
    starts: Tensor,
    updates: Tensor,
    windows: Windows,
    write: kernels.Write,
    in_bounds: bool,
) -> Tensor:
    """A scatter in standard ops: writes rows of the operand, indexed by the varying dimensions."""
    dims = sorted({*windows.aligned, *windows.varying, *windows.partial})
    rest = [d for d in range(len(windows.shape)) if d not in dims]
    rows = iw.transposed(x, [*dims, *rest])
    if dims:
        indices, labels = iw.grid(ctx, starts, windows, dims)
    else:
        # Every window is the whole operand, which becomes the only row of an array.
        rows, labels = ops.expand_dims(rows, 0), windows.batch_labels
        indices = ops.zeros(ctx.shape([*windows.batch_shape, 1]), starts.dtype)
    if not in_bounds and any(windows.sizes[d] != 1 or d not in dims for d in windows.indexed):
        # The kernel drops single elements out of bounds; JAX drops whole windows.
        inside = iw.in_bounds(starts, iw.clamped(ctx, starts, windows))
        inside = iw.spread(ctx, inside, windows, windows.batch_labels, [*labels, ("index", 0)])
        indices = ops.where(inside, indices, -1)
    window = [("window", d) for d in rest]
    updates = iw.rearranged(ctx, updates, windows, windows.layout, [*labels, *window])
    if not labels:
        # TensorFlow's kernels require at least one batch dimension.
        indices, updates = ops.expand_dims(indices, 0), ops.expand_dims(updates, 0)
    if any(may_be_zero(size) for size in windows.shape):
        # TensorFlow's kernels raise for updates of an array without elements.
        count = ops.where(ops.size(rows) > 0, ops.shape(indices)[0], 0)
        indices, updates = indices[:count], updates[:count]
    rows = write(rows, indices, updates)
    if not dims:
        return ops.squeeze(rows, 0)
    return iw.transposed(rows, np.argsort([*dims, *rest]).tolist())


def _xla_scatter(
    ctx: Context,
    x: Tensor,
    starts: Tensor,
    updates: Tensor,
    windows: Windows,
    numbers: lax.ScatterDimensionNumbers,
    combiner: jex_core.ClosedJaxpr | None,
) -> Tensor:
    message = xla_data.ScatterDimensionNumbers(
        update_window_dims=numbers.update_window_dims,
        inserted_window_dims=numbers.inserted_window_dims,
        scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
        input_batching_dims=numbers.operand_batching_dims,
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        index_vector_dim=len(windows.batch_shape),
    )
    return ops.xla.xla_scatter(
        operand=x,
        scatter_indices=starts,
        updates=updates,
        update_computation=(
            _replacement(x.dtype) if combiner is None else ctx.computation(combiner, x.dtype)
        ),
        dimension_numbers=message.SerializeToString(),
        indices_are_sorted=False,
    )


@cached
def _replacement(dtype: DType) -> Callable[..., Tensor]:
    return ops.computation(lambda current, update: update, [dtype, dtype])
