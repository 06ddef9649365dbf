"""Reductions over whole axes: sum, max, argmax, ..., and `reduce` with any computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf.compat import xla_ops
from jax2tf.lowering.rules import NO_XLA, XLA, Context, register

Reducer = Callable[..., tf.Tensor]

# Dtypes without kernels of their own, and what to compute in: integers wrap when they are cast
# back, float8 is what XLA's CPU backend computes in float32 too.
WIDER = {
    "int4": tf.int32,
    "uint4": tf.int32,
    "float8_e4m3b11fnuz": tf.float32,
    "float8_e4m3fn": tf.float32,
    "float8_e4m3fnuz": tf.float32,
    "float8_e5m2": tf.float32,
    "float8_e5m2fnuz": tf.float32,
}


def widened(function: Reducer, x: tf.Tensor) -> tf.Tensor:
    """`function(x)`, computed in a dtype that has kernels."""
    wider = WIDER.get(x.dtype.name)
    return function(x) if wider is None else tf.cast(function(tf.cast(x, wider)), x.dtype)


@register("reduce_sum")
def _reduce_sum(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    return widened(lambda x: tf.reduce_sum(x, axes), x)


@register("reduce_prod")
def _reduce_prod(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    return widened(lambda x: tf.reduce_prod(x, axes), x)


@register("reduce_max")
def _reduce_max(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    return _extreme(ctx, tf.reduce_max, tf.reduce_any, x, axes)


@register("reduce_min")
def _reduce_min(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    return _extreme(ctx, tf.reduce_min, tf.reduce_all, x, axes)


def _extreme(
    ctx: Context, reduce: Reducer, reduce_bool: Reducer, x: tf.Tensor, axes: Sequence[int]
) -> tf.Tensor:
    if x.dtype == tf.bool:
        return reduce_bool(x, axes)
    if not axes:
        return x
    if x.dtype.is_complex:
        return _lexicographic(reduce, x, axes)
    return widened(lambda x: _with_nan(reduce, x, axes), x)


def _with_nan(reduce: Reducer, x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """`reduce(x, axes)`, NaN where there is one: TensorFlow's XLA drops NaNs on CPU.

    Its kernels keep them, so eager mode needs one op alone.
    """
    result = reduce(x, axes)
    if tf.executing_eagerly() or not x.dtype.is_floating:
        return result
    nan = tf.constant(float("nan"), x.dtype)
    return tf.where(tf.reduce_any(tf.math.is_nan(x), axes), nan, result)


def _lexicographic(reduce: Reducer, x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """The extreme complex number: by real part, among equals by imaginary part."""
    real, imag = tf.math.real(x), tf.math.imag(x)
    extreme = reduce(real, axes, keepdims=True)
    if any(x.shape[d] == 0 for d in axes):
        # JAX's identity is an infinite real number.
        extreme = tf.squeeze(extreme, axes)
        return tf.complex(extreme, tf.zeros_like(extreme))
    no_candidate = tf.constant(float("-inf" if reduce is tf.reduce_max else "inf"), imag.dtype)
    imag = reduce(tf.where(tf.equal(real, extreme), imag, no_candidate), axes)
    return tf.complex(tf.squeeze(extreme, axes), imag)


@register("argmax")
def _argmax(ctx: Context, x: tf.Tensor, *, axes: Sequence[int], index_dtype: Any) -> tf.Tensor:
    return _extreme_index(ctx, tf.argmax, x, axes)


@register("argmin")
def _argmin(ctx: Context, x: tf.Tensor, *, axes: Sequence[int], index_dtype: Any) -> tf.Tensor:
    return _extreme_index(ctx, tf.argmin, x, axes)


def _extreme_index(ctx: Context, arg: Reducer, x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    # JAX may hold a NumPy integer here, whose dtype TensorFlow would take for that of its tensors.
    axis = int(axes[0])
    dtype = ctx.out if ctx.out in (tf.int32, tf.int64) else tf.int32
    x = tf.cast(x, WIDER.get(x.dtype.name, x.dtype))
    index = arg(x, axis, output_type=dtype)
    if x.dtype.is_floating:
        # The first NaN wins; TensorFlow's kernels step over NaNs.
        nan = tf.math.is_nan(x)
        first_nan = tf.argmax(nan, axis, output_type=dtype)
        index = tf.where(tf.reduce_any(nan, axis), first_nan, index)
    return tf.cast(index, ctx.out)


@register("reduce_and")
def _reduce_and(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    if x.dtype == tf.bool:
        return tf.reduce_all(x, axes)
    return _fold_bits(tf.bitwise.bitwise_and, x, axes, -1)


@register("reduce_or")
def _reduce_or(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    if x.dtype == tf.bool:
        return tf.reduce_any(x, axes)
    return _fold_bits(tf.bitwise.bitwise_or, x, axes, 0)


@register("reduce_xor")
def _reduce_xor(ctx: Context, x: tf.Tensor, *, axes: Sequence[int]) -> tf.Tensor:
    if x.dtype == tf.bool:
        # Odd is true. int32 may wrap; the lowest bit stays right.
        ones = tf.reduce_sum(tf.cast(x, tf.int32), axes)
        return tf.cast(tf.bitwise.bitwise_and(ones, 1), tf.bool)
    return _fold_bits(tf.bitwise.bitwise_xor, x, axes, 0)


def _fold_bits(
    combine: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    x: tf.Tensor,
    axes: Sequence[int],
    identity: int,
) -> tf.Tensor:
    """TensorFlow has no op that reduces with a bitwise function."""
    if any(x.shape[d] == 0 for d in axes):
        kept = [n for d, n in enumerate(x.shape) if d not in axes]
        return tf.fill(kept, tf.cast(tf.constant(identity), x.dtype))
    (result,) = _fold(lambda a, b: [combine(a[0], b[0])], [x], axes)
    return result


@register("reduce", op_sets=(XLA,))
def _reduce(
    ctx: Context,
    *operands: tf.Tensor,
    computation: Any,
    jaxpr: jex_core.ClosedJaxpr,
    dimensions: Sequence[int],
) -> list[tf.Tensor]:
    del computation  # the Python function that `jaxpr` was traced from
    n = len(operands) // 2
    return xla_ops.xla_variadic_reduce_v2(
        operands[:n], operands[n:], dimensions, ctx.computation(jaxpr)
    )


@register("reduce", op_sets=(NO_XLA,))
def _reduce_by_folding(
    ctx: Context,
    *operands: tf.Tensor,
    computation: Any,
    jaxpr: jex_core.ClosedJaxpr,
    dimensions: Sequence[int],
) -> list[tf.Tensor]:
    del computation
    n = len(operands) // 2

    inits = operands[n:]

    def combine(a: Sequence[tf.Tensor], b: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return ctx.inline(batched(ctx, jaxpr, tuple(b[0].shape)), *a, *b)

    if any(ctx.avals_in[0].shape[d] == 0 for d in dimensions):
        return [tf.broadcast_to(i, a.shape) for i, a in zip(inits, ctx.avals_out, strict=True)]
    folded = _fold(combine, operands[:n], dimensions)
    return combine([tf.broadcast_to(i, folded[0].shape) for i in inits], folded)


def batched(
    ctx: Context, jaxpr: jex_core.ClosedJaxpr, shape: tuple[int, ...]
) -> jex_core.ClosedJaxpr:
    """A jaxpr of scalars as one of arrays of `shape`, element by element."""

    def make() -> tuple[jex_core.ClosedJaxpr, jex_core.ClosedJaxpr]:
        function = jex_core.jaxpr_as_fun(jaxpr)
        for _ in shape:
            function = jax.vmap(function)
        specs = [jax.ShapeDtypeStruct(shape, aval.dtype) for aval in jaxpr.in_avals]
        # The jaxpr is kept beside the result, so that its id stays its own.
        return jax.make_jaxpr(function)(*specs), jaxpr

    return ctx.cached(("batched", id(jaxpr.jaxpr), shape), make)[0]


def _fold(
    combine: Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor]], Sequence[tf.Tensor]],
    xs: Sequence[tf.Tensor],
    axes: Sequence[int],
) -> Sequence[tf.Tensor]:
    """Reduces `axes` in a tree: log2(n) steps that combine neighbours, so that order is kept."""
    kept = [d for d in range(xs[0].shape.rank) if d not in axes]
    kept_shape = [xs[0].shape[d] for d in kept]
    size = math.prod(xs[0].shape[d] for d in axes)
    xs = [tf.reshape(tf.transpose(x, [*axes, *kept]), [size, *kept_shape]) for x in xs]
    while size > 1:
        even = size - size % 2
        last = [x[even:] for x in xs]
        xs = combine([x[0:even:2] for x in xs], [x[1:even:2] for x in xs])
        if even < size:
            xs = [tf.concat(pair, 0) for pair in zip(xs, last, strict=True)]
        size = (size + 1) // 2
    return [tf.squeeze(x, 0) for x in xs]
