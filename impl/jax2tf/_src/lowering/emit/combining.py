"""Combines elements by a scalar jaxpr, in standard ops: elementwise, over an axis, along an axis.

An axis of static size is halved repeatedly. An axis of dynamic size takes a loop whose tensors keep
their shape, so that XLA compiles it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
from jax import export
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, carrier_of
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim

Tensors = Sequence[Tensor]
Combine = Callable[[Tensors, Tensors], Tensors]

# The shape of a vector with symbolic length.
_ANY_LENGTH = tuple(export.symbolic_shape("length"))


def on_arrays(ctx: Context, jaxpr: jex_core.ClosedJaxpr) -> Combine:
    """A scalar jaxpr as an elementwise function of arrays, each in the carrier of its dtype."""
    inner = [dtypes.to_tf(aval.dtype) for aval in jaxpr.in_avals]

    def combine(a: Tensors, b: Tensors) -> Tensors:
        xs = [cast(x, d) for x, d in zip((*a, *b), inner, strict=True)]
        shape = a[0].shape
        if shape.is_fully_defined():
            return [to_carrier(r) for r in ctx.inline(batched(ctx, jaxpr, tuple(shape)), *xs)]
        vectors = [ops.reshape(x, [-1]) for x in xs]
        sizes = {str(*_ANY_LENGTH): ops.size(vectors[0])}
        results = ctx.inline(batched(ctx, jaxpr, _ANY_LENGTH), *vectors, sizes=sizes)
        return [to_carrier(ops.reshape(r, ops.shape(a[0]))) for r in results]

    return combine


def to_carrier(x: Tensor) -> Tensor:
    """Casts `x` to the carrier of its dtype."""
    return cast(x, carrier_of(HOLDS_NARROW, x.dtype))


def batched(
    ctx: Context, jaxpr: jex_core.ClosedJaxpr, shape: tuple[Dim, ...]
) -> jex_core.ClosedJaxpr:
    """A scalar jaxpr, vmapped to arrays of `shape`."""

    def make() -> jex_core.ClosedJaxpr:
        function = jex_core.jaxpr_as_fun(jaxpr)
        for _ in shape:
            function = jax.vmap(function)
        specs = [jax.ShapeDtypeStruct(shape, aval.dtype) for aval in jaxpr.in_avals]
        return jax.make_jaxpr(function)(*specs)

    return ctx.cached("batched", make, Identity(jaxpr.jaxpr), shape)


def halved(combine: Combine, xs: Tensors, axis: int, size: int) -> Tensors:
    """Reduces an axis, and removes it; only neighbours are combined, so that the order is kept."""
    while size > 1:
        even = size - size % 2
        pairs = [[_every_other(x, axis, start, even) for x in xs] for start in (0, 1)]
        last = [_every_other(x, axis, even, size) for x in xs] if even < size else []
        xs = combine(pairs[0], pairs[1])
        size = even // 2
        if last:
            size += 1
            xs = [ops.concat(both, axis) for both in zip(xs, last, strict=True)]
    return [ops.squeeze(x, axis) for x in xs]


def _every_other(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    # Form: strides_by_gather.
    return ops.gather(x, list(range(start, stop, 2)), axis=axis)


def scanned(combine: Combine, xs: Tensors, axis: int) -> Tensors:
    """At each index along an axis, combines the elements up to that index.

    Hillis, Steele: Data parallel algorithms, 1986: after k steps, each index holds the combination
    of the 2**k elements that end there.
    """
    size = ops.shape(xs[0])[axis]
    places = ops.range(size)
    along = [-1] + [1] * (xs[0].shape.rank - axis - 1)

    def step(reach: Tensor, *xs: Tensor) -> tuple[Tensor, ...]:
        before = ops.maximum(places - reach, 0)
        combined = combine([ops.gather(x, before, axis=axis) for x in xs], xs)
        reaches = ops.reshape(places >= reach, along)
        results = [ops.where(reaches, c, x) for c, x in zip(combined, xs, strict=True)]
        for result, x in zip(results, xs, strict=True):
            result.set_shape(x.shape)
        return 2 * reach, *results

    return ops.while_loop(lambda reach, *_: reach < size, step, (ops.constant(1), *xs))[1:]
