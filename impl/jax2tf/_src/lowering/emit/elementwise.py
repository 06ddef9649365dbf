"""Shared by the rules of elementwise primitives: dtypes to compute in, ranks of operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import Lowered


def of_operands(table: Mapping[str, Callable[..., Lowered]]) -> dict[str, Callable[..., Lowered]]:
    """Rules made from functions that take only the operands: `{"sin": tf.sin}`."""
    return {primitive: _without_context(function) for primitive, function in table.items()}


def _without_context(function: Callable[..., Lowered]) -> Callable[..., Lowered]:
    def rule(ctx: Context, *operands: tf.Tensor) -> Lowered:
        return function(*in_ranks_for_choices(ctx, *operands))

    rule.__module__ = getattr(function, "__module__", rule.__module__)
    rule.__qualname__ = getattr(function, "__qualname__", rule.__qualname__)
    return rule


def in_ranks_for_choices(ctx: Context, *operands: tf.Tensor) -> Sequence[tf.Tensor]:
    """The operands of an elementwise primitive, none of them a scalar beside arrays.

    Only for targets with the quirk "no_scalar_choice": a rule that asks something of a scalar
    divisor or distance would choose between arrays by one condition for all elements.
    """
    rank = max((x.shape.rank for x in operands), default=0)
    if not (rank and ctx.has_quirk("no_scalar_choice")):
        return operands
    return [x if x.shape.rank else ops.reshape(x, [1] * rank) for x in operands]
