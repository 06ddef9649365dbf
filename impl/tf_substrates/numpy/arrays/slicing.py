"""Blocks of tensors, and Python's slicing of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_substrates.numpy.arrays.selection import boolean_mask
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.recording import recorded
from tf_substrates.numpy.tensors import OPERATORS, convert, has_dtype, static_shape, traced, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


@op("slice", static=True)
def tf_slice(input_: Any, begin: Any, size: Any, name: Any = None) -> Any:
    """A block that begins at `begin`; a size of -1 is all that is left. `begin` may be traced."""
    x = convert(input_)
    sizes = static_shape(size)
    if traced(begin) or (isinstance(begin, (list, tuple)) and any(map(traced, begin))):
        if -1 in sizes:
            raise ValueError("tf.slice: a size of -1 needs a `begin` that is known under jax.jit")
        return jax.lax.dynamic_slice(x, list(convert(begin)), sizes)
    starts = static_shape(begin)
    for start, length, dim in zip(starts, sizes, x.shape, strict=True):
        if not 0 <= start <= dim or (length != -1 and start + length > dim):
            raise invalid_argument(
                f"Expected begin and size inside of the tensor, got begin {list(starts)}, size"
                f" {list(sizes)} of shape {list(x.shape)} [Op:Slice]"
            )
    return x[
        tuple(slice(a, None if n == -1 else a + n) for a, n in zip(starts, sizes, strict=True))
    ]


@op("strided_slice", static=True)
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: Any = None,
) -> Any:
    """What Python's slicing gives, of which the masks' bits say each axis's kind."""
    starts, ends = static_shape(begin), static_shape(end)
    steps = (1,) * len(starts) if strides is None else static_shape(strides)
    key: list = []
    for i, (a, b, step) in enumerate(zip(starts, ends, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(a)
        else:
            key.append(slice(None if begin_mask & bit else a, None if end_mask & bit else b, step))
    return convert(getitem(wrap(convert(input_)), tuple(key)))


@recorded
def getitem(x: Any, key: Any) -> Any:
    """Python's slicing of a tensor, or a boolean mask of it.

    Raises:
      tf.errors.InvalidArgumentError: an index is outside, or there are more than axes.
    """
    if has_dtype(key) and key.dtype == np.bool_ and len(key.shape) > 0:
        return boolean_mask(x, key)
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
    plain = [_index(k) for k in keys]
    indexed = sum(k is not None and k is not Ellipsis for k in plain)
    array = convert(x)
    if indexed > len(array.shape):
        raise invalid_argument(
            f"Index out of range using input dim {len(array.shape)}; input has only"
            f" {len(array.shape)} dims [Op:StridedSlice]"
        )
    dim = 0
    for i, k in enumerate(plain):
        if k is Ellipsis:
            dim = len(array.shape) - sum(j is not None for j in plain[i + 1 :])
        elif k is not None:
            if isinstance(k, int) and not -array.shape[dim] <= k < array.shape[dim]:
                raise invalid_argument(
                    f"slice index {k} of dimension {dim} out of bounds. [Op:StridedSlice]"
                )
            dim += 1
    return wrap(np.asarray(array[tuple(plain)]) if not JAX_MODE else array[tuple(plain)])


def _index(key: Any) -> Any:
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, slice):
        return slice(*(None if v is None else _index(v) for v in (key.start, key.stop, key.step)))
    if isinstance(key, (bool, np.bool_)) or not hasattr(key, "__index__") or np.ndim(key):
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar"
            f" tf.int32/tf.int64 tensors are valid indices, got {key!r}"
        )
    return key if traced(key) else key.__index__()


OPERATORS["getitem"] = getitem
