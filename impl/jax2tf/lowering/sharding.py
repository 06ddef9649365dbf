"""Shardings over the devices of a mesh: of jax.jit's arguments and results, and constraints.

Each becomes an XlaSharding op; none where every device holds the whole. TensorFlow partitions by
them on TPUs, and its CPUs and GPUs take no notice. Without XLA ops they are left out: they say
where a value is, not what it is.

A program for each device (shard_map, and pmap, which is made of it) has no place in a graph, which
is one program: it is refused, and with it the collectives, which live inside alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf import compat
from jax2tf.errors import ConversionError, UnsupportedPrimitiveError
from jax2tf.lowering.rules import Context, register
from jax2tf.trace import Trace, is_sharded

_PROGRAMS = ("shard_map", "xla_pmap")


def is_partitioned(trace: Trace) -> bool:
    """Whether a value in the trace is sharded, so that only a graph can hold the trace."""
    return trace.cached("is_partitioned", lambda: any(map(_asks_for_sharding, trace.equations())))


def refuse_eager(name: str) -> None:
    """Raises a ConversionError in eager mode, which has nothing to partition."""
    if tf.executing_eagerly():
        raise ConversionError(
            f"{name}: a value is sharded over the devices of a mesh, and TensorFlow partitions "
            "graphs, not eager operations. What to do: call it inside a tf.function, or leave the "
            "sharding out"
        )


def constrained(
    ctx: Context, values: Sequence[tf.Tensor], shardings: Sequence[Any]
) -> list[tf.Tensor]:
    """The values, each with its sharding; what is no sharding asks for nothing."""
    if not ctx.enable_xla:
        return list(values)
    return [
        _constrained(value, sharding) if is_sharded(sharding) else value
        for value, sharding in zip(values, shardings, strict=True)
    ]


def refuse_programs_of_devices(trace: Trace) -> None:
    """Raises an UnsupportedPrimitiveError if the trace holds a program for each device."""
    for eqn in trace.equations():
        if eqn.primitive.name in _PROGRAMS:
            raise _refusal(eqn)


def split_to_logical_devices(
    tensor: tf.Tensor, partition_dimensions: Sequence[int] | None
) -> tf.Tensor:
    """The tensor, split over logical devices in the order of their numbers.

    For TensorFlow code around a converted function: what `jax.lax.with_sharding_constraint` is
    inside. Graphs alone hold it, and only TPUs partition by it.

    >>> @tf.function
    ... def rows_apart(x):
    ...     return split_to_logical_devices(x, (4, 1))
    >>> rows_apart(tf.ones([8, 2])).shape
    TensorShape([8, 2])

    Args:
      tensor: of any shape.
      partition_dimensions: into how many parts each dimension is split, one number a dimension;
        None leaves the tensor whole.

    Raises:
      ValueError: their number is not the tensor's rank, or a size is not divisible by its number.
      ConversionError: in eager mode.
    """
    if partition_dimensions is None:
        return tensor
    parts = tuple(partition_dimensions)
    if tensor.shape.rank != len(parts):
        raise ValueError(
            f"jax2tf.split_to_logical_devices: partition_dimensions={parts} should have one number "
            f"for each dimension of the tensor, whose shape is {tensor.shape}"
        )
    for size, count in zip(tensor.shape, parts, strict=True):
        if count < 1 or (size is not None and size % count):
            raise ValueError(
                f"jax2tf.split_to_logical_devices: partition_dimensions={parts} should divide the "
                f"tensor's shape {tensor.shape}; {size} into {count} parts does not go"
            )
    if math.prod(parts) == 1:
        return tensor
    refuse_eager("jax2tf.split_to_logical_devices")
    return compat.tiled(tensor, np.arange(math.prod(parts)).reshape(parts))


@register("sharding_constraint", takes_keys=True)
def _sharding_constraint(
    ctx: Context, x: tf.Tensor, *, sharding: Any, unconstrained_dims: Iterable[int], **_: Any
) -> tf.Tensor:
    # A layout is how the bytes lie, which TensorFlow chooses itself.
    if not (ctx.enable_xla and _constrains(sharding, unconstrained_dims)):
        return x
    return _constrained(x, sharding, unconstrained_dims)


@register("reshard", takes_keys=True)
def _reshard(ctx: Context, x: tf.Tensor, *, dst_sharding: Any, **_: Any) -> tf.Tensor:
    return constrained(ctx, [x], [dst_sharding])[0]


@register(*_PROGRAMS)
def _program_of_each_device(ctx: Context, *operands: tf.Tensor, **_: Any) -> Any:
    raise _refusal(ctx.eqn)


def _refusal(eqn: jex_core.JaxprEqn) -> UnsupportedPrimitiveError:
    return UnsupportedPrimitiveError(
        eqn.primitive.name,
        "it is a program for each device of a mesh, with collectives between them, and a graph is "
        "one program",
        "write it for the whole array, and jit it with in_shardings and out_shardings or use "
        "jax.lax.with_sharding_constraint",
        compat.user_source(eqn),
    )


def _constrained(x: tf.Tensor, sharding: Any, unconstrained_dims: Iterable[int] = ()) -> tf.Tensor:
    # A key has dimensions of its own behind the logical ones, which stay whole.
    proto = compat.hlo_sharding(sharding, x.shape.rank)
    return compat.xla_sharding(x, proto, sorted(unconstrained_dims))


def _asks_for_sharding(eqn: jex_core.JaxprEqn) -> bool:
    params = eqn.params
    if eqn.primitive.name == "sharding_constraint":
        return _constrains(params["sharding"], params["unconstrained_dims"])
    if eqn.primitive.name == "reshard":
        return is_sharded(params["dst_sharding"])
    return any(map(is_sharded, (*params.get("in_shardings", ()), *params.get("out_shardings", ()))))


def _constrains(sharding: Any, unconstrained_dims: Iterable[int]) -> bool:
    # Beside dimensions that are left open, whole ones say something too.
    return is_sharded(sharding) or (bool(unconstrained_dims) and sharding.num_devices > 1)
