"""Constants: scalars, arrays without elements, and constants that a graph returns."""

from __future__ import annotations

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import SIZE, Lru
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval


def scalar(value: float, dtype: DType) -> Tensor:
    """A scalar constant of `dtype`; eager mode caches it, because creating a constant is slow."""
    if not ops.executing_eagerly():
        return ops.constant(value, dtype)
    # The key holds text, because 0.0 == -0.0.
    return _EAGER.value((str(value), dtype), lambda: ops.constant(value, dtype))


_EAGER: Lru[Tensor] = Lru(SIZE)


def without_elements(ctx: Context, aval: Aval) -> Tensor:
    """The empty array of this aval; for keys, the empty raw data."""
    known = ctx.static_shape(dtypes.physical_shape(aval))
    sizes = [size for size in known if size is not None]
    if len(sizes) == len(known):
        return ctx.constant(np.zeros(sizes, dtypes.to_tf(aval.dtype).as_numpy_dtype))
    # Not a Reshape: ONNX reads the size 0 as "the size that the operand has".
    return ctx.zeros(aval)


def as_result(result: Tensor) -> Tensor:
    """The result; a constant passes through an op, for the quirk "drops_constant_results"."""
    value = ops.get_static_value(result)
    if value is None:
        return result
    if result.dtype == dtypes.float16:
        # OpenVINO's converter also drops the result of a float16 Reshape; it keeps that of a Cast.
        return ops.cast(as_result(ops.constant(value.astype(np.float32))), dtypes.float16)
    return ops.raw.Reshape(tensor=result, shape=ops.constant(result.shape.as_list(), dtypes.int32))
