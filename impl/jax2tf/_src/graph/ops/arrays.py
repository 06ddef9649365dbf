"""Functions that make arrays, join and part them, and move their dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jax2tf._src.graph.ops.operands import as_tensor, integers
from jax2tf._src.graph.symbol_shapes import SymbolShape
from jax2tf._src.graph.symbols import Symbol, as_array, converted, raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import float32, int32
from jax2tf._src.util.typing import PyTree

# Constants of so many elements are written out, larger ones are a Fill.
_SMALL = 1000


def constant(value: PyTree, dtype: PyTree = None, shape: PyTree = None) -> Symbol:
    """A constant, with a shape one that repeats a number."""
    of = None if dtype is None else dtypes.named(dtype)
    if isinstance(value, Symbol):
        raise TypeError("a tensor is no constant")
    array = as_array(value, of)
    if shape is not None:
        array = np.broadcast_to(array, tuple(shape)) if array.size == 1 else array.reshape(shape)
    return converted(array)


def convert_to_tensor(value: PyTree, dtype: PyTree = None) -> Symbol:
    """A tensor of numbers, arrays and tensors in nested lists."""
    return converted(value, None if dtype is None else dtypes.named(dtype))


def broadcast_to(input: PyTree, shape: PyTree) -> Symbol:
    """The elements repeated to a shape."""
    return raw.BroadcastTo(input=as_tensor(input, None), shape=integers(shape))


def concat(values: PyTree, axis: PyTree) -> Symbol:
    """Tensors one behind the other along an axis."""
    if isinstance(values, Symbol):
        return raw.Identity(input=values)
    if len(values) == 1:
        return raw.Identity(input=values[0])
    like = next((x for x in values if isinstance(x, Symbol)), None)
    return raw.ConcatV2(values=[as_tensor(x, like) for x in values], axis=integers(axis))


def ensure_shape(x: PyTree, shape: PyTree) -> Symbol:
    """The tensor, with a shape that is checked when it runs."""
    return raw.EnsureShape(input=x, shape=shape)


def expand_dims(input: PyTree, axis: PyTree) -> Symbol:
    """The tensor with another dimension of size one."""
    return raw.ExpandDims(input=as_tensor(input, None), axis=integers(axis))


def fill(dims: PyTree, value: PyTree) -> Symbol:
    """A tensor of one number."""
    return raw.Fill(dims=integers(dims), value=as_tensor(value, None))


def gather(params: PyTree, indices: PyTree, axis: PyTree = None, batch_dims: int = 0) -> Symbol:
    """Rows at places along an axis."""
    return raw.GatherV2(
        params=as_tensor(params, None),
        indices=integers(indices),
        axis=integers(batch_dims if axis is None else axis),
        batch_dims=batch_dims,
    )


def gather_nd(params: PyTree, indices: PyTree) -> Symbol:
    """Parts at places of several dimensions."""
    return raw.GatherNd(params=params, indices=indices)


def one_hot(
    indices: PyTree,
    depth: PyTree,
    on_value: PyTree = None,
    off_value: PyTree = None,
    axis: int = -1,
    dtype: PyTree = None,
) -> Symbol:
    """Rows with one number at the index."""
    of = float32 if dtype is None else dtypes.named(dtype)
    on = converted(1 if on_value is None else on_value, of)
    off = converted(0 if off_value is None else off_value, of)
    return raw.OneHot(indices=indices, depth=integers(depth), on_value=on, off_value=off, axis=axis)


def _filled(shape: PyTree, number: int, dtype: PyTree) -> Symbol:
    of = dtypes.named(dtype).dtype
    sizes = shape if isinstance(shape, Symbol) else _listed(shape)
    if not isinstance(sizes, Symbol):
        if all(isinstance(size, int | np.integer) for size in sizes):
            array = np.full(tuple(sizes), number, of) if np.prod(sizes) < _SMALL else None
            if array is not None:
                return converted(array)
        sizes = integers(sizes)
    return raw.Fill(dims=sizes, value=converted(np.array(number, of)))


def _listed(shape: PyTree) -> PyTree:
    if isinstance(shape, SymbolShape):
        return shape.as_list()
    return [shape] if isinstance(shape, int) else list(shape)


def zeros(shape: PyTree, dtype: PyTree = float32) -> Symbol:
    """Zeros of a shape."""
    return _filled(shape, 0, dtype)


def ones(shape: PyTree, dtype: PyTree = float32) -> Symbol:
    """Ones of a shape."""
    return _filled(shape, 1, dtype)


def zeros_like(input: PyTree, dtype: PyTree = None) -> Symbol:
    """Zeros of the shape of a tensor, and of its dtype unless one is given."""
    return _like(raw.ZerosLike, 0, input, dtype)


def ones_like(input: PyTree, dtype: PyTree = None) -> Symbol:
    """Ones of the shape of a tensor, and of its dtype unless one is given."""
    return _like(raw.OnesLike, 1, input, dtype)


def _like(op: Callable[..., Symbol], number: int, x: Symbol, dtype: PyTree) -> Symbol:
    of = x.dtype if dtype is None else dtypes.named(dtype)
    if x.shape.is_fully_defined():
        return _filled(x.shape, number, of)
    return op(x=x) if of == x.dtype else _filled(shape(x), number, of)


def pad(
    tensor: PyTree, paddings: PyTree, mode: str = "CONSTANT", constant_values: PyTree = 0
) -> Symbol:
    """The tensor with edges."""
    edges = integers(paddings)
    if mode.upper() != "CONSTANT":
        return raw.MirrorPad(input=tensor, paddings=edges, mode=mode.upper())
    if not isinstance(constant_values, Symbol) and np.all(np.equal(constant_values, 0)):
        return raw.Pad(input=tensor, paddings=edges)
    value = as_tensor(constant_values, tensor)
    return raw.PadV2(input=tensor, paddings=edges, constant_values=value)


def range(start: PyTree, limit: PyTree = None, delta: PyTree = 1, dtype: PyTree = None) -> Symbol:
    """Numbers from `start` to `limit`, or from 0 to `start`."""
    if limit is None:
        start, limit = 0, start
    parts = (start, limit, delta)
    known = next((x.dtype for x in parts if isinstance(x, Symbol)), None)
    of = known if dtype is None else dtypes.named(dtype)
    if of is None:
        of = float32 if any(isinstance(x, float) for x in parts) else int32
    a, b, c = (converted(x, of) for x in parts)
    return raw.Range(start=a, limit=b, delta=c)


def repeat(input: PyTree, repeats: PyTree, axis: int) -> Symbol:
    """Each element along an axis as often as one number says, one behind the other."""
    n = raw.Cast(x=integers(repeats), DstT=int32)
    if n.shape.num_elements() != 1:
        raise NotImplementedError(f"repeat: {n!r} is not one number")
    number: PyTree = reshape(n, [])
    sizes, rank = shape(input), input.shape.rank
    at = axis % rank
    multiples: list[PyTree] = [1] * (rank + 1)
    multiples[at + 1] = number
    repeated = tile(expand_dims(input, at + 1), multiples)
    return reshape(repeated, concat([sizes[:at], [number * sizes[at]], sizes[at + 1 :]], 0))


def reshape(tensor: PyTree, shape: PyTree) -> Symbol:
    """The elements in another shape."""
    return raw.Reshape(tensor=as_tensor(tensor, None), shape=integers(shape))


def reverse(tensor: PyTree, axis: PyTree) -> Symbol:
    """The elements in reverse order along axes."""
    return raw.ReverseV2(tensor=tensor, axis=integers(axis))


def shape(input: PyTree, out_type: PyTree = int32) -> Symbol:
    """The shape; a constant if it is known."""
    if input.shape.is_fully_defined():
        return converted(np.array(input.shape.as_list(), dtypes.named(out_type).dtype))
    return raw.Shape(input=input, out_type=out_type)


def size(input: PyTree, out_type: PyTree = int32) -> Symbol:
    """The number of elements; a constant if it is known."""
    if input.shape.is_fully_defined():
        return converted(np.array(input.shape.num_elements(), dtypes.named(out_type).dtype))
    return raw.Size(input=input, out_type=out_type)


def dynamic_update_slice(operand: PyTree, update: PyTree, start: PyTree) -> Symbol:
    """The operand with `update` at the place `start`."""
    return raw.XlaDynamicUpdateSlice(input=operand, update=update, indices=start)


def slice(input_: PyTree, begin: PyTree, size: PyTree) -> Symbol:
    """The part from `begin` of these sizes."""
    known = [x.dtype for x in (begin, size) if isinstance(x, Symbol)]
    first, sizes = (integers(x, known[0] if known else int32) for x in (begin, size))
    return raw.Slice(input=input_, begin=first, size=sizes)


def split(
    value: PyTree, num_or_size_splits: PyTree, axis: PyTree = 0, num: int | None = None
) -> list[Symbol]:
    """Equal parts, or parts of these sizes."""
    if isinstance(num_or_size_splits, int):
        at = integers(axis)
        return raw.Split(axis=at, value=value, num_split=num_or_size_splits)
    sizes = integers(num_or_size_splits)
    n = sizes.shape[0] if num is None else num
    return raw.SplitV(value=value, size_splits=sizes, axis=integers(axis), num_split=n)


def squeeze(input: PyTree, axis: PyTree = None) -> Symbol:
    """The tensor without dimensions of size one."""
    axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return raw.Squeeze(input=input, axis=axes)


def stack(values: PyTree, axis: int = 0) -> Symbol:
    """Tensors as rows of one."""
    if not any(isinstance(x, Symbol) for x in values):
        return converted(list(values))
    like = next(x for x in values if isinstance(x, Symbol))
    return raw.Pack(values=[as_tensor(x, like) for x in values], axis=axis)


def strided_slice(
    input_: PyTree, begin: PyTree, end: PyTree, strides: PyTree = None, **masks: int
) -> Symbol:
    """A part by begins, ends and strides."""
    first = integers(begin)
    steps = ones_like(first) if strides is None else integers(strides)
    last = integers(end)
    return raw.StridedSlice(input=input_, begin=first, end=last, strides=steps, **masks)


def tile(input: PyTree, multiples: PyTree) -> Symbol:
    """The tensor repeated along each dimension."""
    return raw.Tile(input=input, multiples=integers(multiples))


def transpose(a: PyTree, perm: PyTree = None) -> Symbol:
    """The dimensions in another order, without one in reverse."""
    order = np.arange(a.shape.rank, dtype=np.int32)[::-1] if perm is None else perm
    return raw.Transpose(x=as_tensor(a, None), perm=integers(order))


def unstack(value: PyTree, num: int | None = None, axis: int = 0) -> list[Symbol]:
    """The rows along an axis."""
    return raw.Unpack(value=value, num=value.shape[axis] if num is None else num, axis=axis)
