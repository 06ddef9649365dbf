"""What attributes of tensors are by TensorFlow's names, for rewritten packages.

A tensor's shape is a tuple here, its dtype NumPy's, and on JAX the tensor an array of JAX's. Where
a package reads `x.shape.rank`, `x.dtype.as_numpy_dtype` or `x.numpy()`, the rewriter puts
`as_tensorflow` around what the attribute is read of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.known_values import Known
from tf_substrates.numpy.namespaces import EXPORTS
from tf_substrates.numpy.operands import OfNumPy
from tf_substrates.numpy.recording import is_recording, record, recorded
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import Reference, is_tensor, traced

JAX_MODE = False
if JAX_MODE:
    import jax


def as_tensorflow(value: Any) -> Any:
    """A tuple as tf.TensorShape, a dtype of NumPy's as tf.DType, an array of JAX's as a view.

    Everything else, which has its own attributes, is given back.
    """
    if type(value) is tuple:
        return TensorShape(value)
    if isinstance(value, np.dtype):
        return dtypes.as_dtype(value)
    if JAX_MODE and (is_tensor(value) or isinstance(value, np.ndarray)):
        return _View(value)
    if value is EXPORTS["Tensor"]:
        return _TensorClass
    return value


def as_shape(value: Any) -> Any:
    """A tuple, to which a list is added, as tf.TensorShape; everything else is given back."""
    return TensorShape(value) if type(value) is tuple else value


def as_classes(value: Any) -> Any:
    """What isinstance asks for: tf.Tensor as the classes of tensors on JAX, np.ndarray as
    what is no tensor on NumPy. Other classes are given back."""
    if JAX_MODE:
        return (value, Known) if value is EXPORTS["Tensor"] else value
    return _Array if value is np.ndarray else value


def as_recorded(value: Any) -> Any:
    """jax.custom_jvp, custom_vjp and custom_gradient as decorators whose functions are one call to
    tapes, with the derivatives that they have. Everything else is given back."""
    return next((recorded for own, recorded in _RECORDED if own is value), value)


_RECORDED: list[tuple[Any, Any]] = []
if JAX_MODE:

    class _CustomJvp(jax.custom_jvp):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return _call(super().__call__, args, kwargs)

    class _CustomVjp(jax.custom_vjp):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return _call(super().__call__, args, kwargs)

    def _custom_gradient(fun: Callable) -> Callable:
        return recorded(jax.custom_gradient(fun))

    def _call(function: Callable, args: tuple, kwargs: dict) -> Any:
        return record(function, args, kwargs) if is_recording() else function(*args, **kwargs)

    _RECORDED += [
        (jax.custom_jvp, _CustomJvp),
        (jax.custom_vjp, _CustomVjp),
        (jax.custom_gradient, _custom_gradient),
    ]


class _IsNoTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray) and not is_tensor(instance)


class _Array(metaclass=_IsNoTensor):
    """Arrays that are no tensors. It makes none."""


def as_reshape(function: Any) -> Any:
    """np.reshape with the keyword `newshape`, which NumPy 2.4 took away; others are given back."""
    if function is not np.reshape:
        return function
    return lambda a, newshape, order="C": np.reshape(a, newshape, order)


def as_index(value: Any) -> Any:
    """A list that holds slices as the tuple that TensorFlow takes it for."""
    if type(value) is list and any(isinstance(part, slice) for part in value):
        return tuple(value)
    return value


def as_number(value: Any) -> Any:
    """Floating-point numbers of NumPy's as what takes the dtype of a tensor beside it.

    Everything else is given back.
    """
    if type(value) is np.ndarray and value.ndim > 0 and value.dtype.kind == "f":
        return value.view(OfNumPy)
    if isinstance(value, np.floating) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind == "f"
    ):
        return float(value)
    return value


class _TensorClass:
    """What is read of the class tf.Tensor."""

    OVERLOADABLE_OPERATORS = frozenset(
        f"__{name}__"
        for name in (
            *("abs", "eq", "ge", "getitem", "gt", "invert", "le", "lt", "ne", "neg"),
            *("add", "and", "div", "floordiv", "matmul", "mod", "mul", "or", "pow", "sub"),
            *("truediv", "xor", "radd", "rand", "rdiv", "rfloordiv", "rmatmul", "rmod", "rmul"),
            *("ror", "rpow", "rsub", "rtruediv", "rxor"),
        )
    )


class _View:
    """The methods of tf.Tensor that an array of JAX's lacks."""

    def __init__(self, array: Any):
        self._array = array

    def numpy(self) -> Any:
        if traced(self._array):
            raise NotImplementedError(
                "Tensor.numpy: the value is being traced by JAX, and known only when the compiled"
                " function runs. What to do: compute with the tensor, or call the function without"
                " jax.jit."
            )
        return np.array(self._array)[()]

    def get_shape(self) -> TensorShape:
        return TensorShape(self._array.shape)

    def set_shape(self, shape: Any) -> None:
        if not TensorShape(shape).is_compatible_with(self._array.shape):
            raise ValueError(
                f"Tensor's shape {self._array.shape} is not compatible with supplied shape {shape}"
            )

    def ref(self) -> Reference:
        return Reference(self._array)
