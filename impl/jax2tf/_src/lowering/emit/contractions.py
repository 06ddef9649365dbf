"""Lowers a dot_general whose operands have one dtype to one MatMul or BatchMatMulV2.

Batch dimensions stay where they are. A transpose or a reshape is needed only if the dimensions of
an operand are not in the order batch, free, contracting or batch, contracting, free.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.elementwise import as_row_product
from jax2tf._src.lowering.supported import is_computed
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape

DimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]],
    tuple[Sequence[int], Sequence[int]],
]


_Dims = tuple[int, ...]


def contract(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    lhs_shape: Shape,
    rhs_shape: Shape,
    dimension_numbers: DimensionNumbers,
) -> Tensor:
    """dot_general of operands whose common dtype has a MatMul kernel, in that dtype."""
    left, right = _sides(len(lhs_shape), len(rhs_shape), _hashable(dimension_numbers))
    if _is_row_by_computed(ctx, rhs, left, right):
        # If one side has no free dimensions, swapping the sides does not reorder the result.
        swapped = dimension_numbers[0][::-1], dimension_numbers[1][::-1]
        return contract(ctx, rhs, lhs, rhs_shape, lhs_shape, swapped)
    if _is_known_by_open(ctx, lhs_shape, rhs, left, right.split(rhs_shape)[1]):
        swapped = dimension_numbers[0][::-1], dimension_numbers[1][::-1]
        out = contract(ctx, rhs, lhs, rhs_shape, lhs_shape, swapped)
        n_right, rank = len(right.free), len(right.free) + len(left.free)
        return ops.transpose(out, [*range(n_right, rank), *range(n_right)])
    if not left.contracting:
        return _outer_product(ctx, lhs, rhs, left, right, lhs_shape, rhs_shape)
    of_vectors = not (left.free or right.free) and lhs.dtype.size >= 4
    if of_vectors and ctx.has(Quirk.NO_PRODUCT_OF_VECTORS):
        return _inner_product(lhs, rhs, left, right)
    lhs, rhs = as_row_product(ctx, lhs), as_row_product(ctx, rhs)
    # A right operand without batch dimensions broadcasts over the free dimensions of the left one.
    rows = left.split(lhs_shape)[1]
    merge_left = (
        bool(left.batch or left.contracting_first or not left.free)
        or overwrites_memory(rows)
        or _is_faster_merged(ctx)
    )
    out = ops.matmul(
        _as_matrices(ctx, lhs, lhs_shape, left, merge_free=merge_left),
        _as_matrices(ctx, rhs, rhs_shape, right, merge_free=True),
        transpose_a=left.contracting_first,
        transpose_b=not right.contracting_first,
    )
    if len(right.free) == 1 and (len(left.free) == 1 or not merge_left):
        return out
    batch, left_free, _ = left.split(lhs_shape)
    whole = batch + left_free + right.split(rhs_shape)[1]
    return ctx.reshaped(out, whole)


def _is_faster_merged(ctx: Context) -> bool:
    """Whether to merge row dimensions; XLA does it itself, and eager mode pays for each op."""
    is_graph = not (ctx.is_by_kernels or surroundings.in_compiled_function())
    return is_graph and ctx.wants(Optimization.ROWS_OF_ONE_MATRIX)


def _is_row_by_computed(ctx: Context, rhs: Tensor, left: _Side, right: _Side) -> bool:
    """Whether this is a vector times a computed matrix, which LiteRT's converter gets wrong."""
    is_row = bool(left.contracting and right.free) and not (left.free or left.batch)
    return is_row and ctx.has(Quirk.NO_ROW_BY_COMPUTED_MATRIX) and is_computed(rhs)


def _is_known_by_open(
    ctx: Context, lhs_shape: Shape, rhs: Tensor, left: _Side, right_free: Shape
) -> bool:
    """Whether LiteRT's converter may lose an open size among the free ones of the right operand.

    It does if the left operand becomes a constant, which may be after it inlined functions.
    """
    is_matrix = bool(left.contracting and left.free) and not left.batch
    is_known = is_matrix and dims.is_static(lhs_shape) and not dims.is_static(tuple(right_free))
    return is_known and ctx.has(Quirk.NO_CONSTANT_BY_OPEN_MATRIX) and is_computed(rhs)


def overwrites_memory(rows: Shape) -> bool:
    """Whether TensorFlow's product of a (*rows, n) array and one matrix may overwrite memory.

    oneDNN's float32 BatchMatMulV2 does so for (12, 1, 3, 8) and (8, 4) (TensorFlow 2.21).
    """
    return len(rows) == 3 and (not isinstance(rows[1], int) or rows[1] == 1)


def _as_matrices(ctx: Context, x: Tensor, shape: Shape, side: _Side, *, merge_free: bool) -> Tensor:
    """An operand as a batch of matrices; unmerged free dimensions count as batch dimensions."""
    x = side.arranged(x)
    batch, free, contracting = side.split(shape)
    if len(contracting) == 1 and (len(free) == 1 or not merge_free):
        return x
    if merge_free:
        free = [math.prod(free)]
    columns = [math.prod(contracting)]
    matrix = columns + free if side.contracting_first else free + columns
    return ctx.reshaped(x, batch + matrix)


def _inner_product(lhs: Tensor, rhs: Tensor, left: _Side, right: _Side) -> Tensor:
    """dot_general of operands that have only contracting and batch dimensions.

    It replaces a MatMul of a row and a column, at which OpenVINO ends the process.
    """
    product = left.arranged(lhs) * right.arranged(rhs)
    return ops.reduce_sum(product, range(len(left.batch), product.shape.rank))


def _outer_product(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    left: _Side,
    right: _Side,
    lhs_shape: Shape,
    rhs_shape: Shape,
) -> Tensor:
    """dot_general without contracting dimensions: multiplies all pairs of elements."""
    batch, left_free, _ = left.split(lhs_shape)
    _, right_free, _ = right.split(rhs_shape)
    lhs, rhs = left.arranged(lhs), right.arranged(rhs)
    if right_free:
        lhs = ctx.reshaped(lhs, [*batch, *left_free, *[1] * len(right_free)])
    if left_free and batch:
        rhs = ctx.reshaped(rhs, [*batch, *[1] * len(left_free), *right_free])
    return lhs * rhs


@dataclasses.dataclass(frozen=True)
class _Side:
    """How the dimensions of one operand read as a batch of matrices.

    Attributes:
      batch, free, contracting: the dimensions, each in the order of the result or of their pairs.
      contracting_first: whether the matrices are contracting x free (else free x contracting).
      permutation: transposes the dimensions into that order; None if they are in that order.
    """

    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracting: tuple[int, ...]
    contracting_first: bool
    permutation: tuple[int, ...] | None

    def arranged(self, x: Tensor) -> Tensor:
        """The operand with its dimensions in that order."""
        return x if self.permutation is None else ops.transpose(x, self.permutation)

    def split(self, shape: Shape) -> tuple[list[Dim], list[Dim], list[Dim]]:
        """The sizes of the batch, free and contracting dimensions."""
        batch, free, contracting = (
            [shape[d] for d in chosen] for chosen in (self.batch, self.free, self.contracting)
        )
        return batch, free, contracting


@cached
def _sides(
    lhs_rank: int,
    rhs_rank: int,
    dimension_numbers: tuple[tuple[_Dims, _Dims], tuple[_Dims, _Dims]],
) -> tuple[_Side, _Side]:
    """Both operands' sides; the order of the contracting dimensions saves transposes."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    pairs = list(zip(lhs_contracting, rhs_contracting, strict=True))
    candidates = [
        (
            _side(lhs_rank, lhs_batch, tuple(p[0] for p in order), prefer_contracting_first=False),
            _side(rhs_rank, rhs_batch, tuple(p[1] for p in order), prefer_contracting_first=True),
        )
        for order in (sorted(pairs), sorted(pairs, key=lambda pair: pair[1]))
    ]
    return min(candidates, key=lambda sides: sum(s.permutation is not None for s in sides))


def _side(
    rank: int,
    batch: tuple[int, ...],
    contracting: tuple[int, ...],
    *,
    prefer_contracting_first: bool,
) -> _Side:
    """A side without a transpose if possible, else one that keeps the last dimension last."""
    free = tuple(d for d in range(rank) if d not in batch and d not in contracting)
    orders = [(True, batch + contracting + free), (False, batch + free + contracting)]
    orders.sort(
        key=lambda order: (
            order[1] != tuple(range(rank)),
            order[1][-1:] != (rank - 1,),
            order[0] != prefer_contracting_first,
        )
    )
    contracting_first, order = orders[0]
    in_order = order == tuple(range(rank))
    return _Side(batch, free, contracting, contracting_first, None if in_order else order)


def _hashable(
    dimension_numbers: DimensionNumbers,
) -> tuple[tuple[_Dims, _Dims], tuple[_Dims, _Dims]]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return (
        (tuple(lhs_contracting), tuple(rhs_contracting)),
        (tuple(lhs_batch), tuple(rhs_batch)),
    )
