"""Traces a JAX function to a jaxpr that is lowered in place of an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.tracing import jaxprs
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Aval, aval_of


def jaxpr_of(
    eqn: jex_core.JaxprEqn,
    function: Callable[..., Sequence[jax.Array]],
    carriers: Mapping[str, str],
) -> jex_core.ClosedJaxpr:
    """The jaxpr of `function` for an equation; it takes the operands that are not literals."""
    avals = [aval_of(v) for v in eqn.invars if isinstance(v, jex_core.Var)]
    specs = [
        jax.ShapeDtypeStruct(dtypes.physical_shape(aval), _carrier(aval, carriers))
        for aval in avals
    ]

    def results_of_variables(*values: jax.Array) -> list[jax.Array]:
        given = iter(values)
        operands = [
            _literal(v, carriers) if isinstance(v, jex_core.Literal) else next(given)
            for v in eqn.invars
        ]
        results = function(eqn, *operands)
        return [
            lax.convert_element_type(x, _carrier(aval_of(v), carriers))
            for v, x in zip(eqn.outvars, results, strict=True)
        ]

    return jaxprs.traced(results_of_variables, specs)


def _carrier(aval: Aval, carriers: Mapping[str, str]) -> np.dtype:
    name = "uint32" if dtypes.is_key(aval.dtype) else str(aval.dtype)
    return jax.numpy.dtype(carriers.get(name, name))


def _literal(literal: jex_core.Literal, carriers: Mapping[str, str]) -> np.ndarray:
    aval = aval_of(literal)
    return np.asarray(literal.val, aval.dtype).astype(_carrier(aval, carriers))
