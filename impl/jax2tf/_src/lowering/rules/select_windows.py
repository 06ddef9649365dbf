"""Windows that select an element: select_and_scatter(_add), select_and_gather_add."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.combining import Tensors, on_arrays, to_carrier
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_NARROW, REDUCED_BY_XLA
from jax2tf._src.lowering.emit.padding import padded
from jax2tf._src.lowering.emit.selection import select
from jax2tf._src.lowering.emit.window_folding import (
    Window,
    candidates_of,
    carrier_constant,
    edges_of,
    folded_in_order,
    highest,
    is_empty,
    jaxpr_of,
    lowest,
    window_of,
)
from jax2tf._src.lowering.registry import register
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Dim, Param


@register("select_and_gather_add")
def _select_and_gather_add(
    ctx: Context, tangents: Tensor, operand: Tensor, *, select_prim: Param, **params: Param
) -> Tensor:
    """The tangent of the element that `select_prim` selects in each window; 0 for an empty one."""
    window = window_of(**params)
    aval, out_aval = ctx.avals_in[1], ctx.avals_out[0]
    choose = on_arrays(ctx, jaxpr_of(select_prim.bind, aval.dtype))

    def combine(a: Tensors, b: Tensors) -> Tensors:
        (keep,) = choose(a[:1], b[:1])
        return [select(ctx, keep, x, y) for x, y in zip(a, b, strict=True)]

    identities = [
        carrier_constant(_identity(select_prim, aval), aval.dtype),
        carrier_constant(0, out_aval.dtype),
    ]
    _, result = folded_in_order(ctx, combine, [operand, tangents], identities, aval.shape, window)
    return result


@register("select_and_scatter_add")
def _select_and_scatter_add(
    ctx: Context, source: Tensor, operand: Tensor, *, select_prim: Param, **params: Param
) -> Tensor:
    """Adds each source element to the element that `select_prim` selects in its window."""
    source_aval, aval = ctx.avals_in
    window = window_of(**params)
    scatter = jaxpr_of(lax.add, source_aval.dtype)
    selected = jaxpr_of(select_prim.bind, aval.dtype)
    # As in JAX on a CPU, padding may be selected; what is added to it is cut off again.
    low, high = zip(*window.padding, strict=True) if window.padding else ((), ())
    fill = carrier_constant(_identity(select_prim, aval), aval.dtype)
    no_gaps = [0] * len(low)
    operand = padded(ctx, to_carrier(operand), fill, aval.shape, low, high, no_gaps)
    shape = [n + a + b for n, a, b in zip(aval.shape, low, high, strict=True)]
    window = dataclasses.replace(window, padding=((0, 0),) * len(low))
    zero = carrier_constant(0, source_aval.dtype)
    run = _SelectAndScatter(selected, scatter, window, shape, source_aval.shape)
    out = run(ctx, operand, source, zero)
    out = padded(ctx, out, zero, shape, [-n for n in low], [-n for n in high], no_gaps)
    return cast(out, ctx.out)


@register("select_and_scatter")
def _select_and_scatter(
    ctx: Context,
    operand: Tensor,
    source: Tensor,
    init: Tensor,
    *,
    select_jaxpr: jex_core.Jaxpr,
    select_consts: Sequence[ArrayLike],
    scatter_jaxpr: jex_core.Jaxpr,
    scatter_consts: Sequence[ArrayLike],
    **params: Param,
) -> Tensor:
    selected = ctx.closed(select_jaxpr, select_consts)
    scatter = ctx.closed(scatter_jaxpr, scatter_consts)
    shape, source_shape, _ = (aval.shape for aval in ctx.avals_in)
    window = window_of(**params)
    run = _SelectAndScatter(selected, scatter, window, shape, source_shape)
    return cast(run(ctx, operand, source, init), ctx.out)


@dataclasses.dataclass(frozen=True)
class _SelectAndScatter:
    """Combines each source element with the operand's element that its window selects.

    Padding is never selected.

    Attributes:
      select: selects one of two elements, as a scalar jaxpr.
      scatter: combines an element with the current one, as a scalar jaxpr.
      window: the windows.
      shape: the JAX shape of the operand.
      source_shape: the JAX shape of the source, which has one element for each window.
    """

    select: jex_core.ClosedJaxpr
    scatter: jex_core.ClosedJaxpr
    window: Window
    shape: Sequence[Dim]
    source_shape: Sequence[Dim]

    def __call__(self, ctx: Context, operand: Tensor, source: Tensor, init: Tensor) -> Tensor:
        """The result, in the carrier of its dtype."""
        dtype = dtypes.to_tf(self.select.in_avals[0].dtype)
        use_xla = ctx.wants("XlaSelectAndScatter") and self.shape
        carrier = (REDUCED_BY_XLA if use_xla else HOLDS_NARROW).get(dtype)
        operand, source, init = (cast(x, carrier or dtype) for x in (operand, source, init))
        if is_empty(self.source_shape):
            return ops.fill(ctx.shape(self.shape), init)
        if not use_xla:
            return self._by_positions(ctx, operand, source, init)
        return ops.xla.xla_select_and_scatter(
            operand,
            ctx.shape(self.window.dimensions),
            self.window.strides,
            edges_of(ctx, self.window),
            source,
            init,
            select=ctx.computation(self.select, carrier),
            scatter=ctx.computation(self.scatter, carrier),
        )

    def _by_positions(self, ctx: Context, operand: Tensor, source: Tensor, init: Tensor) -> Tensor:
        """Finds the position that each window selects, then scatters position by position."""
        choose, combine = on_arrays(ctx, self.select), on_arrays(ctx, self.scatter)
        best, here = (
            candidates_of(ctx, x, self.shape, self.window, self.source_shape)
            for x in (operand, ops.ones(ctx.shape(self.shape), dtypes.bool_))
        )
        value, found, picked = best[0], here[0], ops.zeros(ops.shape(source), dtypes.int32)
        for i in range(1, len(best)):
            (keep,) = choose([value], [best[i]])
            keep = ~here[i] | (found & keep)
            value = select(ctx, keep, value, best[i])
            picked = ops.where(keep, picked, i)
            found = found | here[i]
        out = ops.fill(ctx.shape(self.shape), init)
        for i, position in enumerate(self.window.positions):
            chosen = found & ops.equal(picked, i)
            there = self._put_apart(ctx, chosen, position)
            put = select(ctx, chosen, source, ops.zeros([], source.dtype))
            (combined,) = combine([out], [self._put_apart(ctx, put, position)])
            out = select(ctx, there, combined, out)
        return out

    def _put_apart(self, ctx: Context, x: Tensor, position: Sequence[int]) -> Tensor:
        """Writes one number of each window to its position in an array of the operand's shape."""
        window = self.window
        starts = [p - low for p, (low, _) in zip(position, window.padding, strict=True)]
        sizes = zip(starts, self.shape, self.source_shape, window.strides, strict=True)
        rest = [size - start - (n - 1) * stride - 1 for start, size, n, stride in sizes]
        gaps = [stride - 1 for stride in window.strides]
        return padded(ctx, x, ops.zeros([], x.dtype), self.source_shape, starts, rest, gaps)


def _identity(select_prim: Param, aval: Aval) -> ArrayLike:
    """The value that `select_prim` (ge or le) never selects over another."""
    return (lowest if select_prim is lax.ge_p else highest)(aval.dtype)
