"""Writes rows by index in standard ops: the target's scatter op, or others if it lacks that.

A write takes an array, index vectors into its first dimensions, and a row of updates for each index
vector. It returns the array with the updates written, and drops updates that are out of bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import index_geometry as iw
from jax2tf._src.lowering.emit.compute_dtypes import BITS, FLOAT8
from jax2tf._src.lowering.emit.elementwise import negative
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor

Write = Callable[[Tensor, Tensor, Tensor], Tensor]

EXTREMES = ("scatter-min", "scatter-max")

_UPDATE = "TensorScatterUpdate"
_OPS = {
    "scatter-add": "TensorScatterAdd",
    "scatter-sub": "TensorScatterSub",
    "scatter-min": "TensorScatterMin",
    "scatter-max": "TensorScatterMax",
}
# The reduction of the numbers of one row, and the op of two arrays.
_OF_SEGMENTS = {
    "scatter-min": ("UnsortedSegmentMin", ops.minimum),
    "scatter-max": ("UnsortedSegmentMax", ops.maximum),
}


def at_once(
    ctx: Context,
    name: str,
    dtype: DType,
    combiner: jex_core.ClosedJaxpr | None,
    *,
    in_bounds: bool,
    unique: bool,
) -> Write | None:
    """Writes all updates at once; None if the target has no ops that agree with JAX.

    Args:
      name: the name of the primitive.
      dtype: the dtype of the array, which `as_ordered` returned if `is_ordered` is true.
      combiner: computes an element from the element and its update; None if the update replaces it.
      in_bounds: whether all indices are in bounds.
      unique: whether no row is written twice.
    """
    if combiner is None:
        return _replacing(ctx, dtype, in_bounds=in_bounds)
    # A wider dtype would round sums of float8 once instead of at each step.
    if name not in _OPS or dtype in FLOAT8:
        return None
    if name in EXTREMES:
        return _extreme(ctx, name, dtype, in_bounds=in_bounds)
    if not ctx.takes(_OPS["scatter-add"], dtype.name) and dtype.is_floating and unique:
        return None
    return _adding(ctx, name, dtype, in_bounds=in_bounds)


def _replacing(ctx: Context, dtype: DType, *, in_bounds: bool) -> Write:
    if not ctx.takes(_UPDATE, dtype.name):
        return functools.partial(_by_last_writers, ctx, in_bounds=in_bounds)
    op = _updating_a_copy if ctx.has(Quirk.UPDATES_IN_PLACE) else _op(_UPDATE)
    return _dropping(ctx, op, in_bounds=in_bounds)


def _updating_a_copy(tensor: Tensor, **others: object) -> Tensor:
    """TensorScatterUpdate into a copy: the OR or maximum of an array with itself.

    Other dtypes are updated without a copy: TensorFlow.js, which updates in place, has no such
    arrays.
    """
    copy = _COPIES.get(tensor.dtype)
    return _op(_UPDATE)(tensor=copy(tensor, tensor) if copy else tensor, **others)


_COPIES = {dtypes.bool_: ops.logical_or, dtypes.float32: ops.maximum, dtypes.int32: ops.maximum}


def _adding(ctx: Context, name: str, dtype: DType, *, in_bounds: bool) -> Write:
    zero = 0.0 if name == "scatter-sub" else -0.0

    def nothing(x: Tensor, indices: Tensor) -> Tensor:
        # The zero that changes no zero: 0 - 0 and -0 - 0, 0 + -0 and -0 + -0.
        del indices
        return ops.constant(zero if x.dtype.is_floating else 0, x.dtype)

    if ctx.takes(_OPS[name], dtype.name):
        return _dropping(ctx, _op(_OPS[name]), nothing, in_bounds=in_bounds)
    if name == "scatter-sub":
        add = _adding(ctx, "scatter-add", dtype, in_bounds=in_bounds)
        return lambda x, indices, updates: add(x, indices, negative(updates))
    return _dropping(ctx, _summing, nothing, in_bounds=in_bounds)


def _extreme(ctx: Context, name: str, dtype: DType, *, in_bounds: bool) -> Write | None:
    if dtype.is_floating or dtype.is_complex:
        # Kernels lose NaN and treat 0 and -0 as equal; there are none for complex numbers.
        return None
    if ctx.takes(_OPS[name], dtype.name):
        return _dropping(ctx, _op(_OPS[name]), _current, in_bounds=in_bounds)
    if dtype == dtypes.int32 and ctx.takes(_OF_SEGMENTS[name][0], dtype.name):
        return functools.partial(_extreme_of_segments, ctx, name)
    return None


def _op(name: str) -> Callable[..., Tensor]:
    return getattr(ops.raw, name)


def _dropping(
    ctx: Context,
    op: Callable[..., Tensor],
    neutral: Callable[[Tensor, Tensor], Tensor] | None = None,
    *,
    in_bounds: bool = False,
) -> Write:
    """Makes the op drop updates whose index is out of bounds.

    TensorFlow's kernels have a policy for that. For targets that ignore the policy, all indices are
    moved into bounds; a dropped update writes neutral values, or goes to a row after the last one.

    Args:
      neutral: maps an array and indices to updates that change nothing.
      in_bounds: whether all indices are in bounds anyway.
    """

    def write(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        return op(tensor=x, indices=indices, updates=updates, bad_indices_policy="IGNORE")

    def write_inside(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        bounds = _bounds(x, indices)
        near = iw.clipped(indices, bounds - 1)
        inside = ops.reduce_all(ops.equal(near, indices), -1, keepdims=True)
        if neutral or _is_one(indices):
            nothing = (neutral or _current)(x, near)
            window = [1] * (updates.shape.rank - indices.shape.rank + 1)
            mask = ops.reshape(inside, ops.concat([ops.shape(inside)[:-1], window], 0))
            return write(x, near, ops.where(mask, updates, nothing))
        beyond = ops.concat([bounds[:1], ops.zeros_like(bounds[1:])], 0)
        longer = ops.concat([x, x[:1]], 0)
        written = write(longer, ops.where(inside, near, beyond), updates)
        return ops.slice(written, [0] * x.shape.rank, ops.shape(x))

    return write_inside if ctx.has(Quirk.NO_BAD_INDICES) and not in_bounds else write


def _current(x: Tensor, indices: Tensor) -> Tensor:
    return ops.gather_nd(x, indices)


def _bounds(x: Tensor, indices: Tensor) -> Tensor:
    return ops.cast(ops.shape(x)[: indices.shape[-1]], indices.dtype)


def _is_one(indices: Tensor) -> bool:
    """Whether there is a single index vector."""
    return bool(indices.shape[:-1].num_elements() == 1)


def _summing(tensor: Tensor, indices: Tensor, updates: Tensor, **_: object) -> Tensor:
    """TensorScatterAdd for engines that can only scatter into zeros.

    Sums of floats start with the current element and are rounded at each step. A sum of only
    negative zeros becomes a positive zero.
    """
    shape = ops.shape(tensor)
    if not tensor.dtype.is_floating:
        return tensor + ops.raw.ScatterNd(indices=indices, updates=updates, shape=shape)
    rows, places, updates = _rows_and_places(tensor, indices, updates, in_bounds=True)
    every = ops.concat([ops.range(ops.shape(rows)[0]), places], 0)
    sums = ops.raw.ScatterNd(
        indices=ops.expand_dims(every, -1),
        updates=ops.concat([rows, updates], 0),
        shape=ops.shape(rows),
    )
    return _like(tensor, sums)


def _flat(indices: Tensor, x: Tensor) -> Tensor:
    """Flattens index vectors, which are in bounds of `x`, to row numbers."""
    columns = ops.unstack(indices, axis=-1) if indices.shape[-1] > 1 else [indices]
    place = columns[0]
    for d, column in enumerate(columns[1:], 1):
        size = x.shape[d] or ops.cast(ops.shape(x)[d], indices.dtype)
        place = place * size + column
    return ops.reshape(place, [-1])


def _rows_and_places(
    x: Tensor, indices: Tensor, updates: Tensor, in_bounds: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` as rows; the row of each update, one past the last if out of bounds; the updates."""
    row = ops.shape(x)[indices.shape[-1] :]
    rows = ops.reshape(x, ops.concat([[-1], row], 0))
    if in_bounds:
        places = _flat(indices, x)
    else:
        near = iw.clipped(indices, _bounds(x, indices) - 1)
        inside = ops.reshape(ops.reduce_all(ops.equal(near, indices), -1), [-1])
        beyond = ops.cast(ops.shape(rows)[0], indices.dtype)
        places = ops.where(inside, _flat(near, x), beyond)
    return rows, ops.cast(places, dtypes.int32), ops.reshape(updates, ops.concat([[-1], row], 0))


def _by_last_writers(
    ctx: Context, x: Tensor, indices: Tensor, updates: Tensor, *, in_bounds: bool
) -> Tensor:
    """Each row gets the last of its updates, as TensorScatterUpdate does it."""
    rows, places, updates = _rows_and_places(x, indices, updates, in_bounds)
    count = ops.shape(rows)[0]
    mask = [-1] + [1] * (rows.shape.rank - 1)
    if _is_one(indices):
        is_written = ops.reshape(ops.equal(ops.range(count), places), mask)
        return _like(x, ops.where(is_written, updates, rows))
    turns = ops.range(ops.shape(updates)[0])
    last = _of_segments(ctx, "scatter-max", turns, places, count, in_bounds)
    chosen = ops.gather(updates, ops.maximum(last, 0))
    is_written = ops.reshape(ops.greater_equal(last, 0), mask)
    return _like(x, ops.where(is_written, chosen, rows))


def _like(x: Tensor, rows: Tensor) -> Tensor:
    return rows if x.shape.rank == rows.shape.rank else ops.reshape(rows, ops.shape(x))


def _of_segments(
    ctx: Context,
    name: str,
    data: Tensor,
    places: Tensor,
    count: Tensor,
    in_bounds: bool = False,
) -> Tensor:
    """The extreme of each row's int32 data; a row without data gets the far end of the range."""
    op_name = _OF_SEGMENTS[name][0]
    if data.shape.rank == 1 and not ctx.takes(op_name, "int32"):
        return _of_masks(name, data, places, count)
    op = _op(op_name)
    if in_bounds:
        return op(data=data, segment_ids=places, num_segments=count)
    return op(data=data, segment_ids=places, num_segments=count + 1)[:-1]


def _of_masks(name: str, data: Tensor, places: Tensor, count: Tensor) -> Tensor:
    """Like `_of_segments`, for numbers below 2**30; moves numbers of other rows out of range."""
    is_other = ops.not_equal(ops.expand_dims(ops.range(count), 1), places)
    beyond = ops.cast(is_other, dtypes.int32) * 2**30
    if name == "scatter-max":
        return ops.reduce_max(data - beyond, 1)
    return ops.reduce_min(data + beyond, 1)


def _extreme_of_segments(
    ctx: Context, name: str, x: Tensor, indices: Tensor, updates: Tensor
) -> Tensor:
    rows, places, updates = _rows_and_places(x, indices, updates)
    found = _of_segments(ctx, name, updates, places, ops.shape(rows)[0])
    return _like(x, _OF_SEGMENTS[name][1](rows, found))


def is_ordered(ctx: Context, name: str, dtype: DType) -> bool:
    """Whether the minimum or maximum is taken of the ordered integers of `as_ordered`.

    TensorFlow's kernels for floats lose NaN and treat 0 and -0 as equal.
    """
    if name not in EXTREMES:
        return False
    if ctx.wants("Bitcast", "float32") or not dtype.is_floating:
        return True
    bits = BITS[_widened(dtype)]
    if not ctx.takes("Bitcast", dtype.name):
        return False
    return _extreme(ctx, name, bits, in_bounds=False) is not None


def as_ordered(x: Tensor, name: str) -> Tensor:
    """`x` as integers in the same order, for a minimum or maximum; complex numbers are unchanged.

    As integers, the bits of floats are in order once those of negative numbers are flipped. NaN
    becomes the NaN that wins.
    """
    if x.dtype.is_bool:
        return ops.cast(x, dtypes.int32)
    if not x.dtype.is_floating:
        return x
    x = ops.cast(x, _widened(x.dtype))
    nan = ops.constant(math.nan if name == "scatter-max" else -math.nan, x.dtype)
    return _flipped(ops.bitcast(ops.where(ops.is_nan(x), nan, x), BITS[x.dtype]))


def from_ordered(x: Tensor, dtype: DType) -> Tensor:
    """The inverse of `as_ordered`."""
    if dtype.is_floating:
        x = ops.bitcast(_flipped(x), _widened(dtype))
    return ops.cast(x, dtype)


def _widened(dtype: DType) -> DType:
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _flipped(bits: Tensor) -> Tensor:
    return ops.where(bits < 0, ops.bitwise_xor(bits, bits.dtype.max), bits)


def in_turns(ctx: Context, combiner: jex_core.ClosedJaxpr, unique: bool) -> Write:
    """Applies any combiner: first the first update of each element, then the second, and so on."""
    return functools.partial(_write_in_turns, ctx, combiner, unique)


def _write_in_turns(
    ctx: Context,
    combiner: jex_core.ClosedJaxpr,
    unique: bool,
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
) -> Tensor:
    depth = indices.shape[-1]
    indices = ops.reshape(indices, [-1, depth])
    updates = ops.reshape(updates, ops.concat([[-1], ops.shape(x)[depth:]], 0))
    bounds = _bounds(x, indices)
    near = iw.clipped(indices, bounds - 1)
    inside = ops.reduce_all(ops.equal(near, indices), -1)
    replace = _replacing(ctx, x.dtype, in_bounds=False)

    def step(chosen: Tensor, x: Tensor) -> Tensor:
        combined = _elementwise(ctx, combiner, ops.gather_nd(x, near), updates)
        return replace(x, ops.where(ops.expand_dims(chosen, -1), near, -1), combined)

    if unique or _is_one(indices):
        return step(inside, x)
    places, count = _flat(near, x), ops.reduce_prod(bounds)

    def turn(left: Tensor, x: Tensor) -> Sequence[Tensor]:
        chosen = left & _is_first(ctx, ops.where(left, places, count), count + 1)
        return left & ~chosen, step(chosen, x)

    return ops.while_loop(lambda left, _: ops.reduce_any(left), turn, (inside, x))[1]


def _is_first(ctx: Context, places: Tensor, count: Tensor) -> Tensor:
    """For each number (below `count`), whether no equal number comes before it."""
    turns = ops.range(ops.size(places))
    if not ctx.takes(_UPDATE, "int32"):
        places = ops.cast(places, dtypes.int32)
        first = _of_segments(
            ctx, "scatter-min", turns, places, ops.cast(count, dtypes.int32), in_bounds=True
        )
    else:
        # The updates are reversed, so that the first one is written last and stays.
        first = _op(_UPDATE)(
            tensor=ops.zeros(ops.reshape(count, [1]), dtypes.int32),
            indices=ops.expand_dims(ops.reverse(places, [0]), -1),
            updates=ops.reverse(turns, [0]),
        )
    return ops.equal(ops.gather(first, places), turns)


def _elementwise(
    ctx: Context, combiner: jex_core.ClosedJaxpr, current: Tensor, updates: Tensor
) -> Tensor:
    """Applies the combiner, a scalar jaxpr, to arrays."""
    dtype = combiner.in_avals[0].dtype
    length = math.prod(ctx.avals_in[2].shape)

    def make() -> jex_core.ClosedJaxpr:
        vector = jax.ShapeDtypeStruct((length,), dtype)
        function = jax.vmap(jex_core.jaxpr_as_fun(combiner))
        return jax.make_jaxpr(function)(vector, vector)

    vectorized = ctx.cached("elementwise", make, Identity(combiner.jaxpr), length)
    inner = dtypes.to_tf(dtype)
    vectors = (ops.cast(ops.reshape(v, [-1]), inner) for v in (current, updates))
    (result,) = ctx.inline(vectorized, *vectors)
    return ops.reshape(ops.cast(result, updates.dtype), ops.shape(updates))
