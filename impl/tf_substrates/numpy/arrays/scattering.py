"""Tensors with elements put at indices, and rows by partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.arrays.gathering import inside_nd
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import EXPORTS, export, named, op
from tf_substrates.numpy.tensors import convert, listed, operands, static_shape, static_value, wrap

JAX_MODE = False


def _scattered(x: Any, indices: Any, updates: Any, how: str, op_name: str) -> Any:
    depth = indices.shape[-1]
    if depth > len(x.shape):
        raise invalid_argument(
            f"The inner dimension of indices ({depth}) must be at most the rank of the result"
            f" ({len(x.shape)}) [Op:{op_name}]"
        )
    expected = (*indices.shape[:-1], *x.shape[depth:])
    if updates.shape != expected:
        raise invalid_argument(
            f"Dimensions of updates must be {list(expected)} for indices {list(indices.shape)} and"
            f" a result of {list(x.shape)}, got {list(updates.shape)} [Op:{op_name}]"
        )
    inside_nd(indices, x.shape[:depth], op_name)
    key = tuple(indices[..., i] for i in range(depth))
    if JAX_MODE:
        on_device: Any = xp.asarray(x)
        # A sum of booleans is their maximum; JAX refuses to add them.
        how = "max" if how == "add" and on_device.dtype == bool else how
        return getattr(on_device.at[key], how)(updates)
    result = np.array(x)
    if how == "set":
        result[key] = updates
    else:
        _UFUNCS[how].at(result, key, updates)
    return result


_UFUNCS = {"add": np.add, "subtract": np.subtract, "max": np.maximum, "min": np.minimum}


@op("scatter_nd")
def scatter_nd(
    indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: Any = None
) -> Any:
    """Zeros with the updates added at the indices."""
    updates = convert(updates)
    start = xp.zeros(static_shape(shape), updates.dtype)
    return _scattered(start, convert(indices), updates, "add", "ScatterNd")


@op("tensor_scatter_nd_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: Any = None) -> Any:
    return _tensor_scatter(tensor, indices, updates, "set", "TensorScatterUpdate")


def _tensor_scatter(tensor: Any, indices: Any, updates: Any, how: str, op_name: str) -> Any:
    x, updates = operands(op_name, tensor, updates)
    return _scattered(x, convert(indices), updates, how, op_name)


def _tensor_scatter_nd(kind: str, how: str) -> None:
    def call(
        tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
    ) -> Any:
        return _tensor_scatter(tensor, indices, updates, how, f"TensorScatter{kind.title()}")

    named(
        call,
        f"tensor_scatter_nd_{kind}",
        f"The tensor with its elements at the indices {how}ed with the updates.",
    )
    op(call.__name__)(call)


for _kind, _how in (("add", "add"), ("sub", "subtract"), ("max", "max"), ("min", "min")):
    _tensor_scatter_nd(_kind, _how)


@export("compat.v1.scatter_add")
def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None
) -> Any:
    """Adds updates to rows of a tf.Variable, and returns the variable.

    Args:
      ref: the variable.
      indices: the rows, in any shape.
      updates: `[*indices.shape, *ref.shape[1:]]`, or one number for all.

    Raises:
      tf.errors.InvalidArgumentError: a row is outside of the variable.
    """
    at = convert(indices)
    rows = xp.broadcast_to(convert(updates, ref.dtype), (*at.shape, *ref.shape[1:]))
    return ref.assign(EXPORTS["tensor_scatter_nd_add"](ref.value(), at[..., None], wrap(rows)))


@op("dynamic_stitch", static=True)
def dynamic_stitch(indices: Any, data: Any, name: Any = None) -> Any:
    """The rows of `data` where `indices` says; of two for one place the later. Known indices."""
    ats = [static_value(i, "The indices of tf.dynamic_stitch") for i in indices]
    arrays = listed("DynamicStitch", data)
    tail = arrays[0].shape[ats[0].ndim :]
    rows = xp.concatenate([a.reshape((-1, *tail)) for a in arrays])
    at = np.concatenate([i.reshape(-1) for i in ats])
    source = np.full(int(at.max()) + 1 if at.size else 0, -1)
    source[at] = np.arange(at.size)
    return xp.take(rows, source, 0)


@op("dynamic_partition")
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: Any = None) -> Any:
    """The rows of each partition. The partitions must be known under jax.jit."""
    x = convert(data)
    at = static_value(partitions, "The partitions of tf.dynamic_partition")
    flat = x.reshape((-1, *x.shape[at.ndim :]))
    return [xp.take(flat, np.flatnonzero(at.ravel() == i), 0) for i in range(num_partitions)]
