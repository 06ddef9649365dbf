"""Recognises numbers that were cast from bools: they are 0 or 1, and so never negative.

A comparison with 0 is then unnecessary. LiteRT's converter would move the Cast of the bool behind
the comparison, and LiteRT has no comparison of bools.
"""

from __future__ import annotations

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import op_type_of
from jax2tf._src.lowering.emit.known_values import is_all
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor

# The results of these ops hold only elements of the first operand.
_MOVES = frozenset(
    {
        *("BroadcastTo", "ExpandDims", "GatherNd", "GatherV2", "Identity", "Reshape", "ReverseV2"),
        *("Slice", "Squeeze", "StridedSlice", "Tile", "Transpose"),
    }
)


def is_truth_value(x: Tensor) -> bool:
    """Whether the elements of a tensor were cast from bools."""
    while op_type_of(x) in _MOVES or (
        op_type_of(x) == "Cast" and x.op.inputs[0].dtype != dtypes.bool_
    ):
        x = x.op.inputs[0]
    return op_type_of(x) == "Cast"


def less(x: Tensor, y: Tensor) -> Tensor | None:
    """x < y, if it is known because x was a bool and y is 0; else None."""
    return _all(x, False) if _is_zero(y) and is_truth_value(x) else None


def at_most(x: Tensor, y: Tensor) -> Tensor | None:
    """x <= y, if it is known because y was a bool and x is 0; else None."""
    return _all(y, True) if _is_zero(x) and is_truth_value(y) else None


def is_negative(x: Tensor) -> Tensor:
    """x < 0, without a comparison if `x` was a bool."""
    was_bool = not ops.executing_eagerly() and is_truth_value(x)
    return _all(x, False) if was_bool else x < 0


def _is_zero(x: Tensor) -> bool:
    # A single number, because a larger tensor could determine the shape of the result.
    return x.shape.num_elements() == 1 and is_all(x, 0)


def _all(x: Tensor, value: bool) -> Tensor:
    if x.shape.is_fully_defined():
        return ops.constant(np.full(x.shape, value))
    return ops.fill(ops.shape(x), value)
