"""Cumulative reductions: cumsum, cumprod, cummax, cummin, cumlogsumexp.

The work is O(n) or O(n log n): TensorFlow's kernels are linear, XLA rewrites windows that grow with
the index as scans, and graphs without XLA ops use JAX's scan over standard ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.combining import on_arrays, scanned
from jax2tf._src.lowering.emit.compute_dtypes import ACCUMULATED, COMPUTED, carrier_of
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Shape

Combine = Callable[[jax.Array, jax.Array], jax.Array]


@register("cumsum")
def _cumsum(ctx: Context, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    if _by_associative_scan():
        return _scan(ctx, lax.add, 0, x, axis, reverse)
    if x.dtype.is_complex:
        return ops.complex(
            ops.cumsum(ops.real(x), axis, reverse=reverse),
            ops.cumsum(ops.imag(x), axis, reverse=reverse),
        )
    return _accumulated(lambda x: ops.cumsum(x, axis, reverse=reverse), x)


@register("cumprod")
def _cumprod(ctx: Context, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    if x.dtype.is_complex or _by_associative_scan() or not _op_serves(ctx, "Cumprod", x, axis):
        return _scan(ctx, lax.mul, 1, x, axis, reverse)
    return _accumulated(lambda x: ops.cumprod(x, axis, reverse=reverse), x)


@register("cummax")
def _cummax(ctx: Context, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    if x.shape[axis] in (0, 1):
        return x
    return _scan(ctx, _max, _limits(x.dtype)[0], x, axis, reverse)


@register("cummin")
def _cummin(ctx: Context, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    if x.shape[axis] in (0, 1):
        return x
    return _scan(ctx, _min, _limits(x.dtype)[1], x, axis, reverse)


@register("cumlogsumexp")
def _cumlogsumexp(ctx: Context, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    op = "CumulativeLogsumexp"
    if x.dtype.is_complex or _by_associative_scan() or not _op_serves(ctx, op, x, axis):
        return _scan(ctx, _logaddexp, -math.inf, x, axis, reverse)

    def function(x: Tensor) -> Tensor:
        # TensorFlow's kernel skips NaNs and returns NaN for two infinities; a cumsum keeps both.
        ordinary = x < math.inf
        zero = ops.zeros([], x.dtype)
        result = ops.cumulative_logsumexp(ops.where(ordinary, x, zero), axis, reverse=reverse)
        return result + ops.cumsum(ops.where(ordinary, zero, x), axis, reverse=reverse)

    return _accumulated(function, x)


def _max(x: jax.Array, y: jax.Array) -> jax.Array:
    return _with_signed_zeros(lax.max(x, y), x, y, lax.add)


def _min(x: jax.Array, y: jax.Array) -> jax.Array:
    return _with_signed_zeros(lax.min(x, y), x, y, lambda x, y: -(-x - y))


def _with_signed_zeros(
    extreme: jax.Array, x: jax.Array, y: jax.Array, of_zeros: Combine
) -> jax.Array:
    # +0 is larger than -0; TensorFlow's Maximum and Minimum treat them as equal.
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return extreme
    return jnp.where((x == 0) & (y == 0), of_zeros(x, y), extreme)


def _logaddexp(x: jax.Array, y: jax.Array) -> jax.Array:
    if not jnp.iscomplexobj(x):
        return jnp.logaddexp(x, y)
    # jnp.logaddexp reduces the imaginary part by `rem`, which XLA's windows do not support. For
    # infinities, its result is NaN, and so is the result of a shift by an infinity.
    largest = lax.max(lax.real(x), lax.real(y))
    shift = lax.complex(largest, jnp.zeros_like(largest))
    return lax.log(lax.exp(x - shift) + lax.exp(y - shift)) + shift


def _accumulated(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    accumulator = ACCUMULATED.get(x.dtype)
    if accumulator is None:
        return function(x)
    return ops.cast(function(ops.cast(x, accumulator)), x.dtype)


def _limits(dtype: DType) -> tuple[float, float]:
    return (dtype.min, dtype.max) if dtype.is_integer else (-math.inf, math.inf)


def _op_serves(ctx: Context, op: str, x: Tensor, axis: int) -> bool:
    """Whether TensorFlow's own op computes the result.

    An axis of unknown size takes the op of every target that has it, because a scan of any length
    is a loop.
    """
    is_known = isinstance(ctx.avals_in[0].shape[axis], int)
    return ctx.wants(op, x.dtype.name) or (not is_known and ctx.takes(op, x.dtype.name))


def _by_associative_scan() -> bool:
    # JAX still has this switch of its own jax2tf.
    config: Any = jax.config
    return bool(config.jax2tf_associative_scan_reductions)


def _scan(
    ctx: Context, combine: Combine, identity: float, x: Tensor, axis: int, reverse: bool
) -> Tensor:
    dtype = carrier_of(COMPUTED, x.dtype)
    arguments = ops.cast(x, dtype), ctx.avals_in[0].shape, axis, reverse
    if ctx.wants("XlaReduceWindow") and not _by_associative_scan():
        result = _window_scan(ctx, combine, identity, *arguments)
    elif dtype.is_complex:
        result = _complex_scan(ctx, combine, identity, *arguments)
    else:
        result = _associative_scan(ctx, combine, *arguments)
    return ops.cast(result, x.dtype)


def _window_scan(
    ctx: Context,
    combine: Combine,
    identity: float,
    x: Tensor,
    shape: Shape,
    axis: int,
    reverse: bool,
) -> Tensor:
    """Gives each element a window from the start of the axis, or, in reverse, to its end."""
    ones = [1] * len(shape)
    window, padding = list(ones), [[0, 0] for _ in ones]
    # At least 1, because XLA's CPU backend crashes at a window of size 0 (of an empty axis).
    window[axis] = ctx.dim(jax.core.max_dim(shape[axis], 1))
    padding[axis][1 if reverse else 0] = window[axis] - 1
    return ops.xla.xla_reduce_window(
        x,
        ops.cast(ops.constant(identity, x.dtype.real_dtype), x.dtype),
        window,
        ones,
        ones,
        ones,
        padding,
        computation=ctx.computation(_scalar_jaxpr(combine, np.dtype(x.dtype.as_numpy_dtype))),
    )


@cached
def _scalar_jaxpr(combine: Combine, dtype: np.dtype) -> jex_core.ClosedJaxpr:
    scalar = jax.ShapeDtypeStruct((), dtype)
    return jax.make_jaxpr(combine)(scalar, scalar)


def _complex_scan(
    ctx: Context,
    combine: Combine,
    identity: float,
    x: Tensor,
    shape: Shape,
    axis: int,
    reverse: bool,
) -> Tensor:
    """A scan whose windows begin with the identity, as in XLA.

    The identity can change complex numbers: 1 * (inf + 2j) is partly NaN, the minimum of inf + 2j
    and inf is inf, and logaddexp reduces imaginary parts. The first element of a window is the
    first one of the axis; in reverse, the identity meets the last element in the window that holds
    only that one.
    """
    if reverse:
        result = _associative_scan(ctx, combine, x, shape, axis, reverse)
        return _begun(ctx, combine, identity, result, axis, at_end=True)
    begun = _begun(ctx, combine, identity, x, axis, at_end=False)
    return _associative_scan(ctx, combine, begun, shape, axis, reverse)


def _begun(
    ctx: Context, combine: Combine, identity: float, x: Tensor, axis: int, at_end: bool
) -> Tensor:
    """Combines the first or last element of `x` along the axis with the identity."""
    begin = _beginning(combine, identity, np.dtype(x.dtype.as_numpy_dtype))
    (begun,) = on_arrays(ctx, begin)([x], [])
    size = ops.shape(x)[axis]
    is_there = ops.equal(ops.range(size), size - 1 if at_end else 0)
    along = [-1] + [1] * (x.shape.rank - axis - 1)
    return ops.where(ops.reshape(is_there, along), begun, x)


@cached
def _beginning(combine: Combine, identity: float, dtype: np.dtype) -> jex_core.ClosedJaxpr:
    def begin(x: jax.Array) -> jax.Array:
        return _times_one(x) if combine is lax.mul else combine(jnp.full_like(x, identity), x)

    return jax.make_jaxpr(begin)(jax.ShapeDtypeStruct((), dtype))


def _times_one(x: jax.Array) -> jax.Array:
    """(1 + 0j) * x, written out because XLA and Grappler would simplify such a product to x."""
    real, imag = lax.real(x), lax.imag(x)
    nothing = jnp.zeros_like(real)

    def zero_times(part: jax.Array) -> jax.Array:
        return jnp.where(jnp.isfinite(part), nothing, jnp.nan)

    return lax.complex(real - zero_times(imag), zero_times(real) + imag)


def _associative_scan(
    ctx: Context, combine: Combine, x: Tensor, shape: Shape, axis: int, reverse: bool
) -> Tensor:
    """Traces and lowers a scan in JAX: slices and elementwise ops, about a dozen per halving."""
    if not isinstance(shape[axis], int):
        return _scan_of_any_length(ctx, combine, x, axis, reverse)
    spec = jax.ShapeDtypeStruct(shape, x.dtype.as_numpy_dtype)

    def scan(x: jax.Array) -> jax.Array:
        moved = jnp.moveaxis(jnp.flip(x, axis) if reverse else x, axis, 0)
        result = jnp.moveaxis(_scan_first(combine, moved), 0, axis)
        return jnp.flip(result, axis) if reverse else result

    key = (combine, tuple(shape), x.dtype, axis, reverse)
    jaxpr = ctx.cached("associative scan", lambda: jax.make_jaxpr(scan)(spec), *key)
    return ctx.inline(jaxpr, x)[0]


def _scan_of_any_length(
    ctx: Context, combine: Combine, x: Tensor, axis: int, reverse: bool
) -> Tensor:
    on_scalars = _scalar_jaxpr(combine, np.dtype(x.dtype.as_numpy_dtype))
    x = ops.reverse(x, [axis]) if reverse else x
    (result,) = scanned(on_arrays(ctx, on_scalars), [x], axis)
    return ops.reverse(result, [axis]) if reverse else result


def _scan_first(combine: Combine, x: jax.Array) -> jax.Array:
    """Scans the first axis; it first scans the sums of neighbours, which are half as many.

    Not lax.associative_scan, which joins its halves by adding zeros and loses -0.
    """
    if len(x) < 2:
        return x
    odd = _scan_first(combine, combine(x[:-1:2], x[1::2]))
    even = jnp.concatenate([x[:1], combine(odd[: (len(x) - 1) // 2], x[2::2])])
    n = len(odd)
    pairs = jnp.stack([even[:n], odd], axis=1).reshape(2 * n, *x.shape[1:])
    return jnp.concatenate([pairs, even[n:]])
