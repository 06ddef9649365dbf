"""New tensors: filled, ranges, grids, masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, operands, require, static_shape, static_value


@op("zeros", static=True)
def zeros(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Any:
    return _filled(shape, dtype, 0)


@op("ones", static=True)
def ones(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Any:
    return _filled(shape, dtype, 1)


def _filled(shape: Any, dtype: Any, value: int) -> Any:
    wanted = dtypes.numpy_dtype(dtype)
    if wanted.kind == "O":
        if value:
            raise TypeError("Cannot convert 1 to EagerTensor of dtype string")
        return np.full(static_shape(shape), b"", object)
    return xp.full(static_shape(shape), value, wanted)


def _like(value: int) -> Callable:
    def call(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Any:
        x = convert(input)
        return _filled(np.array(x.shape, np.int64), x.dtype if dtype is None else dtype, value)

    return call


for _name, _value in (("zeros_like", 0), ("ones_like", 1)):
    _function = _like(_value)
    _function.__name__ = _function.__qualname__ = _name
    op(_name, static=True)(_function)


@op("fill", static=True)
def fill(dims: Any, value: Any, name: Any = None, layout: Any = None) -> Any:
    scalar = convert(value)
    if scalar.shape:
        raise invalid_argument(f"value must be a scalar, has shape {list(scalar.shape)} [Op:Fill]")
    shape = static_shape(dims)
    if any(dim < 0 for dim in shape):
        raise invalid_argument(f"Dimension {min(shape)} must be >= 0 [Op:Fill]")
    return xp.broadcast_to(scalar, shape)


@op("eye", "linalg.eye", static=True)
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
) -> Any:
    """Identity matrices."""
    rows = int(static_value(num_rows, "num_rows"))
    columns = rows if num_columns is None else int(static_value(num_columns, "num_columns"))
    one = xp.eye(rows, columns, dtype=dtypes.numpy_dtype(dtype))
    return (
        one
        if batch_shape is None
        else xp.broadcast_to(one, (*static_shape(batch_shape), *one.shape))
    )


@op("range", static=True)
def tf_range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = "range"
) -> Any:
    """The numbers from `start`, or 0, up to `limit` in steps of `delta`.

    Raises:
      tf.errors.InvalidArgumentError: the step is 0, or leads away from the limit.
    """
    if limit is None:
        start, limit = 0, start
    arrays = [convert(v, hint=dtype) for v in (start, limit, delta)]
    if dtype is None:
        hierarchy = ["int32", "int64", "float32", "float64"]
        seen = {dtypes.dtype_of(a).name for a in arrays}
        dtype = max((n for n in seen if n in hierarchy), key=hierarchy.index, default=None)
        dtype = dtype or dtypes.dtype_of(arrays[0]).name
    wanted = dtypes.numpy_dtype(dtype)
    low, high, step = (static_value(a, "A limit of tf.range").astype(wanted)[()] for a in arrays)
    if step == 0:
        raise invalid_argument("Requires delta != 0: 0 [Op:Range]")
    if (step > 0 and low > high) or (step < 0 and low < high):
        sign = "<=" if step > 0 else ">="
        raise invalid_argument(
            f"Requires start {sign} limit when delta {'>' if step > 0 else '<'} 0: {low}/{high}"
            " [Op:Range]"
        )
    if wanted.kind in "iu":
        return np.arange(int(low), int(high), int(step)).astype(wanted)
    count = math.ceil(abs((float(high) - float(low)) / float(step)))
    steps = np.arange(count).astype(wanted) * step
    return (low + steps).astype(wanted)


@op("linspace")
def linspace(start: Any, stop: Any, num: Any, name: Any = None, axis: int = 0) -> Any:
    """`num` evenly spaced numbers from start to stop, both included, along a new axis."""
    start, stop = operands("LinSpace", start, stop)
    count = int(static_value(num, "num"))
    shape = broadcast_shapes(start.shape, stop.shape, "LinSpace")
    wanted = (
        start.dtype
        if start.dtype.kind == "f" or start.dtype.itemsize == 2
        else dtypes.numpy_dtype("float64")
    )
    low, high = (xp.broadcast_to(v, shape).astype(wanted) for v in (start, stop))
    if count <= 1:
        rows = low[None][: max(count, 0)]
    else:
        steps = np.arange(1, count - 1).astype(wanted).reshape((-1, *(1,) * len(shape)))
        delta = (high - low) / np.asarray(count - 1, wanted)
        rows = xp.concatenate([low[None], low[None] + delta[None] * steps, high[None]])
    return xp.moveaxis(rows, 0, axis)


@op("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Any:
    """`on_value` where the new axis has the index, else `off_value`."""
    at = require("OneHot", convert(indices), ("uint8", "int8", "int32", "int64"))
    count = int(static_value(depth, "depth"))
    if dtype is None:
        given = [convert(v) for v in (on_value, off_value) if v is not None]
        dtype = given[0].dtype if given else np.float32
    on = convert(1 if on_value is None else on_value, dtype=dtype)
    off = convert(0 if off_value is None else off_value, dtype=dtype)
    position = len(at.shape) if axis in (None, -1) else axis
    classes = np.arange(count).reshape((-1, *(1,) * (len(at.shape) - position)))
    return xp.where(xp.expand_dims(at, position) == classes, on, off)


@op("sequence_mask")
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: Any = None
) -> Any:
    ends = convert(lengths)
    if maxlen is None:
        maxlen = static_value(ends, "maxlen").max(initial=0)
    mask = np.arange(int(static_value(maxlen, "maxlen"))) < ends[..., None]
    return mask.astype(dtypes.numpy_dtype(dtype))


@op("meshgrid", static=True)
def meshgrid(*args: Any, **kwargs: Any) -> Any:
    """Coordinates of a grid, each as a tensor of the grid's shape; `indexing` is 'xy' or 'ij'."""
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function.")
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'"
        )
    return list(xp.meshgrid(*(xp.ravel(convert(x)) for x in args), indexing=indexing))
