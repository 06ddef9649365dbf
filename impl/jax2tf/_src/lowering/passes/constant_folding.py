"""Folds equations whose operands are constants; JAX computes their results.

The converters of some engines fold such equations themselves. For targets with the quirk
"no_folding" this pass replaces an equation by its results, if these are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax import export, lax
from jax.extend import core as jex_core

from jax2tf._src import compat, dims, ops
from jax2tf._src.lowering import registry
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import inner_jaxprs, results_of
from jax2tf._src.tracing.traits import CALLBACKS
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, aval_of

# Results with more elements take more room in a file than the ops that compute them.
_MOST_ELEMENTS = 4096


def folded(
    eqn: jex_core.JaxprEqn, operands: Sequence[Tensor], target: Target
) -> list[np.ndarray] | None:
    """Returns the results of an equation of constants; None if the graph must compute them."""
    if eqn.effects or not all(_is_small(aval_of(v), target) for v in eqn.outvars):
        return None
    avals = [aval_of(v) for v in eqn.invars]
    if not all(_is_constant(x, aval) for x, aval in zip(operands, avals, strict=True)):
        return None
    if not _is_computed_by_jax(eqn, target):
        return None
    values = [
        np.broadcast_to(ops.get_static_value(x), aval.shape)
        for x, aval in zip(operands, avals, strict=True)
    ]
    with jax.ensure_compile_time_eval():
        return [np.asarray(result) for result in results_of(eqn, values)]


def _is_small(aval: Aval, target: Target) -> bool:
    if not hasattr(aval, "dtype") or not dims.is_static(aval.shape):
        return False
    is_numeric = not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)
    is_taken = is_numeric and aval.dtype.name not in target.refused_dtypes
    return is_taken and 0 < math.prod(aval.shape) <= _MOST_ELEMENTS


def _is_computed_by_jax(eqn: jex_core.JaxprEqn, target: Target) -> bool:
    """Whether JAX and a graph can both compute the results from the operands only."""
    primitive = eqn.primitive
    if eqn.effects or primitive in CALLBACKS or not (eqn.invars or primitive is lax.iota_p):
        return False
    # JAX can run a scan only if its length is known.
    if any(map(export.is_symbolic_dim, jax.tree.leaves(eqn.params))):
        return False
    if not compat.primitives.is_implemented_by_jax(primitive) or not registry.find(
        primitive, target
    ):
        return False
    inner = (e for jaxpr in inner_jaxprs(eqn) for e in jaxpr.eqns)
    return all(_is_computed_by_jax(e, target) for e in inner)


def _is_constant(x: Tensor, aval: Aval) -> bool:
    """Whether a tensor is a constant of the graph in JAX's dtype.

    The tensor may be one number for a whole array, because TensorFlow's ops broadcast it.
    """
    if x.op.type != "Const" or x.dtype != dtypes.to_tf(aval.dtype):
        return False
    return bool(x.shape.rank == 0 or x.shape == aval.shape)
