"""Arrays: shapes, creation, joining, slicing, gathering, scattering."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.shapes import TensorShape, broadcast_shapes
from tf_substrates.numpy.tensors import (
    OPERATORS,
    convert,
    has_dtype,
    listed,
    operands,
    static_shape,
    static_value,
    wrap,
)

JAX_MODE = False
if JAX_MODE:
    import jax


def traced(value: Any) -> bool:
    """Whether JAX is tracing a value, so that only its shape and dtype are known."""
    return bool(JAX_MODE) and isinstance(value, jax.core.Tracer)


def known(value: Any, what: str) -> Any:
    """An array whose values decide a shape.

    Raises:
      ValueError: it is being traced by JAX.
    """
    return static_value(value, what)


# Shapes. They are static on both substrates, and NumPy arrays under jax.jit.


def _shape_dtype(out_type: Any) -> np.dtype:
    return np.dtype(np.int32) if out_type is None else dtypes.as_dtype(out_type).dtype


def _shape_of(input: Any) -> tuple:
    return tuple(input.shape) if has_dtype(input) else tuple(convert(input).shape)


@export("shape")
def shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The shape as an int32 tensor; under jax.jit it is a NumPy array, since it is known."""
    return wrap(np.array(_shape_of(input), _shape_dtype(out_type)))


@export("shape_n")
def shape_n(input: Any, out_type: Any = dtypes.int32, name: Any = None) -> list:
    return [shape(x, out_type) for x in input]


@export("size")
def size(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The number of elements, as int32."""
    return wrap(np.array(math.prod(_shape_of(input)), _shape_dtype(out_type)))


@export("rank")
def rank(input: Any, name: Any = None) -> Any:
    return wrap(np.array(len(_shape_of(input)), np.int32))


@export("get_static_value")
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """A tensor's value as NumPy, or None while JAX traces it."""
    if tensor is None or traced(tensor):
        return None
    array = np.asarray(tensor.__tf_tensor__() if hasattr(tensor, "__tf_tensor__") else tensor)
    return array.view(np.ndarray)[()] if array.ndim == 0 else array.view(np.ndarray)


@op("broadcast_dynamic_shape", static=True)
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    x, y = static_shape(shape_x), static_shape(shape_y)
    return np.array(broadcast_shapes(x, y, "BroadcastArgs"), np.int32)


@op("ensure_shape", static=True)
def ensure_shape(x: Any, shape: Any, name: Any = None) -> Any:
    """x, of which the shape is as it should be.

    Raises:
      tf.errors.InvalidArgumentError: it is not.
    """
    x = convert(x)
    if not TensorShape(shape).is_compatible_with(x.shape):
        raise invalid_argument(
            f"Shape of tensor x {list(x.shape)} is not compatible with expected shape {shape}"
            " [Op:EnsureShape]"
        )
    return x


@op("reshape", static=True)
def reshape(tensor: Any, shape: Any, name: Any = None) -> Any:
    """The same elements in another shape, of which one dimension may be -1.

    Raises:
      tf.errors.InvalidArgumentError: it has another number of elements, or two dimensions are -1.
    """
    x, wanted = convert(tensor), list(static_shape(shape))
    if wanted.count(-1) > 1:
        first, second = [i for i, dim in enumerate(wanted) if dim == -1][:2]
        raise invalid_argument(f"Only one input size may be -1, not both {first} and {second}")
    if any(dim < -1 for dim in wanted):
        raise invalid_argument(f"Size of a dimension must be non-negative, not {min(wanted)}")
    count = math.prod(x.shape)
    if -1 in wanted:
        others = math.prod(dim for dim in wanted if dim != -1)
        if others == 0:
            raise invalid_argument(
                "reshape cannot infer the missing input size for an empty tensor unless all"
                " specified input sizes are non-zero"
            )
        if count % others:
            raise invalid_argument(
                f"Input to reshape is a tensor with {count} values, but the requested shape"
                f" requires a multiple of {others} [Op:Reshape]"
            )
        wanted[wanted.index(-1)] = count // others
    if math.prod(wanted) != count:
        raise invalid_argument(
            f"Input to reshape is a tensor with {count} values, but the requested shape has"
            f" {math.prod(wanted)} [Op:Reshape]"
        )
    return x.reshape(wanted)


@op("expand_dims", static=True)
def expand_dims(input: Any, axis: Any, name: Any = None) -> Any:
    x = convert(input)
    at = int(static_value(axis, "An axis"))
    limit = len(x.shape)
    if not -limit - 1 <= at <= limit:
        raise invalid_argument(
            f"Tried to expand dim index {at} for tensor with {limit} dimensions. [Op:ExpandDims]"
        )
    return xp.expand_dims(x, at)


@op("squeeze", static=True)
def squeeze(input: Any, axis: Any = None, name: Any = None) -> Any:
    """Without dimensions of 1: all of them, or those of `axis`.

    Raises:
      tf.errors.InvalidArgumentError: a dimension of `axis` is not 1.
    """
    x = convert(input)
    if axis is None:
        return xp.squeeze(x)
    axes = [
        one_axis(a, len(x.shape), "tf.squeeze") for a in np.ravel(static_value(axis, "An axis"))
    ]
    for a in axes:
        if x.shape[a] != 1:
            raise invalid_argument(
                f"Can not squeeze dim[{a}], expected a dimension of 1, got {x.shape[a]}"
                " [Op:Squeeze]"
            )
    return xp.squeeze(x, tuple(set(axes))) if axes else xp.squeeze(x)


@op("transpose", static=True)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: Any = "transpose") -> Any:
    """The axes in the order `perm`, or reversed.

    Raises:
      tf.errors.InvalidArgumentError: `perm` is no permutation of the axes.
    """
    x = convert(a)
    if perm is not None:
        order = [int(p) for p in static_value(perm, "perm")]
        if sorted(p % max(len(x.shape), 1) for p in order) != list(range(len(x.shape))):
            raise invalid_argument(
                f"transpose expects a vector of size {len(x.shape)}. But input(1) is a vector of"
                f" size {len(order)}, {order} [Op:Transpose]"
            )
        x = xp.transpose(x, order)
    else:
        x = xp.transpose(x)
    return xp.conj(x) if conjugate and x.dtype.kind == "c" else x


@op("broadcast_to", static=True)
def broadcast_to(input: Any, shape: Any, name: Any = None) -> Any:
    x, wanted = convert(input), static_shape(shape)
    try:
        return xp.broadcast_to(x, wanted)
    except ValueError:
        raise invalid_argument(
            f"Incompatible shapes: {list(x.shape)} vs. {list(wanted)} [Op:BroadcastTo]"
        ) from None


@op("identity", static=True)
def identity(input: Any, name: Any = None) -> Any:
    return convert(input)


@op("identity_n", static=True)
def identity_n(input: Any, name: Any = None) -> Any:
    return [convert(x) for x in input]


# Creation.


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
    return xp.broadcast_to(scalar, static_shape(dims))


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
    low, high, step = (known(a, "A limit of tf.range").astype(wanted)[()] for a in arrays)
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
    at, count = convert(indices), int(static_value(depth, "depth"))
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
        maxlen = known(ends, "maxlen").max(initial=0)
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
    return list(xp.meshgrid(*map(convert, args), indexing=indexing))


# Joining and splitting.


@op("concat", static=True)
def concat(values: Any, axis: Any, name: Any = "concat") -> Any:
    """Tensors of one dtype one after the other along an axis.

    Raises:
      tf.errors.InvalidArgumentError: their dtypes or other dimensions differ.
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    arrays = listed("ConcatV2", values)
    first = arrays[0]
    if not first.shape:
        if len(arrays) == 1:
            return first
        raise invalid_argument("ConcatOp : Expected concatenating dimensions in the range [0, 0)")
    along = one_axis(axis, len(first.shape), "tf.concat")
    for i, array in enumerate(arrays):
        others = [dim for n, dim in enumerate(array.shape) if n != along]
        if others != [dim for n, dim in enumerate(first.shape) if n != along]:
            raise invalid_argument(
                "ConcatOp : Dimension of inputs should match: shape[0] ="
                f" {list(first.shape)} vs. shape[{i}] = {list(array.shape)} [Op:ConcatV2]"
            )
    return xp.concatenate(arrays, along)


@op("stack", static=True)
def stack(values: Any, axis: Any = 0, name: Any = "stack") -> Any:
    """Tensors of one shape and dtype along a new axis."""
    arrays = listed("Pack", values)
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise invalid_argument(
                "Shapes of all inputs must match: values[0].shape ="
                f" {list(arrays[0].shape)} != values[{i}].shape = {list(array.shape)} [Op:Pack]"
            )
    at = int(static_value(axis, "An axis"))
    limit = len(arrays[0].shape) + 1
    if not -limit <= at < limit:
        raise ValueError(f"Argument `axis` = {at} not in range [{-limit}, {limit})")
    return xp.stack(arrays, at)


@op("unstack", static=True)
def unstack(value: Any, num: Any = None, axis: Any = 0, name: Any = "unstack") -> Any:
    x = convert(value)
    limit = len(x.shape)
    if not -limit <= axis < limit:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-limit}, {limit})")
    if num is not None and num != x.shape[axis]:
        raise invalid_argument(
            f"Input shape axis {axis} must equal {num}, got shape {list(x.shape)}"
        )
    return [xp.take(x, i, axis) for i in range(x.shape[axis])]


@op("split", static=True)
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: Any = "split"
) -> Any:
    """Into equal parts, or parts of the sizes given, of which one may be -1."""
    x = convert(value)
    along = one_axis(axis, len(x.shape), "tf.split")
    sizes, length = static_value(num_or_size_splits, "Sizes of a split"), x.shape[along]
    if sizes.ndim == 0:
        if length % int(sizes):
            raise invalid_argument(
                f"Number of ways to split should evenly divide the split dimension, but got"
                f" split_dim {along} (size = {length}) and num_split {int(sizes)} [Op:Split]"
            )
        parts = [length // int(sizes)] * int(sizes)
    else:
        parts = [int(part) for part in sizes]
        if parts.count(-1) == 1:
            parts[parts.index(-1)] = length - sum(part for part in parts if part != -1)
        if sum(parts) != length or min(parts, default=0) < 0:
            raise invalid_argument(
                "Determined shape must either match input shape along split_dim exactly if fully"
                f" specified, or be less than the size of the input: {parts} of {length}"
            )
    return xp.split(x, np.cumsum(parts)[:-1], along)


@op("tile", static=True)
def tile(input: Any, multiples: Any, name: Any = None) -> Any:
    x, times = convert(input), static_shape(multiples)
    if len(times) != len(x.shape):
        raise invalid_argument(
            f"Expected multiples argument to be a vector of length {len(x.shape)} but got length"
            f" {len(times)} [Op:Tile]"
        )
    return xp.tile(x, times)


@op("repeat", static=True)
def repeat(input: Any, repeats: Any, axis: Any = None, name: Any = None) -> Any:
    """Each element, or each slice of `axis`, as often as `repeats` says."""
    x = convert(input)
    times = static_value(repeats, "The repeats of tf.repeat").astype(np.int64)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_axis(axis, len(x.shape), "tf.repeat")
    rows = np.repeat(np.arange(x.shape[axis]), times.reshape(-1) if times.ndim else times)
    return xp.take(x, rows, axis)


@op("pad", static=True)
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: Any = None
) -> Any:
    """With elements before and after each axis: a constant, or reflected ones."""
    x = convert(tensor)
    widths = (
        static_value(paddings, "paddings")
        if has_dtype(paddings)
        else np.array([[int(n) for n in row] for row in paddings], np.int64).reshape(-1, 2)
    )
    if len(widths) != len(x.shape):
        raise invalid_argument(
            f"The first dimension of paddings must be the rank of inputs: {list(widths.shape)},"
            f" {list(x.shape)} [Op:Pad]"
        )
    kinds = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    kind = kinds.get(mode.upper())
    if kind is None:
        raise ValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'."
            f" Received `mode` = {mode}"
        )
    pairs = [(int(a), int(b)) for a, b in widths]
    if kind == "constant":
        return xp.pad(x, pairs, kind, constant_values=convert(constant_values, dtype=x.dtype))
    for (before, after), dim in zip(pairs, x.shape, strict=True):
        if max(before, after) > dim - (kind == "reflect"):
            raise invalid_argument(
                f"paddings must be {'less than' if kind == 'reflect' else 'no greater than'} the"
                f" dimension size: {before}, {after} against {dim} [Op:MirrorPad]"
            )
    return xp.pad(x, pairs, kind)


@op("reverse", static=True)
def reverse(tensor: Any, axis: Any, name: Any = None) -> Any:
    x = convert(tensor)
    axes = [
        one_axis(a, len(x.shape), "tf.reverse") for a in np.ravel(static_value(axis, "An axis"))
    ]
    return xp.flip(x, tuple(axes)) if axes else x


@op("roll", static=True)
def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Any:
    x = convert(input)
    axes = [one_axis(a, len(x.shape), "tf.roll") for a in np.ravel(static_value(axis, "An axis"))]
    by = convert(shift).reshape(-1)
    for i, a in enumerate(axes):
        x = xp.roll(x, by[i], a)
    return x


# Choosing.


@op("where", static=True)
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """x where the condition holds, else y; without them where it holds, as int64 indices.

    Raises:
      ValueError: one of x and y alone; or indices while JAX traces the condition.
    """
    if x is None and y is None:
        chosen = convert(condition)
        found = known(chosen, "The number of indices that tf.where(condition) gives")
        return np.argwhere(found).astype(np.int64)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    chosen = convert(condition, dtype=None if has_dtype(condition) else np.bool_)
    if chosen.dtype != np.bool_:
        raise invalid_argument(
            "cannot compute SelectV2 as input #0(zero-based) was expected to be a bool tensor but"
            f" is a {dtypes.dtype_of(chosen).name} tensor [Op:SelectV2]"
        )
    x, y = listed("SelectV2", [x, y])
    shape = broadcast_shapes(x.shape, y.shape, "SelectV2")
    broadcast_shapes(chosen.shape, shape, "SelectV2")
    return xp.where(chosen, x, y)


@export("compat.v1.where", "compat.v1.where_v2")
def where_v1(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """tf.where; a condition of rank 1 chooses among rows, as TensorFlow 1 does."""
    if x is not None and y is not None:
        rank_of = len(_shape_of(condition))
        extra = len(_shape_of(x)) - rank_of
        if rank_of == 1 and extra > 0:
            condition = reshape(condition, [-1] + [1] * extra)
    return where(condition, x, y)


@op("boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask") -> Any:
    """What the mask holds for. The mask must be known under jax.jit."""
    x = convert(tensor)
    mask = known(convert(mask, hint=np.bool_), "The mask of tf.boolean_mask").astype(np.bool_)
    axis = 0 if axis is None else one_axis(axis, len(x.shape), "tf.boolean_mask")
    if mask.ndim == 0:
        raise ValueError("mask cannot be scalar.")
    if x.shape[axis : axis + mask.ndim] != mask.shape:
        raise ValueError(f"Shapes {x.shape[axis:]} and {mask.shape} are incompatible")
    flat = x.reshape((*x.shape[:axis], -1, *x.shape[axis + mask.ndim :]))
    return xp.take(flat, np.flatnonzero(mask), axis)


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


@op("gather", static=True)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Any:
    """The slices of an axis at indices; the first `batch_dims` axes of both go together.

    Raises:
      tf.errors.InvalidArgumentError: an index that is known is outside.
    """
    x, at = convert(params), convert(indices)
    if at.dtype.kind not in "iu":
        raise invalid_argument(
            f"Value for attr 'Tindices' of {dtypes.dtype_of(at).name} is not in the list of allowed"
            " values: int16, int32, int64 [Op:GatherV2]"
        )
    batch = batch_dims + len(at.shape) if batch_dims < 0 else batch_dims
    along = batch if axis is None else one_axis(axis, len(x.shape), "tf.gather")
    if x.shape[:batch] != at.shape[:batch]:
        raise invalid_argument(
            f"params.shape[:{batch}] should be equal to indices.shape[:{batch}]:"
            f" {list(x.shape)}, {list(at.shape)} [Op:GatherV2]"
        )
    _inside(at, x.shape[along], "GatherV2")
    if batch == 0:
        return xp.take(x, at, along, **_CLIP)
    # Axes: batch, those before the gathered one, the gathered one, those after.
    count = math.prod(at.shape[batch:])
    moved = xp.moveaxis(x, along, batch)
    rows = at.reshape((*at.shape[:batch], count) + (1,) * (len(x.shape) - batch - 1))
    taken = xp.take_along_axis(moved, rows, batch)
    back = xp.moveaxis(taken, batch, along)
    return back.reshape((*x.shape[:along], *at.shape[batch:], *x.shape[along + 1 :]))


# What is outside is an error where values are known, and under jax.jit the nearest.
_CLIP = {"mode": "clip"} if JAX_MODE else {}


def _inside(indices: Any, size: int, op_name: str) -> None:
    if isinstance(indices, np.ndarray) and indices.size:
        bad = (indices < 0) | (indices >= size)
        if bad.any():
            at = tuple(map(int, np.argwhere(bad)[0]))
            raise invalid_argument(
                f"indices{list(at)} = {indices[at]} is not in [0, {size}) [Op:{op_name}]"
            )


@op("gather_nd", static=True)
def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: Any = None, bad_indices_policy: str = ""
) -> Any:
    """Slices at the multi-indices of the last axis.

    Raises:
      tf.errors.InvalidArgumentError: an index that is known is outside.
    """
    x, at = convert(params), convert(indices)
    depth = at.shape[-1]
    if depth + batch_dims > len(x.shape):
        raise invalid_argument(
            "index innermost dimension length must be <= params rank; saw:"
            f" {depth} vs. {len(x.shape)} [Op:GatherNd]"
        )
    _inside_nd(at, x.shape[batch_dims : batch_dims + depth], "GatherNd")
    key: list = []
    for i in range(batch_dims):
        ones = [1] * (len(at.shape) - 1)
        ones[i] = x.shape[i]
        key.append(np.arange(x.shape[i]).reshape(ones))
    key += [at[..., i] for i in range(depth)]
    if not key:
        return xp.broadcast_to(x, (*at.shape[:-1], *x.shape))
    return (
        x[tuple(key)]
        if not (JAX_MODE and not isinstance(x, np.ndarray))
        else x.at[tuple(key)].get(mode="clip")
    )


def _inside_nd(indices: Any, shape: tuple, op_name: str) -> None:
    for i, size in enumerate(shape):
        if isinstance(indices, np.ndarray):
            column = indices[..., i]
            if column.size and ((column < 0) | (column >= size)).any():
                raise invalid_argument(
                    f"indices does not index into shape {list(shape)}: axis {i} has"
                    f" {column.ravel()[0]} [Op:{op_name}]"
                )


# Scattering.


def _scattered(x: Any, indices: Any, updates: Any, how: str, op_name: str) -> Any:
    depth = indices.shape[-1]
    if depth > len(x.shape):
        raise invalid_argument(
            f"The inner dimension of indices ({depth}) must be at most the rank of the result"
            f" ({len(x.shape)}) [Op:{op_name}]"
        )
    expected = (*indices.shape[:-1], *x.shape[depth:])
    if updates.shape != expected:
        raise invalid_argument(
            f"Dimensions of updates must be {list(expected)} for indices {list(indices.shape)} and"
            f" a result of {list(x.shape)}, got {list(updates.shape)} [Op:{op_name}]"
        )
    _inside_nd(indices, x.shape[:depth], op_name)
    key = tuple(indices[..., i] for i in range(depth))
    if JAX_MODE:
        on_device: Any = xp.asarray(x)
        return getattr(on_device.at[key], how)(updates)
    result = np.array(x)
    if how == "set":
        result[key] = updates
    else:
        _UFUNCS[how].at(result, key, updates)
    return result


_UFUNCS = {"add": np.add, "subtract": np.subtract, "max": np.maximum, "min": np.minimum}


@op("scatter_nd")
def scatter_nd(
    indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: Any = None
) -> Any:
    """Zeros with the updates added at the indices."""
    updates = convert(updates)
    start = xp.zeros(static_shape(shape), updates.dtype)
    return _scattered(start, convert(indices), updates, "add", "ScatterNd")


@op("tensor_scatter_nd_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: Any = None) -> Any:
    return _tensor_scatter(tensor, indices, updates, "set", "TensorScatterUpdate")


def _tensor_scatter(tensor: Any, indices: Any, updates: Any, how: str, op_name: str) -> Any:
    x, updates = operands(op_name, tensor, updates)
    return _scattered(x, convert(indices), updates, how, op_name)


def _tensor_scatter_nd(kind: str, how: str) -> None:
    def call(
        tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
    ) -> Any:
        return _tensor_scatter(tensor, indices, updates, how, f"TensorScatter{kind.title()}")

    call.__name__ = call.__qualname__ = f"tensor_scatter_nd_{kind}"
    call.__doc__ = f"The tensor with its elements at the indices {how}ed with the updates."
    op(call.__name__)(call)


for _kind, _how in (("add", "add"), ("sub", "subtract"), ("max", "max"), ("min", "min")):
    _tensor_scatter_nd(_kind, _how)


@op("dynamic_stitch", static=True)
def dynamic_stitch(indices: Any, data: Any, name: Any = None) -> Any:
    """The rows of `data` where `indices` says; of two for one place the later. Known indices."""
    ats = [static_value(i, "The indices of tf.dynamic_stitch") for i in indices]
    arrays = listed("DynamicStitch", data)
    tail = arrays[0].shape[ats[0].ndim :]
    rows = xp.concatenate([a.reshape((-1, *tail)) for a in arrays])
    at = np.concatenate([i.reshape(-1) for i in ats])
    source = np.full(int(at.max()) + 1 if at.size else 0, -1)
    source[at] = np.arange(at.size)
    return xp.take(rows, source, 0)


@op("dynamic_partition")
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: Any = None) -> Any:
    """The rows of each partition. The partitions must be known under jax.jit."""
    x = convert(data)
    at = static_value(partitions, "The partitions of tf.dynamic_partition")
    flat = x.reshape((-1, *x.shape[at.ndim :]))
    return [xp.take(flat, np.flatnonzero(at.ravel() == i), 0) for i in range(num_partitions)]


# What depends on values.

Unique = collections.namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = collections.namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def _unique(x: Any) -> tuple:
    values = known(convert(x), "The number of values that tf.unique gives")
    if values.ndim != 1:
        raise invalid_argument("unique expects a 1D vector. [Op:Unique]")
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    return values[first[order]], np.argsort(order)[inverse], counts[order]


@op("unique")
def unique(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    """The distinct values in the order they come, and the index of each element's value."""
    y, index, _ = _unique(x)
    return Unique(y, index.astype(dtypes.numpy_dtype(out_idx)))


@op("unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    y, index, counts = _unique(x)
    wanted = dtypes.numpy_dtype(out_idx)
    return UniqueWithCounts(y, index.astype(wanted), counts.astype(wanted))


@op("math.invert_permutation", static=True)
def invert_permutation(x: Any, name: Any = None) -> Any:
    at = convert(x)
    if isinstance(at, np.ndarray) and sorted(at.tolist()) != list(range(at.size)):
        raise invalid_argument(f"{at.tolist()} is not a permutation [Op:InvertPermutation]")
    return xp.argsort(at).astype(at.dtype)


@op("unravel_index", static=True)
def unravel_index(indices: Any, dims: Any, name: Any = None) -> Any:
    at = convert(indices)
    rows = xp.unravel_index(at, static_shape(dims))
    return xp.stack(list(rows)).astype(at.dtype)


@op("reverse_sequence")
def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: Any = None
) -> Any:
    """Reverses the first elements of each sequence, as many as its length."""
    x, lengths = convert(input), convert(seq_lengths)
    seq = one_axis(0 if seq_axis is None else seq_axis, len(x.shape), "tf.reverse_sequence")
    batch = one_axis(0 if batch_axis is None else batch_axis, len(x.shape), "tf.reverse_sequence")
    place = np.arange(x.shape[seq])
    source = xp.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
    shape = [1] * len(x.shape)
    shape[batch], shape[seq] = x.shape[batch], x.shape[seq]
    source = source if batch < seq else source.T
    return xp.take_along_axis(x, source.reshape(shape), seq)


def _spatial(x: Any, block: np.ndarray, widths: np.ndarray) -> tuple:
    rest = len(x.shape) - 1 - len(block)
    return [(0, 0), *map(tuple, widths.tolist()), *[(0, 0)] * rest], rest


@op("space_to_batch", "space_to_batch_nd", "nn.space_to_batch")
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: Any = None) -> Any:
    """Blocks of the spatial axes, zero padded, become batch entries."""
    x = convert(input)
    block = np.ravel(static_value(block_shape, "block_shape"))
    pairs, _ = _spatial(x, block, np.array(static_value(convert(paddings), "paddings")))
    x = xp.pad(x, pairs)
    m = len(block)
    shape = [x.shape[0]]
    for i, b in enumerate(block):
        shape += [x.shape[i + 1] // int(b), int(b)]
    y = x.reshape(shape + list(x.shape[m + 1 :]))
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    y = xp.transpose(y, order + list(range(2 * m + 1, len(y.shape))))
    return y.reshape((x.shape[0] * int(np.prod(block)), *y.shape[m + 1 :]))


@op("batch_to_space")
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: Any = None) -> Any:
    """The inverse of tf.space_to_batch, with elements cropped from both ends."""
    x = convert(input)
    block = [int(b) for b in np.ravel(static_value(block_shape, "block_shape"))]
    cuts = np.array(static_value(convert(crops), "crops"))
    m = len(block)
    batch = x.shape[0] // math.prod(block)
    y = x.reshape((*block, batch, *x.shape[1:]))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    y = xp.transpose(y, order + list(range(2 * m + 1, len(y.shape))))
    y = y.reshape(
        (batch, *(n * b for n, b in zip(x.shape[1:], block, strict=False)), *x.shape[m + 1 :])
    )
    key = [slice(None)] + [slice(int(a), y.shape[i + 1] - int(b)) for i, (a, b) in enumerate(cuts)]
    return y[tuple(key)]
