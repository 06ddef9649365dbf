"""Sorting: sort, top_k, approx_top_k.

JAX sorts by a total order in which NaNs come after infinity. `sort` treats all zeros as equal, and
all NaNs; `top_k` distinguishes them by their bits. TensorFlow's ops do not define the place of a
NaN, so `top_k` sorts integers in JAX's order. Graphs without XLA ops cannot read the bits: there,
`sort` has "is NaN" and the number as keys, and `top_k` of float32 has the number and then the order
of the bits, without the sign of a NaN.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from jax2tf._src import compat, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import in_carrier
from jax2tf._src.lowering.emit.compute_dtypes import BITS, COMPUTED, HOLDS_INT4, SORTED, carrier_of
from jax2tf._src.lowering.registry import register
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Computation, Tensor
from jax2tf._src.util.typing import Dim


@register("sort", op="XlaVariadicSort")
def _sort(
    ctx: Context, *operands: Tensor, dimension: int, is_stable: bool, num_keys: int
) -> Sequence[Tensor]:
    if operands[0].shape[dimension] in (0, 1):
        return operands
    is_compiled = surroundings.in_compiled_function()
    by_top_k = ctx.wants(Optimization.SORTS_BY_TOP_K) and not is_compiled
    by_integers = num_keys == 1 and operands[0].dtype in _INTEGERS
    if by_top_k and by_integers and dimension == operands[0].shape.rank - 1:
        return _sort_by_integers(ctx, *operands)
    stored = [ops.cast(x, carrier_of(COMPUTED, x.dtype)) for x in operands]
    comparator = _comparator(tuple(x.dtype for x in stored), num_keys)

    def made(stored: Sequence[Tensor], axis: int) -> Sequence[Tensor]:
        results: Sequence[Tensor] = ops.xla.xla_variadic_sort(
            stored, ops.constant(axis), comparator=comparator, is_stable=is_stable
        )
        return results

    results = made(stored, dimension)
    if not ops.executing_eagerly():
        compat.vectorized.map_rows_by(
            results[0].op, len(stored), lambda rows: made(rows, dimension + 1)
        )
    return [ops.cast(r, x.dtype) for r, x in zip(results, operands, strict=True)]


# The integers for which TopKV2 and Invert have kernels.
_INTEGERS = frozenset(
    {
        dtypes.int8,
        dtypes.uint8,
        dtypes.int16,
        dtypes.int32,
        dtypes.uint32,
        dtypes.int64,
        dtypes.uint64,
    }
)


def _sort_by_integers(ctx: Context, key: Tensor, *others: Tensor) -> Sequence[Tensor]:
    """Sorts stably along the last axis, by one integer key; see `_stable_order`."""
    size = ctx.dim(ctx.avals_in[0].shape[-1])
    k = ctx.number(size) if isinstance(size, int) else size
    values, order = ops.raw.TopKV2(input=ops.raw.Invert(x=key), k=k)
    last = key.shape.rank - 1
    axis = ctx.number(last)

    def put_in_order(x: Tensor) -> Tensor:
        return ops.raw.GatherV2(params=x, indices=order, axis=axis, batch_dims=last)

    in_order = [in_carrier(HOLDS_INT4, put_in_order, x) for x in others]
    return [ops.raw.Invert(x=values), *in_order]


@cached
def _comparator(operands: tuple[DType, ...], num_keys: int) -> Computation:
    """Whether the first scalars of the pairs go before the second, by the first keys."""

    def before(*scalars: Tensor) -> Tensor:
        pairs = list(zip(scalars[::2], scalars[1::2], strict=True))[:num_keys]
        *major, last = itertools.chain.from_iterable(_real_pairs(a, b) for a, b in pairs)
        result = _less(*last)
        for a, b in reversed(major):
            result = _less(a, b) | (~_less(b, a) & result)
        return result

    return ops.computation(before, [dtype for dtype in operands for _ in range(2)])


def _real_pairs(a: Tensor, b: Tensor) -> list[tuple[Tensor, Tensor]]:
    if a.dtype.is_complex:
        return [(ops.real(a), ops.real(b)), (ops.imag(a), ops.imag(b))]
    if a.dtype == dtypes.bool_:
        return [(ops.cast(a, dtypes.int32), ops.cast(b, dtypes.int32))]
    return [(a, b)]


def _less(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_floating:
        return (a < b) | (ops.is_nan(b) & ~ops.is_nan(a))
    return a < b


@register("sort")
def _sort_by_keys(
    ctx: Context, *operands: Tensor, dimension: int, is_stable: bool, num_keys: int
) -> Sequence[Tensor]:
    """Sorts stably by the last key, then by the key before it, and so on."""
    del is_stable
    if operands[0].shape[dimension] in (0, 1):
        return operands
    if len(operands) == 1 and operands[0].dtype in _FLOATS:
        (x,) = operands
        numbers = _sorted_floats(ctx, _to_last(_stored(x), dimension))
        return [_from_last(ops.cast(numbers, x.dtype), dimension)]
    keys = [key for x in operands[:num_keys] for key in _sort_keys(ctx, _to_last(x, dimension))]
    order = _stable_order(keys)

    def put_in_order(x: Tensor) -> Tensor:
        return _from_last(_take(_to_last(x, dimension), order), dimension)

    return [in_carrier(HOLDS_INT4, put_in_order, x) for x in operands]


_FLOATS = frozenset({dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64})


def _sorted_floats(ctx: Context, x: Tensor) -> Tensor:
    """Sorts along the last axis in one pass: counts the NaNs and writes them at the end."""
    is_nan, key = _nan_and_key(ctx, x)
    numbers = _take(ops.where(is_nan, ops.constant(math.inf, x.dtype), x), _stable_order([key]))
    size = _last_size(x)
    count = ops.reduce_sum(ops.cast(is_nan, dtypes.int32), -1, keepdims=True)
    # The count is added to a vector: see the quirk "no_integers_of_three_dimensions".
    is_number = ops.range(size) + count < size
    return ops.where(is_number, numbers, ops.constant(math.nan, x.dtype))


def _sort_keys(ctx: Context, x: Tensor) -> list[Tensor]:
    """The keys by which `sort` orders `x`, the most significant key first."""
    if x.dtype.is_complex:
        return [*_sort_keys(ctx, ops.real(x)), *_sort_keys(ctx, ops.imag(x))]
    x = _stored(x)
    if not x.dtype.is_floating:
        return [x]
    is_nan, key = _nan_and_key(ctx, x)
    return [ops.cast(is_nan, dtypes.int32), key]


def _stored(x: Tensor) -> Tensor:
    """Casts `x` to a dtype that has kernels."""
    return ops.cast(x, carrier_of(SORTED, x.dtype))


def _nan_and_key(ctx: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """A mask of the NaNs, and floats in the same order without NaNs and -0."""
    is_nan = ctx.is_nan(x)
    key = ops.where(ops.equal(x, 0), ops.zeros([], x.dtype), x)
    return is_nan, ops.where(is_nan, ops.constant(math.inf, x.dtype), key)


def _stable_order(keys: Sequence[Tensor]) -> Tensor:
    """Indices along the last axis, sorted by the last key, then by the key before it, and so on.

    TopKV2 puts larger keys first, and of equal keys the one with the smaller index.
    """
    order: Any = None
    for key in reversed(keys):
        if order is not None:
            key = _take(key, order)
        by_key = ops.top_k(_reversed(key), _last_size(key)).indices
        order = by_key if order is None else _take(order, by_key)
    return order


def _last_size(x: Tensor) -> Dim:
    known = x.shape[-1]
    return ops.shape(x)[-1] if known is None else known


def _reversed(key: Tensor) -> Tensor:
    """Reverses the order of the numbers; flips the bits of integers, because -x could overflow."""
    if key.dtype.is_floating:
        return -key
    # The constant is a vector: see the quirk "exchanges_constant_and_transpose".
    return ops.constant([key.dtype.max if key.dtype.is_unsigned else -1], key.dtype) - key


@register("top_k")
def _top_k(
    ctx: Context, x: Tensor, *, k: int, axis: int, is_stable: bool = True
) -> Sequence[Tensor]:
    del is_stable  # TopKV2 is always stable
    return _extremes(ctx, x, k, axis, largest=True)


@register("approx_top_k")
def _approx_top_k(
    ctx: Context,
    x: Tensor,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> Sequence[Tensor]:
    # JAX is exact on CPUs, although it need not be. Without aggregation it returns more than k.
    del k, recall_target, reduction_input_size_override, aggregate_to_topk
    axis = reduction_dimension % x.shape.rank
    return _extremes(ctx, x, ctx.avals_out[0].shape[axis], axis, largest=is_max_k)


def _extremes(ctx: Context, x: Tensor, k: Dim, axis: int, *, largest: bool) -> Sequence[Tensor]:
    """The `k` largest or smallest elements along `axis`, and their indices."""
    k = ctx.dim(k)
    # The bits of a float16 hold the sign of a NaN, which a cast to float32 loses.
    is_by_bits = x.dtype == dtypes.float16 and ctx.takes("Bitcast")
    stored = _to_last(x if is_by_bits else _stored(x), axis)
    if _is_in_order(ctx, stored.dtype, largest):
        values, indices = ops.top_k(stored, k)
        return [_from_last(ops.cast(values, x.dtype), axis), _from_last(indices, axis)]
    if stored.dtype == dtypes.float32 and not ctx.wants("Bitcast", "float32"):
        order = _order_without_bits(ctx, stored, k, largest)
        values = _from_last(_take(stored, order), axis)
        return [ops.cast(values, x.dtype), _from_last(order, axis)]
    flip: Callable[[Tensor], Tensor] = (lambda key: key) if largest else _reversed
    values, indices = ops.top_k(flip(_total_order(stored)), k)
    values = _from_last(_from_total_order(flip(values), stored.dtype), axis)
    # Form: bools_by_comparison.
    values = ops.not_equal(values, 0) if x.dtype == dtypes.bool_ else ops.cast(values, x.dtype)
    return [values, _from_last(indices, axis)]


def _is_in_order(ctx: Context, dtype: DType, largest: bool) -> bool:
    """Whether TopKV2 sorts numbers of `dtype` in JAX's order without a conversion."""
    if largest and ctx.target.assume_finite and dtype in (dtypes.float32, dtypes.int32):
        return True
    compiled = (
        ctx.wants(Optimization.FLOATS_IN_TOP_K)
        and ctx.wants("XlaLaunch")
        and surroundings.in_compiled_function()
    )
    return largest and compiled and dtype == dtypes.float32


def _order_without_bits(ctx: Context, x: Tensor, k: Dim, largest: bool) -> Tensor:
    """Indices of the `k` largest or smallest floats along the last axis.

    The major key is the number. The minor key separates a NaN from an infinity and 0 from -0, which
    have equal major keys. The candidates are the elements beyond the k-th number, and of the
    elements equal to it those that the minor key prefers. Then they are sorted by one key after the
    other.
    """
    is_nan, major = _nan_and_key(ctx, x)
    is_upper = is_nan | (ops.equal(x, 0) & ops.less(0.0, ops.reciprocal(x)))
    minor = ops.cast(is_upper if largest else ~is_upper, dtypes.float32)
    major = major if largest else -major
    if isinstance(k, int) and k == 0:
        return ops.top_k(major, 0).indices
    least = ops.reduce_min(ops.top_k(major, k).values, -1, keepdims=True)
    rank = ops.where(least < major, 2.0, ops.where(major < least, -1.0, minor))
    candidates = ops.top_k(rank, k).indices
    order = ops.top_k(_take(minor, candidates), k).indices
    candidates = _take(candidates, order)
    return _take(candidates, ops.top_k(_take(major, candidates), k).indices)


def _total_order(x: Tensor) -> Tensor:
    """Integers in the total order (IEEE 754, 5.10) of the bits of `x`."""
    if not x.dtype.is_floating:
        return x
    return _flip_negative(ops.bitcast(x, BITS[x.dtype]))


def _from_total_order(key: Tensor, dtype: DType) -> Tensor:
    return ops.bitcast(_flip_negative(key), dtype) if dtype.is_floating else key


def _flip_negative(bits: Tensor) -> Tensor:
    """Converts sign and magnitude to two's complement, and back."""
    sign = ops.right_shift(bits, ops.constant(8 * bits.dtype.size - 1, bits.dtype))
    return ops.bitwise_xor(bits, ops.bitwise_and(sign, bits.dtype.max))


def _take(x: Tensor, order: Tensor) -> Tensor:
    # Form: last_axis_by_number.
    last = x.shape.rank - 1
    return ops.gather(x, order, axis=last, batch_dims=last)


def _to_last(x: Tensor, axis: int) -> Tensor:
    last = x.shape.rank - 1
    if axis == last:
        return x
    return ops.transpose(x, [d for d in range(last + 1) if d != axis] + [axis])


def _from_last(x: Tensor, axis: int) -> Tensor:
    last = x.shape.rank - 1
    if axis == last:
        return x
    dims = list(range(last))
    return ops.transpose(x, [*dims[:axis], last, *dims[axis:]])
