"""Contracts integers with at most 8 bits in float32, which is exact up to 2**24.

A contraction whose sums may be larger is split along a contracting dimension. The results of the
parts are added in int32, which wraps around as JAX's sum does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.legalize import emulated_dtypes
from jax2tf._src.util.typing import aval_of

# The dtypes of operands and results whose contractions can be computed in int32.
INTEGERS = frozenset(
    np.dtype(name) for name in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")
)
_NARROW_BITS = 8
# float32 represents every integer up to this one.
_EXACT = 2**24


def function_of(eqn: jex_core.JaxprEqn) -> emulated_dtypes.Function | None:
    """Returns the function for a contraction of narrow integers; None for other contractions."""
    products = _most_products(eqn)
    if products is None:
        return None
    if eqn.primitive is lax.dot_general_p:
        return functools.partial(_dot_general, products)
    window = math.prod(_window(eqn))
    groups = max(eqn.params["feature_group_count"], eqn.params["batch_group_count"])
    if window > products or (groups > 1 and not is_exact(eqn)):
        return None
    return functools.partial(_convolution, products // window)


def is_exact(eqn: jex_core.JaxprEqn) -> bool:
    """Whether float32 can represent all sums of a contraction, judged by dtypes and sizes."""
    products = _most_products(eqn)
    depth = _depth(eqn)
    return products is not None and isinstance(depth, int) and depth <= products


def _most_products(eqn: jex_core.JaxprEqn) -> int | None:
    """Returns the number of products that float32 adds exactly; None if a dtype is wider."""
    largest = [_largest(aval_of(v).dtype) for v in eqn.invars]
    if None in largest or not isinstance(_depth(eqn), int):
        return None
    return int(_EXACT // math.prod(n for n in largest if n is not None))


def _largest(dtype: np.dtype) -> int | None:
    if dtype == np.bool_:
        return 1
    info = jnp.iinfo(dtype)
    return max(-int(info.min), int(info.max)) if info.bits <= _NARROW_BITS else None


def _depth(eqn: jex_core.JaxprEqn) -> object:
    """Returns the number of products in each element of the result."""
    if eqn.primitive is lax.dot_general_p:
        (contracting, _), _ = eqn.params["dimension_numbers"]
        return math.prod(aval_of(eqn.invars[0]).shape[d] for d in contracting)
    features = aval_of(eqn.invars[1]).shape[eqn.params["dimension_numbers"].rhs_spec[1]]
    return math.prod((features, *_window(eqn)))


def _window(eqn: jex_core.JaxprEqn) -> Sequence[int]:
    shape = aval_of(eqn.invars[1]).shape
    return [shape[d] for d in eqn.params["dimension_numbers"].rhs_spec[2:]]


def _dot_general(
    products: int, eqn: jex_core.JaxprEqn, lhs: jax.Array, rhs: jax.Array
) -> Sequence[jax.Array]:
    numbers = eqn.params["dimension_numbers"]
    (lhs_contracting, rhs_contracting), _ = numbers

    def dot(lhs: jax.Array, rhs: jax.Array) -> jax.Array:
        sizes = [lhs.shape[d] for d in lhs_contracting]
        if math.prod(sizes) <= products:
            return lax.dot_general(_float(lhs), _float(rhs), numbers)
        longest = int(np.argmax(sizes))
        others = math.prod(sizes) // sizes[longest]
        places = lhs_contracting[longest], rhs_contracting[longest]
        return _in_parts(dot, lhs, rhs, places, max(products // others, 1))

    return [_as(dot(jnp.asarray(lhs), jnp.asarray(rhs)), aval_of(eqn.outvars[0]).dtype)]


def _convolution(
    features: int, eqn: jex_core.JaxprEqn, lhs: jax.Array, rhs: jax.Array
) -> Sequence[jax.Array]:
    params = {**eqn.params, "preferred_element_type": np.dtype(np.float32)}
    numbers = params["dimension_numbers"]
    places = numbers.lhs_spec[1], numbers.rhs_spec[1]

    def convolve(lhs: jax.Array, rhs: jax.Array) -> jax.Array:
        if rhs.shape[places[1]] <= features:
            return lax.conv_general_dilated_p.bind(_float(lhs), _float(rhs), **params)
        return _in_parts(convolve, lhs, rhs, places, features)

    return [_as(convolve(jnp.asarray(lhs), jnp.asarray(rhs)), aval_of(eqn.outvars[0]).dtype)]


def _in_parts(
    contract: Callable[[jax.Array, jax.Array], jax.Array],
    lhs: jax.Array,
    rhs: jax.Array,
    places: tuple[int, int],
    size: int,
) -> jax.Array:
    """Contracts parts of a contracting dimension and adds the results in int32."""
    parts = [
        lax.convert_element_type(
            contract(
                *(
                    lax.slice_in_dim(x, start, min(start + size, x.shape[d]), axis=d)
                    for x, d in zip((lhs, rhs), places, strict=True)
                )
            ),
            np.int32,
        )
        for start in range(0, lhs.shape[places[0]], size)
    ]
    return functools.reduce(lax.add, parts)


def _float(x: jax.Array) -> jax.Array:
    return lax.convert_element_type(x, np.float32)


def _as(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if dtype == np.bool_:
        return x != 0
    # A cast from float saturates at the largest integer, a cast from int32 wraps around.
    return lax.convert_element_type(lax.convert_element_type(x, np.int32), dtype)
