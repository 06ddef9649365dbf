"""Shapes, which are static on both substrates, and NumPy arrays under jax.jit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import UnknownSizeError, invalid_argument
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.shapes import TensorShape, broadcast_shapes
from tf_substrates.numpy.tensors import (
    convert,
    has_dtype,
    is_tensor,
    static_shape,
    static_value,
    traced,
    wrap,
)


def _shape_dtype(out_type: Any) -> np.dtype:
    return np.dtype(np.int32) if out_type is None else dtypes.as_dtype(out_type).dtype


def shape_of(input: Any) -> tuple:
    return tuple(input.shape) if has_dtype(input) else tuple(convert(input).shape)


@export("shape")
def shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The shape as an int32 tensor; under jax.jit it is a NumPy array, since it is known."""
    return wrap(np.array(shape_of(input), _shape_dtype(out_type)))


@export("shape_n")
def shape_n(input: Any, out_type: Any = dtypes.int32, name: Any = None) -> list:
    return [shape(x, out_type) for x in input]


@export("size")
def size(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The number of elements, as int32."""
    return wrap(np.array(math.prod(shape_of(input)), _shape_dtype(out_type)))


@export("rank")
def rank(input: Any, name: Any = None) -> Any:
    return wrap(np.array(len(shape_of(input)), np.int32))


@export("get_static_value")
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """A tensor's value as NumPy, or None while JAX traces it; what is no tensor is given back."""
    if tensor is None or traced(tensor):
        return None
    # On JAX tensors of integers that are known are NumPy's arrays.
    if not has_dtype(tensor) and not is_tensor(tensor):
        return tensor
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
            raise UnknownSizeError(
                None,
                None,
                "reshape cannot infer the missing input size for an empty tensor unless all"
                " specified input sizes are non-zero",
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
    """With a dimension of 1 at `axis`, a number or a list of one.

    Raises:
      tf.errors.InvalidArgumentError: the axis is no place of the result, or more than one.
    """
    x = convert(input)
    axes = np.ravel(static_value(axis, "An axis"))
    if axes.size != 1:
        raise invalid_argument(f"'dim' input must be a tensor with a single value: {axis}")
    at = int(axes[0])
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
    """The same value in a tensor of its own, which caches that know a tensor do not know."""
    return _another(convert(input))


@op("identity_n", static=True)
def identity_n(input: Any, name: Any = None) -> Any:
    return [_another(convert(x)) for x in input]


def _another(x: Any) -> Any:
    return x.view() if isinstance(x, np.ndarray) else xp.array(x, copy=True)
