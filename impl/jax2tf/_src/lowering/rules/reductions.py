"""Reductions over whole axes: sum, max, argmax and others, and `reduce` by any computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.combining import halved, on_arrays, scanned, to_carrier
from jax2tf._src.lowering.emit.compute_dtypes import COMPUTED, HOLDS_NARROW, carrier_of
from jax2tf._src.lowering.emit.mesh import collectives
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.registry import register
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.tracing.jaxprs import equations
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Param, Shape

Reducer = Callable[..., Tensor]


def widened(function: Reducer, x: Tensor) -> Tensor:
    """`function(x)`, computed in a dtype that has kernels."""
    wider = COMPUTED.get(x.dtype)
    return function(x) if wider is None else ops.cast(function(ops.cast(x, wider)), x.dtype)


@register("reduce_sum")
def _reduce_sum(ctx: Context, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    if not axes:
        return x
    if x.dtype == dtypes.int32 and ctx.has(Quirk.ADDS_INTEGERS_AS_FLOATS) and not _counts(x):
        return _last_of_sums(ctx, x, axes)
    keepdims = _keeps_dimensions(ctx)
    return widened(lambda x: ops.reduce_sum(x, ctx.vector(axes), keepdims=keepdims), x)


def _keeps_dimensions(ctx: Context) -> bool:
    """Whether the result keeps the reduced axes with size one (see broadcasts.py)."""
    return len(ctx.avals_out[0].shape) == len(ctx.avals_in[0].shape)


def _counts(x: Tensor) -> bool:
    """Whether x was cast from bools; float32 counts them exactly up to 2**24."""
    return (
        not ops.executing_eagerly() and x.op.type == "Cast" and x.op.inputs[0].dtype == dtypes.bool_
    )


def _last_of_sums(ctx: Context, x: Tensor, axes: Sequence[int]) -> Tensor:
    """The sum as the last cumulative sum along each axis, with a zero in front for empty axes."""
    shape = ctx.avals_in[0].shape
    for axis in axes:
        if not isinstance(shape[axis], int) or shape[axis] == 0:
            edges = [(int(d == axis), 0) for d in range(len(shape))]
            x = ops.raw.PadV2(
                input=x, paddings=ctx.vector(edges), constant_values=ops.zeros([], x.dtype)
            )
        sums = ops.raw.Cumsum(x=x, axis=ctx.number(axis), reverse=True)
        first = [slice(None)] * axis + [slice(0, 1)]
        x = sums[tuple(first)]
    return ops.squeeze(x, axes)


@register("reduce_prod")
def _reduce_prod(ctx: Context, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    if not axes:
        return x
    return widened(lambda x: ops.reduce_prod(x, ctx.vector(axes)), x)


@register("reduce_max")
def _reduce_max(ctx: Context, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _extreme(ctx, ops.reduce_max, ops.reduce_any, x, axes)


@register("reduce_min")
def _reduce_min(ctx: Context, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _extreme(ctx, ops.reduce_min, ops.reduce_all, x, axes)


_OVER_AXES = {"psum": _reduce_sum, "pmax": _reduce_max, "pmin": _reduce_min}


@register("psum", "pmax", "pmin")
def _over_axes(
    ctx: Context,
    x: Tensor,
    *,
    axes: Shape,
    axis_index_groups: collectives.Groups = None,
) -> Tensor:
    # A vmap over the axis that the function names leaves these, with numbers as axes.
    if axis_index_groups is not None or any(isinstance(axis, str) for axis in axes):
        raise ctx.unsupported("it acts across devices", "convert what one device does", axes=axes)
    return _OVER_AXES[ctx.eqn.primitive.name](ctx, x, axes=axes)


def _extreme(
    ctx: Context, reduce: Reducer, reduce_bool: Reducer, x: Tensor, axes: Sequence[int]
) -> Tensor:
    if not axes:
        return x
    if x.dtype == dtypes.bool_:
        return reduce_bool(x, ctx.vector(axes))
    if any(ctx.avals_in[0].shape[d] == 0 for d in axes):
        return _identity(ctx, x.dtype, -1 if reduce is ops.reduce_max else 1)
    if x.dtype.is_complex:
        return _lexicographic(reduce, x, axes)
    if x.dtype == dtypes.int32 and ctx.has(Quirk.ORDERS_INTEGERS_AS_FLOATS):
        if reduce is ops.reduce_max:
            return _largest_by_halves(ctx, x, axes)
        return ops.raw.Invert(x=_largest_by_halves(ctx, ops.raw.Invert(x=x), axes))
    return widened(lambda x: _with_nan(ctx, reduce, x, axes), x)


def _is_cpu(device: str) -> bool:
    return "/device:CPU:" in device


def _identity(ctx: Context, dtype: DType, sign: int) -> Tensor:
    """JAX's extreme of an empty axis: the far end of the dtype's range."""
    (aval,) = ctx.avals_out
    if dtype.is_integer:
        limits = jnp.iinfo(aval.dtype)
        end: ArrayLike = limits.min if sign < 0 else limits.max
    else:
        infinite = np.array(sign * math.inf).astype(aval.dtype)
        end = infinite if np.isinf(infinite) else sign * jnp.finfo(aval.dtype).max
    end = ops.constant(end, carrier_of(COMPUTED, dtype))
    return ops.cast(ops.fill(ctx.shape(aval.shape), end), dtype)


def _with_nan(ctx: Context, reduce: Reducer, x: Tensor, axes: Sequence[int]) -> Tensor:
    """`reduce(x, axes)`, with NaN if there is one; only TensorFlow's CPU kernels keep NaN."""
    over = {"axis": ctx.vector(axes), "keepdims": _keeps_dimensions(ctx)}
    result = reduce(x, **over)
    if not x.dtype.is_floating or ctx.target.assume_finite:
        return result
    if x.dtype == dtypes.float32 and ctx.has(Quirk.EXTREMES_FROM_A_FINITE_NUMBER):
        result = _with_infinity(ctx, reduce, x, over, result)
    if ops.executing_eagerly() and _is_cpu(result.device):
        return result
    nan = ctx.constant(np.array(math.nan, x.dtype.as_numpy_dtype))
    return select(ctx, ops.reduce_any(ctx.is_nan(x), **over), nan, result)


def _with_infinity(
    ctx: Context, reduce: Reducer, x: Tensor, over: Mapping[str, Param], result: Tensor
) -> Tensor:
    """The extreme `result`, or the identity infinity if no element is beyond that infinity."""
    limits = np.finfo(np.float32)
    if reduce is ops.reduce_max:
        beyond, infinity = ops.raw.LessEqual(x=limits.min, y=x), -np.float32(math.inf)
    else:
        beyond, infinity = ops.raw.LessEqual(x=x, y=limits.max), np.float32(math.inf)
    return select(ctx, ops.reduce_any(beyond, **over), result, ctx.constant(infinity))


def _largest_by_halves(ctx: Context, x: Tensor, axes: Sequence[int]) -> Tensor:
    """The largest int32: the largest high half, with the largest low half beside it.

    An open dimension may turn out empty: both halves are then the least int32, and so is the
    result, because the product wraps around to 0.
    """
    along = ctx.vector(axes)
    high = ops.right_shift(x, ctx.constant(np.int32(16)))
    low = ops.bitwise_and(x, ctx.constant(np.int32(2**16 - 1)))
    largest = ops.reduce_max(high, along, keepdims=True)
    beside = select(ctx, ops.equal(high, largest), low, ctx.constant(np.int32(-1)))
    high = ops.squeeze(largest, axes)
    return high * ctx.constant(np.int32(2**16)) + ops.reduce_max(beside, along)


def _lexicographic(reduce: Reducer, x: Tensor, axes: Sequence[int]) -> Tensor:
    """The extreme complex number by its real part, then by its imaginary part."""
    real, imag = ops.real(x), ops.imag(x)
    extreme = reduce(real, axes, keepdims=True)
    no_candidate = ops.constant(float("-inf" if reduce is ops.reduce_max else "inf"), imag.dtype)
    imag = reduce(ops.where(ops.equal(real, extreme), imag, no_candidate), axes)
    return ops.complex(ops.squeeze(extreme, axes), imag)


@register("argmax")
def _argmax(ctx: Context, x: Tensor, *, axes: Sequence[int], index_dtype: np.dtype) -> Tensor:
    return _extreme_index(ctx, ops.argmax, x, axes)


@register("argmin")
def _argmin(ctx: Context, x: Tensor, *, axes: Sequence[int], index_dtype: np.dtype) -> Tensor:
    return _extreme_index(ctx, ops.argmin, x, axes)


def _extreme_index(ctx: Context, arg: Reducer, x: Tensor, axes: Sequence[int]) -> Tensor:
    if ctx.avals_in[0].shape[axes[0]] == 1:
        return ctx.zeros(ctx.avals_out[0])
    # JAX's axis may be a NumPy integer, whose dtype TensorFlow would keep.
    axis = ctx.number(int(axes[0]))
    dtype = ctx.out if ctx.out in (dtypes.int32, dtypes.int64) else dtypes.int32
    x = ops.cast(x, carrier_of(COMPUTED, x.dtype))
    if x.dtype == dtypes.bool_ and not ctx.wants("ArgMax", "bool"):
        x = ops.cast(x, dtypes.int32)
    index = arg(x, axis, output_type=dtype)
    if x.dtype.is_floating and not ctx.target.assume_finite:
        # The first NaN wins; TensorFlow's kernels skip NaNs.
        nan = ctx.is_nan(x)
        of_bools = ctx.wants("ArgMax", "bool")
        first_nan = ops.argmax(nan if of_bools else ops.cast(nan, dtypes.int32), axis, dtype)
        index = ops.where(ops.reduce_any(nan, axis), first_nan, index)
    return ops.cast(index, ctx.out)


def _parity(x: Tensor, axes: Sequence[int]) -> Tensor:
    # The int32 sum may wrap, but its lowest bit stays right.
    ones = ops.reduce_sum(ops.cast(x, dtypes.int32), axes)
    return ops.raw.Equal(x=ops.raw.FloorMod(x=ones, y=ops.constant(2)), y=ops.constant(1))


def _reduce_logically(
    reduce_bool: Reducer, bitwise: Callable[..., jax.Array], identity: int
) -> Callable[..., Tensor]:
    """A rule that uses `reduce_bool` for bools, and a general reduction for integers."""

    def rule(ctx: Context, x: Tensor, *, axes: Sequence[int]) -> Tensor:
        if not axes:
            return x
        if x.dtype == dtypes.bool_:
            return reduce_bool(x, ctx.vector(axes))
        reduce = _reduce if ctx.wants("XlaVariadicReduceV2") else _reduce_by_folding
        return _reduce_by(ctx, reduce, bitwise, x, identity, axes)

    return rule


def _reduce_by(
    ctx: Context,
    reduce: Callable[..., Sequence[Tensor]],
    combine: Callable[..., jax.Array],
    x: Tensor,
    identity: int,
    axes: Sequence[int],
) -> Tensor:
    """Reduces one array by a JAX function of two numbers and its identity."""
    scalar = jax.ShapeDtypeStruct((), ctx.avals_in[0].dtype)
    jaxpr = ctx.cached(
        "reduce by", lambda: jax.make_jaxpr(combine)(scalar, scalar), combine, x.dtype
    )
    init = ops.cast(ops.constant(identity), x.dtype)
    (result,) = reduce(ctx, x, init, computation=combine, jaxpr=jaxpr, dimensions=axes)
    return result


register("reduce_and")(_reduce_logically(ops.reduce_all, lax.bitwise_and, -1))
register("reduce_or")(_reduce_logically(ops.reduce_any, lax.bitwise_or, 0))
register("reduce_xor")(_reduce_logically(_parity, lax.bitwise_xor, 0))


@register("reduce", op="XlaVariadicReduceV2")
def _reduce(
    ctx: Context,
    *operands: Tensor,
    computation: jex_core.ClosedJaxpr,
    jaxpr: jex_core.ClosedJaxpr,
    dimensions: Sequence[int],
) -> Sequence[Tensor]:
    n = len(operands) // 2
    has_narrow = any(x.dtype in HOLDS_NARROW for x in operands[:n])
    primitives = (eqn.primitive for eqn in equations(jaxpr.jaxpr))
    if has_narrow or not _NOT_IN_COMPUTATIONS.isdisjoint(primitives):
        return _reduce_by_folding(
            ctx, *operands, computation=computation, jaxpr=jaxpr, dimensions=dimensions
        )
    return ops.xla.xla_variadic_reduce_v2(
        operands[:n], operands[n:], dimensions, ctx.computation(jaxpr)
    )


# TensorFlow compiles these, but not inside a computation of an XLA op.
_NOT_IN_COMPUTATIONS = frozenset(
    named(
        "bessel_i0e",
        "bessel_i1e",
        "erf_inv",
        "igamma",
        "igamma_grad_a",
        "igammac",
        "population_count",
        "rem",
    )
)


@register("reduce")
def _reduce_by_folding(
    ctx: Context,
    *operands: Tensor,
    computation: jex_core.ClosedJaxpr,
    jaxpr: jex_core.ClosedJaxpr,
    dimensions: Sequence[int],
) -> Sequence[Tensor]:
    """Folds the static axes one after the other, then the dynamic axes as one."""
    del computation
    n = len(operands) // 2
    shape, out_shape = ctx.avals_in[0].shape, ctx.avals_out[0].shape
    inits = [ops.broadcast_to(to_carrier(i), ctx.shape(out_shape)) for i in operands[n:]]
    known = [d for d in dimensions if isinstance(shape[d], int)]
    unknown = [d for d in dimensions if d not in known]
    if any(shape[d] == 0 for d in known):
        xs: Sequence[Tensor] = inits
    else:
        combine = on_arrays(ctx, jaxpr)
        xs = [to_carrier(x) for x in operands[:n]]
        for axis in sorted(known, reverse=True):
            xs = halved(combine, xs, axis, shape[axis])
        if unknown:
            left = [d for d in range(len(shape)) if d not in known]
            order = sorted(range(len(left)), key=lambda i: left[i] not in unknown)
            merged = ctx.shape([math.prod(shape[d] for d in unknown), *out_shape])
            xs = [ops.reshape(ops.transpose(x, order), merged) for x in xs]
            # The initial values are the first element of an axis that may be empty.
            xs = [ops.concat([i[None], x], 0) for i, x in zip(inits, xs, strict=True)]
            xs = [x[-1] for x in scanned(combine, xs, 0)]
        else:
            xs = combine(inits, xs)
    return [cast(x, operand.dtype) for x, operand in zip(xs, operands[:n], strict=True)]
