"""Window reductions as MaxPool and AvgPool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.window_folding import Window
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape


def pooling(
    reducer: Callable[..., jax.Array], window: Window, dtype: DType
) -> Callable[[Context, Tensor, Window], Tensor] | None:
    """The pooling function for the reduction by lax.add, max or min; None if no op fits."""
    pooled = _pooled_dimensions(window)
    dense = all(d == 1 for d in (*window.base_dilation, *window.window_dilation))
    inside = all(
        dims.is_static((n, low, high)) and 0 <= low < n and 0 <= high < n
        for n, (low, high) in zip(window.dimensions, window.padding, strict=True)
    )
    floats = (dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.float16)
    if not (pooled and dense and inside and dtype in floats):
        return None
    return {lax.add: _sum_pool, lax.max: _max_pool, lax.min: _min_pool}[reducer]


def _pooled_dimensions(window: Window) -> list[int]:
    whole = zip(window.dimensions, window.strides, window.padding, strict=True)
    return [d for d, (n, s, edges) in enumerate(whole) if (n, s, *edges) != (1, 1, 0, 0)]


def _max_pool(ctx: Context, x: Tensor, window: Window) -> Tensor:
    # For a window of only -inf, the kernel returns the lowest finite number. In float32 that number
    # is below all finite numbers of the narrow dtypes, so the cast makes it -inf again.
    pooled = _pool(ctx, ops.cast(x, _wide(x.dtype)), window, ops.max_pool2d, -math.inf)
    return ops.cast(pooled, x.dtype)


def _min_pool(ctx: Context, x: Tensor, window: Window) -> Tensor:
    return -_max_pool(ctx, -x, window)


def _sum_pool(ctx: Context, x: Tensor, window: Window) -> Tensor:
    """The mean of each window times the size of the window; padding counts as zeros."""
    mean = _pool(ctx, ops.cast(x, _wide(x.dtype)), window, ops.avg_pool2d, 0.0)
    return ops.cast(mean * float(math.prod(window.dimensions)), x.dtype)


def _wide(dtype: DType) -> DType:
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _pool(
    ctx: Context, x: Tensor, window: Window, op: Callable[..., Tensor], fill: float
) -> Tensor:
    """Pools two dimensions at a time, with one pooling op each."""
    shape, out_shape = ctx.avals_in[0].shape, ctx.avals_out[0].shape
    pooled = _pooled_dimensions(window)
    for start in range(0, len(pooled), 2):
        along = pooled[start : start + 2]
        new_shape = [out_shape[d] if d in along else n for d, n in enumerate(shape)]
        x = _pool_along(ctx, x, window, along, shape, new_shape, op, fill)
        shape = new_shape
    return x


def _pool_along(
    ctx: Context,
    x: Tensor,
    window: Window,
    pooled: Sequence[int],
    shape: Shape,
    out_shape: Shape,
    op: Callable[..., Tensor],
    fill: float,
) -> Tensor:
    """One pooling op along one or two dimensions.

    The dimensions before them are merged into the batch, and those after them into the channels.
    """
    order = _pooling_order(len(shape), pooled)
    first = order.index(pooled[0])
    last = first + len(pooled)

    def merged(sizes: Shape) -> list[Dim]:
        one = [1] * (2 - len(pooled))
        sizes = [sizes[d] for d in order]
        return [math.prod(sizes[:first]), *sizes[first:last], *one, math.prod(sizes[last:])]

    size, strides = (merged(v)[1:3] for v in (window.dimensions, window.strides))
    matrix_shape, wanted = merged(shape), merged(out_shape)
    edges = [window.padding[d] for d in pooled] + [(0, 0)] * (2 - len(pooled))
    # JAX's result is empty if no window fits, and the ops refuse such an input: it is padded until
    # one window fits.
    may_be_empty = [dims.may_be_zero(n) for n in wanted[1:3]]
    edges = [
        (low, high + jax.core.max_dim(k - (n + low + high), 0)) if empty else (low, high)
        for (low, high), n, k, empty in zip(
            edges, matrix_shape[1:3], size, may_be_empty, strict=True
        )
    ]
    in_order = order == list(range(len(shape)))
    x = x if in_order else ops.transpose(x, order)
    # Four dimensions need no reshape, except before the slice below if only one is pooled.
    as_it_is = len(shape) == 4 and first == 1 and (len(pooled) == 2 or not any(may_be_empty))
    x = x if as_it_is else ctx.reshaped(x, matrix_shape)
    padding = "VALID"
    if any(itertools.chain(*edges)):
        same = lax.padtype_to_pads(matrix_shape[1:3], size, strides, "SAME")
        # AvgPool's mean excludes SAME padding.
        if op is ops.max_pool2d and [tuple(e) for e in same] == edges:
            padding = "SAME"
        else:
            x = ops.pad(x, ctx.vector([(0, 0), *edges, (0, 0)]), constant_values=fill)
    out = op(x, size, strides, padding)
    if any(may_be_empty):
        out = ops.slice(out, [0] * 4, ctx.shape(wanted))
    if not as_it_is:
        out = ctx.reshaped(out, [out_shape[d] for d in order])
    return out if in_order else ops.transpose(out, np.argsort(order))


def _pooling_order(rank: int, pooled: Sequence[int]) -> list[int]:
    """An order of dimensions: the batch, the pooled dimensions side by side, the channels."""
    others = [d for d in range(rank) if d not in pooled]
    together = pooled[-1] - pooled[0] == len(pooled) - 1
    if together and (pooled[-1] < rank - 1 or len(others) < 2):
        return list(range(rank))
    return [*others[:1], *pooled, *others[1:]]
