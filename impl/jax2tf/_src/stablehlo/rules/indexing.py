"""Gather and scatter."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.program import Region, ops_of
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.stablehlo.rules.combiners import combiner, complex_extreme
from jax2tf._src.util import scatter_windows
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

Numbers = Mapping[str, PyTree]


@reads("stablehlo.gather")
def _gather(
    step: Step,
    x: Array,
    indices: Array,
    *,
    dimension_numbers: Numbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
) -> Array:
    """StableHLO moves a slice that does not fit into the array, as lax.GatherScatterMode.CLIP."""
    return lax.gather(
        x,
        _last(indices, dimension_numbers["index_vector_dim"]),
        lax.GatherDimensionNumbers(
            offset_dims=dimension_numbers["offset_dims"],
            collapsed_slice_dims=dimension_numbers["collapsed_slice_dims"],
            start_index_map=dimension_numbers["start_index_map"],
            operand_batching_dims=dimension_numbers["operand_batching_dims"],
            start_indices_batching_dims=dimension_numbers["start_indices_batching_dims"],
        ),
        slice_sizes,
        indices_are_sorted=indices_are_sorted,
        mode=lax.GatherScatterMode.CLIP,
    )


@reads("stablehlo.dynamic_gather")
@takes_sizes
def _dynamic_gather(
    step: Step,
    x: Array,
    indices: Array,
    sizes: Array,
    *,
    dimension_numbers: Numbers,
    indices_are_sorted: bool = False,
) -> Array:
    return _gather(
        step,
        as_array(x),
        as_array(indices),
        dimension_numbers=dimension_numbers,
        slice_sizes=step.sizes(sizes, "slice"),
        indices_are_sorted=indices_are_sorted,
    )


def _last(indices: Array, dimension: int) -> Array:
    """The indices with each index vector along the last dimension, as lax has them."""
    if dimension == indices.ndim:
        return jnp.expand_dims(indices, -1)
    return indices if dimension == indices.ndim - 1 else jnp.moveaxis(indices, dimension, -1)


_SCATTERS = {
    "add": lax.scatter_add,
    "subtract": lax.scatter_sub,
    "multiply": lax.scatter_mul,
    "minimum": lax.scatter_min,
    "maximum": lax.scatter_max,
    "second": lax.scatter,
}


@reads("stablehlo.scatter")
def _scatter(
    step: Step,
    *operands: Array,
    scatter_dimension_numbers: Numbers,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> list[Array]:
    """StableHLO leaves out updates that do not fit, as lax.GatherScatterMode.FILL_OR_DROP."""
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    kind = combiner(step.op.regions[0]) or (complex_extreme(step) if count == 1 else "")
    if arrays[0].dtype == np.bool_:
        kind = {"or": "maximum", "and": "minimum", "add": "maximum"}.get(kind, kind)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=scatter_dimension_numbers["update_window_dims"],
        inserted_window_dims=scatter_dimension_numbers["inserted_window_dims"],
        scatter_dims_to_operand_dims=scatter_dimension_numbers["scattered_dims_to_operand_dims"],
        operand_batching_dims=scatter_dimension_numbers["input_batching_dims"],
        scatter_indices_batching_dims=scatter_dimension_numbers["scatter_indices_batching_dims"],
    )
    options: dict[str, PyTree] = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": lax.GatherScatterMode.FILL_OR_DROP,
    }
    indices = _last(indices, scatter_dimension_numbers["index_vector_dim"])
    if count == 1 and kind in _SCATTERS:
        return [_SCATTERS[kind](arrays[0], indices, updates[0], numbers, **options)]
    if count == 1 and not _reads_update(step.op.regions[0]):
        function, (x,), shape = step.region(0), arrays, updates[0].shape
        apply = lambda x: as_array(function(x, x)[0])  # noqa: E731
        return [lax.scatter_apply(x, indices, apply, numbers, update_shape=shape, **options)]
    combine = _combined(step, numbers)
    if unique_indices or all(size == 1 for size in indices.shape[:-1]):
        return combine(arrays, indices, updates)
    return _one_by_one(step, arrays, indices, updates, numbers)


Combine = Callable[[Sequence[Array], Array, Sequence[Array]], list[Array]]


def _combined(step: Step, numbers: lax.ScatterDimensionNumbers) -> Combine:
    """Updates by the region: windows are read, computed with and written, for distinct indices."""
    of_scalars = lambda *xs: tuple(as_array(y) for y in step.region(0)(*xs))  # noqa: E731
    function: PyTree = jax.vmap(of_scalars)

    def combine(arrays: Sequence[Array], indices: Array, updates: Sequence[Array]) -> list[Array]:
        before = [_windows(x, indices, u, numbers) for x, u in zip(arrays, updates, strict=True)]
        flat = (lax.reshape(x, (x.size,)) for x in (*before, *updates))
        after = (lax.reshape(x, u.shape) for x, u in zip(function(*flat), updates, strict=True))
        drop = lax.GatherScatterMode.FILL_OR_DROP
        return [
            lax.scatter(x, indices, u, numbers, mode=drop)
            for x, u in zip(arrays, after, strict=True)
        ]

    return combine


def _windows(x: Array, indices: Array, update: Array, numbers: PyTree) -> Array:
    """The elements that updates meet."""
    of_gather, sizes = scatter_windows.gather_of(numbers, x.ndim, update.shape)
    return lax.gather(x, indices, of_gather, sizes, mode=lax.GatherScatterMode.CLIP)


def _one_by_one(
    step: Step,
    arrays: Sequence[Array],
    indices: Array,
    updates: Sequence[Array],
    numbers: lax.ScatterDimensionNumbers,
) -> list[Array]:
    """Updates in the order of the indices, of which several may be the same."""
    if numbers.operand_batching_dims:
        raise step.refused(
            "its updates are not added, subtracted, multiplied, replaced or compared, and it has "
            "batches",
            "scatter without batches (jax.vmap), or with one of these operations",
        )
    windows = numbers.update_window_dims
    others = [axis for axis in range(updates[0].ndim) if axis not in windows]
    one = numbers._replace(update_window_dims=tuple(range(1, 1 + len(windows))))
    rows = [lax.transpose(u, (*others, *windows)) for u in updates]
    count = math.prod(indices.shape[:-1])
    rows = [lax.reshape(u, (count, 1, *u.shape[len(others) :])) for u in rows]
    places = lax.reshape(indices, (count, 1, indices.shape[-1]))
    combine = _combined(step, one)

    def update(carry: list[Array], row: PyTree) -> tuple[list[Array], None]:
        index, parts = row
        return combine(carry, index, parts), None

    return lax.scan(update, list(arrays), (places, rows))[0]


def _reads_update(region: Region) -> bool:
    update = region.arguments[1]
    return update in region.results or any(update in op.operands for op in ops_of(region))


@reads("stablehlo.torch_index_select")
def _torch_index_select(step: Step, x: Array, index: Array, *, dim: int, batch_dims: int) -> Array:
    take = functools.partial(jnp.take, axis=dim - batch_dims, mode="clip")
    for _ in range(batch_dims):
        take = jax.vmap(take)
    return take(x, index)
