"""Rewrites programs with complex numbers for engines that only have real numbers.

Each complex array becomes two real arrays, also in loops and branches. An equation without a rule
here stays complex: its operands are joined before it. Arguments and results of the function stay
complex, too.
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

from jax2tf._src import compat
from jax2tf._src.lowering.passes.complex_as_real import pair, scatters
from jax2tf._src.lowering.passes.complex_as_real.pair import Pair, Value, is_complex
from jax2tf._src.lowering.passes.complex_as_real.rules import rule_of
from jax2tf._src.lowering.passes.legalize import linalg
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import (
    Scan,
    While,
    branches_of,
    called,
    evaluate,
    inner_jaxprs,
    results_of,
    traced,
)
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Array


def without_complex(closed: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """Rewrites a jaxpr with two real arrays for each complex array.

    Arguments and results stay complex.
    """

    def function(*args: Array) -> list[Array]:
        results = _run(closed.jaxpr, closed.consts, [_split(x) for x in args])
        return [_joined(value) for value in results]

    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    return traced(function, specs)


def has_complex(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether an equation of a jaxpr, or of one of its inner jaxprs, has complex numbers."""
    return any(map(_mentions_complex, jaxpr.eqns))


def _mentions_complex(eqn: jex_core.JaxprEqn) -> bool:
    atoms = (*eqn.invars, *eqn.outvars)
    return any(is_complex(v.aval) for v in atoms) or any(map(has_complex, inner_jaxprs(eqn)))


def _run(jaxpr: jex_core.Jaxpr, consts: Sequence[Array], args: Sequence[Value]) -> list[Value]:
    """Evaluates a jaxpr on pairs and arrays; under a trace, this makes a new jaxpr."""
    split = list(map(_split, consts))
    return evaluate(jaxpr, split, args, _rule, lambda literal: _split(literal.val))


def _rule(eqn: jex_core.JaxprEqn, operands: list[Value]) -> Sequence[Value]:
    if not _mentions_complex(eqn):
        return results_of(eqn, operands)
    with compat.jaxprs.bound_as(eqn):
        return _results(eqn, operands)


def _results(eqn: jex_core.JaxprEqn, operands: Sequence[Value]) -> Sequence[Value]:
    of_jaxprs = _OF_JAXPRS.get(eqn.primitive)
    if of_jaxprs is not None:
        of_inner = of_jaxprs(eqn, *operands)
        if of_inner is not None:
            return of_inner
    if eqn.primitive in traits.CALLS:
        return _function(called(eqn))(*operands)
    rule = rule_of(eqn.primitive)
    made = rule(eqn, *operands) if rule is not None else None
    if made is not None:
        return made
    function = linalg.of_complex(eqn)
    if function is not None:
        return _run_traced(functools.partial(function, eqn), operands)
    return [_split(x) for x in results_of(eqn, list(map(_joined, operands)))]


def _run_traced(
    function: Callable[..., Sequence[Array]], operands: Sequence[Value]
) -> Sequence[Value]:
    """Traces a function of complex arrays and evaluates its jaxpr on pairs."""
    specs = [jax.eval_shape(_joined, x) for x in operands]
    return _function(traced(function, specs))(*operands)


def _function(closed: jex_core.ClosedJaxpr) -> Callable[..., list[Value]]:
    return lambda *values: _run(closed.jaxpr, closed.consts, values)


def _cond(eqn: jex_core.JaxprEqn, index: Array, *operands: Value) -> list[Value]:
    return lax.switch(index, [*map(_function, branches_of(eqn))], *operands)


def _scan(eqn: jex_core.JaxprEqn, *operands: Value) -> list[Value]:
    scan = Scan.of(eqn)
    consts, carry, xs = scan.split(operands)
    return scan.run(functools.partial(_function(scan.body), *consts), carry, xs)


def _while(eqn: jex_core.JaxprEqn, *operands: Value) -> list[Value]:
    loop = While.of(eqn)
    condition_consts, body_consts, carry = loop.split(operands)
    condition, body = _function(loop.condition), _function(loop.body)

    def going(carry: list[Value]) -> Array:
        goes = condition(*condition_consts, *carry)[0]
        assert not isinstance(goes, Pair)
        return goes

    def step(carry: list[Value]) -> list[Value]:
        return body(*body_consts, *carry)

    if not loop.condition.out_avals[0].shape:
        return lax.while_loop(going, step, list(carry))

    # This is a loop under vmap, whose elements stop at different times.
    def step_of_some(carry: list[Value]) -> list[Value]:
        goes = going(carry)
        return jax.tree.map(lambda new, old: _where(goes, new, old), step(carry), carry)

    return lax.while_loop(lambda carry: jnp.any(going(carry)), step_of_some, list(carry))


def _linear_solve(eqn: jex_core.JaxprEqn, *operands: Value) -> list[Value]:
    lengths = eqn.params["const_lengths"]
    start = lengths.matvec + lengths.vecmat
    consts = operands[start : start + lengths.solve]
    rhs = operands[start + lengths.solve + lengths.transpose_solve :]
    return _function(eqn.params["jaxprs"].solve)(*consts, *rhs)


def _reduce(eqn: jex_core.JaxprEqn, *operands: Value) -> list[Value]:
    n = len(operands) // 2
    combine = _combination(eqn.params["jaxpr"])
    return lax.reduce(list(operands[:n]), list(operands[n:]), combine, eqn.params["dimensions"])


def _reduce_window(eqn: jex_core.JaxprEqn, *operands: Value) -> list[Value]:
    params = dict(eqn.params)
    combine = _combination(jex_core.ClosedJaxpr(params.pop("jaxpr"), params.pop("consts")))
    n = len(operands) // 2
    return lax.reduce_window(list(operands[:n]), list(operands[n:]), combine, **params)


def _combination(
    closed: jex_core.ClosedJaxpr,
) -> Callable[[Sequence[Value], Sequence[Value]], list[Value]]:
    """Returns the function by which a reduction combines two elements of each of its arrays."""
    return lambda one, other: _run(closed.jaxpr, closed.consts, [*one, *other])


def _extreme_of_windows(
    function: Callable[[Pair, Pair], Pair], identity: float
) -> Callable[..., list[Value]]:
    """Returns the rule of an extreme in windows; lax.reduce_window reduces both parts together."""

    def rule(eqn: jex_core.JaxprEqn, z: Pair) -> list[Value]:
        start = Pair(*(np.asarray(x, z.real.dtype) for x in (identity, 0)))
        result: Pair = lax.reduce_window(z, start, function, **eqn.params)
        return [result]

    return rule


def _scatter(
    eqn: jex_core.JaxprEqn, operand: Value, indices: Array, updates: Value
) -> list[Value] | None:
    """Lowers `x.at[...].apply(function)`, whose updates are placeholders."""
    jaxpr = eqn.params["update_jaxpr"]
    if jaxpr is None or not isinstance(operand, Pair):
        return None
    consts = eqn.params["update_consts"]
    function: Callable[..., Value] = jax.vmap(lambda z, w: _run(jaxpr, consts, [z, w])[0])

    def combine(z: Pair, w: Value) -> Pair:
        flat = jax.tree.map(lambda x: jnp.reshape(x, (-1,)), (z, w))
        return jax.tree.map(lambda x: jnp.reshape(x, np.shape(z.real)), function(*flat))

    return [scatters.combined(eqn, operand, indices, updates, combine)]


def _where(which: Array, new: Array, old: Array) -> Array:
    return jnp.where(which.reshape(which.shape + (1,) * (new.ndim - which.ndim)), new, old)


_OF_JAXPRS: dict[jex_core.Primitive, Callable[..., list[Value] | None]] = {
    lax.cond_p: _cond,
    lax.scan_p: _scan,
    lax.scatter_p: _scatter,
    lax.while_p: _while,
    **dict.fromkeys(named("custom_linear_solve"), _linear_solve),
    **dict.fromkeys(named("reduce"), _reduce),
    **dict.fromkeys(named("reduce_window"), _reduce_window),
    **dict.fromkeys(named("reduce_window_max"), _extreme_of_windows(pair.maximum, -math.inf)),
    **dict.fromkeys(named("reduce_window_min"), _extreme_of_windows(pair.minimum, math.inf)),
}


def _split(x: Array) -> Value:
    if not is_complex(x):
        return x
    if isinstance(x, jax.core.Tracer):
        return Pair(lax.real(x), lax.imag(x))
    # lax.real would leave the complex constant and an op in the graph.
    constant: np.ndarray = np.asarray(x)
    return Pair(constant.real, constant.imag)


def _joined(value: Value) -> Array:
    return lax.complex(*value) if isinstance(value, Pair) else value
