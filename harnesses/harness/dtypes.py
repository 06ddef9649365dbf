"""Groups of dtypes that families iterate over, each a tuple of NumPy dtypes.

`ALL` holds every dtype that TensorFlow computes with in all modes. Beside it stand the narrow
dtypes, of which a primitive needs one harness each and not every case: `INT4`, which TensorFlow
casts but hands to compiled code in the wrong layout; `INT2` and `FLOAT4`, which its tensors hold
and none of its kernels casts; `WITHOUT_TENSORFLOW`, which JAX takes and no tensor can hold.
"""

import jax
import jax.numpy as jnp
import numpy as np


def _dtypes(*names: str) -> tuple[np.dtype, ...]:
    return tuple(np.dtype(getattr(jnp, name)) for name in names)


FLOATS = _dtypes("bfloat16", "float16", "float32", "float64")
FLOAT8 = _dtypes(
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"
)
FLOAT4 = _dtypes("float4_e2m1fn")
INTS = _dtypes("int8", "int16", "int32", "int64")
UINTS = _dtypes("uint8", "uint16", "uint32", "uint64")
INT4 = _dtypes("int4", "uint4")
INT2 = _dtypes("int2", "uint2")
BOOL = (np.dtype(bool),)
COMPLEX = _dtypes("complex64", "complex128")

INTEGERS = INTS + UINTS
# Of which a float of as many bits rounds some.
WIDE_INTEGERS = _dtypes("int32", "uint32", "int64", "uint64")
REALS = FLOATS + INTEGERS
NUMERIC = REALS + COMPLEX
ALL = NUMERIC + BOOL + FLOAT8
NARROW = INT4 + INT2 + FLOAT4

WITHOUT_TENSORFLOW = _dtypes("float8_e3m4", "float8_e4m3", "float8_e8m0fnu") + _dtypes(
    "float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"
)


def is_float(dtype: np.dtype) -> bool:
    """Whether `dtype` is real floating point, the ones of ml_dtypes included."""
    return jax.dtypes.issubdtype(dtype, np.floating)


def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is a signed or unsigned integer, int4 and its like included."""
    return jax.dtypes.issubdtype(dtype, np.integer)


def is_complex(dtype: np.dtype) -> bool:
    """Whether `dtype` is complex."""
    return dtype.kind == "c"
