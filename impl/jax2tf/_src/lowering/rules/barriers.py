"""optimization_barrier, and jax.checkpoint where JAX differentiated it.

What is computed from the results of a barrier is not computed before all of its operands are there,
and is not taken for what was computed from the operands. That is how a backward pass computes
anew: not before its cotangents are there, and although the same values were there once.

- XLA has an op for it, but compilers for the CPU remove it before they look for what is computed
  twice. A select whose condition holds for any operands, which they do not find out, stays.
- TensorFlow takes two nodes for the same only if they wait for the same. In a graph that is not
  compiled a barrier is an Identity of each operand that waits for all of them, which costs nothing.

Eager mode computes what it is told, when it is told. Engines, which read graphs without XLA ops, do
not train, and get no barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src import compat, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.registry import register


def barrier(ctx: Context, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The operands, behind a barrier where they are part of a graph."""
    if tf.executing_eagerly() or not ctx.wants("XlaOptimizationBarrier") or not operands:
        return list(operands)
    if compat.functions.in_compiled_function():
        dtypes = [x.dtype for x in operands]
        # Neither that op nor a select takes the float8 of compiled code; bfloat16 has their values.
        wide = [tf.bfloat16 if d.name in compiled_calls.COMPILED_DTYPES else d for d in dtypes]
        unpacked = compiled_calls.unpacked(compiled_calls.in_dtypes(operands, wide))
        held = ops.xla.xla_optimization_barrier(input=unpacked)
        return compiled_calls.in_dtypes(_selected(held), dtypes)
    # What a graph or a loop's body reads from outside is there before it begins: tensors of another
    # graph, and eager ones, which a jacobian's graph has as residuals of an eager call.
    here = tf.compat.v1.get_default_graph()
    inside = [x for x in operands if tf.is_symbolic_tensor(x) and x.graph is here]
    with tf.control_dependencies(inside):
        return [ops.identity(x) for x in operands]


def _selected(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The tensors, each selected by a condition on all of them that always holds."""
    holds = ops.reduce_all(ops.concat([_some_bits(x) for x in tensors], 0) | 1 != 0)
    return [ops.where(holds, x, ops.zeros_like(x)) for x in tensors]


def _some_bits(x: tf.Tensor) -> tf.Tensor:
    """The first element as an integer, in a vector; an empty one if there is none."""
    first = ops.reshape(x, [-1])[:1]
    if x.dtype.is_complex:
        first = ops.real(first)
    if first.dtype.is_floating:
        return ops.bitcast(ops.cast(first, tf.float32), tf.int32)
    return ops.cast(first, tf.int32)


@register("optimization_barrier", takes_keys=True)
def _optimization_barrier(ctx: Context, *operands: tf.Tensor) -> list[tf.Tensor]:
    return barrier(ctx, operands)


@register("remat2", takes_keys=True)
def _remat(
    ctx: Context,
    *args: tf.Tensor,
    jaxpr: jex_core.Jaxpr,
    prevent_cse: bool | Sequence[bool],
    differentiated: bool,
    **_: object,
) -> list[tf.Tensor]:
    each = [prevent_cse] * len(args) if isinstance(prevent_cse, bool) else prevent_cse
    if differentiated:
        held = iter(barrier(ctx, [x for x, prevent in zip(args, each, strict=True) if prevent]))
        args = tuple(next(held) if prevent else x for x, prevent in zip(args, each, strict=True))
    return ctx.inline_open(jaxpr, (), *args)
