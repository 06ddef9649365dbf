"""Products with a mask: a number times a truth value that was converted to the number's dtype.

XLA makes a select of such a product, so JAX gives 0 for infinity or NaN times False, where a
multiplication gives NaN. It does so where the truth value has the shape of the product, and in the
dtypes below: on the CPU a bfloat16 goes through float32 before it can be seen.
"""

from __future__ import annotations

import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.constants import scalar
from jax2tf._src.util.typing import Atom, aval_of

_DTYPES = frozenset({"float16", "float32", "float64", "complex64", "complex128"})

# An equation that is such a product, with the number and the truth value.
Products = dict[jex_core.JaxprEqn, list[Atom]]


def conversions(jaxpr: jex_core.Jaxpr) -> dict[jex_core.Var, jex_core.Var]:
    """The truth values that a jaxpr converts to numbers, by the variables of the numbers."""
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is lax.convert_element_type_p:
            given, made = eqn.invars[0], eqn.outvars[0]
            if (
                isinstance(given, jex_core.Var)
                and _dtype(given) == "bool"
                and _dtype(made) in _DTYPES
            ):
                found[made] = given
    return found


def products(jaxpr: jex_core.Jaxpr, converted: dict[jex_core.Var, jex_core.Var]) -> Products:
    """The products with a mask among the equations of a jaxpr with those `conversions`."""
    found: Products = {}
    for eqn in jaxpr.eqns if converted else ():
        if eqn.primitive is not lax.mul_p or eqn.params.get("out_dtype") is not None:
            continue
        for mask, number in (eqn.invars, reversed(eqn.invars)):
            if isinstance(mask, jex_core.Var) and mask in converted and _fills(mask, eqn):
                found[eqn] = [number, converted[mask]]
    return found


def _dtype(var: jex_core.Var) -> str:
    aval = aval_of(var)
    result: str = aval.dtype.name
    return result


def _fills(mask: jex_core.Var, product: jex_core.JaxprEqn) -> bool:
    return bool(aval_of(mask).shape == aval_of(product.outvars[0]).shape)


def select(ctx: Context, number: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The rule of a product with a mask."""
    return ops.raw.SelectV2(condition=mask, t=number, e=scalar(0, number.dtype))
