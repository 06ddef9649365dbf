"""What a step of a loop does with the loop's state, in a form that engines get right.

- Some engines write the results of a step into the places of its arguments one after the other. In
  (a, b) -> (a + b, a) the second result is the place of the first argument, which is overwritten by
  then. An op of its own for such a result keeps the number.
- One engine drops a carried value that no op of the step reads: what comes out of a loop without
  steps is then memory that nobody wrote. The step chooses between the new value and the old one, by
  the condition of the loop, which holds there.

Both go by the graph of the step and by what a converter may fold in it, not by the primitives that
the step is written with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.compute_dtypes import CARRIED_ROUND_A_LOOP, carrier_of
from jax2tf._src.lowering.emit.foldable_ops import Folds
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.targets.quirks import Quirk

Tensors = list[tf.Tensor]


def kept(
    ctx: Context, step: Callable[..., Tensors], goes_on: Callable[..., tf.Tensor], n_carry: int
) -> Callable[..., Tensors]:
    """`step` as targets take it that would lose a part of what it carries.

    Args:
      step: gives the results of a step, of which the first `n_carry` are carried, for operands of
        which the first `n_carry` are.
      goes_on: whether the loop takes a step, for the operands of the step.
    """
    if not ctx.has(Quirk.CARRIES_IN_TURN) and not ctx.has(Quirk.DROPS_UNREAD_CARRIES):
        return step

    def keeping(*operands: tf.Tensor) -> Tensors:
        results = list(step(*operands))
        if tf.executing_eagerly():
            return results
        graph = tf.compat.v1.get_default_graph()
        moved, unread = [], []
        if ctx.has(Quirk.CARRIES_IN_TURN):
            moved = moved_results(graph, operands, results[:n_carry])
        if ctx.has(Quirk.DROPS_UNREAD_CARRIES):
            unread = unread_carries(graph, operands[:n_carry], results)
        is_on = goes_on(*operands) if unread else None
        for i in moved:
            results[i] = by_an_op(results[i])
        for i in unread:
            results[i] = _chosen(ctx, is_on, results[i], operands[i])
        return results

    return keeping


def moved_results(
    graph: tf.Graph, operands: Sequence[tf.Tensor], carried: Sequence[tf.Tensor]
) -> list[int]:
    """The carried results that may be what another place carries, by number."""
    made, n_carry = graph.get_operations(), len(carried)
    folds = Folds(made, operands)
    unchanged = frozenset(i for i, x in enumerate(carried) if i in folds.may_be(x))
    if unchanged:
        folds = Folds(made, operands, unchanged)
    return [
        i
        for i, result in enumerate(carried)
        if any(
            j < n_carry and j != i and _may_share_memory(result, operands[j])
            for j in folds.may_be(result)
        )
    ]


def _may_share_memory(x: tf.Tensor, y: tf.Tensor) -> bool:
    sizes = {x.shape.num_elements(), y.shape.num_elements()}
    return x.dtype == y.dtype and (None in sizes or len(sizes) == 1)


def unread_carries(
    graph: tf.Graph, carries: Sequence[tf.Tensor], results: Sequence[tf.Tensor]
) -> list[int]:
    """The carried values that the step may not read, by number."""
    folds = Folds(graph.get_operations(), carries)
    read = set().union(*map(folds.reads, results))
    return [i for i in range(len(carries)) if i not in read]


def _chosen(ctx: Context, condition: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    if new.dtype == tf.bool:
        # Form: logic_for_choice.
        return ops.logical_or(
            ops.logical_and(condition, new),
            ops.logical_and(ops.raw.LogicalNot(x=condition), old),
        )
    carrier = carrier_of(CARRIED_ROUND_A_LOOP, new.dtype)
    chosen = select(ctx, condition, ops.cast(new, carrier), ops.cast(old, carrier))
    return ops.cast(chosen, new.dtype)


def by_an_op(x: tf.Tensor) -> tf.Tensor:
    """The same numbers, through an op that no converter removes."""
    if x.dtype == tf.bool:
        return ops.raw.LogicalOr(x=x, y=x)
    carrier = carrier_of(CARRIED_ROUND_A_LOOP, x.dtype)
    if carrier.is_floating or carrier.is_integer:
        wide = ops.cast(x, carrier)
        return ops.cast(ops.raw.Minimum(x=wide, y=wide), x.dtype)
    return x
