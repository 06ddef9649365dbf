"""Shardings over the devices of a mesh: of jax.jit's arguments and results, and constraints.

In functions with a sharded value, each becomes an XlaSharding op. TensorFlow partitions by them on
TPUs and ignores them on CPUs and GPUs. Without XLA ops they are left out, as they change no value.

A shard_map (also in pmap) becomes one program over whole arrays: see emit/mesh/device_programs.py.
In graphs, XlaSharding ops also shard the leading dimensions for the mesh axes. Eager mode has no
such ops and computes the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import jax
from jax.extend import core as jex_core
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.mesh.device_programs import OPEN, as_program_of_all, in_parts_p
from jax2tf._src.lowering.emit.mesh.shardings import (
    constrained,
    constrains,
    says_something,
    with_sharding,
)
from jax2tf._src.lowering.registry import register
from jax2tf._src.tracing import jaxprs
from jax2tf._src.tracing.trace import spans_devices
from jax2tf._src.util.tensors import Tensor


@register("sharding_constraint", takes_keys=True)
def _sharding_constraint(
    ctx: Context,
    x: Tensor,
    *,
    sharding: jax.sharding.Sharding,
    unconstrained_dims: Iterable[int],
    **_: object,
) -> Tensor:
    if ctx.target.placement is not None and spans_devices(sharding):
        return ctx.target.placement.placed(x, sharding, unconstrained_dims)
    # The layout in memory is left out, because TensorFlow chooses it.
    says = constrains(sharding, unconstrained_dims) or says_something(ctx, sharding)
    if not (ctx.wants("XlaSharding") and says):
        return x
    return with_sharding(x, sharding, unconstrained_dims)


@register("reshard", takes_keys=True)
def _reshard(
    ctx: Context, x: Tensor, *, dst_sharding: jax.sharding.Sharding, **_: object
) -> Tensor:
    return constrained(ctx, [x], [dst_sharding])[0]


@register("shard_map", takes_keys=True)
def _shard_map(ctx: Context, *operands: Tensor, **_: object) -> list[Tensor]:
    def make() -> jex_core.ClosedJaxpr:
        specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
        program = as_program_of_all(ctx.eqn, stays_in_parts=ctx.wants("XlaSharding"))
        return jaxprs.traced(program, specs)

    return ctx.call(ctx.traced("shard_map", make), *operands)


@register(in_parts_p, takes_keys=True)
def _in_parts(
    ctx: Context, x: Tensor, *, mesh: tuple[tuple[str, int], ...], parts: Sequence[Hashable]
) -> Tensor:
    if ops.executing_eagerly():
        return x
    names, sizes = zip(*mesh, strict=True)
    devices = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
    sharding = NamedSharding(devices, PartitionSpec(*parts))
    return with_sharding(x, sharding, [i for i, part in enumerate(parts) if part is OPEN])
