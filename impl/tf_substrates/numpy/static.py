"""TensorFlow's functions of values that are known, with plain NumPy arrays for results.

For libraries that compute shapes with a NumPy twin of TensorFlow's functions: what comes out is a
shape on NumPy and on JAX alike, also under jax.jit.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from tf_substrates.numpy import tf as _tf
from tf_substrates.numpy.namespaces import _plain
from tf_substrates.numpy.shapes import as_shape


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


_math = _Static(_tf.math)


def __getattr__(name: str) -> Any:
    """Such a twin has the names of tf.math beside those of tf."""
    return getattr(_math if name not in vars(_tf) and name in vars(_tf.math) else _static, name)
