"""Has XLA compile runs of small equations, and loops of them, inside of a graph.

TensorFlow takes longer to start a small op than to compute it. This pass moves a *run*, consecutive
equations that XLA fuses well, into a jaxpr of its own. The rule of jit makes one function of that
jaxpr, which XLA compiles when the graph first runs:

    a = dot x w            a = dot x w
    b = sin a              c = compiled a      compiled: a -> mul (sin a) a
    c = mul b a      ->    d = eigh c
    d = eigh c

The weight of an equation is about the number of ops that TensorFlow would start for it. A run is
compiled if its weight pays for the call of a compiled function. XLA compiles a function once for
each shape, so a run has static shapes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import cast

import jax
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat, dims
from jax2tf._src.lowering import registry
from jax2tf._src.lowering.emit.compiled_calls import COMPILED_RUN
from jax2tf._src.lowering.passes.outlined import Body, Wiring
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import (
    Scan,
    While,
    branches_of,
    called,
    count_equations,
    inner_jaxprs,
    map_inner,
    rewriting,
    variables,
)
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Atom, aval_of

# A run is compiled from this weight on: calling a compiled function takes as long as dozens of ops,
# and a program may run only a few times.
MIN_WEIGHT = 1000
# Compiling takes XLA one to ten milliseconds for each equation, which only loops save again.
MIN_REPEATS = 8

# A while loop is expected to take so many steps.
_EXPECTED_STEPS = 50

# TensorFlow starts about so many ops for a step of a loop apart from those of its body.
_WEIGHT_OF_STEP = 8

# Kernels of TensorFlow compute larger arrays with all cores, and starting them costs little.
_MOST_ELEMENTS = 1 << 14
# The stacked rows of a loop; each step reads or writes one.
_MOST_STACKED = 1 << 22
# The products of a matrix product.
_MOST_PRODUCTS = 1 << 18

# Dtypes that TensorFlow hands to compiled code as they are, and that XLA does not widen.
_DTYPES = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    }
)

# XLA computes these in loops of its own, or in other ways than by a kernel of a few microseconds.
_LARGE = (
    traits.EIGENVALUES
    | traits.WINDOWS
    | traits.CALLBACKS
    | traits.SHARDS
    | frozenset(
        (
            *named("approx_top_k", "composite", "custom_partitioning", "igamma", "igamma_grad_a"),
            *named("igammac", "polygamma", "random_gamma", "zeta"),
        )
    )
)
_SMALL = (
    traits.BINARY
    | traits.CASTS
    | traits.DRAWS
    | traits.FLOATS
    | traits.IDENTITY
    | traits.MOVES
    | traits.READS_BITS
    | traits.REDUCES
    | traits.WIDENS
    | traits.WRAPS
    | frozenset(
        (
            *named("bitcast_convert_type", "conj", "digamma", "dot_general", "imag", "iota"),
            *named("lgamma", "platform_index", "random_clone", "random_seed", "random_unwrap"),
            *named("random_wrap", "real", "scatter", "scatter-add", "scatter-max", "scatter-min"),
            *named("scatter-mul"),
        )
    )
) - _LARGE

# XLA computes these in loops that pay for small matrices alone.
_OF_MATRICES = frozenset(named("cholesky", "lu", "lu_pivots_to_permutation", "triangular_solve"))
_LARGEST_MATRIX = 16


def with_compiled_runs(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Replaces runs of small equations by calls that XLA compiles; the same jaxpr if none pays.

    The pass also looks into the jaxprs of calls that are no such run as a whole.
    """
    return cast(jex_core.ClosedJaxpr, _CompiledRuns().rewritten(jaxpr))


class _CompiledRuns:
    """One pass over a jaxpr and the jaxprs that it calls."""

    def __init__(self) -> None:
        self.rewritten = rewriting(self._rewrite)
        self._weights: dict[Identity, float | None] = {}

    def _rewrite(self, jaxpr: jex_core.Jaxpr) -> jex_core.Jaxpr:
        weights = [self._weight(eqn) for eqn in jaxpr.eqns]
        equations: list[jex_core.JaxprEqn] = []
        at = 0
        for is_small, run in itertools.groupby(weights, lambda weight: weight is not None):
            of_run = list(run)
            window = jaxpr.eqns[at : at + len(of_run)]
            at += len(of_run)
            if not is_small:
                equations += [self._inside(eqn) for eqn in window]
            elif _pays(window, sum(cast(list[float], of_run))):
                later = [*(v for eqn in jaxpr.eqns[at:] for v in eqn.invars), *jaxpr.outvars]
                equations.append(_compiled(window, later))
            else:
                equations += window
        return jaxpr if equations == list(jaxpr.eqns) else jaxpr.replace(eqns=equations)

    def _inside(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        if eqn.primitive not in traits.CALLS:
            return eqn
        params = map_inner(eqn.params, self.rewritten)
        return eqn if params is eqn.params else eqn.replace(params=params)

    def _weight(self, eqn: jex_core.JaxprEqn) -> float | None:
        """Returns the weight of an equation, or None if it is part of no run."""
        if eqn.effects or not all(map(_is_handed_over, (*eqn.invars, *eqn.outvars))):
            return None
        if eqn.primitive in _LOOPS:
            return _LOOPS[eqn.primitive](self, eqn)
        if eqn.primitive in traits.CALLS - _LARGE:
            return self._of_jaxpr(called(eqn).jaxpr)
        if eqn.primitive in _OF_MATRICES:
            return _of_matrices(eqn)
        if eqn.primitive not in _SMALL:
            return None if registry.has_rule(eqn.primitive) else self._of_foreign(eqn)
        if not all(map(_is_small, (*eqn.invars, *eqn.outvars))):
            return None
        if eqn.primitive is lax.dot_general_p and _products(eqn) > _MOST_PRODUCTS:
            return None
        return 1

    def _of_jaxpr(self, jaxpr: jex_core.Jaxpr) -> float | None:
        key = Identity(jaxpr)
        if key not in self._weights:
            weights = [self._weight(eqn) for eqn in jaxpr.eqns]
            self._weights[key] = None if None in weights else sum(cast(list[float], weights))
        return self._weights[key]

    def _of_scan(self, eqn: jex_core.JaxprEqn) -> float | None:
        scan = Scan.of(eqn)
        step = self._of_jaxpr(scan.body.jaxpr)
        return None if step is None else (step + _WEIGHT_OF_STEP) * scan.length

    def _of_while(self, eqn: jex_core.JaxprEqn) -> float | None:
        loop = While.of(eqn)
        both = [self._of_jaxpr(loop.condition.jaxpr), self._of_jaxpr(loop.body.jaxpr)]
        if None in both:
            return None
        return (sum(cast(list[float], both)) + _WEIGHT_OF_STEP) * _EXPECTED_STEPS

    def _of_cond(self, eqn: jex_core.JaxprEqn) -> float | None:
        branches = [self._of_jaxpr(branch.jaxpr) for branch in branches_of(eqn)]
        return None if None in branches else max(cast(list[float], branches)) + _WEIGHT_OF_STEP

    def _of_solve(self, eqn: jex_core.JaxprEqn) -> float | None:
        return self._of_jaxpr(eqn.params["jaxprs"].solve.jaxpr)

    def _of_foreign(self, eqn: jex_core.JaxprEqn) -> float | None:
        """Returns the weight of a primitive of another library, if it is a JAX function."""
        if compat.primitives.is_implemented_by_jax(eqn.primitive):
            return None
        function = functools.partial(eqn.primitive.impl, **eqn.params)
        avals = map(aval_of, eqn.invars)
        specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        try:
            traced = jax.make_jaxpr(function)(*specs)
        # The function needs concrete values, so it is lowered as a callback, or refused.
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            return None
        return self._of_jaxpr(traced.jaxpr)


_LOOPS: dict[jex_core.Primitive, Callable[[_CompiledRuns, jex_core.JaxprEqn], float | None]] = {
    lax.cond_p: _CompiledRuns._of_cond,
    lax.scan_p: _CompiledRuns._of_scan,
    lax.while_p: _CompiledRuns._of_while,
    lax.linear_solve_p: _CompiledRuns._of_solve,
}


def _pays(window: Sequence[jex_core.JaxprEqn], weight: float) -> bool:
    """Whether calls of the compiled run save what compiling it takes."""
    most = int(weight / MIN_REPEATS)
    inner = itertools.chain.from_iterable(map(inner_jaxprs, window))
    count = len(window) + sum(count_equations(jaxpr, most + 1) for jaxpr in inner)
    return weight >= MIN_WEIGHT and count <= most


def _of_matrices(eqn: jex_core.JaxprEqn) -> float | None:
    shape = aval_of(eqn.invars[0]).shape
    return 1 if all(size <= _LARGEST_MATRIX for size in shape[-2:]) else None


def _compiled(window: Sequence[jex_core.JaxprEqn], later: Sequence[Atom]) -> jex_core.JaxprEqn:
    inputs = Wiring.of(window).inputs
    read = set(variables(later))
    outputs = [
        (i, j) for i, eqn in enumerate(window) for j, v in enumerate(eqn.outvars) if v in read
    ]
    body = Body("compiled_run", window, inputs, outputs, compiler_options_kvs=(COMPILED_RUN,))
    return body.call(window, inputs)


def _is_handed_over(atom: Atom) -> bool:
    """Whether a value has a static shape that is not too large, and a dtype of `_DTYPES`."""
    aval = aval_of(atom)
    if not hasattr(aval, "dtype"):
        return False
    shape = dtypes.physical_shape(aval)
    if not dims.is_static(shape) or math.prod(shape) > _MOST_STACKED:
        return False
    return dtypes.is_key(aval.dtype) or str(aval.dtype) in _DTYPES


def _is_small(atom: Atom) -> bool:
    return math.prod(aval_of(atom).shape) <= _MOST_ELEMENTS


def _products(eqn: jex_core.JaxprEqn) -> int:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    shape = aval_of(eqn.invars[0]).shape
    return math.prod(shape[axis] for axis in contracted) * math.prod(aval_of(eqn.outvars[0]).shape)
