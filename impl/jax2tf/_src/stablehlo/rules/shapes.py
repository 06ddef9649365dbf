"""Ops that make arrays and that move, repeat and leave out elements."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import TOKEN, Step, as_array, takes_sizes
from jax2tf._src.stablehlo.known import of_sizes
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree


@reads("stablehlo.constant", "chlo.constant")
def _constant(step: Step, *, value: Array) -> Array:
    return value


@reads("stablehlo.create_token", "stablehlo.after_all")
@takes_sizes
def _token(step: Step, *tokens: object) -> object:
    return TOKEN


@reads("stablehlo.get_dimension_size")
def _get_dimension_size(step: Step, x: Array, *, dimension: int) -> Array:
    return of_sizes(x.shape[dimension], step.result.dtype)


@reads("stablehlo.set_dimension_size")
def _set_dimension_size(step: Step, x: Array, size: Array, *, dimension: int) -> Array:
    raise step.refused(
        "JAX has no arrays whose size is less than that of their buffer",
        "write the model with open dimensions (jax.export.symbolic_shape) instead",
    )


@reads("stablehlo.reshape")
def _reshape(step: Step, x: Array) -> Array:
    return lax.reshape(x, _static(step, x))


def _static(step: Step, x: Array) -> tuple[int, ...]:
    """The shape of the result; one open size follows from the others."""
    shape = step.result.shape
    if None not in shape:
        return shape  # type: ignore[return-value]
    open_sizes = [size for size in x.shape if not isinstance(size, int)]
    if shape.count(None) == 1:
        return _one_open(x, shape)
    if shape.count(None) == len(open_sizes):
        rest = iter(open_sizes)
        return tuple(next(rest) if size is None else size for size in shape)
    raise step.refused("several sizes of its result are open", "write it with dynamic_reshape")


def _one_open(x: Array, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    count: Size = 1
    for size in x.shape:
        count = count * size
    known = int(np.prod([size for size in shape if size is not None]))
    return tuple(count // max(known, 1) if size is None else size for size in shape)


@reads("stablehlo.dynamic_reshape", "chlo.dynamic_reshape")
@takes_sizes
def _dynamic_reshape(step: Step, x: Array, shape: Array) -> Array:
    return lax.reshape(as_array(x), step.sizes(shape, "shape"))


@reads("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(step: Step, x: Array, *, broadcast_dimensions: tuple[int, ...]) -> Array:
    sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
    shape = [sizes[i] if n is None else n for i, n in enumerate(step.result.shape)]
    return lax.broadcast_in_dim(x, shape, broadcast_dimensions)


@reads("stablehlo.dynamic_broadcast_in_dim")
@takes_sizes
def _dynamic_broadcast_in_dim(
    step: Step,
    x: Array,
    shape: Array,
    *,
    broadcast_dimensions: tuple[int, ...],
    known_expanding_dimensions: tuple[int, ...] = (),
    known_nonexpanding_dimensions: tuple[int, ...] = (),
) -> Array:
    return lax.broadcast_in_dim(as_array(x), step.sizes(shape, "shape"), broadcast_dimensions)


@reads("stablehlo.broadcast")
def _broadcast(step: Step, x: Array, *, broadcast_sizes: tuple[int, ...]) -> Array:
    return lax.broadcast(x, broadcast_sizes)


@reads("stablehlo.transpose")
def _transpose(step: Step, x: Array, *, permutation: tuple[int, ...]) -> Array:
    return lax.transpose(x, permutation)


@reads("stablehlo.concatenate")
def _concatenate(step: Step, *parts: Array, dimension: int) -> Array:
    return lax.concatenate(parts, dimension)


@reads("stablehlo.reverse")
def _reverse(step: Step, x: Array, *, dimensions: tuple[int, ...]) -> Array:
    return lax.rev(x, dimensions)


@reads("stablehlo.dynamic_slice")
def _dynamic_slice(step: Step, x: Array, *starts: Array, slice_sizes: tuple[int, ...]) -> Array:
    """Not lax.dynamic_slice, which counts a negative start from the end."""
    return lax.dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)


@reads("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(step: Step, x: Array, update: Array, *starts: Array) -> Array:
    return lax.dynamic_update_slice_p.bind(x, update, *starts)


@reads("stablehlo.pad")
def _pad(
    step: Step,
    x: Array,
    value: Array,
    *,
    edge_padding_low: tuple[int, ...],
    edge_padding_high: tuple[int, ...],
    interior_padding: tuple[int, ...],
) -> Array:
    config = zip(edge_padding_low, edge_padding_high, interior_padding, strict=True)
    return lax.pad(x, value, list(config))


@reads("stablehlo.dynamic_pad")
@takes_sizes
def _dynamic_pad(
    step: Step, x: Array, value: Array, low: Array, high: Array, interior: Array
) -> Array:
    config = zip(*(step.sizes(n, "padding") for n in (low, high, interior)), strict=True)
    return lax.pad(as_array(x), as_array(value), list(config))


@reads("stablehlo.iota")
def _iota(step: Step, *, iota_dimension: int) -> Array:
    dtype = jax.dtypes.canonicalize_dtype(step.result.dtype)
    return lax.broadcasted_iota(dtype, step.result.shape, iota_dimension)


@reads("stablehlo.dynamic_iota")
@takes_sizes
def _dynamic_iota(step: Step, shape: Array, *, iota_dimension: int) -> Array:
    sizes = step.sizes(shape, "shape")
    dtype = jax.dtypes.canonicalize_dtype(step.result.dtype)
    return lax.broadcasted_iota(dtype, sizes, iota_dimension)


@reads("stablehlo.tuple")
@takes_sizes
def _tuple(step: Step, *values: PyTree) -> PyTree:
    return values


@reads("stablehlo.get_tuple_element")
@takes_sizes
def _get_tuple_element(step: Step, values: PyTree, *, index: int) -> PyTree:
    return values[index]
