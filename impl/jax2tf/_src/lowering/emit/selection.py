"""SelectV2, in a form that engines implement as a select."""

from __future__ import annotations

import math

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context, op_type_of
from jax2tf._src.lowering.supported import arguments_of, depends_on_an_argument
from jax2tf._src.ops import raw
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor


def select(
    ctx: Context, condition: Tensor, x: Tensor, y: Tensor, *, varies: bool = False
) -> Tensor:
    """Selects `x` where `condition` is true, else `y`; `condition` broadcasts against both.

    `varies` says that no converter can know the condition, for example a loop's condition.

    tf2onnx may turn a select of floats into a sum of products (quirk "choice_by_product"). It emits
    a real select if one side is a constant that is not finite, or if the condition is an IsNan of a
    computed value; this function provides one of these. OpenVINO may select integers in float32
    (quirk "chooses_integers_as_floats"); instead, y + (x - y) * condition is exact, as integers
    wrap around.
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
    if x.dtype == dtypes.float16 and ctx.has(Quirk.CHOICE_BY_PRODUCT):
        # tf2onnx turns a float16 select into products whatever the sides and the condition are.
        wide = (ops.cast(side, dtypes.float32) for side in (x, y))
        return ops.cast(select(ctx, condition, *wide, varies=varies), dtypes.float16)
    if ctx.has(Quirk.CHOICE_BY_PRODUCT) and _may_be_multiplied(condition, x, y):
        condition = _as_is_nan(ctx, condition, x, y, varies=varies)
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


def _may_be_multiplied(condition: Tensor, *sides: Tensor) -> bool:
    """Whether the quirk "choice_by_product" may change the result."""
    if sides[0].dtype not in (dtypes.float32, dtypes.float64):
        return False
    if op_type_of(condition) == "IsNan" and not _outlasting(condition, *sides):
        return False
    constants = [ops.get_static_value(x) for x in sides if op_type_of(x) == "Const"]
    # Beside a constant infinity or NaN, tf2onnx emits a select.
    are_finite = all(np.isfinite(value).all() for value in constants)
    return are_finite and any(map(_depends_on_an_argument, sides))


def _as_is_nan(ctx: Context, condition: Tensor, *sides: Tensor, varies: bool) -> Tensor:
    """The same condition as an IsNan: of NaN where it is true, and of a number elsewhere."""
    dtype = sides[0].dtype.as_numpy_dtype
    number = ctx.constant(dtype(0))
    for side in () if varies else _outlasting(condition, *sides):
        # tf2onnx would fold the IsNan of a constant: the number must be one that it cannot know.
        is_nan = ops.cast(raw.IsNan(x=side), side.dtype)
        number = ops.maximum(number, is_nan) if op_type_of(number) != "Const" else is_nan
    nan = ctx.constant(dtype(math.nan))
    return raw.IsNan(x=raw.SelectV2(condition=condition, t=nan, e=number))


def _outlasting(condition: Tensor, *sides: Tensor) -> list[Tensor]:
    """The sides that may be unknown to a converter that knows the condition.

    A converter knows a condition that depends on no argument. An argument of a shared function, of
    a branch or of a loop may be a constant at the call. So a converter may also know values that
    depend only on such arguments.
    """
    known = arguments_of(condition.op) if op_type_of(condition) != "Const" else frozenset()
    outer = getattr(ops.get_default_graph(), "outer_graph", None)
    if known and not (outer is not None and outer.building_function):
        return []
    return [x for x in sides if op_type_of(x) != "Const" and not arguments_of(x.op) <= known]


def _is_rounded(*sides: Tensor) -> bool:
    """Whether float32 may be unable to represent one of the int32 sides."""
    if sides[0].dtype != dtypes.int32:
        return False
    constants = [ops.get_static_value(x) for x in sides if op_type_of(x) == "Const"]
    are_exact = all((np.abs(value.astype(np.int64)) <= 2**24).all() for value in constants)
    return len(constants) < len(sides) or not are_exact


def _depends_on_an_argument(x: Tensor) -> bool:
    return op_type_of(x) != "Const" and depends_on_an_argument(x.op)
