"""Replaces equations whose results have no elements by zeros of these shapes.

Some kernels of TensorFlow refuse arrays without elements. Its graph optimizer even ends the whole
process by a division by zero when it folds the product of a constant `[2, 0]` and a `[1, 0]` array.
"""

from __future__ import annotations

from jax.extend import core as jex_core

from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.constants import without_elements
from jax2tf._src.lowering.passes import Instead
from jax2tf._src.lowering.registry import Lowered
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.traits import CALLBACKS
from jax2tf._src.util.typing import aval_of


def are_all_results(eqn: jex_core.JaxprEqn) -> bool:
    """Whether no result of an equation has elements, whatever the sizes of dimensions are."""
    for var in eqn.outvars:
        if 0 not in getattr(aval_of(var), "shape", ()):
            return False
    return bool(eqn.outvars) and not eqn.effects and eqn.primitive not in CALLBACKS


def found(jaxpr: jex_core.Jaxpr, target: Target) -> dict[jex_core.JaxprEqn, Instead]:
    """Returns replacements for the equations of a jaxpr whose results have no elements."""
    del target
    return {eqn: Instead((), nothing) for eqn in jaxpr.eqns if are_all_results(eqn)}


def nothing(ctx: Context) -> Lowered:
    """The rule of an equation whose results have no elements. It takes no operands."""
    results = [without_elements(ctx, aval) for aval in ctx.avals_out]
    return results if ctx.eqn.primitive.multiple_results else results[0]
