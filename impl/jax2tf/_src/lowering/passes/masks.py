"""Lowers products with a mask, a bool that was converted to the other operand's dtype, as selects.

XLA makes a select of such a product. JAX therefore returns 0 for infinity or NaN times False, where
a multiplication returns NaN. XLA does this if the mask has the shape of the product, and for the
dtypes below. On the CPU, XLA converts bfloat16 to float32 first and does not recognise the mask.
"""

from __future__ import annotations

from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.constants import scalar
from jax2tf._src.lowering.passes import Instead
from jax2tf._src.targets.target import Target
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import aval_of

_DTYPES = frozenset({"float16", "float32", "float64", "complex64", "complex128"})


def found(jaxpr: jex_core.Jaxpr, target: Target) -> dict[jex_core.JaxprEqn, Instead]:
    """Returns replacements for a jaxpr's products with a mask."""
    del target
    converted = conversions(jaxpr)
    products: dict[jex_core.JaxprEqn, Instead] = {}
    for eqn in jaxpr.eqns if converted else ():
        if eqn.primitive is not lax.mul_p or eqn.params.get("out_dtype") is not None:
            continue
        for mask, number in (eqn.invars, reversed(eqn.invars)):
            if isinstance(mask, jex_core.Var) and mask in converted and _fills(mask, eqn):
                products[eqn] = Instead([number, converted[mask]], select, gives_many=False)
    return products


def conversions(jaxpr: jex_core.Jaxpr) -> dict[jex_core.Var, jex_core.Var]:
    """Returns the bool variables that a jaxpr converts to numbers, by the converted variables."""
    numbers = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is lax.convert_element_type_p:
            given, made = eqn.invars[0], eqn.outvars[0]
            if (
                isinstance(given, jex_core.Var)
                and _dtype(given) == "bool"
                and _dtype(made) in _DTYPES
            ):
                numbers[made] = given
    return numbers


def _dtype(var: jex_core.Var) -> str:
    aval = aval_of(var)
    return aval.dtype.name


def _fills(mask: jex_core.Var, product: jex_core.JaxprEqn) -> bool:
    return bool(aval_of(mask).shape == aval_of(product.outvars[0]).shape)


def select(ctx: Context, number: Tensor, mask: Tensor) -> Tensor:
    """The rule of a product of `number` with `mask`."""
    return ops.raw.SelectV2(condition=mask, t=number, e=scalar(0, number.dtype))
