"""The TensorFlow dtype of each JAX dtype, and the dtype that JAX gives to a value."""

from __future__ import annotations

import math
from typing import TypeGuard

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src.api.errors import UnsupportedDtypeError
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Aval, Dim

_PYTHON_SCALARS = (bool, int, float, complex)

# TensorFlow differentiates only these. For some other dtypes XLA has no PreventGradient.
DIFFERENTIABLE = frozenset(
    {tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128}
)

# NumPy's dtypes with the 80 bits that some processors have.
_EXTENDED = (np.longdouble, np.clongdouble) if np.finfo(np.longdouble).bits > 64 else ()


@cached
def to_tf(dtype: np.dtype) -> tf.DType:
    """The TensorFlow dtype of a JAX dtype.

    float0 (the tangent dtype of integers) becomes bool, and typed PRNG keys their uint32 data.

    Raises:
      UnsupportedDtypeError: TensorFlow has no such dtype (float8_e3m4, float8_e8m0fnu, ...), or no
        kernels for it.
    """
    if dtype == jax.dtypes.float0:
        return tf.bool
    if is_key(dtype):
        return tf.as_dtype(key_data(dtype).dtype)
    name = np.dtype(dtype).name
    try:
        if name not in _WITHOUT_KERNELS:
            return tf.as_dtype(np.dtype(dtype))
        lack = f"neither kernels nor an XLA type for dtype {name}"
    except TypeError:
        lack = f"no dtype {name}"
    raise UnsupportedDtypeError(
        f"jax2tf.convert: TensorFlow has {lack}; "
        "cast to one that it has (float8_e4m3fn, bfloat16, int4, ...) inside the function"
    )


# Tensors can have these dtypes, but no op takes them.
_WITHOUT_KERNELS = frozenset({"float4_e2m1fn", "int2", "uint2"})


@cached
def is_key(dtype: np.dtype) -> bool:
    """Whether `dtype` is that of a typed PRNG key, as made by jax.random.key."""
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


@cached
def key_data(dtype: np.dtype) -> jax.ShapeDtypeStruct:
    """Shape and dtype of the raw data of one typed PRNG key of `dtype`."""
    return jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct((), dtype))


def physical_shape(aval: Aval) -> tuple[Dim, ...]:
    """The shape of the tensor for `aval`: the data of a PRNG key adds dimensions."""
    if is_key(aval.dtype):
        return (*aval.shape, *key_data(aval.dtype).shape)
    return tuple(aval.shape)


def tensor_spec(aval: Aval) -> tf.TensorSpec:
    """The spec of the tensor that stands for `aval`; sizes of dimension variables are unknown."""
    shape = [d if isinstance(d, int) else None for d in physical_shape(aval)]
    return tf.TensorSpec(shape, to_tf(aval.dtype))


def dtype_of_val(val: object) -> tf.DType:
    """The TensorFlow dtype that JAX's typing rules give to a value.

    Python scalars and 64-bit values follow jax_enable_x64.

    >>> dtype_of_val(1.0)
    tf.float32

    Args:
      val: a Python scalar, numpy array or scalar, jax.Array, tf.Tensor or tf.Variable.

    Raises:
      TypeError: `val` is none of these, or JAX has no such dtype (tf.string, tf.resource, ...).
    """
    try:
        return to_tf(jax_dtype(val))
    except (TypeError, OverflowError) as error:
        raise type(error)(f"jax2tf.dtype_of_val: val: {error}") from None


def jax_dtype(val: object) -> np.dtype:
    """The dtype of `val` inside a JAX computation, after canonicalisation."""
    if is_tensor(val):
        return _dtype_of_tensors(
            val.dtype.as_datatype_enum, bool(jax.config.read("jax_enable_x64"))
        )
    if isinstance(val, _PYTHON_SCALARS) and is_python_scalar(val):
        return _python_scalar_dtype(val)
    if isinstance(val, jax.Array) and is_key(val.dtype):
        return val.dtype
    if isinstance(val, np.ma.MaskedArray):
        raise TypeError(
            "JAX has no arrays with a mask, got a numpy.ma.MaskedArray; give x.filled(...), and "
            "x.mask beside it where the function needs it"
        )
    if isinstance(val, np.ndarray | np.generic | jax.Array):
        if val.dtype == jax.dtypes.float0:
            return val.dtype
        of_other_kind = val.dtype.kind in "OSUMm" or val.dtype.names is not None
        # JAX has arrays only in the byte order of the machine.
        if of_other_kind or val.dtype in _EXTENDED or not val.dtype.isnative:
            raise TypeError(f"JAX has no dtype {val.dtype}")
        return jax.dtypes.canonicalize_dtype(val.dtype)
    raise TypeError(
        f"expected a number, numpy array, jax.Array, tf.Tensor or tf.Variable, "
        f"got {type(val).__module__}.{type(val).__qualname__}"
    )


_TENSORS = (tf.Tensor, tf.Variable)


def is_tensor(val: object) -> TypeGuard[tf.Tensor | tf.Variable]:
    """Whether `val` is a tf.Tensor or a tf.Variable."""
    return isinstance(val, _TENSORS)


@cached
def _dtype_of_tensors(dtype: int, x64: bool) -> np.dtype:
    """The JAX dtype of a TensorFlow dtype; `x64` is the value of jax_enable_x64."""
    return jax.dtypes.canonicalize_dtype(_numpy_dtype(tf.as_dtype(dtype)))


def is_python_scalar(val: object) -> bool:
    """Whether JAX takes `val` as weakly typed: a Python number, not a subclass such as NumPy's."""
    return type(val) in _PYTHON_SCALARS


def _python_scalar_dtype(val: bool | int | float | complex) -> np.dtype:
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(type(val)))
    if type(val) is int and not np.iinfo(dtype).min <= val <= np.iinfo(dtype).max:
        raise OverflowError(
            f"Python int {val} does not fit {dtype.name}"
            + ("; enable jax_enable_x64 or pass a numpy array" if math.log2(abs(val)) < 63 else "")
        )
    return dtype


def is_of_jax(dtype: tf.DType) -> bool:
    """Whether JAX has arrays of this TensorFlow dtype."""
    return dtype not in (tf.string, tf.resource, tf.variant) and not dtype.is_quantized


def _numpy_dtype(dtype: tf.DType) -> np.dtype:
    if not is_of_jax(dtype):
        raise TypeError(f"JAX has no dtype {dtype.name}")
    return np.dtype(dtype.as_numpy_dtype)
