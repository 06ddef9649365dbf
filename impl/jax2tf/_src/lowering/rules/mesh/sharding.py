"""Shardings over the devices of a mesh: of jax.jit's arguments and results, and constraints.

Each becomes an XlaSharding op, in functions in which a value is in parts. TensorFlow partitions by
them on TPUs, and its CPUs and GPUs take no notice. Without XLA ops they are left out: they say
where a value is, not what it is.

A program of each device (shard_map, and pmap, which is made of it) becomes one program over whole
arrays: see mesh_programs.py. In graphs, the leading dimensions that stand for the mesh are spread
over it by XlaSharding ops too. Eager mode has none of these, and computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import jax
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from jax2tf._src import compat
from jax2tf._src.api.errors import ConversionError
from jax2tf._src.lowering.registry import Context, register
from jax2tf._src.lowering.rules.mesh.device_programs import OPEN, as_program_of_all, in_parts_p
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.primitives import shard_map_p
from jax2tf._src.tracing.trace import Trace, is_sharded, spans_devices
from jax2tf._src.util import option_checks
from jax2tf._src.util.identity import Identity


def is_partitioned(trace: Trace) -> bool:
    """Whether a value in the trace is sharded, so that only a graph can hold the trace.

    What a program of each device says of its own values, eager mode leaves out.
    """
    return trace.cached(
        "is_partitioned",
        lambda: any(map(_asks_for_sharding, trace.equations(without_inner=[shard_map_p]))),
    )


def refuse_eager(name: str) -> None:
    """Raises a ConversionError in eager mode, which has nothing to partition."""
    if tf.executing_eagerly():
        raise ConversionError(
            f"{name}: a value is sharded over the devices of a mesh, and TensorFlow partitions "
            "graphs, not eager operations. What to do: call it inside a tf.function"
        )


def constrained(
    ctx: Context, values: Sequence[tf.Tensor], shardings: Sequence[jax.sharding.Sharding]
) -> list[tf.Tensor]:
    """The values, each with its sharding; what is no sharding asks for nothing."""
    placement = ctx.placement
    if placement is not None:
        return [
            placement.placed(value, sharding) if spans_devices(sharding) else value
            for value, sharding in zip(values, shardings, strict=True)
        ]
    if not ctx.uses("XlaSharding"):
        return list(values)
    return [
        _constrained(value, sharding) if _says_something(ctx, sharding) else value
        for value, sharding in zip(values, shardings, strict=True)
    ]


def programs_of_devices(trace: Trace) -> list[jex_core.JaxprEqn]:
    """The programs of each device of a mesh (shard_map, and pmap which is made of it)."""
    return [eqn for eqn in trace.equations() if eqn.primitive is shard_map_p]


def device_count(trace: Trace) -> int:
    """How many devices there are in the largest mesh over which a value is sharded."""
    meshes = (eqn.params["mesh"].size for eqn in programs_of_devices(trace))
    shardings = (s for eqn in trace.equations() for s in _shardings_of(eqn) if is_sharded(s))
    return int(max([1, *meshes, *(s.num_devices for s in shardings)]))


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
    where = "jax2tf.split_to_logical_devices"
    if not isinstance(tensor, tf.Tensor):
        raise TypeError(f"{where}: tensor should be a tf.Tensor, got {type(tensor).__name__}")
    argument = f"{where}: partition_dimensions"
    given = option_checks.sequence(partition_dimensions, argument, "numbers", "(2, 1)")
    remedy = "give 1 for a dimension that is not split"
    parts = tuple(option_checks.whole_number(n, argument, 1, remedy) for n in given)
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
    return compat.xla.tiled(tensor, np.arange(math.prod(parts)).reshape(parts))


@register("sharding_constraint", takes_keys=True)
def _sharding_constraint(
    ctx: Context,
    x: tf.Tensor,
    *,
    sharding: jax.sharding.Sharding,
    unconstrained_dims: Iterable[int],
    **_: object,
) -> tf.Tensor:
    if ctx.placement is not None and spans_devices(sharding):
        return ctx.placement.placed(x, sharding, unconstrained_dims)
    # A layout is how the bytes lie, which TensorFlow chooses itself.
    constrains = _constrains(sharding, unconstrained_dims) or _says_something(ctx, sharding)
    if not (ctx.uses("XlaSharding") and constrains):
        return x
    return _constrained(x, sharding, unconstrained_dims)


@register("reshard", takes_keys=True)
def _reshard(
    ctx: Context, x: tf.Tensor, *, dst_sharding: jax.sharding.Sharding, **_: object
) -> tf.Tensor:
    return constrained(ctx, [x], [dst_sharding])[0]


@register("shard_map", takes_keys=True)
def _shard_map(ctx: Context, *operands: tf.Tensor, **_: object) -> list[tf.Tensor]:
    def make() -> jex_core.ClosedJaxpr:
        specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
        program = as_program_of_all(ctx.eqn, stays_in_parts=ctx.uses("XlaSharding"))
        jaxpr: jex_core.ClosedJaxpr = jax.jit(program).trace(*specs).jaxpr
        return jaxpr

    return ctx.call(ctx.cached(("shard_map", Identity(ctx.eqn)), make), *operands)


@register(in_parts_p, takes_keys=True)
def _in_parts(
    ctx: Context, x: tf.Tensor, *, mesh: tuple[tuple[str, int], ...], parts: Sequence[Hashable]
) -> tf.Tensor:
    if tf.executing_eagerly():
        return x
    names, sizes = zip(*mesh, strict=True)
    devices = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
    sharding = NamedSharding(devices, PartitionSpec(*parts))
    return _constrained(x, sharding, [i for i, part in enumerate(parts) if part is OPEN])


def _constrained(
    x: tf.Tensor, sharding: jax.sharding.Sharding, unconstrained_dims: Iterable[int] = ()
) -> tf.Tensor:
    # A key has dimensions of its own behind the logical ones, which stay whole.
    proto = compat.jitted.hlo_sharding(sharding, x.shape.rank)
    return compat.xla.xla_sharding(x, proto, sorted(unconstrained_dims))


def _asks_for_sharding(eqn: jex_core.JaxprEqn) -> bool:
    params = eqn.params
    if eqn.primitive is lax.sharding_constraint_p:
        return _constrains(params["sharding"], params["unconstrained_dims"])
    return any(map(is_sharded, _shardings_of(eqn)))


def _shardings_of(eqn: jex_core.JaxprEqn) -> list[jax.sharding.Sharding]:
    """The shardings that an equation asks for; what was not asked for may be among them."""
    params = eqn.params
    if eqn.primitive is lax.sharding_constraint_p:
        return [params["sharding"]]
    if eqn.primitive in traits.SHARDS:
        return [params["dst_sharding"]]
    return [*params.get("in_shardings", ()), *params.get("out_shardings", ())]


def _says_something(ctx: Context, sharding: jax.sharding.Sharding) -> bool:
    """Whether the graph should hold a sharding: where others are in parts, "whole here" counts."""
    return is_sharded(sharding) or (spans_devices(sharding) and is_partitioned(ctx.trace))


def _constrains(sharding: jax.sharding.Sharding, unconstrained_dims: Iterable[int]) -> bool:
    # Beside dimensions that are left open, whole ones say something too.
    return is_sharded(sharding) or (bool(unconstrained_dims) and spans_devices(sharding))
