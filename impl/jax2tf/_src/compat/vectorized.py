"""Of tf.vectorized_map: what it makes of an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from jax2tf._src.util.typing import PyTree

# From operands that have a row for each round, others, and which do: results with rows.
Mapped = Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor], Sequence[bool]], Sequence[tf.Tensor]]


def map_op_by(op: tf.Operation, n_mapped: int, mapped: Mapped) -> None:
    """Says what tf.vectorized_map and tape.jacobian make of an op that passes its operands on.

    They read an attribute of the op in Python, which no public text names. The op has as many
    results as operands.

    Args:
      op: an op of the graph under construction.
      n_mapped: how many of the first operands get a row for each round, if they have none.
      mapped: what the first `n_mapped` results are, given these operands and the others.
    """

    def convert(given: PyTree) -> list[PyTree]:
        given.stack_inputs(range(n_mapped))
        first, others = given.inputs[:n_mapped], given.inputs[n_mapped:]
        results = mapped(
            [x.t for x in first], [x.t for x in others], [x.is_stacked for x in others]
        )
        return [*(x._replace(t=r) for x, r in zip(first, results, strict=True)), *others]

    op.pfor_converter = convert
