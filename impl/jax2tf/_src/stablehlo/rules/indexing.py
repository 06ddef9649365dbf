"""Gather and scatter."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.program import Region, ops_of
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.stablehlo.rules.combiners import combiner, complex_extreme
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
) -> Array:
    """StableHLO leaves out updates that do not fit, as lax.GatherScatterMode.FILL_OR_DROP."""
    if len(operands) != 3:
        raise step.refused("it updates several arrays at once", "scatter into each array")
    x, indices, updates = operands
    kind = combiner(step.op.regions[0]) or complex_extreme(step)
    if x.dtype == np.bool_:
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
    if kind in _SCATTERS:
        return _SCATTERS[kind](x, indices, updates, numbers, **options)
    if not _reads_update(step.op.regions[0]):
        function = step.region(0)
        apply = lambda x: as_array(function(x, x)[0])  # noqa: E731
        return lax.scatter_apply(x, indices, apply, numbers, update_shape=updates.shape, **options)
    raise step.refused(
        "its updates are not added, subtracted, multiplied, replaced or compared",
        "use one of these in the model",
    )


def _reads_update(region: Region) -> bool:
    update = region.arguments[1]
    return update in region.results or any(update in op.operands for op in ops_of(region))


@reads("stablehlo.torch_index_select")
def _torch_index_select(step: Step, x: Array, index: Array, *, dim: int, batch_dims: int) -> Array:
    take = functools.partial(jnp.take, axis=dim - batch_dims, mode="clip")
    for _ in range(batch_dims):
        take = jax.vmap(take)
    return take(x, index)
