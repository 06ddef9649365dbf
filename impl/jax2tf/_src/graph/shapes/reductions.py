"""Ops along dimensions: reductions, positions of extremes, cumulative ops."""

from __future__ import annotations

from jax2tf._src.graph.shapes.registry import Shape, Use, gives


@gives("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")
def _reduced(use: Use) -> Shape:
    shape, axes = use.shape(0), use.vector(1)
    keeps = use.attributes["keep_dims"]
    if axes is None or None in axes:
        return (None,) * len(shape) if keeps else None
    gone = {use.axis(axis, len(shape)) for axis in axes if isinstance(axis, int)}
    if keeps:
        return tuple(1 if i in gone else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in gone)


@gives("ArgMax", "ArgMin")
def _position(use: Use) -> Shape:
    shape, axis = use.at_least(0, 1), use.size(1)
    if not isinstance(axis, int):
        return (None,) * (len(shape) - 1)
    at = use.axis(axis, len(shape))
    return (*shape[:at], *shape[at + 1 :])


@gives("Cumprod", "Cumsum", "CumulativeLogsumexp")
def _cumulative(use: Use) -> Shape:
    shape, axis = use.operands[0].shape, use.size(1)
    if shape is not None and isinstance(axis, int):
        use.axis(axis, len(shape))
    return shape
