"""Computes loops, linear algebra, sorts and random draws of constants when a function is converted.

An engine computes an equation in each call, even if no argument reaches it: the inverse of a
constant matrix is a loop of over a hundred ops in an ONNX file. JAX computes such an equation once,
and the graph gets the result as a constant. Sums, products and other cheap equations stay, because
converters compute those of constants themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import jax
from jax import export
from jax.extend import core as jex_core

from jax2tf._src import compat, dims
from jax2tf._src.lowering.passes.dead_code import without_dead_code
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import called, equations, inner_jaxprs, map_inner, variables
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Array, Atom, Aval, aval_of

# A result with more elements takes more room in a file than the ops that compute it, unless its
# operands take as much.
_MOST_ELEMENTS = 4096

# Equations that an engine computes by a loop, by many ops, or by an op with much work.
_COSTLY = traits.DRAWS | frozenset(
    {
        *named("while", "scan", "sort", "top_k", "approx_top_k", "cumsum", "cumprod", "cummax"),
        *named("cummin", "cumlogsumexp", "dot_general", "conv_general_dilated", "fft"),
        *named("cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product"),
        *named(
            "lu", "lu_pivots_to_permutation", "ormqr", "qr", "schur", "svd", "symmetric_product"
        ),
        *named("triangular_solve", "tridiagonal", "tridiagonal_solve", "custom_linear_solve"),
        *named("bessel_i0e", "bessel_i1e", "digamma", "erf_inv", "igamma", "igamma_grad_a"),
        *named(
            "igammac", "lgamma", "nextafter", "polygamma", "regularized_incomplete_beta", "zeta"
        ),
        *named("random_gamma", "rng_bit_generator", "scatter-add", "reduce_window_sum"),
    }
)
# Their results depend on more than their operands.
_NOT_REPEATABLE = traits.CALLBACKS | frozenset(
    {
        *named("rng_uniform", "platform_index", "inspect_sharding", "shard_map", "psum", "pmax"),
        *named("pmin", "empty", "empty2", "create_token", "after_all", "dce_sink"),
    }
)


# The bodies of loops are left: what a loop reads, JAX gives it as operands.
_ENTERED = frozenset(named("jit", "closed_call"))


def with_known_results(program: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Replaces costly equations of constants by their results, in jitted functions too."""
    return _Rewriter().rewritten(program)


class _Rewriter:
    """Rewrites each jaxpr once, so that a shared function stays shared."""

    def __init__(self) -> None:
        self._done: dict[Identity, jex_core.ClosedJaxpr] = {}
        self._gains: dict[tuple[Identity, frozenset[int]], bool] = {}

    def rewritten(self, program: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
        """The program with constants; the same object if it has none to compute."""
        key = Identity(program)
        if key not in self._done:
            self._done[key] = self._with_constants(program)
        return self._done[key]

    def _with_constants(self, program: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
        jaxpr = program.jaxpr
        known = set(jaxpr.constvars)
        computed, equations_left = [], []
        for eqn in jaxpr.eqns:
            is_known = known.issuperset(variables(eqn.invars)) and _is_repeatable(eqn)
            if is_known:
                known.update(eqn.outvars)
            if is_known and _is_worth_it(eqn, jaxpr):
                computed += [v for v in eqn.outvars if not isinstance(v, jex_core.DropVar)]
            else:
                equations_left.append(self._inside(program, eqn, known))
        if equations_left == list(jaxpr.eqns):
            return program
        values = _values(program, computed)
        jaxpr = jaxpr.replace(constvars=[*jaxpr.constvars, *computed], eqns=equations_left)
        return without_dead_code(jex_core.ClosedJaxpr(jaxpr, [*program.consts, *values]))

    def _inside(
        self, program: jex_core.ClosedJaxpr, eqn: jex_core.JaxprEqn, known: Set[jex_core.Var]
    ) -> jex_core.JaxprEqn:
        """The equation with another jaxpr, if something is computed in the one that it calls."""
        if eqn.primitive not in _ENTERED:
            return eqn
        inner, places = called(eqn), _known_places(eqn, known)
        if self._has_gain(inner, places):
            atoms = [eqn.invars[i] for i in sorted(places)]
            inner = _with_known_arguments(inner, sorted(places), _values(program, atoms))
        changed = self.rewritten(inner)
        params = map_inner(eqn.params, lambda jaxpr: changed)
        return eqn if changed is called(eqn) else eqn.replace(params=params)

    def _has_gain(self, program: jex_core.ClosedJaxpr, places: frozenset[int]) -> bool:
        """Whether the values of the arguments in these places let something be computed."""
        if not places:
            return False
        key = (Identity(program), places)
        if key not in self._gains:
            self._gains[key] = self._search(program.jaxpr, places)
        return self._gains[key]

    def _search(self, jaxpr: jex_core.Jaxpr, places: frozenset[int]) -> bool:
        known = {*jaxpr.constvars, *(jaxpr.invars[i] for i in places)}
        for eqn in jaxpr.eqns:
            if known.issuperset(variables(eqn.invars)) and _is_repeatable(eqn):
                known.update(eqn.outvars)
                if _is_worth_it(eqn, jaxpr):
                    return True
            elif eqn.primitive in _ENTERED and self._has_gain(
                called(eqn), _known_places(eqn, known)
            ):
                return True
        return False


def _known_places(eqn: jex_core.JaxprEqn, known: Set[jex_core.Var]) -> frozenset[int]:
    """The places of the operands that are literals or known variables."""
    return frozenset(
        i for i, v in enumerate(eqn.invars) if isinstance(v, jex_core.Literal) or v in known
    )


def _with_known_arguments(
    program: jex_core.ClosedJaxpr, places: Sequence[int], values: Sequence[Array]
) -> jex_core.ClosedJaxpr:
    """A jaxpr that takes its constants in place of some arguments, which it does not read."""
    jaxpr = program.jaxpr
    taken = [jaxpr.invars[i] for i in places]
    unread = [jex_core.Var(v.aval) if v in taken else v for v in jaxpr.invars]
    jaxpr = jaxpr.replace(constvars=[*jaxpr.constvars, *taken], invars=unread)
    return jex_core.ClosedJaxpr(jaxpr, [*program.consts, *values])


def _is_worth_it(eqn: jex_core.JaxprEqn, jaxpr: jex_core.Jaxpr) -> bool:
    """Whether the results of a known equation take less room in a file than what makes them."""
    if not _is_costly(eqn):
        return False
    arrays = set(variables(eqn.invars)) & set(jaxpr.constvars)
    read = sum(math.prod(aval_of(v).shape) for v in arrays)
    return all(_is_small(aval_of(v), max(_MOST_ELEMENTS, read)) for v in eqn.outvars)


def _is_repeatable(eqn: jex_core.JaxprEqn) -> bool:
    """Whether JAX computes the results from the operands, for all calls and sizes."""
    return all(map(_is_pure, (eqn, *_inner(eqn))))


def _is_pure(eqn: jex_core.JaxprEqn) -> bool:
    """Whether JAX computes an equation, apart from jaxprs that it calls, from its operands."""
    if eqn.effects or eqn.primitive in _NOT_REPEATABLE:
        return False
    if not compat.primitives.is_implemented_by_jax(eqn.primitive):
        return False
    if any(map(export.is_symbolic_dim, jax.tree.leaves(eqn.params))):
        return False
    return all(dims.is_static(getattr(v.aval, "shape", ())) for v in eqn.outvars)


def _is_costly(eqn: jex_core.JaxprEqn) -> bool:
    return eqn.primitive in _COSTLY or any(inner.primitive in _COSTLY for inner in _inner(eqn))


def _inner(eqn: jex_core.JaxprEqn) -> Sequence[jex_core.JaxprEqn]:
    return [e for jaxpr in inner_jaxprs(eqn) for e in equations(jaxpr)]


def _is_small(aval: Aval, most_elements: int) -> bool:
    if not hasattr(aval, "dtype") or jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended):
        return False
    return 0 < math.prod(aval.shape) <= most_elements


def _values(program: jex_core.ClosedJaxpr, atoms: Sequence[Atom]) -> list[Array]:
    """The values of literals, and of variables that depend on no argument."""
    jaxpr = program.jaxpr
    needed = set(variables(atoms))
    equations_needed = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            needed.update(variables(eqn.invars))
            equations_needed.append(eqn)
    alone = jaxpr.replace(
        constvars=[], invars=jaxpr.constvars, outvars=list(atoms), eqns=equations_needed[::-1]
    )
    # JAX would fold constants of the program, which takes longer than to compute with arguments.
    compute = jax.jit(jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(alone, ())))
    with jax.ensure_compile_time_eval():
        return list(compute(*program.consts))
