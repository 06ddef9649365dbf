"""TensorFlow's functions of values that are known, with plain NumPy arrays for results.

For libraries that compute shapes with a NumPy twin of TensorFlow's functions: what comes out is a
shape on NumPy and on JAX alike, also under jax.jit.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from tf_substrates.numpy import tf as _module
from tf_substrates.numpy.namespaces import EXPORTS, _plain
from tf_substrates.numpy.shapes import as_shape

_tf: Any = _module


class _Static:
    """A module of TensorFlow's whose functions give plain arrays."""

    def __init__(self, module: Any):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            made: Any = _Static(found)
        elif (
            isinstance(found, types.FunctionType) and name != "register_tensor_conversion_function"
        ):
            made = _giving_plain(found)
        else:
            made = found
        setattr(self, name, made)
        return made


def _giving_plain(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _plain(function(*args, **kwargs))

    return call


def plain_function(name: str) -> Any:
    """A function of TensorFlow's by its public name ("math.ceil"). Its results are plain arrays."""
    return _giving_plain(EXPORTS[name])


class TypeConversionError(TypeError):
    """A value that is no tensor of a dtype."""

    def __init__(self, value: Any, dtype: Any):
        super().__init__(f"Tensor conversion requested dtype {dtype} for {value!r}")


def _convert_tensorshape_to_tensor(value: Any, dtype: Any = None) -> np.ndarray:
    return np.array(as_shape(value).as_list(), np.dtype(dtype or np.int32))


ops = types.SimpleNamespace(
    TypeConversionError=TypeConversionError,
    _convert_tensorshape_to_tensor=_convert_tensorshape_to_tensor,
)
_static = _Static(_tf)


_math = _static.math


# What such a twin takes beside what TensorFlow does. Libraries compare the signatures of both.


@functools.wraps(_tf.concat)
def concat(values: Any, axis: Any, name: Any = None) -> np.ndarray:
    """An empty list has no dtype of its own: shapes without dimensions are joined to others."""
    given = [_plain(value) for value in values]
    typed = next((np.asarray(v).dtype for v in given if hasattr(v, "dtype") or np.size(v)), None)
    return _static.concat(
        [v if hasattr(v, "dtype") or np.size(v) else np.asarray(v, typed) for v in given], axis
    )


@functools.wraps(_tf.gather)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> np.ndarray:
    """Indices below zero count from the end."""
    at, size = np.asarray(_plain(indices)), np.shape(params)[batch_dims if axis is None else axis]
    return _static.gather(params, np.where(at < 0, at + size, at), None, axis, batch_dims)


@functools.wraps(_tf.reduce_sum)
def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None
) -> np.ndarray:
    """Booleans are counted."""
    values = np.asarray(_plain(input_tensor))
    counted = values.astype(np.int32) if values.dtype == np.bool_ else input_tensor
    return _static.reduce_sum(counted, axis, keepdims)


def _of_integers(name: str) -> Any:
    """A function that takes integers too, by NumPy."""
    ours, numpys = getattr(_math, name), getattr(np, name)

    @functools.wraps(getattr(_tf.math, name))
    def call(x: Any, name: Any = None) -> Any:
        values = np.asarray(_plain(x))
        return numpys(values) if values.dtype.kind in "iu" else ours(x)

    return call


for _name in ("log", "exp", "sqrt"):
    globals()[_name] = _of_integers(_name)
    setattr(_math, _name, globals()[_name])


@functools.wraps(_tf.where)
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> np.ndarray:
    """Numbers that are not 0 choose `x`."""
    return _static.where(np.asarray(_plain(condition)).astype(bool), x, y)


def __getattr__(name: str) -> Any:
    """Such a twin has the names of tf.math beside those of tf."""
    return getattr(_math if name not in vars(_tf) and name in vars(_tf.math) else _static, name)
