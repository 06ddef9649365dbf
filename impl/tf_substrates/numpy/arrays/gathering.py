"""Elements and slices at indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.tensors import convert, static_shape, traced

JAX_MODE = False


@op("gather", static=True)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Any:
    """The slices of an axis at indices; the first `batch_dims` axes of both go together.

    Raises:
      tf.errors.InvalidArgumentError: an index that is known is outside.
    """
    x, at = convert(params), convert(indices)
    if at.dtype.kind not in "iu":
        raise invalid_argument(
            f"Value for attr 'Tindices' of {dtypes.dtype_of(at).name} is not in the list of allowed"
            " values: int16, int32, int64 [Op:GatherV2]"
        )
    batch = batch_dims + len(at.shape) if batch_dims < 0 else batch_dims
    # Without an axis it is `batch_dims` itself, which counts from the end of `params` if negative.
    along = one_axis(batch_dims if axis is None else axis, len(x.shape), "tf.gather")
    if x.shape[:batch] != at.shape[:batch]:
        raise invalid_argument(
            f"params.shape[:{batch}] should be equal to indices.shape[:{batch}]:"
            f" {list(x.shape)}, {list(at.shape)} [Op:GatherV2]"
        )
    _inside(at, x.shape[along], "GatherV2")
    if batch == 0:
        return xp.take(x, at, along, **_CLIP)
    # Axes: batch, those before the gathered one, the gathered one, those after.
    count = math.prod(at.shape[batch:])
    moved = xp.moveaxis(x, along, batch)
    rows = at.reshape((*at.shape[:batch], count) + (1,) * (len(x.shape) - batch - 1))
    taken = xp.take_along_axis(moved, rows, batch)
    back = xp.moveaxis(taken, batch, along)
    return back.reshape((*x.shape[:along], *at.shape[batch:], *x.shape[along + 1 :]))


# What is outside is an error where values are known, and under jax.jit the nearest.
_CLIP = {"mode": "clip"} if JAX_MODE else {}


def _inside(indices: Any, size: int, op_name: str) -> None:
    if isinstance(indices, np.ndarray) and indices.size:
        bad = (indices < 0) | (indices >= size)
        if bad.any():
            at = tuple(map(int, np.argwhere(bad)[0]))
            raise invalid_argument(
                f"indices{list(at)} = {indices[at]} is not in [0, {size}) [Op:{op_name}]"
            )


@op("gather_nd", static=True)
def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: Any = None, bad_indices_policy: str = ""
) -> Any:
    """Slices at the multi-indices of the last axis.

    Raises:
      tf.errors.InvalidArgumentError: an index that is known is outside.
    """
    x, at = convert(params), convert(indices)
    depth = at.shape[-1]
    if depth + batch_dims > len(x.shape):
        raise invalid_argument(
            "index innermost dimension length must be <= params rank; saw:"
            f" {depth} vs. {len(x.shape)} [Op:GatherNd]"
        )
    inside_nd(at, x.shape[batch_dims : batch_dims + depth], "GatherNd")
    key: list = []
    for i in range(batch_dims):
        ones = [1] * (len(at.shape) - 1)
        ones[i] = x.shape[i]
        key.append(np.arange(x.shape[i]).reshape(ones))
    key += [at[..., i] for i in range(depth)]
    if not key:
        return xp.broadcast_to(x, (*at.shape[:-1], *x.shape))
    return (
        x[tuple(key)]
        if not (JAX_MODE and not isinstance(x, np.ndarray))
        else x.at[tuple(key)].get(mode="clip")
    )


def inside_nd(indices: Any, shape: tuple, op_name: str) -> None:
    for i, size in enumerate(shape):
        if isinstance(indices, np.ndarray):
            column = indices[..., i]
            if column.size and ((column < 0) | (column >= size)).any():
                raise invalid_argument(
                    f"indices does not index into shape {list(shape)}: axis {i} has"
                    f" {column.ravel()[0]} [Op:{op_name}]"
                )


@op("unravel_index", static=True)
def unravel_index(indices: Any, dims: Any, name: Any = None) -> Any:
    at, shape = convert(indices), static_shape(dims)
    if not traced(at) and np.any(np.asarray(at) >= np.prod(shape)):
        raise invalid_argument(
            f"index is out of bound as with dims {list(shape)} [Op:UnravelIndex]"
        )
    rows = xp.unravel_index(at, shape)
    return xp.stack(list(rows)).astype(at.dtype)
