"""optimization_barrier, and jax.checkpoint where JAX differentiated it.

Values computed from the results of a barrier are computed after all its operands, and are not
merged with values computed from the operands. So a backward pass recomputes: it waits for its
cotangents, although equal values existed before.

- XLA has a barrier op, but its CPU compiler removes the op before it merges common subexpressions.
  A select stays whose condition is always true, which the compiler does not find out.
- TensorFlow merges two nodes only if they wait for the same nodes. In a graph that is not compiled,
  a barrier is an Identity of each operand that waits for all operands, which costs nothing.

Eager mode computes every op in order and needs no barrier. Engines, which run graphs without XLA
ops, do not train and get none.
"""

from __future__ import annotations

from collections.abc import Sequence

from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import surroundings
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor


def barrier(ctx: Context, operands: Sequence[Tensor]) -> list[Tensor]:
    """The operands, behind a barrier if they are part of a graph."""
    if ops.executing_eagerly() or not ctx.wants("XlaOptimizationBarrier") or not operands:
        return list(operands)
    if surroundings.in_compiled_function():
        given = [x.dtype for x in operands]
        # The barrier op and the select do not take compiled float8; bfloat16 holds its values.
        wide = [dtypes.bfloat16 if d.name in compiled_calls.COMPILED_DTYPES else d for d in given]
        unpacked = compiled_calls.unpacked(compiled_calls.in_dtypes(operands, wide))
        held = ops.xla.xla_optimization_barrier(input=unpacked)
        return compiled_calls.in_dtypes(_selected(held), given)
    # Values from outside of a graph or a loop body exist before it starts: tensors of another
    # graph, and eager tensors, which the graph of a jacobian reads as residuals of an eager call.
    here = ops.get_default_graph()
    inside = [x for x in operands if ops.is_symbolic_tensor(x) and x.graph is here]
    with ops.control_dependencies(inside):
        return [ops.identity(x) for x in operands]


def _selected(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Selects each tensor by a condition on all tensors that is always true."""
    holds = ops.reduce_all(ops.concat([_some_bits(x) for x in tensors], 0) | 1 != 0)
    return [ops.where(holds, x, ops.zeros_like(x)) for x in tensors]


def _some_bits(x: Tensor) -> Tensor:
    """A vector with the first element as an integer; empty if there is no element."""
    first = ops.reshape(x, [-1])[:1]
    if x.dtype.is_complex:
        first = ops.real(first)
    if first.dtype.is_floating:
        return ops.bitcast(ops.cast(first, dtypes.float32), dtypes.int32)
    return ops.cast(first, dtypes.int32)


@register("optimization_barrier", takes_keys=True)
def _optimization_barrier(ctx: Context, *operands: Tensor) -> list[Tensor]:
    return barrier(ctx, operands)


@register("remat2", takes_keys=True)
def _remat(
    ctx: Context,
    *args: Tensor,
    jaxpr: jex_core.Jaxpr,
    prevent_cse: bool | Sequence[bool],
    differentiated: bool,
    **_: object,
) -> list[Tensor]:
    each = [prevent_cse] * len(args) if isinstance(prevent_cse, bool) else prevent_cse
    if differentiated:
        held = iter(barrier(ctx, [x for x, prevent in zip(args, each, strict=True) if prevent]))
        args = tuple(next(held) if prevent else x for x, prevent in zip(args, each, strict=True))
    return ctx.inline_open(jaxpr, (), *args)
