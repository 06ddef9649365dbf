"""The geometry of gather and scatter: windows of an operand, one for each index vector.

Both primitives pair a window of the operand with each vector of `indices[..., :]`. What they read
or write lies in an array whose dimensions are, in an order of their own, the dimensions of
`indices` but its last, and those dimensions of the window that were kept. Such a dimension is named
by a label here: `("batch", i)` for dimension i of `indices`, `("window", d)` for dimension d of the
operand. See "gather" and "scatter" in the StableHLO specification.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Sequence

import tensorflow as tf
from jax import lax

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.arrays import stacked
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, SIGNED_INDICES, carrier_of
from jax2tf._src.util.typing import Dim, Shape

Label = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Windows:
    """Where the windows of one gather or scatter lie.

    Attributes:
      shape: of the operand.
      sizes: of a window, in each dimension of the operand.
      indexed: the operand's dimension for each coordinate of an index vector.
      batching: pairs of an operand's dimension and the dimension of `indices` it runs along with,
        in the order of the latter.
      batch_shape: the shape of `indices` without its last dimension.
      layout: a label for each dimension of the result of a gather, of the updates of a scatter.
    """

    shape: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    indexed: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    batch_shape: tuple[Dim, ...]
    layout: tuple[Label, ...]

    @functools.cached_property
    def varying(self) -> tuple[int, ...]:
        """The indexed dimensions in which a window in bounds can lie in more than one place."""
        return tuple(d for d in self.indexed if self.sizes[d] != self.shape[d])

    @functools.cached_property
    def aligned(self) -> tuple[int, ...]:
        """The operand's batching dimensions."""
        return tuple(d for d, _ in self.batching)

    @functools.cached_property
    def partial(self) -> tuple[int, ...]:
        """The dimensions of which windows take the first part, whatever the index says."""
        fixed = (*self.indexed, *self.aligned)
        return tuple(d for d, n in enumerate(self.shape) if d not in fixed and self.sizes[d] != n)

    @functools.cached_property
    def batch_labels(self) -> list[Label]:
        """The labels of all dimensions of `indices` but the last."""
        return [("batch", i) for i in range(len(self.batch_shape))]

    def size(self, label: Label) -> Dim:
        """The length of a dimension."""
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


def wide(x: tf.Tensor) -> tf.Tensor:
    """`x`, cast to a dtype that kernels have and that holds the same values."""
    return ops.cast(x, carrier_of(HOLDS_NARROW, x.dtype))


def as_index(indices: tf.Tensor) -> tf.Tensor:
    """Indices in int32 or int64, the dtypes that TensorFlow's kernels take.

    What does not fit stays out of bounds on the same side.
    """
    if indices.dtype in (tf.int32, tf.int64):
        return indices
    signed = SIGNED_INDICES.get(indices.dtype)
    if signed is None:
        return ops.cast(indices, tf.int32)
    # Engines that read graphs cast these dtypes, and have no minimum of them.
    indices = ops.cast(indices, signed)
    return ops.where(indices < 0, ops.constant(signed.max, signed), indices)


def as_one_index(starts: Sequence[tf.Tensor]) -> tf.Tensor:
    """Scalar indices, which may differ in their dtypes, as one vector of int32 or int64."""
    indices = [as_index(start) for start in starts]
    common = tf.int64 if any(i.dtype == tf.int64 for i in indices) else tf.int32
    return ops.stack([ops.cast(i, common) for i in indices])


def clamped(ctx: Context, indices: tf.Tensor, windows: Windows) -> tf.Tensor:
    """Index vectors moved by as little as puts their windows in bounds."""
    if not windows.indexed:
        return indices
    limits = [windows.shape[d] - windows.sizes[d] for d in windows.indexed]
    return clipped(indices, ops.cast(ctx.shape(limits), indices.dtype))


def clipped(indices: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Each index, or the one of 0 and `last`, which is not negative, that is nearest to it."""
    # Form: minimum_of_maximum.
    return ops.minimum(ops.maximum(indices, 0), last)


def in_bounds(indices: tf.Tensor, clamped_indices: tf.Tensor) -> tf.Tensor:
    """For each index vector whether its whole window is in bounds."""
    same = ops.equal(indices, clamped_indices)
    return ops.squeeze(same, -1) if same.shape[-1] == 1 else ops.reduce_all(same, -1)


def coordinate(starts: tf.Tensor, windows: Windows, dim: int) -> tf.Tensor:
    """Where windows start in an indexed dimension of the operand: one column of the indices."""
    if len(windows.indexed) == 1:
        return ops.squeeze(starts, -1)
    return starts[..., windows.indexed.index(dim)]


def grid(
    ctx: Context, starts: tf.Tensor, windows: Windows, dims: Sequence[int]
) -> tuple[tf.Tensor, list[Label]]:
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
    ctx: Context, starts: tf.Tensor, windows: Windows, dim: int, labels: list[Label]
) -> tf.Tensor:
    def along(label: Label) -> tf.Tensor:
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
    x: tf.Tensor,
    windows: Windows,
    labels: Sequence[Label],
    onto: Sequence[Label],
) -> tf.Tensor:
    """`x`, whose dimensions are `labels`, ready to broadcast against an array of labels `onto`."""
    if list(labels) == list(onto):
        return x
    return ctx.reshaped(x, [windows.size(n) if n in labels else 1 for n in onto])


def rearranged(
    ctx: Context,
    x: tf.Tensor,
    windows: Windows,
    labels: Sequence[Label],
    onto: Sequence[Label],
) -> tf.Tensor:
    """`x`, whose dimensions are `labels`, with those of `onto` instead.

    A label that only one side has is of a dimension of length 1.
    """
    common = [n for n in onto if n in labels]
    x = transposed(x, [labels.index(n) for n in (*common, *(n for n in labels if n not in onto))])
    if len(common) == len(labels) == len(onto):
        return x
    return ctx.reshaped(x, [windows.size(n) for n in onto])


def transposed(x: tf.Tensor, permutation: Sequence[int]) -> tf.Tensor:
    """tf.transpose, unless there is nothing to move."""
    return x if is_identity(permutation) else ops.transpose(x, permutation)


def is_identity(permutation: Sequence[int]) -> bool:
    """Whether a permutation moves nothing."""
    return list(permutation) == list(range(len(permutation)))
