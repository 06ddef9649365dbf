"""SelectV2, in a form that engines implement as a select."""

from __future__ import annotations

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context, op_type_of
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor


def select(ctx: Context, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Selects `x` where `condition` is true, else `y`; `condition` broadcasts against both.

    OpenVINO may select integers in float32 (quirk "chooses_integers_as_floats"); instead,
    y + (x - y) * condition is exact, as integers wrap around.
    """
    # Form: logic_for_choice.
    if x is condition:
        return raw.LogicalOr(x=condition, y=y)
    if y is condition:
        return raw.LogicalAnd(x=condition, y=x)
    if ops.executing_eagerly():
        return raw.SelectV2(condition=condition, t=x, e=y)
    # One of the three operands has to have the shape of the result.
    if _has_shape_of(y, condition, x):
        y = unrepeated(y)
    if _has_shape_of(x, condition, y):
        x = unrepeated(x)
    if ctx.has(Quirk.CHOOSES_INTEGERS_AS_FLOATS) and _is_rounded(x, y):
        return y + (x - y) * ops.cast(condition, dtypes.int32)
    if ctx.has(Quirk.NO_SCALAR_CHOICE) and condition.shape.rank == 0:
        condition = ops.reshape(condition, [1] * max(x.shape.rank, y.shape.rank))
    return raw.SelectV2(condition=condition, t=x, e=y)


def unrepeated(x: Tensor) -> Tensor:
    """The scalar operand of a BroadcastTo, because SelectV2 broadcasts scalars.

    A converter would not see a constant behind the BroadcastTo.
    """
    is_repeated = op_type_of(x) == "BroadcastTo" and x.op.inputs[0].shape.rank == 0
    return x.op.inputs[0] if is_repeated else x


def _has_shape_of(repeated: Tensor, *others: Tensor) -> bool:
    """Whether another operand has the same shape; a condition may be smaller than both sides."""
    return any(other.shape == repeated.shape for other in others)


def _is_rounded(*sides: Tensor) -> bool:
    """Whether float32 may be unable to represent one of the int32 sides."""
    if sides[0].dtype != dtypes.int32:
        return False
    constants = [ops.get_static_value(x) for x in sides if op_type_of(x) == "Const"]
    are_exact = all((np.abs(value.astype(np.int64)) <= 2**24).all() for value in constants)
    return len(constants) < len(sides) or not are_exact
