"""Derivatives of reduce_prod and reduce of arrays with symbolic sizes.

JAX differentiates them as trees of products and calls, and needs all sizes as numbers. Here the
derivative of a product uses, for each element, the product of all elements before and after it.
The derivative of any other reduction is that of a scan over the elements. The scan also serves
reductions that carry integers, as an argmax does, for which JAX has no rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import ad

from jax2tf._src.util.symbolic_sizes import is_static
from jax2tf._src.util.typing import Param

_PRODUCT, _REDUCE = lax.reduce_prod_p, lax.reduce_p
_product_of_numbers: Callable[..., tuple[jax.Array, jax.Array]] = ad.primitive_jvps[_PRODUCT]
_reduce_of_numbers: Callable[..., tuple[list[jax.Array], list[jax.Array]]] = ad.primitive_jvps[
    _REDUCE
]


def _product_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[jax.Array],
    *,
    axes: Sequence[int],
    **params: Param,
) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    if is_static(x.shape):
        return _product_of_numbers(primals, tangents, axes=axes, **params)
    factors, changes = (_reduced_first(a, axes) for a in (x, tangent))
    others = _product_before(factors, reverse=False) * _product_before(factors, reverse=True)
    return _PRODUCT.bind(x, axes=axes, **params), jnp.sum(changes * others, 0)


def _product_before(factors: jax.Array, *, reverse: bool) -> jax.Array:
    """For each factor the product of all factors before it, or after it with `reverse`."""
    shift = (-1, 1, 0) if reverse else (1, -1, 0)
    config = [shift, *[(0, 0, 0)] * (factors.ndim - 1)]
    return lax.cumprod(lax.pad(factors, factors.dtype.type(1), config), 0, reverse=reverse)


def _reduce_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[jax.Array],
    *,
    dimensions: Sequence[int],
    **params: Param,
) -> tuple[list[jax.Array], list[jax.Array]]:
    operands = primals[: len(primals) // 2]
    are_inexact = all(jnp.issubdtype(operand.dtype, jnp.inexact) for operand in operands)
    if are_inexact and is_static(operands[0].shape):
        return _reduce_of_numbers(primals, tangents, dimensions=dimensions, **params)
    results = _REDUCE.bind(*primals, dimensions=dimensions, **params)
    changes = [ad.instantiate_zeros(tangent) for tangent in tangents]
    if not dimensions:  # The results are the operands, whatever the function.
        return results, changes[: len(operands)]
    function = jex_core.jaxpr_as_fun(params["jaxpr"])
    sequential = functools.partial(_reduced_in_turns, function, dimensions)
    return results, jax.jvp(sequential, tuple(primals), tuple(changes))[1]


def _reduced_in_turns(
    function: Callable[..., list[jax.Array]],
    dimensions: Sequence[int],
    *operands_and_inits: jax.Array,
) -> list[jax.Array]:
    """The reduction by a scan over the elements, which JAX can differentiate."""
    n = len(operands_and_inits) // 2
    elements = [_reduced_first(x, dimensions) for x in operands_and_inits[:n]]
    shape = elements[0].shape[1:]
    totals = [jnp.broadcast_to(init, shape).ravel() for init in operands_and_inits[n:]]
    rows = [x.reshape(x.shape[0], -1) for x in elements]

    def step(totals: list[jax.Array], row: list[jax.Array]) -> tuple[list[jax.Array], None]:
        return jax.vmap(function)(*totals, *row), None

    totals, _ = lax.scan(step, totals, rows)
    return [total.reshape(shape) for total in totals]


def _reduced_first(x: jax.Array, axes: Sequence[int]) -> jax.Array:
    """The array with the reduced axes joined into one, which comes first."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    sizes = [x.shape[axis] for axis in axes]
    return x.transpose(*axes, *others).reshape(math.prod(sizes), *(x.shape[a] for a in others))


ad.primitive_jvps[_PRODUCT] = _product_jvp
ad.primitive_jvps[_REDUCE] = _reduce_jvp
