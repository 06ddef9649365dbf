"""The windows of an operand that a scatter writes, as a gather reads them."""

from __future__ import annotations

from collections.abc import Sequence

from jax import lax

from jax2tf._src.util.typing import Dim


def gather_of(
    numbers: lax.ScatterDimensionNumbers, rank: int, update_shape: Sequence[Dim]
) -> tuple[lax.GatherDimensionNumbers, tuple[Dim, ...]]:
    """The dimension numbers and the slice sizes of the gather of a scatter's windows.

    Args:
      numbers: those of the scatter.
      rank: how many dimensions its operand has.
      update_shape: the shape of its updates, which is that of the gather's result.
    """
    sizes = iter([update_shape[axis] for axis in numbers.update_window_dims])
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    of_gather = lax.GatherDimensionNumbers(
        offset_dims=tuple(numbers.update_window_dims),
        collapsed_slice_dims=tuple(numbers.inserted_window_dims),
        start_index_map=tuple(numbers.scatter_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )
    return of_gather, tuple(1 if axis in left_out else next(sizes) for axis in range(rank))
