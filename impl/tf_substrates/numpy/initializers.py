"""Initial values of variables: tf.*_initializer, those of TensorFlow 1, and its get_variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.namespaces import EXPORTS, export
from tf_substrates.numpy.tensors import is_tensor, static_shape
from tf_substrates.numpy.variables import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

_PARTITION = ("partition_shape", "partition_offset")


class _Initializer:
    """Gives a tensor of a shape and dtype. Its arguments are its configuration."""

    def get_config(self) -> dict:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict) -> Any:
        return cls(**{key: value for key, value in config.items() if key != "dtype"})


def _part(shape: Any, keywords: dict) -> tuple:
    """The shape, or that of the part of a variable that is asked for.

    Raises:
      TypeError: a keyword is not known.
    """
    for name in keywords:
        if name not in _PARTITION:
            raise TypeError(
                f"Keyword argument should be one of {list(_PARTITION)}. Received: {name}"
            )
    return static_shape(keywords.get("partition_shape") or shape)


def _numeric(dtype: Any) -> dtypes.DType:
    found = dtypes.as_dtype(dtype)
    if found.as_numpy_dtype is object or np.dtype(found.as_numpy_dtype).kind in "OSU":
        raise ValueError(f"Argument `dtype` expected to be numeric or boolean. Received {found}.")
    return found


def _floating(dtype: Any) -> dtypes.DType:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Argument `dtype` is expected to be floating point. Received: {found}.")
    return found


@export("zeros_initializer")
class zeros_initializer(_Initializer):
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Any:
        return EXPORTS["zeros"](_part(shape, kwargs), _numeric(dtype))


@export("ones_initializer")
class ones_initializer(_Initializer):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Any:
        return EXPORTS["ones"](_part(shape, kwargs), _numeric(dtype))


@export("constant_initializer")
class constant_initializer(_Initializer):
    """One value, or an array that is reshaped."""

    def __init__(self, value: Any = 0, support_partition: bool = False):
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return EXPORTS["constant"](self.value, dtype, _part(shape, kwargs))


@export("random_uniform_initializer")
class random_uniform_initializer(_Initializer):
    """Uniform numbers; with a seed they are the same in every call, as TensorFlow's."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Any = None):
        self.minval = minval
        self.maxval = maxval
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Any:
        found = dtypes.as_dtype(dtype)
        if not (found.is_floating or found.is_integer):
            raise ValueError(
                f"Argument `dtype` expected to be numeric or boolean. Received {found}."
            )
        return _drawn("uniform", _part(shape, kwargs), self.seed, self.minval, self.maxval, found)


@export("random_normal_initializer")
class random_normal_initializer(_Initializer):
    """Normal numbers; with a seed they are the same in every call, as TensorFlow's."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: Any = None):
        self.mean = mean
        self.stddev = stddev
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Any:
        wanted = _floating(dtype)
        return _drawn("normal", _part(shape, kwargs), self.seed, self.mean, self.stddev, wanted)


def _drawn(kind: str, shape: tuple, seed: Any, first: Any, second: Any, dtype: Any) -> Any:
    if seed is None:
        return EXPORTS[f"random.{kind}"](shape, first, second, dtype)
    return EXPORTS[f"random.stateless_{kind}"](shape, [seed, 0], first, second, dtype)


class _Glorot(_Initializer):
    """Numbers whose variance is 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    def __init__(self, seed: Any = None, dtype: Any = dtypes.float32):
        self.seed = seed
        self._dtype = dtypes.as_dtype(dtype)

    def get_config(self) -> dict:
        return {"seed": self.seed, "dtype": self._dtype.name}

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        dims = static_shape(shape)
        found = self._dtype if dtype is None else dtypes.as_dtype(dtype)
        return self._of_variance(dims, 1 / max(1.0, sum(_fans(dims)) / 2), found)

    def _of_variance(self, dims: tuple, variance: float, dtype: Any) -> Any:
        raise NotImplementedError


@export("compat.v1.glorot_normal_initializer")
class glorot_normal_initializer(_Glorot):
    """Normal numbers, of which none is beyond two standard deviations."""

    def _of_variance(self, dims: tuple, variance: float, dtype: Any) -> Any:
        # The standard deviation of what is left of a standard normal distribution between -2 and 2.
        stddev = math.sqrt(variance) / 0.87962566103423978
        return EXPORTS["random.truncated_normal"](dims, 0.0, stddev, dtype, seed=self.seed)


@export("compat.v1.glorot_uniform_initializer")
class glorot_uniform_initializer(_Glorot):
    """Uniform numbers."""

    def _of_variance(self, dims: tuple, variance: float, dtype: Any) -> Any:
        limit = math.sqrt(3 * variance)
        return EXPORTS["random.uniform"](dims, -limit, limit, dtype, seed=self.seed)


def _fans(dims: tuple) -> tuple[int, int]:
    """How many inputs and outputs a unit has: the last axes, times the kernel's size."""
    if len(dims) < 2:
        return (dims or (1,)) * 2
    kernel = math.prod(dims[:-2])
    return dims[-2] * kernel, dims[-1] * kernel


@export("compat.v1.get_variable")
def get_variable(
    name: Any,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Any = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Variable:
    """A new variable: without graphs no two share one by name, as in TensorFlow's eager mode.

    Args:
      initializer: its value, or a function of the shape and the dtype. By default floats are drawn
        by glorot_uniform_initializer, and whole numbers are 0.

    Raises:
      ValueError: shape and initializer do not go together.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if initializer is not None and not callable(initializer):
        if shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        value = EXPORTS["convert_to_tensor"](initializer)
        if wanted is not None and is_tensor(initializer) and dtypes.dtype_of(value) != wanted:
            raise ValueError(
                f"Initializer type '{dtypes.dtype_of(value)}' and explicit dtype '{wanted}' don't"
                " match."
            )
        return Variable(value, trainable, name=name, dtype=wanted, constraint=constraint)
    of_dtype = wanted or dtypes.float32
    if shape is None:
        if initializer is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument must be"
                " specified."
            )
        return Variable(initializer, trainable, name=name, dtype=wanted, constraint=constraint)
    made = _made(initializer, of_dtype)(static_shape(shape), dtype=of_dtype)
    return Variable(made, trainable, name=name, constraint=constraint)


def _made(initializer: Any, dtype: dtypes.DType) -> Callable:
    if initializer is None:
        return glorot_uniform_initializer() if dtype.is_floating else zeros_initializer()
    return initializer() if isinstance(initializer, type) else initializer
