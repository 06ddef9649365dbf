"""tf.py_function and tf.numpy_function: Python functions of the values of tensors.

Eagerly they are calls. Where JAX compiles what calls them, the compiled program calls back whenever
it runs, and must know which shapes come back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes, errors
from tf_substrates.numpy.errors import UnknownValueError, invalid_argument
from tf_substrates.numpy.functions import stop_gradient
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.recording import staged
from tf_substrates.numpy.shapes import TensorSpec
from tf_substrates.numpy.tensors import convert, traced, wrap

JAX_MODE = False
if JAX_MODE:
    import jax
    from jax.experimental import io_callback

# What TensorFlow raises for an exception of the function; for every other one UnknownError.
_ERRORS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((TypeError, ValueError), "InvalidArgumentError"),
    ((StopIteration,), "OutOfRangeError"),
    ((MemoryError,), "ResourceExhaustedError"),
    ((NotImplementedError,), "UnimplementedError"),
)


@export("py_function")
def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: Any = None) -> Any:
    """What a Python function of tensors gives. Without `func` it is a decorator.

    >>> from tf_substrates.numpy import tf
    >>> print(tf.py_function(lambda x: x * 2.0, [tf.constant([1.0, 2.0])], tf.float32))
    tf.Tensor([2. 4.], shape=(2,), dtype=float32)

    Args:
      func: takes tensors, and gives a value, a list of values, or None.
      inp: the list of its arguments.
      Tout: the dtype of what it gives, or a list of dtypes; empty if it gives None. Inside jax.jit
        a tf.TensorSpec with a known shape for each.

    Raises:
      TypeError: there is no `inp`.
      tf.errors.OpError: the function raises; which class depends on what it raises.
      ValueError: inside jax.jit the shape of a result is not known.
    """
    if func is None:
        return lambda function: lambda *args: py_function(function, args, Tout)
    if inp is None:
        raise TypeError(
            "Missing argument `inp`: You must set the `inp` argument (the list of arguments to the"
            " function), unless you use `tf.py_function` as a decorator."
        )
    several = isinstance(Tout, (list, tuple))
    wanted = list(Tout) if several else [Tout]
    arguments = [wrap(convert(value)) for value in inp]
    function = functools.partial(_as_the_op, func, [_dtype(kind) for kind in wanted])
    if JAX_MODE and staged():
        results = _called_back("tf.py_function", function, arguments, wanted)
    else:
        results = function(*arguments)
    return results if several else results[0]


@export("numpy_function")
def numpy_function(
    func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: Any = None
) -> Any:
    """What a Python function of NumPy's arrays gives, without derivatives.

    Args:
      func: takes arrays, and gives a value, a list of values, or None.
      inp: the list of its arguments.
      Tout: the dtype of what it gives, or a list of dtypes; empty if it gives None. Eagerly its
        results have the dtype that they have. Where JAX traces an argument, a tf.TensorSpec with a
        known shape for each.
      stateful: whether a compiled program must call it each time, whoever needs the result.

    Raises:
      TypeError: there is no `inp`.
      ValueError: where JAX traces an argument, the shape of a result is not known.
    """
    if func is None:
        return lambda function: lambda *args: numpy_function(function, args, Tout, stateful)
    if inp is None:
        raise TypeError("numpy_function() missing the list of arguments, `inp`")
    if not JAX_MODE or not (staged() or any(map(traced, inp))):
        result = func(*map(np.array, inp))
        return _each(result, lambda value: wrap(convert(value)))
    several = isinstance(Tout, (list, tuple))
    wanted = list(Tout) if several else [Tout]
    function = functools.partial(_of_numpy, func, [_dtype(kind) for kind in wanted])
    fixed = [stop_gradient(value) for value in inp]
    results = _called_back("tf.numpy_function", function, fixed, wanted, stateful)
    return results if several else results[0]


def _dtype(kind: Any) -> Any:
    return dtypes.as_dtype(kind.dtype if isinstance(kind, TensorSpec) else kind)


def _each(result: Any, function: Callable) -> Any:
    if isinstance(result, (list, tuple)):
        return [function(value) for value in result]
    return None if result is None else function(result)


def _as_the_op(func: Callable, wanted: Sequence[dtypes.DType], *arguments: Any) -> list:
    """The results with their dtypes; what the function raises becomes TensorFlow's error."""
    try:
        result = func(*arguments)
        given = result if isinstance(result, (list, tuple)) else [result]
        given = [] if result is None else given
        made = [wrap(convert(v, d)) for v, d in zip(given, wanted, strict=False)]
    except Exception as error:  # whatever it is, it is reported as the op's error
        found = (name for kinds, name in _ERRORS if isinstance(error, kinds))
        kind = errors.class_named(next(found, "UnknownError"))
        raise kind(None, None, f"{type(error).__name__}: {error} [Op:EagerPyFunc]") from error
    if len(made) < len(wanted):
        raise invalid_argument(
            f"the function returns {len(made)} values, but expects to see {len(wanted)} values"
            " [Op:EagerPyFunc]"
        )
    return made


def _of_numpy(func: Callable, wanted: Sequence[dtypes.DType], *arguments: Any) -> list:
    result = func(*map(np.array, arguments))
    given = result if isinstance(result, (list, tuple)) else [result]
    return [convert(value, dtype) for value, dtype in zip(given, wanted, strict=False)]


def _called_back(
    name: str, function: Callable, arguments: list, wanted: list, stateful: bool = True
) -> list:
    """The results of a function that the compiled program calls."""
    shapes = [_result_of(name, kind) for kind in wanted]
    if not shapes:  # its effect alone, of which there are no derivatives
        io_callback(lambda *values: _nothing(function, values), (), *map(stop_gradient, arguments))
        return []
    call = (
        io_callback if stateful else functools.partial(jax.pure_callback, vmap_method="sequential")
    )
    return list(call(lambda *values: tuple(function(*values)), tuple(shapes), *arguments))


def _nothing(function: Callable, values: tuple) -> tuple:
    function(*values)
    return ()


def _result_of(name: str, kind: Any) -> Any:
    """The shape and dtype of a result."""
    if not isinstance(kind, TensorSpec) or not kind.shape.is_fully_defined():
        raise UnknownValueError(
            f"{name}: inside jax.jit the shapes of its results must be known, and Tout is {kind!r}."
            " What to do: give a tf.TensorSpec(shape, dtype) for each result in Tout, or call the"
            " function outside of jax.jit."
        )
    return jax.ShapeDtypeStruct(tuple(kind.shape.as_list()), kind.dtype.as_numpy_dtype)
