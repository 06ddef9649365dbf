"""Primitives that call a jaxpr: jit, closed_call, custom_jvp_call, composite and others."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.extend import core as jex_core

from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import compiled_calls, random_bits
from jax2tf._src.lowering.emit.mesh.shardings import constrained
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.tensors import Tensor


@register("jit", takes_keys=True)
def _jit(
    ctx: Context,
    *args: Tensor,
    jaxpr: jex_core.ClosedJaxpr,
    name: str,
    in_shardings: Sequence[jax.sharding.Sharding],
    out_shardings: Sequence[jax.sharding.Sharding],
    compiler_options_kvs: Sequence[tuple[str, object]],
    **_: object,
) -> list[Tensor]:
    if compiled_calls.COMPILED_RUN in compiler_options_kvs:
        return compiled_calls.call(ctx, jaxpr, args, name)
    # Layouts, donation and the user's compiler options do not change the results.
    operands = constrained(ctx, args, in_shardings)
    results = random_bits.compiled(ctx, jaxpr, *operands)
    if results is None:
        results = ctx.call(jaxpr, *operands, name=name)
    return constrained(ctx, results, out_shardings)


@register("closed_call", "eval_jaxpr", takes_keys=True)
def _closed_call(
    ctx: Context, *args: Tensor, call_jaxpr: jex_core.ClosedJaxpr, **_: object
) -> list[Tensor]:
    return ctx.call(call_jaxpr, *args)


@register("custom_jvp_call", "custom_vjp_call", takes_keys=True)
def _custom_derivative_call(
    ctx: Context, *args: Tensor, call_jaxpr: jex_core.ClosedJaxpr, **_: object
) -> list[Tensor]:
    # JAX applies the derivative rules: gradients come from jax.vjp of the whole function.
    return ctx.call(call_jaxpr, *args)


@register("composite", takes_keys=True)
def _composite(
    ctx: Context,
    *args: Tensor,
    call_jaxpr: jex_core.ClosedJaxpr | None = None,
    jaxpr: jex_core.ClosedJaxpr | None = None,
    **_: object,
) -> list[Tensor]:
    meaning = call_jaxpr or jaxpr  # `jaxpr` until JAX 0.11
    assert meaning is not None
    # The name, version and attributes are for compilers that know the composite.
    return ctx.call(meaning, *args)


@register("custom_partitioning", takes_keys=True)
def _custom_partitioning(
    ctx: Context, *args: Tensor, call: jex_core.ClosedJaxpr, **_: object
) -> list[Tensor]:
    # The partitioning is for XLA on a mesh; a graph computes the whole function.
    return ctx.call(call, *args)


@register("inspect_sharding")
def _inspect_sharding(ctx: Context, x: Tensor, **_: object) -> list[Tensor]:
    # It shows the sharding that XLA chose for x, which a graph does not know.
    return []


@register("dce_sink")
def _dce_sink(ctx: Context, x: Tensor, **_: object) -> list[Tensor]:
    # It keeps JAX from dropping the computation of x; TensorFlow may drop it.
    return []
