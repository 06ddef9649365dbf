"""Writes the carried values of a loop in a form that LiteRT and OpenVINO compute correctly.

- LiteRT and OpenVINO write the results of a step one after the other into the memory of its
  arguments. In (a, b) -> (a + b, a), the first write overwrites the `a` that the second result
  needs. An extra op for such a result keeps its value.
- OpenVINO drops a carried value that no op of the step reads; if the loop runs no step, the result
  is uninitialised memory. The step selects between the new value and the old one by the loop's
  condition, which is true there.

Both checks read the graph of the step and consider what a converter may fold, whatever the
primitives are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.compute_dtypes import CARRIED_ROUND_A_LOOP, carrier_of
from jax2tf._src.lowering.emit.foldable_ops import Folds
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Graph, Tensor

Tensors = list[Tensor]


def kept(
    ctx: Context, step: Callable[..., Tensors], goes_on: Callable[..., Tensor], n_carry: int
) -> Callable[..., Tensors]:
    """Wraps `step` for targets that would lose some of its carried values.

    Args:
      step: returns the results of a step, of which the first `n_carry` are carried. Its first
        `n_carry` operands are the carried values.
      goes_on: takes the operands of the step, and returns whether the loop takes the step.
    """
    if not ctx.has(Quirk.CARRIES_IN_TURN) and not ctx.has(Quirk.DROPS_UNREAD_CARRIES):
        return step

    def keeping(*operands: Tensor) -> Tensors:
        results = list(step(*operands))
        if ops.executing_eagerly():
            return results
        graph = ops.get_default_graph()
        moved, unread = [], []
        if ctx.has(Quirk.CARRIES_IN_TURN):
            moved = moved_results(graph, operands, results[:n_carry])
        if ctx.has(Quirk.DROPS_UNREAD_CARRIES):
            unread = unread_carries(graph, operands[:n_carry], results)
        is_on = goes_on(*operands) if unread else None
        for i in moved:
            results[i] = by_an_op(results[i])
        for i in unread:
            results[i] = _chosen(ctx, cast(Tensor, is_on), results[i], operands[i])
        return results

    return keeping


def moved_results(graph: Graph, operands: Sequence[Tensor], carried: Sequence[Tensor]) -> list[int]:
    """The indices of the carried results that may equal another carried operand."""
    made, n_carry = surroundings.operations_of(graph), len(carried)
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


def _may_share_memory(x: Tensor, y: Tensor) -> bool:
    sizes = {x.shape.num_elements(), y.shape.num_elements()}
    return x.dtype == y.dtype and (None in sizes or len(sizes) == 1)


def unread_carries(graph: Graph, carries: Sequence[Tensor], results: Sequence[Tensor]) -> list[int]:
    """The indices of the carried values that the step may not read."""
    folds = Folds(surroundings.operations_of(graph), carries)
    read = set().union(*map(folds.reads, results))
    return [i for i in range(len(carries)) if i not in read]


def _chosen(ctx: Context, condition: Tensor, new: Tensor, old: Tensor) -> Tensor:
    if new.dtype == dtypes.bool_:
        # Form: logic_for_choice.
        return ops.logical_or(
            ops.logical_and(condition, new),
            ops.logical_and(ops.raw.LogicalNot(x=condition), old),
        )
    carrier = carrier_of(CARRIED_ROUND_A_LOOP, new.dtype)
    chosen = select(ctx, condition, ops.cast(new, carrier), ops.cast(old, carrier))
    return ops.cast(chosen, new.dtype)


def by_an_op(x: Tensor) -> Tensor:
    """`x` after an op that changes no value and that no converter removes."""
    if x.dtype == dtypes.bool_:
        return ops.raw.LogicalOr(x=x, y=x)
    carrier = carrier_of(CARRIED_ROUND_A_LOOP, x.dtype)
    if carrier.is_floating or carrier.is_integer:
        wide = ops.cast(x, carrier)
        return ops.cast(ops.raw.Minimum(x=wide, y=wide), x.dtype)
    return x
