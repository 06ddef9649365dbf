"""The geometry of gather and scatter, which pair each index vector with a window of the operand.

A gather reads windows into its result, and a scatter writes its updates into windows. Result and
updates have the dimensions of `indices` except the last, and the kept dimensions of the window, in
some order. A label names each dimension: `("batch", i)` is dimension i of `indices`, and
`("window", d)` is dimension d of the operand. See "gather" and "scatter" in the StableHLO
specification.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Sequence

from jax import lax

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.arrays import stacked
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, SIGNED_INDICES, carrier_of
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape

Label = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Windows:
    """The positions and sizes of the windows of one gather or scatter.

    Attributes:
      shape: the shape of the operand.
      sizes: the size of a window in each dimension of the operand.
      indexed: for each coordinate of an index vector, the dimension of the operand that it indexes.
      batching: pairs of a batching dimension of the operand and the corresponding dimension of
        `indices`, in the order of the latter.
      batch_shape: the shape of `indices` without its last dimension.
      layout: the label of each dimension of a gather's result, or of a scatter's updates.
    """

    shape: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    indexed: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    batch_shape: tuple[Dim, ...]
    layout: tuple[Label, ...]

    @functools.cached_property
    def varying(self) -> tuple[int, ...]:
        """The indexed dimensions in which a window can start at more than one index."""
        return tuple(d for d in self.indexed if self.sizes[d] != self.shape[d])

    @functools.cached_property
    def aligned(self) -> tuple[int, ...]:
        """The operand's batching dimensions."""
        return tuple(d for d, _ in self.batching)

    @functools.cached_property
    def partial(self) -> tuple[int, ...]:
        """The unindexed dimensions of which a window covers only the first part."""
        fixed = (*self.indexed, *self.aligned)
        return tuple(d for d, n in enumerate(self.shape) if d not in fixed and self.sizes[d] != n)

    @functools.cached_property
    def batch_labels(self) -> list[Label]:
        """The labels of all dimensions of `indices` except the last."""
        return [("batch", i) for i in range(len(self.batch_shape))]

    def size(self, label: Label) -> Dim:
        """The size of the dimension with this label."""
        kind, i = label
        return self.batch_shape[i] if kind == "batch" else self.sizes[i]


def gather_windows(
    shape: Shape,
    indices_shape: Shape,
    result_rank: int,
    dimension_numbers: lax.GatherDimensionNumbers,
    sizes: Shape,
) -> Windows:
    """The windows that a gather reads."""
    n = dimension_numbers
    return _windows(
        shape,
        sizes,
        n.start_index_map,
        (n.operand_batching_dims, n.start_indices_batching_dims),
        indices_shape,
        (*n.collapsed_slice_dims, *n.operand_batching_dims),
        n.offset_dims,
        result_rank,
    )


def scatter_windows(
    shape: Shape,
    indices_shape: Shape,
    updates_shape: Shape,
    dimension_numbers: lax.ScatterDimensionNumbers,
) -> Windows:
    """The windows that a scatter writes."""
    n = dimension_numbers
    dropped = {int(d) for d in (*n.inserted_window_dims, *n.operand_batching_dims)}
    kept = iter(n.update_window_dims)
    return _windows(
        shape,
        [1 if d in dropped else updates_shape[next(kept)] for d in range(len(shape))],
        n.scatter_dims_to_operand_dims,
        (n.operand_batching_dims, n.scatter_indices_batching_dims),
        indices_shape,
        dropped,
        n.update_window_dims,
        len(updates_shape),
    )


def _windows(
    shape: Shape,
    sizes: Shape,
    indexed: Sequence[int],
    batching: tuple[Sequence[int], Sequence[int]],
    indices_shape: Shape,
    dropped: Collection[int],
    window_positions: Sequence[int],
    rank: int,
) -> Windows:
    kept = [d for d in range(len(shape)) if d not in dropped]
    windows = dict(zip(map(int, window_positions), kept, strict=True))
    batch = iter(range(len(indices_shape) - 1))
    layout = [
        ("window", windows[i]) if i in windows else ("batch", next(batch)) for i in range(rank)
    ]
    pairs = sorted(((int(d), int(i)) for d, i in zip(*batching, strict=True)), key=lambda p: p[1])
    return Windows(
        tuple(shape),
        tuple(sizes),
        tuple(map(int, indexed)),
        tuple(pairs),
        tuple(indices_shape[:-1]),
        tuple(layout),
    )


def wide(x: Tensor) -> Tensor:
    """Casts `x` to a dtype that has kernels and holds the same values."""
    return ops.cast(x, carrier_of(HOLDS_NARROW, x.dtype))


def as_index(indices: Tensor) -> Tensor:
    """Casts indices to int32 or int64, which TensorFlow's kernels require.

    An index that does not fit stays out of bounds on the same side.
    """
    if indices.dtype in (dtypes.int32, dtypes.int64):
        return indices
    signed = SIGNED_INDICES.get(indices.dtype)
    if signed is None:
        return ops.cast(indices, dtypes.int32)
    # Engines can cast these dtypes, but have no Minimum of them.
    indices = ops.cast(indices, signed)
    return ops.where(indices < 0, ops.constant(signed.max, signed), indices)


def as_one_index(starts: Sequence[Tensor]) -> Tensor:
    """Stacks scalar indices, whose dtypes may differ, to a vector of int32 or int64."""
    indices = [as_index(start) for start in starts]
    common = dtypes.int64 if any(i.dtype == dtypes.int64 for i in indices) else dtypes.int32
    return ops.stack([ops.cast(i, common) for i in indices])


def clamped(ctx: Context, indices: Tensor, windows: Windows) -> Tensor:
    """Clamps index vectors so that their windows are in bounds."""
    if not windows.indexed:
        return indices
    limits = [windows.shape[d] - windows.sizes[d] for d in windows.indexed]
    return clipped(indices, ops.cast(ctx.shape(limits), indices.dtype))


def clipped(indices: Tensor, last: Tensor) -> Tensor:
    """Clips each index to [0, last]; `last` is not negative."""
    # Form: minimum_of_maximum.
    return ops.minimum(ops.maximum(indices, 0), last)


def in_bounds(indices: Tensor, clamped_indices: Tensor) -> Tensor:
    """For each index vector, whether its whole window is in bounds."""
    same = ops.equal(indices, clamped_indices)
    return ops.squeeze(same, -1) if same.shape[-1] == 1 else ops.reduce_all(same, -1)


def coordinate(starts: Tensor, windows: Windows, dim: int) -> Tensor:
    """The start of each window in an indexed dimension: one column of the indices."""
    if len(windows.indexed) == 1:
        return ops.squeeze(starts, -1)
    return starts[..., windows.indexed.index(dim)]


def grid(
    ctx: Context, starts: Tensor, windows: Windows, dims: Sequence[int]
) -> tuple[Tensor, list[Label]]:
    """The coordinates in `dims` of every element of every window.

    Returns:
      A tensor of the returned labels' dimensions and one more, as long as `dims`. Dimensions in
      which a window has a single element get no label.
    """
    wide = [d for d in dims if d not in windows.aligned and windows.sizes[d] != 1]
    labels = [*windows.batch_labels, *(("window", d) for d in wide)]
    if not wide and tuple(dims) == windows.indexed:
        return starts, labels
    shape = ctx.shape([windows.size(label) for label in labels])
    columns = [ops.broadcast_to(_column(ctx, starts, windows, d, labels), shape) for d in dims]
    return stacked(ctx, columns, -1), labels


def _column(
    ctx: Context, starts: Tensor, windows: Windows, dim: int, labels: list[Label]
) -> Tensor:
    def along(label: Label) -> Tensor:
        steps = ops.range(ops.cast(ctx.dim(windows.size(label)), starts.dtype))
        return spread(ctx, steps, windows, [label], labels)

    if dim in windows.aligned:
        return along(("batch", dict(windows.batching)[dim]))
    offsets = along(("window", dim)) if ("window", dim) in labels else ops.zeros([], starts.dtype)
    if dim not in windows.indexed:
        return offsets
    start = coordinate(starts, windows, dim)
    return spread(ctx, start, windows, windows.batch_labels, labels) + offsets


def spread(
    ctx: Context,
    x: Tensor,
    windows: Windows,
    labels: Sequence[Label],
    onto: Sequence[Label],
) -> Tensor:
    """Reshapes `x`, whose dimensions are `labels`, to broadcast against dimensions `onto`."""
    if list(labels) == list(onto):
        return x
    return ctx.reshaped(x, [windows.size(n) if n in labels else 1 for n in onto])


def rearranged(
    ctx: Context,
    x: Tensor,
    windows: Windows,
    labels: Sequence[Label],
    onto: Sequence[Label],
) -> Tensor:
    """Transposes and reshapes `x` from dimensions `labels` to dimensions `onto`.

    A label that is only on one side names a dimension of size 1.
    """
    common = [n for n in onto if n in labels]
    x = transposed(x, [labels.index(n) for n in (*common, *(n for n in labels if n not in onto))])
    if len(common) == len(labels) == len(onto):
        return x
    return ctx.reshaped(x, [windows.size(n) for n in onto])


def transposed(x: Tensor, permutation: Sequence[int]) -> Tensor:
    """tf.transpose, or `x` itself if the permutation is the identity."""
    return x if is_identity(permutation) else ops.transpose(x, permutation)


def is_identity(permutation: Sequence[int]) -> bool:
    """Whether a permutation moves nothing."""
    return list(permutation) == list(range(len(permutation)))
