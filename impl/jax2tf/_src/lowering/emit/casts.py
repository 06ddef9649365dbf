"""Conversions between dtypes, with the results of XLA's `convert`.

XLA truncates a float towards zero and saturates when it converts to an integer; NaN becomes 0.
TensorFlow's Cast does so only in compiled code: for values out of range, the result of its CPU
kernels depends on the processor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeVar

import jax
import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.emit.compute_dtypes import FLOAT8, HOLDS_INT4, INT4
from jax2tf._src.lowering.emit.constants import scalar
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor

_UINT4 = dtypes.uint4
T = TypeVar("T")


def in_carrier(carriers: Mapping[DType, DType], op: Callable[..., T], *operands: Tensor) -> T:
    """Applies `op` in the carrier of the operands' dtype, or in that dtype if it has no carrier.

    It serves ops that move elements and lack kernels. The results have the dtype of the operands.
    """
    dtype = operands[0].dtype
    carrier = carriers.get(dtype)
    if carrier is None:
        return op(*operands)
    result = op(*(ops.cast(x, carrier) for x in operands))
    return jax.tree.map(lambda x: ops.cast(x, dtype), result)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """Converts `x` to `dtype`, with the result that XLA gives."""
    return _conversion(x.dtype, dtype)(x)


@cached
def _conversion(old: DType, new: DType) -> Callable[[Tensor], Tensor]:
    """The function that converts from `old` to `new`; cached, because eager calls need it often."""
    if old.is_complex and not new.is_complex:
        convert_part = _conversion(old.real_dtype, new)
        return lambda x: convert_part(ops.real(x))
    between = _dtype_between(old, new)
    if between is not None:
        first, second = _conversion(old, between), _conversion(between, new)
        return lambda x: second(first(x))
    if new == dtypes.bool_ and old != dtypes.bool_:
        return lambda x: ops.not_equal(x, scalar(0, old))
    if old.is_floating and new in INT4:
        low, high = _INT4_RANGE[new]
        return lambda x: _cast(_saturated(x, dtypes.int8, low, high), new)
    if old.is_floating and new.is_integer:
        return functools.partial(_saturated, dtype=new, low=new.min, high=new.max)
    return functools.partial(_cast, dtype=new)


def _dtype_between(old: DType, new: DType) -> DType | None:
    """The intermediate dtype if TensorFlow has no Cast from `old` to `new`, else None."""
    if old in FLOAT8 and not new.is_floating:
        return dtypes.float32
    if new in FLOAT8 and not old.is_floating:
        return dtypes.float32
    if old in INT4 and not new.is_integer:
        return HOLDS_INT4[old]
    if new in INT4 and old == dtypes.bool_:
        return HOLDS_INT4[new]
    if new == _UINT4 and old == dtypes.uint8:
        # `HOLDS_INT4` avoids this Cast; a value here may have more than four bits.
        return dtypes.int32
    return None


# TensorFlow's DType.min and DType.max do not know the 4-bit dtypes.
_INT4_RANGE = {dtypes.int4: (-8, 7), _UINT4: (0, 15)}


def _saturated(x: Tensor, dtype: DType, low: int, high: int) -> Tensor:
    """`x` truncated towards zero and clipped to `low` and `high`; NaN becomes 0."""
    wide = dtypes.float64 if x.dtype == dtypes.float64 else dtypes.float32
    x = _cast(x, wide)
    # No float equals 2**63 - 1: clip to the float below it, and select the highest integer above.
    highest = wide.as_numpy_dtype(high)
    if int(highest) > high:
        highest = np.nextafter(highest, wide.as_numpy_dtype(0))
    # Not ClipByValue, because each engine would have to support one more op.
    clipped = ops.minimum(ops.maximum(x, scalar(low, wide)), scalar(highest, wide))
    # Some engine has no SelectV2 of these integers.
    chosen = dtypes.int32 if dtype in (dtypes.uint8, dtypes.uint16) else dtype
    result = _cast(clipped, chosen)
    if highest != high:
        result = ops.where(scalar(highest, wide) < x, scalar(high, chosen), result)
    is_number = ops.raw.Equal(x=x, y=x)
    return _cast(ops.raw.SelectV2(condition=is_number, t=result, e=scalar(0, chosen)), dtype)


def _cast(x: Tensor, dtype: DType) -> Tensor:
    """TensorFlow's Cast, for the conversions in which it agrees with XLA."""
    return x if x.dtype == dtype else ops.raw.Cast(x=x, DstT=dtype)
