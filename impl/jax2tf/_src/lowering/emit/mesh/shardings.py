"""The shardings that a trace asks for, and the XlaSharding ops that express them in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jax
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.lowering.context import Context
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.primitives import shard_map_p
from jax2tf._src.tracing.trace import Trace, is_sharded, spans_devices
from jax2tf._src.util.tensors import Tensor


def is_partitioned(trace: Trace) -> bool:
    """Whether a value in the trace is sharded, so that the trace has to become a graph.

    Shardings inside a shard_map do not count; eager mode leaves them out.
    """
    return trace.cached(
        "is partitioned",
        lambda: any(map(_asks_for_sharding, trace.equations(without_inner=[shard_map_p]))),
    )


def constrained(
    ctx: Context, values: Sequence[Tensor], shardings: Sequence[jax.sharding.Sharding]
) -> list[Tensor]:
    """Applies a sharding to each value; an unspecified sharding changes nothing."""
    placement = ctx.target.placement
    if placement is not None:
        return [
            placement.placed(value, sharding) if spans_devices(sharding) else value
            for value, sharding in zip(values, shardings, strict=True)
        ]
    if not ctx.wants("XlaSharding"):
        return list(values)
    return [
        with_sharding(value, sharding) if says_something(ctx, sharding) else value
        for value, sharding in zip(values, shardings, strict=True)
    ]


def programs_of_devices(trace: Trace) -> list[jex_core.JaxprEqn]:
    """The shard_map equations; pmap is a shard_map too."""
    return [eqn for eqn in trace.equations() if eqn.primitive is shard_map_p]


def device_count(trace: Trace) -> int:
    """The number of devices in the largest mesh over which a value is sharded."""
    meshes = (eqn.params["mesh"].size for eqn in programs_of_devices(trace))
    shardings = (s for eqn in trace.equations() for s in _shardings_of(eqn) if is_sharded(s))
    return int(max([1, *meshes, *(s.num_devices for s in shardings)]))


def with_sharding(
    x: Tensor, sharding: jax.sharding.Sharding, unconstrained_dims: Iterable[int] = ()
) -> Tensor:
    # A key has additional dimensions after the logical ones; they are not split.
    proto = compat.jitted.hlo_sharding(sharding, x.shape.rank)
    return compat.xla.xla_sharding(x, proto, sorted(unconstrained_dims))


def _asks_for_sharding(eqn: jex_core.JaxprEqn) -> bool:
    params = eqn.params
    if eqn.primitive is lax.sharding_constraint_p:
        return constrains(params["sharding"], params["unconstrained_dims"])
    return any(map(is_sharded, _shardings_of(eqn)))


def _shardings_of(eqn: jex_core.JaxprEqn) -> list[jax.sharding.Sharding]:
    """The shardings that an equation asks for; unspecified shardings may be among them."""
    params = eqn.params
    if eqn.primitive is lax.sharding_constraint_p:
        return [params["sharding"]]
    if eqn.primitive in traits.SHARDS:
        return [params["dst_sharding"]]
    return [*params.get("in_shardings", ()), *params.get("out_shardings", ())]


def says_something(ctx: Context, sharding: jax.sharding.Sharding) -> bool:
    """Whether the graph needs the sharding: "replicated" counts if other values are split."""
    return is_sharded(sharding) or (spans_devices(sharding) and is_partitioned(ctx.trace))


def constrains(sharding: jax.sharding.Sharding, unconstrained_dims: Iterable[int]) -> bool:
    # If some dimensions are unconstrained, "whole" in the other dimensions is a constraint too.
    return is_sharded(sharding) or (bool(unconstrained_dims) and spans_devices(sharding))
