"""tf.vectorized_map: how it converts an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

# Gets the operands with a row for each iteration, the other operands, and which of the others have
# such rows; returns results with rows.
Mapped: TypeAlias = (
    "Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor], Sequence[bool]], Sequence[tf.Tensor]]"
)

# Gets operands with a row for each iteration; returns results with rows.
Rows: TypeAlias = "Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]]"


def map_op_by(op: tf.Operation, n_mapped: int, mapped: Mapped) -> None:
    """Sets how tf.vectorized_map and tape.jacobian convert an op that passes its operands on.

    They read an undocumented Python attribute of the op. The op has as many results as operands.

    Args:
      op: an op of the graph under construction.
      n_mapped: how many of the first operands get a row for each iteration, if they have none.
      mapped: computes the first `n_mapped` results from these operands and the others.
    """

    def convert(pfor_input: PyTree) -> list[PyTree]:
        pfor_input.stack_inputs(range(n_mapped))
        first, others = pfor_input.inputs[:n_mapped], pfor_input.inputs[n_mapped:]
        results = mapped(
            [x.t for x in first], [x.t for x in others], [x.is_stacked for x in others]
        )
        return [*(x._replace(t=r) for x, r in zip(first, results, strict=True)), *others]

    op.pfor_converter = convert


def map_rows_by(op: tf.Operation, n_mapped: int, mapped: Rows) -> None:
    """Sets how they convert an op whose first operands, and all results, get a row each time.

    TensorFlow loops over the rows of an op that it has no converter for, and XLA does not compile
    that loop for no rows.

    Args:
      op: an op of the graph under construction.
      n_mapped: the number of operands that get rows; the others are constants.
      mapped: computes the results from these operands.
    """

    def convert(pfor_input: PyTree) -> list[PyTree]:
        pfor_input.stack_inputs(range(n_mapped))
        operands = pfor_input.inputs[:n_mapped]
        return [operands[0]._replace(t=r) for r in mapped([x.t for x in operands])]

    op.pfor_converter = convert
