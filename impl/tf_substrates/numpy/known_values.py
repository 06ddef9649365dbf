"""Tensors that are known while JAX traces.

Programs compute from known numbers what must be known: how many steps a grid of times has, where a
function jumps. Under jax.jit, JAX makes every operation a part of the compiled program, that of two
constants too. So while it traces, what this package computes of known numbers alone is computed by
NumPy at once, and is a `Known`, whose operators do the same. Beside a traced value a `Known` is an
array like any other.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

JAX_MODE = False
if JAX_MODE:
    import jax

# More elements than this are left to the compiled program.
_MOST = 4096


class _State(threading.local):
    """What is not known although it could be.

    Attributes:
      floats_traced: whether tensors of floats are left to the compiled program.
    """

    floats_traced = False


_STATE = _State()


@contextlib.contextmanager
def floats_traced() -> Iterator[None]:
    """A block in which tensors of floats and complex numbers are not known while JAX traces."""
    outer, _STATE.floats_traced = _STATE.floats_traced, True
    try:
        yield
    finally:
        _STATE.floats_traced = outer


def _is_left(array: np.ndarray | np.generic) -> bool:
    return _STATE.floats_traced and array.dtype.kind not in "iub"


class Known(np.ndarray):
    """A known tensor."""

    # The operators of JAX's arrays come first.
    __array_priority__ = -1.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's own functions of it give arrays, as of TensorFlow's tensors.

        A NumPy scalar on the left asks its ufunc, not the reflected operator.
        """
        name = _OF_UFUNC.get(ufunc)
        if name and method == "__call__" and not kwargs and isinstance(inputs[0], np.generic):
            return getattr(inputs[1], name)(inputs[0])
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, jax.Array) for part in parts):
            return jax.numpy.asarray(self)[index]
        return known(np.ndarray.__getitem__(self, index))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


# The operators that a NumPy scalar has by a ufunc, as the other operand's.
_OF_UFUNC: dict[Any, str] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
}


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Known) else value


def _operator(name: str) -> Callable:
    """The operator of the NumPy side's tensors, which refuses two dtypes as TensorFlow does."""

    def call(self: Known, *others: Any) -> Any:
        if _is_left(self) or not all(map(_is_of_numbers, others)):
            # Not NotImplemented: libraries call the method itself, for what stands for a tensor.
            return getattr(jax.numpy.asarray(self), name)(*others)
        importlib.import_module(".numpy.tf", "tf_substrates")
        result = getattr(as_twin(self), name)(*map(as_twin, others))
        return known(np.asarray(result))

    return call


def _is_of_numbers(value: Any) -> bool:
    """Whether a value holds known numbers alone."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_of_numbers, value))
    return isinstance(value, (bool, int, float, complex, np.ndarray, np.generic))


def as_twin(value: Any) -> Any:
    """A known tensor as one of NumPy's side, with its strictness about dtypes."""
    if isinstance(value, Known):
        return importlib.import_module(".numpy.tensors", "tf_substrates").wrap(
            value.view(np.ndarray)
        )
    return type(value)(map(as_twin, value)) if type(value) in (list, tuple) else value


def _decided_by(decisive: bool, name: str) -> Callable:
    """`&` or `|`, which a known scalar may decide alone: whether a loop goes on, say."""
    both = _operator(name)

    def call(self: Known, other: Any) -> Any:
        decides = self.dtype == np.bool_ and self.ndim == 0 and bool(self) is decisive
        if decides and isinstance(other, jax.Array) and other.ndim == 0:
            return self
        return both(self, other)

    return call


for _name, _decisive in (("and", False), ("or", True)):
    for _side in (f"__{_name}__", f"__r{_name}__"):
        setattr(Known, _side, _decided_by(_decisive, _side))
for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Known, _name, _operator(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _side in (f"__{_name}__", f"__r{_name}__"):
        setattr(Known, _side, _operator(_side))
    # Nothing changes in place: another name may stand for the same tensor.
    setattr(Known, f"__i{_name}__", getattr(Known, f"__{_name}__"))
for _name in ("__neg__", "__pos__", "__abs__"):
    setattr(Known, _name, _operator(_name))


def known(value: Any) -> Any:
    """A known tensor of an array of NumPy's that holds numbers; everything else is given back.

    A tensor of floats is an array of JAX's where these are traced.
    """
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcV":
        if _is_left(value):
            return jax.numpy.asarray(value)
        dtype = jax.dtypes.canonicalize_dtype(value.dtype)
        return np.asarray(value).astype(dtype, copy=False).view(Known)
    return value


def unchanging(value: Any) -> Any:
    """An array of integers or booleans that no `x -= 1` changes, for whoever else has it."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        return value.view(Known)
    return value


def is_known(value: Any) -> bool:
    """Whether an argument is known while JAX traces, and small."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return True
    if isinstance(value, np.ndarray):
        return value.size <= _MOST and not _is_left(value)
    if isinstance(value, (list, tuple, range)):
        return len(value) <= _MOST and all(map(is_known, value))
    if isinstance(value, jax.Array):
        return False
    # A dtype or a shape.
    return (
        isinstance(value, (np.dtype, type))
        or hasattr(value, "as_numpy_dtype")
        or (hasattr(value, "as_list"))
    )


def is_small(value: Any) -> bool:
    """Whether a shape holds few elements."""
    return math.prod(int(size) for size in np.ravel(np.asarray(value))) <= _MOST
