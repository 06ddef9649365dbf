"""Derivatives of cumprod, cummax, cummin and cumlogsumexp along an axis of symbolic size.

JAX differentiates these primitives as scans over a tree, whose depth depends on the size. These
rules differentiate them as sequential scans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import ad

from jax2tf._src.util.symbolic_sizes import is_static
from jax2tf._src.util.typing import Param

_Combine = Callable[[jax.Array, jax.Array], jax.Array]

_COMBINE: dict[jex_core.Primitive, _Combine] = {
    lax.cumprod_p: lax.mul,
    lax.cummax_p: lax.max,
    lax.cummin_p: lax.min,
    lax.cumlogsumexp_p: jnp.logaddexp,
}


def _register(primitive: jex_core.Primitive, combine: _Combine) -> None:
    of_numbers = ad.primitive_jvps[primitive]

    def rule(
        primals: Sequence[jax.Array],
        tangents: Sequence[jax.Array],
        *,
        axis: int,
        reverse: bool,
        **params: Param,
    ) -> tuple[jax.Array, jax.Array]:
        params = {"axis": axis, "reverse": reverse, **params}
        (x,), (tangent,) = primals, tangents
        if is_static(x.shape[axis : axis + 1]):
            return of_numbers(primals, tangents, **params)
        sequential = partial(_sequential, combine, axis=axis, reverse=reverse)
        return primitive.bind(x, **params), jax.jvp(sequential, (x,), (tangent,))[1]

    ad.primitive_jvps[primitive] = rule


def _sequential(combine: _Combine, x: jax.Array, *, axis: int, reverse: bool) -> jax.Array:
    elements = jnp.moveaxis(x, axis, 0)
    n = elements.shape[0]
    first = lax.index_in_dim(elements, n - 1 if reverse else 0, keepdims=False)
    others = lax.slice_in_dim(elements, 0 if reverse else 1, n - 1 if reverse else n)

    def step(total: jax.Array, element: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = combine(total, element)
        return total, total

    _, totals = lax.scan(step, first, others, reverse=reverse)
    parts = [totals, first[None]] if reverse else [first[None], totals]
    return jnp.moveaxis(lax.concatenate(parts, 0), 0, axis)


for _primitive, _combine in _COMBINE.items():
    _register(_primitive, _combine)
