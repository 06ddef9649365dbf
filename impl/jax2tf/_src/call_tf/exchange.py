"""JAX arrays as TensorFlow tensors and back, by DLPack, which copies nothing on one device."""

from __future__ import annotations

import jax
import numpy as np

from jax2tf._src.api.errors import CallTfError
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Array

# JAX and TensorFlow exchange these dtypes by DLPack. Others (float8, int4) go through the host.
_BY_DLPACK = frozenset(
    np.dtype(d)
    for d in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128", jax.numpy.bfloat16),
    )
)


def to_tensor(value: Array) -> tf.Tensor:
    """A concrete operand as an eager tensor of the dtype that JAX gives it.

    A jax.Array on one device shares its memory with the tensor. A numpy array is copied: its owner
    may write to it later.
    """
    if isinstance(value, jax.Array) and value.dtype in _BY_DLPACK and len(value.devices()) == 1:
        return tf.experimental.dlpack.from_dlpack(value.__dlpack__())
    # JAX 0.10 hands on Python numbers as subclasses that know their dtype.
    is_number = isinstance(value, int | float | complex) and hasattr(value, "dtype")
    dtype = dtypes.to_tf(value.dtype if is_number else dtypes.jax_dtype(value))
    return tf.constant(np.asarray(value).astype(dtype.as_numpy_dtype, copy=False))


def to_array(tensor: tf.Tensor) -> jax.Array:
    """An eager tensor as a jax.Array that shares its memory."""
    if tensor.dtype in _TENSORS_BY_DLPACK and tensor.shape.num_elements():
        return jax.dlpack.from_dlpack(tensor)
    return jax.numpy.asarray(tensor.numpy())


# Dtypes that JAX keeps under both values of jax_enable_x64.
_SAME_IN_JAX = frozenset(
    {dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16}
    | {dtypes.uint32, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.complex64}
)

_TENSORS_BY_DLPACK = frozenset(dtypes.to_tf(d) for d in _BY_DLPACK)


def canonical(result: tf.Tensor, where: str) -> tf.Tensor:
    """A result of a TensorFlow function as a tensor of a dtype that JAX has.

    Without jax_enable_x64, 64-bit results become 32-bit, as all 64-bit values in JAX do.

    Raises:
      CallTfError: it is not a tensor (ragged, sparse), or JAX has no such dtype (string, variant).
    """
    if isinstance(result, tf.Tensor) and result.dtype in _SAME_IN_JAX:
        return result
    if isinstance(result, tf.RaggedTensor | tf.SparseTensor | tf.IndexedSlices):
        kind = type(result).__name__
        raise CallTfError(
            f"{where} is a tf.{kind}, and JAX has dense arrays alone; return its parts, or a dense "
            "tensor (to_tensor, tf.sparse.to_dense, tf.convert_to_tensor)"
        )
    try:
        tensor = tf.convert_to_tensor(result)
    except (TypeError, ValueError) as error:
        raise CallTfError(
            f"{where} should be a tensor, or something that TensorFlow makes a tensor of, got "
            f"{type(result).__module__}.{type(result).__qualname__}; return its tensors"
        ) from error
    try:
        dtype = dtypes.to_tf(dtypes.jax_dtype(tensor))
    except TypeError as error:
        raise CallTfError(
            f"{where} is not something that JAX has arrays for: {error}. Convert it to numbers "
            "inside the TensorFlow function"
        ) from error
    return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
