"""Windows: reduce_window and its named forms, select_and_scatter(_add), select_and_gather_add.

XLA's own window ops serve where XLA may be used. Without them, windows of pooling are MaxPool and
AvgPool, and all others are folded from slices: along one dimension after the other, and along each
by doubling, so that a window of n elements takes O(log n) ops.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

from jax2tf import dims, dtypes
from jax2tf.compat import xla_ops
from jax2tf.lowering.arrays import padded
from jax2tf.lowering.conversions import FLOAT8_CARRIER, INT4_CARRIER, cast
from jax2tf.lowering.reductions import batched
from jax2tf.lowering.rules import Context, register

Tensors = Sequence[tf.Tensor]
Combine = Callable[[Tensors, Tensors], Tensors]

# Dtypes that slices and TensorFlow's XLA ops do not take, and where what they hold fits.
_CARRIER = INT4_CARRIER | FLOAT8_CARRIER
_XLA_CARRIER = {tf.bool: tf.uint8} | _CARRIER


@dataclasses.dataclass(frozen=True)
class _Window:
    """The params that all window primitives share, one entry for each dimension."""

    dimensions: tuple[Any, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Any, Any], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """Where the elements of a window are, from its first one, in row-major order."""
        return [
            tuple(i * d for i, d in zip(index, self.window_dilation, strict=True))
            for index in itertools.product(*(range(n) for n in self.dimensions))
        ]


def _window(
    window_dimensions: Sequence[Any],
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> _Window:
    ones = (1,) * len(window_dimensions)
    return _Window(
        tuple(window_dimensions),
        tuple(window_strides),
        tuple((low, high) for low, high in padding),
        tuple(base_dilation or ones),
        tuple(window_dilation or ones),
    )


@dataclasses.dataclass(frozen=True)
class _Monoid:
    """A named reduction: what it is to XLA, what it is to JAX, and its identity for a dtype.

    `beats` says of numbers whether they are preferred to the identity; a sum prefers none.
    """

    to_xla: Callable[..., tf.Tensor]
    to_jax: Callable[..., Any]
    identity: Callable[[Any], Any]
    beats: Callable[..., tf.Tensor] | None = None


def _extreme_value(sign: int, dtype: Any) -> Any:
    """The lowest (-1) or highest (1) value of a dtype: infinite if it has infinities."""
    if jax.dtypes.issubdtype(dtype, np.bool_):
        return sign > 0
    if jax.dtypes.issubdtype(dtype, np.integer):
        return getattr(jnp.iinfo(dtype), "max" if sign > 0 else "min")
    infinity = np.array(sign * math.inf).astype(dtype)
    return sign * math.inf if np.isinf(infinity) else sign * float(jnp.finfo(dtype).max)


def _maximum(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    # Not tf.maximum, because TensorFlow's XLA may lose a NaN there.
    return tf.where((a >= b) | (a != a), a, b)


def _minimum(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.where((a <= b) | (a != a), a, b)


_lowest = functools.partial(_extreme_value, -1)
_highest = functools.partial(_extreme_value, 1)

_MONOIDS = {
    "reduce_window_sum": _Monoid(tf.add, lax.add, lambda dtype: 0),
    "reduce_window_max": _Monoid(_maximum, lax.max, _lowest, tf.greater),
    "reduce_window_min": _Monoid(_minimum, lax.min, _highest, tf.less),
}


@register(*_MONOIDS)
def _reduce_window_monoid(ctx: Context, x: tf.Tensor, **params: Any) -> tf.Tensor:
    (aval,) = ctx.avals_in
    window = _window(**params)
    monoid = _MONOIDS[ctx.eqn.primitive.name]
    identity = _constant(monoid.identity(aval.dtype), aval.dtype)
    if _is_empty(ctx.avals_out[0].shape):
        return _zeros(ctx, ctx.avals_out[0])
    combine = _on_arrays(ctx, _jaxpr(monoid.to_jax, aval.dtype))
    if x.dtype in FLOAT8_CARRIER and monoid.beats is None:
        (out,) = _folded_in_order(ctx, combine, [x], [identity], aval.shape, window)
        return out
    pooling = _pooling(monoid, window, x.dtype)
    if ctx.enable_xla and window.dimensions:
        carrier = _XLA_CARRIER.get(x.dtype, x.dtype)
        computation = _computation(ctx, monoid.to_xla, carrier)
        exact = functools.partial(_xla_reduce_window, ctx, x, identity, window, computation)
        if pooling is None or monoid.beats is None:
            return exact()
        # MaxPool is far faster, but knows no NaN, and nothing below the lowest finite number.
        beats = tf.reduce_all(monoid.beats(x, identity))
        return tf.cond(beats, lambda: pooling(ctx, x, window), exact)
    if pooling is not None:
        return pooling(ctx, x, window)
    (out,), _ = _folded(ctx, combine, [_carried(x)], aval.shape, window, [identity])
    return cast(out, x.dtype)


@register("reduce_window")
def _reduce_window(
    ctx: Context,
    *operands: tf.Tensor,
    jaxpr: jex_core.Jaxpr,
    consts: Sequence[Any],
    **params: Any,
) -> list[tf.Tensor]:
    window = _window(**params)
    closed = jex_core.ClosedJaxpr(jaxpr, consts)
    n = len(operands) // 2
    xs, inits = operands[:n], operands[n:]
    if _is_empty(ctx.avals_out[0].shape):
        return [_zeros(ctx, aval) for aval in ctx.avals_out]
    combine = _on_arrays(ctx, closed)
    shape = ctx.avals_in[0].shape
    if any(x.dtype in FLOAT8_CARRIER for x in xs):
        return _folded_in_order(ctx, combine, xs, inits, shape, window)
    if ctx.enable_xla and n == 1 and window.dimensions:
        computation = ctx.computation(closed, _XLA_CARRIER.get(xs[0].dtype))
        return [_xla_reduce_window(ctx, xs[0], inits[0], window, computation)]
    results, present = _folded(ctx, combine, [_carried(x) for x in xs], shape, window)
    # XLA leaves out what is padding, and begins each window with the initial values.
    out_shape = ctx.shape(ctx.avals_out[0].shape)
    starts = [tf.broadcast_to(_carried(init), out_shape) for init in inits]
    results = combine(starts, results)
    if present is not None:
        results = [tf.where(present, r, s) for r, s in zip(results, starts, strict=True)]
    return [cast(r, x.dtype) for r, x in zip(results, xs, strict=True)]


def _xla_reduce_window(
    ctx: Context, x: tf.Tensor, init: tf.Tensor, window: _Window, computation: Any
) -> tf.Tensor:
    storage = _XLA_CARRIER.get(x.dtype, x.dtype)
    out = xla_ops.xla_reduce_window(
        cast(x, storage),
        cast(init, storage),
        ctx.shape(window.dimensions),
        window.strides,
        window.base_dilation,
        window.window_dilation,
        _edges(ctx, window),
        computation=computation,
    )
    return cast(out, x.dtype)


def _edges(ctx: Context, window: _Window) -> Any:
    if all(dims.is_static(edges) for edges in window.padding):
        return np.reshape(np.array(window.padding, np.int32), (-1, 2))
    return tf.stack([ctx.shape(edges) for edges in window.padding])


def _pooling(
    monoid: _Monoid, window: _Window, dtype: tf.DType
) -> Callable[[Context, tf.Tensor, _Window], tf.Tensor] | None:
    """The pooling op that computes the reduction, if there is one."""
    pooled = _pooled_dimensions(window)
    dense = all(d == 1 for d in (*window.base_dilation, *window.window_dilation))
    inside = all(
        dims.is_static((n, low, high)) and 0 <= low < n and 0 <= high < n
        for n, (low, high) in zip(window.dimensions, window.padding, strict=True)
    )
    floats = (tf.float32, tf.float64, tf.bfloat16, tf.float16)
    if not (1 <= len(pooled) <= 2 and dense and inside and dtype in floats):
        return None
    return {lax.add: _sum_pool, lax.max: _max_pool, lax.min: _min_pool}[monoid.to_jax]


def _pooled_dimensions(window: _Window) -> list[int]:
    whole = zip(window.dimensions, window.strides, window.padding, strict=True)
    return [d for d, (n, s, edges) in enumerate(whole) if (n, s, *edges) != (1, 1, 0, 0)]


def _max_pool(ctx: Context, x: tf.Tensor, window: _Window) -> tf.Tensor:
    return _pool(ctx, x, window, tf.nn.max_pool2d, -math.inf)


def _min_pool(ctx: Context, x: tf.Tensor, window: _Window) -> tf.Tensor:
    return -_pool(ctx, -x, window, tf.nn.max_pool2d, -math.inf)


def _sum_pool(ctx: Context, x: tf.Tensor, window: _Window) -> tf.Tensor:
    """The mean of each window times its size; padding counts as zeros."""
    wide = tf.float64 if x.dtype == tf.float64 else tf.float32
    mean = _pool(ctx, tf.cast(x, wide), window, tf.nn.avg_pool2d, 0.0)
    return tf.cast(mean * float(math.prod(window.dimensions)), x.dtype)


def _pool(
    ctx: Context, x: tf.Tensor, window: _Window, op: Callable[..., tf.Tensor], fill: float
) -> tf.Tensor:
    """A pooling op, around which the dimensions become batch, two pooled ones, channels."""
    shape, out_shape = ctx.avals_in[0].shape, ctx.avals_out[0].shape
    pooled = _pooled_dimensions(window)
    order = _pooling_order(len(shape), pooled)
    first = order.index(pooled[0])
    last = first + len(pooled)

    def merged(sizes: Sequence[Any]) -> list[Any]:
        one = [1] * (2 - len(pooled))
        sizes = [sizes[d] for d in order]
        return [math.prod(sizes[:first]), *sizes[first:last], *one, math.prod(sizes[last:])]

    size, strides = (merged(v)[1:3] for v in (window.dimensions, window.strides))
    edges = [window.padding[d] for d in pooled] + [(0, 0)] * (2 - len(pooled))
    matrix_shape = merged(shape)
    in_order = order == list(range(len(shape)))
    x = x if in_order else tf.transpose(x, order)
    x = tf.reshape(x, ctx.shape(matrix_shape)) if len(shape) != 4 or first != 1 else x
    padding = "VALID"
    if any(itertools.chain(*edges)):
        same = lax.padtype_to_pads(matrix_shape[1:3], size, strides, "SAME")
        # The mean that AvgPool takes leaves SAME padding out.
        if op is tf.nn.max_pool2d and [tuple(e) for e in same] == edges:
            padding = "SAME"
        else:
            x = tf.pad(x, [(0, 0), *edges, (0, 0)], constant_values=fill)
    out = op(x, size, strides, padding)
    if len(shape) != 4 or first != 1:
        out = tf.reshape(out, ctx.shape([out_shape[d] for d in order]))
    return out if in_order else tf.transpose(out, np.argsort(order))


def _pooling_order(rank: int, pooled: Sequence[int]) -> list[int]:
    """Dimensions with the pooled ones together, and others after them: these are the channels."""
    others = [d for d in range(rank) if d not in pooled]
    together = pooled[-1] - pooled[0] == len(pooled) - 1
    if together and (pooled[-1] < rank - 1 or len(others) < 2):
        return list(range(rank))
    return [*others[:1], *pooled, *others[1:]]


def _folded(
    ctx: Context,
    combine: Combine,
    xs: Tensors,
    shape: Sequence[Any],
    window: _Window,
    identities: Tensors | None = None,
) -> tuple[Tensors, tf.Tensor | None]:
    """Each window's elements, combined in row-major order.

    Without `identities` to stand where there is padding, the second result says which windows have
    any element (None: all); the others hold zeros.
    """
    present = None
    combine_present = combine
    low, high = zip(*window.padding, strict=True) if window.padding else ((), ())
    gaps = [d - 1 for d in window.base_dilation]
    if identities is None:
        identities = [tf.zeros([], x.dtype) for x in xs]
        if any((*low, *high, *gaps)):
            xs = [tf.ones(ctx.shape(shape), tf.bool), *xs]
            identities = [tf.constant(False), *identities]
            combine_present = _where_present(combine)
    xs = [padded(ctx, x, i, shape, low, high, gaps) for x, i in zip(xs, identities, strict=True)]
    sizes = zip(window.dimensions, window.strides, window.window_dilation, strict=True)
    for axis, (size, stride, dilation) in reversed(list(enumerate(sizes))):
        if not dims.is_static((size,)):
            raise ctx.unsupported(
                f"a window over a dimension of unknown size ({size}) needs XLA, and one operand",
                "convert with enable_xla=True, or reduce the whole dimension",
                window_dimensions=window.dimensions,
            )
        xs = _folded_axis(combine_present, xs, axis, size, stride, dilation)
    if combine_present is not combine:
        present, *xs = xs
    return xs, present


def _folded_in_order(
    ctx: Context,
    combine: Combine,
    xs: Tensors,
    inits: Tensors,
    shape: Sequence[Any],
    window: _Window,
) -> list[tf.Tensor]:
    """Each window's elements, combined one by one: for what is not associative.

    Float8 is rounded at each step; of equal elements, the first is selected.
    """
    out_shape = ctx.avals_out[0].shape
    total: Tensors = [tf.fill(ctx.shape(out_shape), _carried(init)) for init in inits]
    present = tf.ones(ctx.shape(shape), tf.bool)
    candidates = [
        _candidates(ctx, x, shape, window, out_shape) for x in (present, *map(_carried, xs))
    ]
    for here, *elements in zip(*candidates, strict=True):
        combined = combine(total, elements)
        total = [tf.where(here, c, t) for c, t in zip(combined, total, strict=True)]
    return [cast(t, x.dtype) for t, x in zip(total, xs, strict=True)]


def _folded_axis(
    combine: Combine, xs: Tensors, axis: int, size: int, stride: int, dilation: int
) -> Tensors:
    """Windows along one axis: those of 1, 2, 4, ... elements, put together to `size`."""

    def cut(xs: Tensors, start: int, end: int, step: int = 1) -> Tensors:
        if (start, end, step) == (0, 0, 1):
            return xs
        index = (*[slice(None)] * axis, slice(start, -end or None, step))
        return [x[index] for x in xs]

    block, n_block = xs, 1
    total: Tensors = ()
    n_total = 0
    while True:
        if size & n_block:
            part = cut(block, n_total * dilation, 0)
            total = combine(cut(total, 0, n_block * dilation), part) if n_total else block
            n_total += n_block
        if n_total == size:
            return cut(total, 0, 0, stride)
        ahead = n_block * dilation
        block, n_block = combine(cut(block, 0, ahead), cut(block, ahead, 0)), 2 * n_block


def _on_arrays(ctx: Context, jaxpr: jex_core.ClosedJaxpr) -> Combine:
    """A jaxpr of scalars as a function of arrays, each held in the carrier of its dtype."""
    inner = [dtypes.to_tf(aval.dtype) for aval in jaxpr.in_avals]

    def combine(a: Tensors, b: Tensors) -> Tensors:
        shape = a[0].shape
        if not shape.is_fully_defined():
            raise ctx.unsupported(
                f"windows over an operand of a shape that is not known ({shape}) need XLA, and "
                "one operand",
                "convert with enable_xla=True, or without polymorphic_shapes",
            )
        xs = [cast(x, d) for x, d in zip((*a, *b), inner, strict=True)]
        return [_carried(r) for r in ctx.inline(batched(ctx, jaxpr, tuple(shape)), *xs)]

    return combine


def _where_present(combine: Combine) -> Combine:
    """As `combine`, of elements each of which may be absent: the first tensors say which are."""

    def combine_present(a: Tensors, b: Tensors) -> Tensors:
        (in_a, *xs), (in_b, *ys) = a, b
        both = zip(combine(xs, ys), xs, ys, strict=True)
        return [in_a | in_b, *(tf.where(in_b, tf.where(in_a, r, y), x) for r, x, y in both)]

    return combine_present


@register("select_and_gather_add")
def _select_and_gather_add(
    ctx: Context, tangents: tf.Tensor, operand: tf.Tensor, *, select_prim: Any, **params: Any
) -> tf.Tensor:
    """The tangent of the element that `select_prim` picks from each window, 0 from an empty one."""
    window = _window(**params)
    aval, out_aval = ctx.avals_in[1], ctx.avals_out[0]
    if _is_empty(out_aval.shape):
        return _zeros(ctx, out_aval)
    select = _on_arrays(ctx, _jaxpr(select_prim.bind, aval.dtype))

    def combine(a: Tensors, b: Tensors) -> Tensors:
        (keep,) = select(a[:1], b[:1])
        return [tf.where(keep, x, y) for x, y in zip(a, b, strict=True)]

    identities = [_constant(_identity(select_prim, aval), aval.dtype), _constant(0, out_aval.dtype)]
    _, result = _folded_in_order(ctx, combine, [operand, tangents], identities, aval.shape, window)
    return result


@register("select_and_scatter_add")
def _select_and_scatter_add(
    ctx: Context, source: tf.Tensor, operand: tf.Tensor, *, select_prim: Any, **params: Any
) -> tf.Tensor:
    """Adds each source element to the element that `select_prim` picks from its window."""
    source_aval, aval = ctx.avals_in
    window = _window(**params)
    scatter = _jaxpr(lax.add, source_aval.dtype)
    select = _jaxpr(select_prim.bind, aval.dtype)
    # As in JAX on a CPU, padding may be picked: what goes there is cut off again.
    low, high = zip(*window.padding, strict=True) if window.padding else ((), ())
    fill = _constant(_identity(select_prim, aval), aval.dtype)
    no_gaps = [0] * len(low)
    operand = padded(ctx, _carried(operand), fill, aval.shape, low, high, no_gaps)
    shape = [n + a + b for n, a, b in zip(aval.shape, low, high, strict=True)]
    window = dataclasses.replace(window, padding=((0, 0),) * len(low))
    zero = _constant(0, source_aval.dtype)
    out = _scattered(ctx, operand, shape, source, source_aval.shape, zero, window, select, scatter)
    out = padded(ctx, out, zero, shape, [-n for n in low], [-n for n in high], no_gaps)
    return cast(out, ctx.out)


@register("select_and_scatter")
def _select_and_scatter(
    ctx: Context,
    operand: tf.Tensor,
    source: tf.Tensor,
    init: tf.Tensor,
    *,
    select_jaxpr: jex_core.Jaxpr,
    select_consts: Sequence[Any],
    scatter_jaxpr: jex_core.Jaxpr,
    scatter_consts: Sequence[Any],
    **params: Any,
) -> tf.Tensor:
    select = jex_core.ClosedJaxpr(select_jaxpr, select_consts)
    scatter = jex_core.ClosedJaxpr(scatter_jaxpr, scatter_consts)
    shape, source_shape, _ = (aval.shape for aval in ctx.avals_in)
    window = _window(**params)
    out = _scattered(ctx, operand, shape, source, source_shape, init, window, select, scatter)
    return cast(out, ctx.out)


def _scattered(
    ctx: Context,
    operand: tf.Tensor,
    shape: Sequence[Any],
    source: tf.Tensor,
    source_shape: Sequence[Any],
    init: tf.Tensor,
    window: _Window,
    select: jex_core.ClosedJaxpr,
    scatter: jex_core.ClosedJaxpr,
) -> tf.Tensor:
    """select_and_scatter of an operand of JAX's `shape`, in the carrier of its dtype.

    Padding is never picked.
    """
    dtype, use_xla = dtypes.to_tf(select.in_avals[0].dtype), ctx.enable_xla and shape
    carrier = (_XLA_CARRIER if use_xla else _CARRIER).get(dtype)
    operand, source, init = (cast(x, carrier or dtype) for x in (operand, source, init))
    if _is_empty(source_shape):
        out = tf.fill(ctx.shape(shape), init)
    elif use_xla:
        out = xla_ops.xla_select_and_scatter(
            operand,
            ctx.shape(window.dimensions),
            window.strides,
            _edges(ctx, window),
            source,
            init,
            select=ctx.computation(select, carrier),
            scatter=ctx.computation(scatter, carrier),
        )
    else:
        out = _scattered_by_positions(
            ctx, operand, shape, source, source_shape, init, window, select, scatter
        )
    return out


def _scattered_by_positions(
    ctx: Context,
    operand: tf.Tensor,
    shape: Sequence[Any],
    source: tf.Tensor,
    source_shape: Sequence[Any],
    init: tf.Tensor,
    window: _Window,
    select: jex_core.ClosedJaxpr,
    scatter: jex_core.ClosedJaxpr,
) -> tf.Tensor:
    """Finds which of its positions each window picks, then scatters position by position."""
    choose, combine = _on_arrays(ctx, select), _on_arrays(ctx, scatter)
    best, here = (
        _candidates(ctx, x, shape, window, source_shape)
        for x in (operand, tf.ones(ctx.shape(shape), tf.bool))
    )
    value, found, picked = best[0], here[0], tf.zeros(tf.shape(source), tf.int32)
    for i in range(1, len(best)):
        (keep,) = choose([value], [best[i]])
        keep = ~here[i] | (found & keep)
        value, picked = tf.where(keep, value, best[i]), tf.where(keep, picked, i)
        found = found | here[i]
    out = tf.fill(ctx.shape(shape), init)
    for i, position in enumerate(window.positions):
        chosen = found & tf.equal(picked, i)
        put = [
            _put_apart(ctx, x, source_shape, shape, window, position)
            for x in (chosen, tf.where(chosen, source, tf.zeros([], source.dtype)))
        ]
        (combined,) = combine([out], [put[1]])
        out = tf.where(put[0], combined, out)
    return out


def _candidates(
    ctx: Context, x: tf.Tensor, shape: Sequence[Any], window: _Window, out_shape: Sequence[Any]
) -> list[tf.Tensor]:
    """For each position in the window, the elements of all windows; zeros (False) in padding."""
    low, high = zip(*window.padding, strict=True) if window.padding else ((), ())
    gaps = [d - 1 for d in window.base_dilation]
    x = padded(ctx, x, tf.zeros([], x.dtype), shape, low, high, gaps)
    steps = list(zip(out_shape, window.strides, strict=True))
    return [
        tf.strided_slice(
            x,
            position,
            ctx.shape([p + (n - 1) * s + 1 for p, (n, s) in zip(position, steps, strict=True)]),
            window.strides,
        )
        for position in window.positions
    ]


def _put_apart(
    ctx: Context,
    x: tf.Tensor,
    x_shape: Sequence[Any],
    shape: Sequence[Any],
    window: _Window,
    position: Sequence[int],
) -> tf.Tensor:
    """What belongs to one position of each window, at its place in an operand of `shape`."""
    starts = [p - low for p, (low, _) in zip(position, window.padding, strict=True)]
    sizes = zip(starts, shape, x_shape, window.strides, strict=True)
    rest = [size - start - (n - 1) * stride - 1 for start, size, n, stride in sizes]
    gaps = [stride - 1 for stride in window.strides]
    return padded(ctx, x, tf.zeros([], x.dtype), x_shape, starts, rest, gaps)


def _identity(select_prim: Any, aval: Any) -> Any:
    """A value that `select_prim` (ge or le) prefers all others to."""
    return (_lowest if select_prim.name == "ge" else _highest)(aval.dtype)


def _carried(x: tf.Tensor) -> tf.Tensor:
    return cast(x, _CARRIER.get(x.dtype, x.dtype))


def _constant(value: Any, dtype: Any) -> tf.Tensor:
    """A constant of a JAX dtype, in the carrier of that dtype."""
    tf_dtype = dtypes.to_tf(dtype)
    carrier = _CARRIER.get(tf_dtype, tf_dtype).as_numpy_dtype
    return tf.constant(np.array(value).astype(dtype).astype(carrier))


def _zeros(ctx: Context, aval: Any) -> tf.Tensor:
    # tf.zeros has no float8.
    return cast(tf.zeros(ctx.shape(aval.shape), tf.int8), dtypes.to_tf(aval.dtype))


def _is_empty(shape: Sequence[Any]) -> bool:
    return any(dims.is_static((d,)) and d == 0 for d in shape)


def _computation(ctx: Context, function: Callable[..., tf.Tensor], dtype: tf.DType) -> Any:
    """A binary TensorFlow op as the function that XLA's reducing ops take for their computation."""

    def make() -> Any:
        scalar = tf.TensorSpec([], dtype)
        with tf.init_scope():
            return tf.function(function, autograph=False).get_concrete_function(scalar, scalar)

    return ctx.cached(("computation", function, dtype), make)


@functools.cache
def _jaxpr(function: Callable[..., Any], dtype: Any) -> jex_core.ClosedJaxpr:
    """A binary function as a jaxpr of scalars; one object for each, as caches go by its id."""
    scalar = jax.ShapeDtypeStruct((), dtype)
    return jax.make_jaxpr(function)(scalar, scalar)
