"""Reductions over windows: reduce_window and its named forms.

XLA's window ops compute them if XLA ops are allowed. Otherwise, pooling windows are MaxPool or
AvgPool, and all others are folded from slices.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.combining import on_arrays, to_carrier
from jax2tf._src.lowering.emit.compute_dtypes import FLOAT8, REDUCED_BY_XLA, carrier_of
from jax2tf._src.lowering.emit.loops import order_of_effects
from jax2tf._src.lowering.emit.window_folding import (
    Window,
    carrier_constant,
    edges_of,
    folded,
    folded_in_order,
    highest,
    jaxpr_of,
    lowest,
    window_of,
)
from jax2tf._src.lowering.emit.window_pooling import pooling
from jax2tf._src.lowering.registry import register
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Computation, Tensor
from jax2tf._src.util.typing import Param


@dataclasses.dataclass(frozen=True)
class _Monoid:
    """A named reduction: its XLA computation, its JAX function and its identity for a dtype.

    `beats` tests whether numbers are preferred to the identity; a sum has no such test.
    """

    to_xla: Callable[..., Tensor]
    to_jax: Callable[..., jax.Array]
    identity: Callable[[np.dtype], ArrayLike]
    beats: Callable[..., Tensor] | None = None


def _maximum(a: Tensor, b: Tensor) -> Tensor:
    # Not tf.maximum, in which TensorFlow's XLA may lose a NaN.
    return ops.where((a >= b) | (a != a), a, b)


def _minimum(a: Tensor, b: Tensor) -> Tensor:
    return ops.where((a <= b) | (a != a), a, b)


_MONOIDS = {
    "reduce_window_sum": _Monoid(ops.add, lax.add, lambda dtype: 0),
    "reduce_window_max": _Monoid(_maximum, lax.max, lowest, ops.greater),
    "reduce_window_min": _Monoid(_minimum, lax.min, highest, ops.less),
}


@register(*_MONOIDS)
def _reduce_window_monoid(ctx: Context, x: Tensor, **params: Param) -> Tensor:
    (aval,) = ctx.avals_in
    window = window_of(**params)
    monoid = _MONOIDS[ctx.eqn.primitive.name]
    identity = carrier_constant(monoid.identity(aval.dtype), aval.dtype)
    combine = on_arrays(ctx, jaxpr_of(monoid.to_jax, aval.dtype))
    if x.dtype in FLOAT8 and monoid.beats is None:
        (out,) = folded_in_order(ctx, combine, [x], [identity], aval.shape, window)
        return out
    pool = pooling(monoid.to_jax, window, x.dtype)
    # XLA's computation would have to compare complex numbers, for which TensorFlow has no op.
    ordered = monoid.beats is None or not x.dtype.is_complex
    if ctx.wants("XlaReduceWindow") and window.dimensions and ordered:
        carrier = carrier_of(REDUCED_BY_XLA, x.dtype)
        computation = _computation(monoid.to_xla, carrier)
        exact = functools.partial(_xla_reduce_window, ctx, x, identity, window, computation)
        if pool is None or monoid.beats is None:
            return exact()
        # MaxPool is far faster, but ignores NaN and has no number below the lowest finite one.
        beats = ops.reduce_all(monoid.beats(x, identity))
        with order_of_effects(ctx):
            return ops.cond(beats, lambda: pool(ctx, x, window), exact)
    if pool is not None:
        return pool(ctx, x, window)
    (out,), _ = folded(ctx, combine, [to_carrier(x)], aval.shape, window, [identity])
    return cast(out, x.dtype)


@register("reduce_window")
def _reduce_window(
    ctx: Context,
    *operands: Tensor,
    jaxpr: jex_core.Jaxpr,
    consts: Sequence[ArrayLike],
    **params: Param,
) -> list[Tensor]:
    window = window_of(**params)
    closed = ctx.closed(jaxpr, consts)
    n = len(operands) // 2
    xs, inits = operands[:n], operands[n:]
    combine = on_arrays(ctx, closed)
    shape = ctx.avals_in[0].shape
    if any(x.dtype in FLOAT8 for x in xs):
        return folded_in_order(ctx, combine, xs, inits, shape, window)
    if ctx.wants("XlaReduceWindow") and n == 1 and window.dimensions:
        computation = ctx.computation(closed, REDUCED_BY_XLA.get(xs[0].dtype))
        return [_xla_reduce_window(ctx, xs[0], inits[0], window, computation)]
    results, present = folded(ctx, combine, [to_carrier(x) for x in xs], shape, window)
    # XLA leaves out the padding, and starts each window with the initial values.
    out_shape = ctx.shape(ctx.avals_out[0].shape)
    starts = [ops.broadcast_to(to_carrier(init), out_shape) for init in inits]
    results = combine(starts, results)
    if present is not None:
        results = [ops.where(present, r, s) for r, s in zip(results, starts, strict=True)]
    return [cast(r, x.dtype) for r, x in zip(results, xs, strict=True)]


def _xla_reduce_window(
    ctx: Context, x: Tensor, init: Tensor, window: Window, computation: jex_core.ClosedJaxpr
) -> Tensor:
    storage = carrier_of(REDUCED_BY_XLA, x.dtype)
    out = ops.xla.xla_reduce_window(
        cast(x, storage),
        cast(init, storage),
        ctx.shape(window.dimensions),
        window.strides,
        window.base_dilation,
        window.window_dilation,
        edges_of(ctx, window),
        computation=computation,
    )
    return cast(out, x.dtype)


@cached
def _computation(function: Callable[..., Tensor], dtype: DType) -> Computation:
    """A binary TensorFlow op as the computation of XLA's reducing ops."""
    return ops.computation(function, [dtype, dtype])
