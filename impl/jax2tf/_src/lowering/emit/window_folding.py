"""Windows, and how the elements of windows are combined in standard ops.

Windows are folded from slices along one dimension after the other. A dimension is folded by
doubling, so that n elements take O(log n) ops, or element by element if the order matters.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.combining import Combine, Tensors, to_carrier
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, carrier_of
from jax2tf._src.lowering.emit.padding import padded
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.util import dtypes
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape


@dataclasses.dataclass(frozen=True)
class Window:
    """The params that all window primitives share, one entry for each dimension."""

    dimensions: tuple[Dim, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """The offsets of a window's elements from its first element, in row-major order."""
        return [
            tuple(i * d for i, d in zip(index, self.window_dilation, strict=True))
            for index in itertools.product(*(range(n) for n in self.dimensions))
        ]


def window_of(
    window_dimensions: Shape,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Window:
    ones = (1,) * len(window_dimensions)
    return Window(
        tuple(window_dimensions),
        tuple(window_strides),
        tuple((low, high) for low, high in padding),
        tuple(base_dilation or ones),
        tuple(window_dilation or ones),
    )


def folded(
    ctx: Context,
    combine: Combine,
    xs: Tensors,
    shape: Shape,
    window: Window,
    identities: Tensors | None = None,
) -> tuple[Tensors, Tensor | None]:
    """Combines the elements of each window in row-major order.

    Without `identities` for the padding, the second result says which windows have an element
    (None: all of them); the other windows hold zeros.
    """
    present = None
    combine_present = combine
    low, high = zip(*window.padding, strict=True) if window.padding else ((), ())
    gaps = [d - 1 for d in window.base_dilation]
    if identities is None:
        identities = [ops.zeros([], x.dtype) for x in xs]
        if any((*low, *high, *gaps)):
            xs = [ops.ones(ctx.shape(shape), dtypes.bool_), *xs]
            identities = [ops.constant(False), *identities]
            combine_present = _where_present(combine)
    xs = [padded(ctx, x, i, shape, low, high, gaps) for x, i in zip(xs, identities, strict=True)]
    sizes = zip(window.dimensions, window.strides, window.window_dilation, strict=True)
    for axis, (size, stride, dilation) in reversed(list(enumerate(sizes))):
        size = ctx.dim(size)
        fold = _folded_axis if isinstance(size, int) else _folded_axis_of_any_size
        xs = fold(combine_present, xs, axis, size, stride, dilation)
    if combine_present is not combine:
        present, *xs = xs
    return xs, present


def _folded_axis(
    combine: Combine, xs: Tensors, axis: int, size: int, stride: int, dilation: int
) -> Tensors:
    """Windows along one axis: blocks of 1, 2, 4, ... elements are combined to `size`."""

    def cut(xs: Tensors, start: int, end: int, step: int = 1) -> Tensors:
        if (start, end, step) == (0, 0, 1):
            return xs
        index = (*[slice(None)] * axis, slice(start, -end or None, step))
        return [x[index] for x in xs]

    block, n_block = xs, 1
    total: Tensors = ()
    n_total = 0
    while True:
        if size & n_block:
            part = cut(block, n_total * dilation, 0)
            total = combine(cut(total, 0, n_block * dilation), part) if n_total else block
            n_total += n_block
        if n_total == size:
            return cut(total, 0, 0, stride)
        ahead = n_block * dilation
        block, n_block = combine(cut(block, 0, ahead), cut(block, ahead, 0)), 2 * n_block


def _folded_axis_of_any_size(
    combine: Combine, xs: Tensors, axis: int, size: Tensor, stride: int, dilation: int
) -> Tensors:
    """Like `_folded_axis`, in a loop with tensors of constant shape; incomplete windows are cut."""
    length = ops.shape(xs[0])[axis]

    def ahead(xs: Tensors, by: Tensor) -> Tensors:
        places = ops.minimum(ops.range(length) + by * dilation, length - 1)
        return [ops.gather(x, places, axis=axis) for x in xs]

    def step(
        n_block: Tensor, block: Tensors, n_total: Tensor, total: Tensors
    ) -> tuple[Tensor, Tensors, Tensor, Tensors]:
        part = ahead(block, n_total)
        is_part = ops.bitwise_and(size, n_block) > 0
        joined = [
            ops.where(is_part, ops.where(n_total > 0, c, p), t)
            for c, p, t in zip(combine(total, part), part, total, strict=True)
        ]
        doubled = list(combine(block, ahead(block, n_block)))
        for result, x in zip((*joined, *doubled), (*total, *block), strict=True):
            result.set_shape(x.shape)
        n_total += ops.where(is_part, n_block, 0)
        return 2 * n_block, doubled, n_total, joined

    one, none = ops.constant(1), ops.constant(0)
    *_, total = ops.while_loop(
        lambda n_block, *_: n_block <= size, step, (one, list(xs), none, list(xs))
    )
    windows = ops.maximum(length - (size - 1) * dilation, 0)
    return [x[(*[slice(None)] * axis, slice(0, windows, stride))] for x in total]


def folded_in_order(
    ctx: Context,
    combine: Combine,
    xs: Tensors,
    inits: Tensors,
    shape: Shape,
    window: Window,
) -> list[Tensor]:
    """Combines the elements of each window one by one, for functions that are not associative.

    Float8 is rounded at each step; of equal elements, the first is selected.
    """
    out_shape = ctx.avals_out[0].shape
    total: Tensors = [ops.fill(ctx.shape(out_shape), to_carrier(init)) for init in inits]
    present = ops.ones(ctx.shape(shape), dtypes.bool_)
    candidates = [
        candidates_of(ctx, x, shape, window, out_shape) for x in (present, *map(to_carrier, xs))
    ]
    for here, *elements in zip(*candidates, strict=True):
        combined = combine(total, elements)
        total = [select(ctx, here, c, t) for c, t in zip(combined, total, strict=True)]
    return [cast(t, x.dtype) for t, x in zip(total, xs, strict=True)]


def candidates_of(
    ctx: Context, x: Tensor, shape: Shape, window: Window, out_shape: Shape
) -> list[Tensor]:
    """For each position in the window, the elements of all windows; 0 (False) in the padding."""
    if not window.padding:  # a scalar has one window, itself
        return [x]
    low, high = zip(*window.padding, strict=True)
    gaps = [d - 1 for d in window.base_dilation]
    x = padded(ctx, x, ops.zeros([], x.dtype), shape, low, high, gaps)
    steps = list(zip(out_shape, window.strides, strict=True))
    return [
        ops.strided_slice(
            x,
            position,
            ctx.shape([p + (n - 1) * s + 1 for p, (n, s) in zip(position, steps, strict=True)]),
            window.strides,
        )
        for position in window.positions
    ]


def _where_present(combine: Combine) -> Combine:
    """Like `combine`, for elements that may be absent: the first tensors say which are present."""

    def combine_present(a: Tensors, b: Tensors) -> Tensors:
        (in_a, *xs), (in_b, *ys) = a, b
        both = zip(combine(xs, ys), xs, ys, strict=True)
        return [in_a | in_b, *(ops.where(in_b, ops.where(in_a, r, y), x) for r, x, y in both)]

    return combine_present


def _extreme_value(sign: int, dtype: np.dtype) -> ArrayLike:
    """The lowest (-1) or highest (1) value of a dtype; infinite if the dtype has infinities."""
    if jax.dtypes.issubdtype(dtype, np.bool_):
        return sign > 0
    if jax.dtypes.issubdtype(dtype, np.integer):
        return getattr(jnp.iinfo(dtype), "max" if sign > 0 else "min")
    infinity = np.array(sign * math.inf).astype(dtype)
    return sign * math.inf if np.isinf(infinity) else sign * float(jnp.finfo(dtype).max)


lowest = functools.partial(_extreme_value, -1)
highest = functools.partial(_extreme_value, 1)


def edges_of(ctx: Context, window: Window) -> np.ndarray | Tensor:
    if all(dims.is_static(edges) for edges in window.padding):
        return np.reshape(np.array(window.padding, np.int32), (-1, 2))
    return ops.stack([ctx.shape(edges) for edges in window.padding])


def carrier_constant(value: ArrayLike, dtype: np.dtype) -> Tensor:
    """A constant of a JAX dtype, in the carrier of that dtype."""
    tf_dtype = dtypes.to_tf(dtype)
    carrier = carrier_of(HOLDS_NARROW, tf_dtype).as_numpy_dtype
    return ops.constant(np.array(value).astype(dtype).astype(carrier))


def is_empty(shape: Shape) -> bool:
    return any(dims.is_static((d,)) and d == 0 for d in shape)


@cached
def jaxpr_of(function: Callable[..., jax.Array], dtype: np.dtype) -> jex_core.ClosedJaxpr:
    """A binary function as a scalar jaxpr; cached as one object, because caches use its id."""
    scalar = jax.ShapeDtypeStruct((), dtype)
    return jax.make_jaxpr(function)(scalar, scalar)
