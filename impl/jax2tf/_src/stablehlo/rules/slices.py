"""Slices. Those that part an array along one axis are lax.split, which JAX writes as slices."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.known import as_sizes, is_known
from jax2tf._src.stablehlo.program import Op
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import HloValue as Array


@dataclasses.dataclass(frozen=True)
class _Bounds:
    """Where a slice begins and ends in each dimension."""

    start: tuple[Size, ...]
    limit: tuple[Size, ...]


@reads("stablehlo.slice")
def _slice(
    step: Step,
    x: Array,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...],
) -> Array:
    part = _part(step, x, _Bounds(tuple(start_indices), tuple(limit_indices)), tuple(strides))
    return lax.slice(x, start_indices, limit_indices, strides) if part is None else part


@reads("stablehlo.real_dynamic_slice")
@takes_sizes
def _real_dynamic_slice(step: Step, x: Array, start: Array, limit: Array, strides: Array) -> Array:
    x = as_array(x)
    if is_known(start):
        first, last, steps = (step.sizes(bound, "slice") for bound in (start, limit, strides))
        part = _part(step, x, _Bounds(first, last), steps)
        return lax.slice(x, first, last, steps) if part is None else part
    if any(stride != 1 for stride in step.sizes(strides, "slice")):
        raise step.refused("its start is computed and its strides are not 1", "slice twice")
    return lax.dynamic_slice_p.bind(
        x, *(start[i] for i in range(x.ndim)), slice_sizes=_sizes_of_slice(step)
    )


def _sizes_of_slice(step: Step) -> tuple[Size, ...]:
    """The sizes of a slice from a computed start: what is added to the start."""
    if step.result.is_static:
        return step.result.shape
    end = step.definition(2)
    if end is not None and end.name == "stablehlo.add" and step.op.operands[1] in end.operands:
        (size,) = (number for number in end.operands if number != step.op.operands[1])
        return step.sizes(step.known(size), "slice")
    return step.sizes(None, "slice")


def _part(step: Step, x: Array, bounds: _Bounds, strides: Sequence[Size]) -> Array | None:
    """The part of a lax.split that a slice is, of which the others are given too."""
    slices = step.evaluator.slices[step.op.results[0]]
    if len(slices) < 2 or slices[0] is not step.op or any(stride != 1 for stride in strides):
        return None
    parts = [bounds]
    for op in slices[1:]:
        other = _bounds_of(step, op)
        if other is None:
            return None
        parts.append(other)
    axes = {i for i, size in enumerate(x.shape) for p in parts if p.limit[i] != size}
    axes |= {i for p in parts for i, first in enumerate(p.start) if first != 0}
    if len(axes) != 1:
        return None
    (axis,) = axes
    order = sorted(range(len(parts)), key=lambda i: parts[i].start[axis])
    edges = [0, *(parts[i].limit[axis] for i in order)]
    if [parts[i].start[axis] for i in order] != edges[:-1] or edges[-1] != x.shape[axis]:
        return None
    split = lax.split(x, [b - a for a, b in itertools.pairwise(edges)], axis)
    for i, array in zip(order, split, strict=True):
        step.give(slices[i], array)
    return split[order.index(0)]


def _bounds_of(step: Step, op: Op) -> _Bounds | None:
    """The bounds of a slice that comes later; None if its strides are not one."""
    if op.name == "stablehlo.slice":
        names = ("start_indices", "limit_indices", "strides")
        start, limit, strides = (tuple(op.attributes[name]) for name in names)
    else:
        values = [step.known(number) for number in op.operands[1:]]
        if not all(map(is_known, values)):
            return None
        start, limit, strides = map(as_sizes, values)
    return _Bounds(start, limit) if all(stride == 1 for stride in strides) else None
