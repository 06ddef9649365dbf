"""Primitives that call a jaxpr: jit, closed_call, custom_jvp_call, composite and others."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import random_bits
from jax2tf._src.lowering.emit.mesh.shardings import constrained
from jax2tf._src.lowering.registry import register


@register("jit", takes_keys=True)
def _jit(
    ctx: Context,
    *args: tf.Tensor,
    jaxpr: jex_core.ClosedJaxpr,
    name: str,
    in_shardings: Sequence[jax.sharding.Sharding],
    out_shardings: Sequence[jax.sharding.Sharding],
    **_: object,
) -> list[tf.Tensor]:
    # Layouts, donation and compiler options say where and how fast, not what.
    operands = constrained(ctx, args, in_shardings)
    results = random_bits.compiled(ctx, jaxpr, *operands)
    if results is None:
        results = ctx.call(jaxpr, *operands, name=name)
    return constrained(ctx, results, out_shardings)


@register("closed_call", "eval_jaxpr", takes_keys=True)
def _closed_call(
    ctx: Context, *args: tf.Tensor, call_jaxpr: jex_core.ClosedJaxpr, **_: object
) -> list[tf.Tensor]:
    return ctx.call(call_jaxpr, *args)


@register("custom_jvp_call", "custom_vjp_call", takes_keys=True)
def _custom_derivative_call(
    ctx: Context, *args: tf.Tensor, call_jaxpr: jex_core.ClosedJaxpr, **_: object
) -> list[tf.Tensor]:
    # The derivative rules are JAX's affair: gradients come from jax.vjp of the whole function.
    return ctx.call(call_jaxpr, *args)


@register("composite", takes_keys=True)
def _composite(
    ctx: Context,
    *args: tf.Tensor,
    call_jaxpr: jex_core.ClosedJaxpr | None = None,
    jaxpr: jex_core.ClosedJaxpr | None = None,
    **_: object,
) -> list[tf.Tensor]:
    meaning = call_jaxpr or jaxpr  # the second until JAX 0.11
    assert meaning is not None
    # A name, a version and attributes are for compilers that know it.
    return ctx.call(meaning, *args)


@register("custom_partitioning", takes_keys=True)
def _custom_partitioning(
    ctx: Context, *args: tf.Tensor, call: jex_core.ClosedJaxpr, **_: object
) -> list[tf.Tensor]:
    # How XLA spreads it over the devices of a mesh; a graph has it whole.
    return ctx.call(call, *args)


@register("inspect_sharding")
def _inspect_sharding(ctx: Context, x: tf.Tensor, **_: object) -> list[tf.Tensor]:
    # It shows how XLA has spread x over devices; a graph does not know that.
    return []


@register("dce_sink")
def _dce_sink(ctx: Context, x: tf.Tensor, **_: object) -> list[tf.Tensor]:
    # It keeps JAX from dropping what computes x, which TensorFlow may drop again.
    return []
