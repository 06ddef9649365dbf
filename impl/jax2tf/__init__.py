"""JAX functions as TensorFlow graphs."""

from __future__ import annotations

import jax2tf.lowering as _lowering  # registers every rule
from jax2tf.convert import convert
from jax2tf.dims import PolyShape
from jax2tf.dtypes import dtype_of_val
from jax2tf.errors import (
    ConversionError,
    NotDifferentiableError,
    UnsupportedDtypeError,
    UnsupportedPrimitiveError,
)

__all__ = [
    "ConversionError",
    "NotDifferentiableError",
    "PolyShape",
    "UnsupportedDtypeError",
    "UnsupportedPrimitiveError",
    "convert",
    "dtype_of_val",
]

del _lowering
