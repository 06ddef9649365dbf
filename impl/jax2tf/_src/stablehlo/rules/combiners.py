"""What the small regions of reductions and scatters compute."""

from __future__ import annotations

import itertools

import jax
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step
from jax2tf._src.stablehlo.program import Region, ops_of

_COMMUTATIVE = {"add", "multiply", "minimum", "maximum", "and", "or", "xor"}


def combiner(region: Region) -> str:
    """The name of the one op that a region applies to its two arguments; "second" if it returns
    the second one; "" for another region.
    """
    if len(region.arguments) != 2 or len(region.results) != 1:
        return ""
    (result,) = region.results
    if not region.ops:
        return "second" if result == region.arguments[1] else ""
    if len(region.ops) != 1:
        return ""
    (op,) = region.ops
    if op.is_quantized:  # it does not add the integers that stand for floats
        return ""
    name = op.name.removeprefix("stablehlo.")
    if op.results != (result,):
        return ""
    if op.operands == region.arguments:
        return name
    is_swapped = op.operands == region.arguments[::-1]
    return name if is_swapped and name in _COMMUTATIVE else ""


_COMPLEX_SAMPLES = (0j, 1 + 0j, 1 + 1j, 2j, complex(float("nan"), 0.0), complex(0.0, float("nan")))


def complex_extreme(step: Step) -> str:
    """ "maximum" or "minimum" if a region compares complex numbers as lax.max and lax.min do.

    JAX writes these as comparisons of the parts. A region that only compares, combines truth values
    and selects is decided by trying each order of its operands.
    """
    region = step.op.regions[0]
    dtype = step.result.dtype
    names = {op.name.removeprefix("stablehlo.") for op in ops_of(region)}
    if dtype.kind != "c" or len(region.arguments) != 2 or names - _COMPARING:
        return ""
    pairs = np.array(list(itertools.product(_COMPLEX_SAMPLES, repeat=2)), dtype)
    function = step.region(0)
    with jax.ensure_compile_time_eval():
        found = np.asarray(jax.vmap(lambda x, y: function(x, y)[0])(*pairs.T))
        for name, extreme in (("maximum", lax.max), ("minimum", lax.min)):
            if np.array_equal(found, np.asarray(extreme(*pairs.T)), equal_nan=True):
                return name
    return ""


_COMPARING = {"real", "imag", "compare", "select", "and", "or", "not", "constant"}
