"""What has to be known to hand tensors to functions that XLA compiles, and to take theirs.

A dtype that a tensor can have and that no TensorFlow kernel knows still has its meaning in XLA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from jax2tf._src import ops
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_INT4, INT4, carrier_of

# Dtypes for which TensorFlow has kernels in compiled code alone. In graphs without XLA ops they are
# compiled all the same: by standard ops, which nothing runs where XLA is not.
COMPILED_DTYPES = frozenset({"float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"})

# Dtypes that Switch, Merge and TensorListStack have no kernels for: branches and loops are made of
# these unless they are compiled.
COMPILED_CONTROL_FLOW_DTYPES = COMPILED_DTYPES | {
    "float8_e4m3fn",
    "float8_e5m2",
    *(dtype.name for dtype in INT4),
}


def unpacked(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The tensors as they can cross the border of compiled code, in either direction.

    XLA packs 4-bit integers two in a byte and a tensor does not. TensorFlow hands its bytes to
    compiled code as they are, so what comes out is wrong; eight bits pass.
    """
    return in_dtypes(tensors, [carrier_of(HOLDS_INT4, x.dtype) for x in tensors])


def in_dtypes(tensors: Sequence[tf.Tensor], dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """The tensors behind the border, in the dtypes that they had before it."""
    return [
        x if x.dtype == dtype else ops.cast(x, dtype)
        for x, dtype in zip(tensors, dtypes, strict=True)
    ]


def constant_of_any_dtype(value: np.ndarray) -> tf.Tensor:
    """A constant in a graph; a GraphDef has no way to write one of `COMPILED_DTYPES`."""
    if value.dtype.name not in COMPILED_DTYPES:
        return ops.constant(value)

    narrow = tf.function(lambda x: ops.cast(x, value.dtype), autograph=False, jit_compile=True)
    # bfloat16 has every value of a float8.
    return narrow(ops.constant(value.astype(tf.bfloat16.as_numpy_dtype)))
