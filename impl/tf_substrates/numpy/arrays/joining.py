"""Joining, splitting, repeating and padding along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import convert, has_dtype, listed, static_shape, static_value


@op("concat", static=True)
def concat(values: Any, axis: Any, name: Any = "concat") -> Any:
    """Tensors of one dtype one after the other along an axis.

    Raises:
      tf.errors.InvalidArgumentError: their dtypes or other dimensions differ.
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    arrays = listed("ConcatV2", _without_empty_shapes(values))
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


def _without_empty_shapes(values: Any) -> Any:
    """The values but for shapes without dimensions, which say no dtype, unless all are such.

    An empty tuple is one, as it is the shape of an array of JAX or NumPy; TensorFlow takes it for
    a tensor of float32.
    """
    kept = [value for value in values if not _is_empty_shape(value)]
    if len(kept) == len(values):
        return values
    if kept:
        return kept if len(np.shape(kept[0])) == 1 else values
    return [np.zeros(0, np.int32)] if len(values) else values


def _is_empty_shape(value: Any) -> bool:
    if isinstance(value, TensorShape):
        return value.rank == 0
    return type(value) is tuple and not value


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
