"""Helpers that pass tensors to functions that XLA compiles, and back.

XLA supports dtypes for which TensorFlow has no kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_INT4, INT4, carrier_of
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor

# Among the compiler options of a jit equation: it is a run of small equations, which a pass moved
# into a jaxpr of its own so that XLA compiles it.
COMPILED_RUN = ("jax2tf_compiled_run", True)

# Dtypes for which TensorFlow has kernels only in compiled code. Graphs without XLA ops compile them
# too, with standard ops; nothing can run them without XLA.
COMPILED_DTYPES = frozenset({"float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"})

# Dtypes for which Switch, Merge and TensorListStack have no kernels: branches and loops over these
# dtypes have to be compiled.
COMPILED_CONTROL_FLOW_DTYPES = COMPILED_DTYPES | {
    "float8_e4m3fn",
    "float8_e5m2",
    *(dtype.name for dtype in INT4),
}


def call(
    ctx: Context, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor], name: str
) -> list[Tensor]:
    """Calls a jaxpr as one function that XLA compiles."""

    def body(ctx: Context, *inner: Tensor) -> list[Tensor]:
        return ctx.inline(jaxpr, *inner)

    key = ("compiled", Identity(jaxpr.jaxpr))
    return ctx.function(key, body, *args, name=name, jit_compile=True)


def unpacked(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in dtypes that can enter or leave compiled code.

    XLA packs two 4-bit integers in a byte, and TensorFlow stores one in each byte. TensorFlow
    passes the bytes on unchanged, which gives wrong values. 8-bit integers pass correctly.
    """
    return in_dtypes(tensors, [carrier_of(HOLDS_INT4, x.dtype) for x in tensors])


def in_dtypes(tensors: Sequence[Tensor], original: Sequence[DType]) -> list[Tensor]:
    """Casts the tensors back to the dtypes that they had before `unpacked`."""
    return [
        x if x.dtype == dtype else ops.cast(x, dtype)
        for x, dtype in zip(tensors, original, strict=True)
    ]


def constant_of_any_dtype(value: np.ndarray) -> Tensor:
    """A constant in a graph; a Cast makes `COMPILED_DTYPES`, which no GraphDef can store."""
    if value.dtype.name not in COMPILED_DTYPES:
        return ops.constant(value)

    narrow = ops.function(lambda x: ops.cast(x, value.dtype), autograph=False, jit_compile=True)
    # bfloat16 can represent every float8 value.
    return narrow(ops.constant(value.astype(dtypes.bfloat16.as_numpy_dtype)))
