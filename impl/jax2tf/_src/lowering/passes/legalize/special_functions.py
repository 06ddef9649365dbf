"""Computes special functions by elementary functions, for targets that lack TensorFlow's ops.

JAX itself compiles some of these primitives as JAX functions: incomplete gamma and beta functions,
and bessel_i0e. They are used unchanged, so that the numbers are JAX's. emit/special_functions.py
has the other functions. All are traced, and their equations are lowered like any others: an igamma
contains a loop and an lgamma, which the target may lack too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.lowering.emit import special_functions
from jax2tf._src.lowering.emit.special_functions import in_wide_dtype
from jax2tf._src.lowering.passes.legalize import emulated_dtypes
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import by_primitive
from jax2tf._src.util.typing import aval_of

Function = Callable[..., jax.Array]


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> emulated_dtypes.Function | None:
    """Returns the JAX function for a special function whose op the target lacks, or None."""
    if eqn.primitive not in _FUNCTIONS:
        return None
    op, function = _FUNCTIONS[eqn.primitive]
    aval = aval_of(eqn.outvars[0])
    # Narrower floats are computed in float32.
    dtype = "float64" if getattr(aval, "dtype", None) == np.float64 else "float32"
    if target.takes(op, dtype) or (eqn.primitive, dtype) in _UNKNOWN:
        return None
    if function is None:
        function = _as_jax_does(eqn.primitive)
    return functools.partial(in_wide_dtype, function)


def _as_jax_does(primitive: jex_core.Primitive) -> Function:
    """Returns the JAX function that JAX compiles for the primitive on every device."""
    compiled = compat.primitives.compiled_function(primitive)
    assert compiled is not None, primitive
    return lambda *operands: compiled(*operands)[0]


# The op, and the function; None if JAX compiles the primitive as a JAX function.
_BY_NAME: dict[str, tuple[str, Function | None]] = {
    "atan2": ("Atan2", special_functions.atan2),
    "bessel_i0e": ("BesselI0e", None),
    "bessel_i1e": ("BesselI1e", special_functions.bessel_i1e),
    "digamma": ("Digamma", special_functions.digamma),
    "igamma": ("Igamma", None),
    "igamma_grad_a": ("IgammaGradA", None),
    "igammac": ("Igammac", None),
    "lgamma": ("Lgamma", special_functions.lgamma),
    "regularized_incomplete_beta": ("Betainc", None),
    # JAX on a CPU flushes subnormal numbers, and engines do not. Tests compare the two.
    "zeta": ("Zeta", functools.partial(special_functions.zeta, flushed=True)),
}
_FUNCTIONS = by_primitive(_BY_NAME)
# Cephes has a different series for float64.
_UNKNOWN = frozenset({(lax.bessel_i1e_p, "float64")})
