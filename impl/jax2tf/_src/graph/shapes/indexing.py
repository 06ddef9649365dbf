"""Ops that take and put elements at computed places."""

from __future__ import annotations

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.shapes.registry import Shape, Sizes, Use, gives


@gives("GatherV2")
def _gather(use: Use) -> Shape:
    indices = use.shape(1)
    n_batch = use.attributes["batch_dims"]
    n_batch += len(indices) if n_batch < 0 else 0
    params, axis = use.at_least(0, 1), use.size(2)
    if not 0 <= n_batch <= min(len(indices), len(params)):
        raise use.error(f"there are no {n_batch} batch dimensions")
    if not isinstance(axis, int):
        return (None,) * (len(params) + len(indices) - n_batch - 1)
    at = use.axis(axis, len(params))
    if at < n_batch:
        raise use.error(f"axis {at} is a batch dimension")
    batch = tuple(map(use.merge, params[:n_batch], indices[:n_batch]))
    return (*batch, *params[n_batch:at], *indices[n_batch:], *params[at + 1 :])


@gives("GatherNd")
def _gather_nd(use: Use) -> Shape:
    indices, params = use.at_least(1, 1), use.shape(0)
    depth = _depth(use, indices, len(params))
    return None if depth is None else (*indices[:-1], *params[depth:])


def _depth(use: Use, indices: Sizes, rank: int) -> int | None:
    """The number of dimensions that indices index."""
    depth = indices[-1]
    if not isinstance(depth, int):
        return None
    if depth > rank:
        raise use.error(f"indices into {depth} dimensions do not fit rank {rank}")
    return depth


@gives("ScatterNd")
def _scatter(use: Use) -> Shape:
    shape = use.shape_in(2)
    _check_updates(use, shape, 0, 1)
    return shape


@gives(
    *("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub"),
    "TensorScatterUpdate",
)
def _scatter_into(use: Use) -> Shape:
    shape = use.operands[0].shape
    _check_updates(use, shape, 1, 2)
    return shape


def _check_updates(use: Use, shape: Shape, i: int, j: int) -> None:
    indices, updates = use.operands[i].shape, use.operands[j].shape
    if None in (shape, indices, updates):
        return
    assert shape is not None
    depth = _depth(use, use.at_least(i, 1), len(shape))
    if depth is not None:
        use.merged(updates, (*use.shape(i)[:-1], *shape[depth:]))


@gives(*(f"UnsortedSegment{name}" for name in ("Max", "Min", "Prod", "Sum")))
def _segments(use: Use) -> Shape:
    data, places = use.shape(0), use.shape(1)
    if len(places) > len(data):
        raise use.error("the segments have more dimensions than the data")
    use.merged(data[: len(places)], places)
    return (use.size(2), *data[len(places) :])


@gives("TopKV2")
def _top_k(use: Use) -> list[Shape]:
    shape, k = use.at_least(0, 1), use.size(1)
    if isinstance(k, int) and (k < 0 or dimensions.is_at_least(shape[-1], k) is False):
        raise use.error(f"there are no {k} elements in a row of {shape[-1]}")
    return [(*shape[:-1], k)] * 2
