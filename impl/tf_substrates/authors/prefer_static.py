"""TensorFlow's functions for the arithmetic of shapes, computed at once where that is possible.

`prefer_static.concat([prefer_static.shape(x), [2]], axis=0)` is a NumPy array where the shape of
`x` is known, under tf.function and jax.jit too, and a tensor of tf.concat's otherwise. A function
is computed by NumPy, with TensorFlow's dtypes, if all its arguments are static:

- numbers, NumPy arrays, shapes that are fully defined, and lists of them;
- tensors of integers or booleans whose value is known.

A tensor of floats is not static, because a tape may watch it, and a tf.Variable never is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_substrates.numpy import errors, static

# What stands for a value that is not known.
_OPEN = object()

_NAMES = (
    *("abs", "argmax", "argmin", "argsort", "broadcast_to", "cast", "cumsum", "equal"),
    *("expand_dims", "eye", "fill", "gather", "greater", "greater_equal", "identity", "less"),
    *("less_equal", "linspace", "logical_and", "logical_not", "logical_or", "maximum", "minimum"),
    *("not_equal", "one_hot", "ones", "ones_like", "pad", "range", "reduce_all", "reduce_any"),
    *("reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "repeat", "reshape", "reverse"),
    *("round", "sign", "slice", "sort", "split", "squeeze", "stack", "tensor_scatter_nd_update"),
    *("tile", "transpose", "unstack", "where", "zeros", "zeros_like"),
    *("math.add", "math.ceil", "math.cumprod", "math.divide", "math.floor", "math.floordiv"),
    *("math.floormod", "math.invert_permutation", "math.multiply", "math.negative"),
    *("math.subtract",),
)


def _prefer_static(name: str) -> Callable:
    of_tensors = functools.reduce(getattr, name.split("."), tf)
    of_arrays = static.plain_function(name)

    @functools.wraps(of_tensors)
    def call(*args: Any, **kwargs: Any) -> Any:
        known = [_static(value) for value in args]
        known_by_name = {key: _static(value) for key, value in kwargs.items()}
        if not any(value is _OPEN for value in (*known, *known_by_name.values())):
            try:
                return of_arrays(*known, **known_by_name)
            except (errors.OpError, TypeError, ValueError):
                # What is wrong is said by the function of tensors, in its own error.
                pass
        return of_tensors(*args, **kwargs)

    return call


def _static(value: Any) -> Any:
    """A value as NumPy has it, or `_OPEN`."""
    if isinstance(value, tf.Variable):
        return _OPEN
    if isinstance(value, tf.TensorShape):
        return value.as_list() if value.is_fully_defined() else _OPEN
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, (list, tuple)):
        items = [_static(item) for item in value]
        return _OPEN if any(item is _OPEN for item in items) else type(value)(items)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if not tf.is_tensor(value):
        return value
    known = tf.get_static_value(value) if _counts(tf.as_dtype(value.dtype)) else None
    return _OPEN if known is None else np.asarray(known)


def _counts(dtype: Any) -> bool:
    return dtype.is_integer or dtype.is_bool


globals().update({name.rpartition(".")[2]: _prefer_static(name) for name in _NAMES})


def static_value(value: Any) -> np.ndarray | None:
    """The value of what is static, as a NumPy array; None for everything else.

    Args:
      value: a number, an array, a tensor, a shape, or a list of them.
    """
    known = _static(value)
    if known is _OPEN or known is None:
        return None
    if isinstance(known, (list, tuple)) and not known:
        return np.zeros([0], np.int32)
    return np.asarray(static.plain_function("convert_to_tensor")(known))


def is_static(value: Any) -> bool:
    """Whether the value is known before anything runs."""
    return static_value(value) is not None


def convert_to_shape_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: Any = None
) -> Any:
    """Sizes as a NumPy array where they are known, else as a tensor.

    Args:
      value: an integer, a shape, an array or tensor of integers, or a list of integers and scalar
        tensors.
      dtype: int32 or int64; by default that of the value, and int32 for Python's integers.
      dtype_hint: the same, for a value that has no dtype of its own.

    Raises:
      TypeError: the value is not of integers.
      ValueError: it is a shape with an unknown dimension.
    """
    if isinstance(value, tf.TensorShape) and not value.is_fully_defined():
        raise ValueError(
            f"convert_to_shape_tensor: `value` is the shape {value}, and not every dimension"
            " of it is known. What to do: give prefer_static.shape(x), which is a tensor then."
        )
    known = _static(value)
    if known is _OPEN:
        converted = tf.convert_to_tensor(value, dtype, dtype_hint=dtype_hint, name=name)
    else:
        if np.size(known) == 0 and not hasattr(known, "dtype"):
            known = np.zeros(np.shape(known), _name_of(dtype or dtype_hint or tf.int32))
        as_array = static.plain_function("convert_to_tensor")
        converted = as_array(known, _name_of(dtype), dtype_hint=_name_of(dtype_hint))
    if not tf.as_dtype(converted.dtype).is_integer:
        raise TypeError(
            f"convert_to_shape_tensor: `value` must be of integers, and {value!r} is of"
            f" {tf.as_dtype(converted.dtype).name}. What to do: tf.cast it to tf.int32 first."
        )
    return converted


def _name_of(dtype: Any) -> str | None:
    return None if dtype is None else tf.as_dtype(dtype).name


def shape(input: Any, out_type: Any = tf.int32, name: Any = None) -> Any:
    """The shape of a tensor: a NumPy array if it is fully defined, else a tensor.

    Args:
      input: a tensor, or what becomes one.
      out_type: int32 or int64.
    """
    dims = _static_shape(input)
    if dims.is_fully_defined():
        return np.array(dims.as_list(), _name_of(out_type))
    return tf.shape(input, out_type=out_type, name=name)


def dimension(input: Any, axis: int, out_type: Any = tf.int32) -> Any:
    """The size of one axis: a NumPy scalar where that axis is known, whatever the others are."""
    dims = _static_shape(input)
    if dims.rank is None or dims.as_list()[axis] is None:
        return tf.shape(input, out_type=out_type)[axis]
    return np.asarray(dims.as_list()[axis], _name_of(out_type))


def rank(input: Any, name: Any = None) -> Any:
    """How many axes a tensor has, as int32."""
    found = _static_shape(input).rank
    return tf.rank(input, name=name) if found is None else np.asarray(found, np.int32)


def rank_from_shape(shape: Any) -> Any:
    """How many axes a tensor of a given shape has, as int32: the size of the vector."""
    return size(shape)


def size(input: Any, out_type: Any = tf.int32, name: Any = None) -> Any:
    """How many elements a tensor has."""
    count = _static_shape(input).num_elements()
    if count is None:
        return tf.size(input, out_type=out_type, name=name)
    return np.asarray(count, _name_of(out_type))


def _static_shape(value: Any) -> Any:
    if isinstance(value, tf.TensorShape):
        return tf.TensorShape([value.rank])
    if hasattr(value, "shape"):
        return tf.TensorShape(value.shape)
    known = _static(value)
    return tf.TensorShape(np.shape(known) if known is not _OPEN else tf.stack(value).shape)


def concat(values: Sequence, axis: Any, name: Any = None) -> Any:
    """tf.concat; an empty list among the values has the dtype of the others, or int32.

    So `concat([prefer_static.shape(x), []], axis=0)` is a shape.
    """
    given = list(values)
    whole = [value for value in given if not _is_empty(value)]
    typed = next((value.dtype for value in whole if hasattr(value, "dtype")), None)
    dtype = typed or (tf.convert_to_tensor(whole[0]).dtype if whole else tf.int32)
    empty = np.zeros([0], _name_of(dtype))
    return _concat([empty if _is_empty(value) else value for value in given], axis, name=name)


_concat, _where = _prefer_static("concat"), _prefer_static("where")


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple, tf.TensorShape)) and len(value) == 0


def broadcast_shape(x_shape: Any, y_shape: Any) -> Any:
    """The shape to which two shapes broadcast, an int32 array if both are known.

    Raises:
      ValueError: both are known and do not broadcast.
    """
    x, y = convert_to_shape_tensor(x_shape), convert_to_shape_tensor(y_shape)
    if is_static(x) and is_static(y):
        found = tf.broadcast_static_shape(tf.TensorShape(x), tf.TensorShape(y))
        return np.array(found.as_list(), np.int32)
    return tf.broadcast_dynamic_shape(x, y)


def cond(pred: Any, true_fn: Callable, false_fn: Callable, name: Any = None) -> Any:
    """tf.cond, of which only one branch is called if the predicate is known."""
    known = static_value(pred)
    if known is None:
        return tf.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable]],
    default: Callable | None = None,
    exclusive: bool = False,
    name: Any = "case",
) -> Any:
    """tf.case: the function of the first predicate that holds.

    Pairs whose predicate is known to be false are left out, and those behind one that is known to
    be true. With `exclusive` a second predicate that is true is an error, so all of them are
    looked at unless all are known.

    Raises:
      ValueError: `exclusive`, and two predicates are known to be true; or it is known that none
        holds, and there is no default.
    """
    pairs = list(pred_fn_pairs)
    known = [static_value(pred) for pred, _ in pairs]
    if exclusive and sum(value is not None and bool(value) for value in known) > 1:
        raise ValueError("case: `exclusive` is True, and more than one predicate is true.")
    if exclusive and any(value is None for value in known):
        return tf.case(pairs, default=default, exclusive=True, name=name)
    open_pairs = []
    for (pred, function), value in zip(pairs, known, strict=True):
        if value is None:
            open_pairs.append((pred, function))
        elif value:
            default = function
            break
    if open_pairs:
        return tf.case(open_pairs, default=default, name=name)
    if default is None:
        raise ValueError("case: no predicate is true, and there is no `default`.")
    return default()


def switch_case(
    branch_index: Any,
    branch_fns: Sequence[Callable],
    default: Callable | None = None,
    name: Any = None,
) -> Any:
    """tf.switch_case, of which only one function is called if the index is known."""
    index = static_value(branch_index)
    if index is None:
        return tf.switch_case(branch_index, branch_fns, default=default, name=name)
    last = default or branch_fns[-1]
    return branch_fns[int(index)]() if 0 <= index < len(branch_fns) else last()


def non_negative_axis(axis: Any, rank: Any) -> Any:
    """An axis counted from the front, given the rank: -1 of rank 3 is 2. Vectors are fine too."""
    axis, rank = convert_to_shape_tensor(axis), convert_to_shape_tensor(rank)
    return _where(axis < 0, axis + rank, axis)
