"""A JAX function with a fault: the same equations, of which those that the fault hits are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import core

from reports.planted.faults import Fault


def planted(fun: Callable[..., Any], fault: Fault) -> Callable[..., Any]:
    """`fun` with the fault, also in the functions that its equations call."""

    def faulty(*args: Any) -> Any:
        closed, result = jax.make_jaxpr(fun, return_shape=True)(*args)
        values = _values(closed, fault, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(result), values)

    return faulty


def is_hit(closed: core.ClosedJaxpr, fault: Fault) -> bool:
    """Whether an equation, or one of a jaxpr in the params of one, may be hit."""
    return any(
        fault.may_hit(eqn) or any(is_hit(inner, fault) for inner in _inner(eqn))
        for eqn in closed.jaxpr.eqns
    )


def _values(closed: core.ClosedJaxpr, fault: Fault, args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr with the fault."""
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= zip(jaxpr.invars, args, strict=True)

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        results = _called(_with_fault_inside(eqn, fault), operands)
        if results and fault.may_hit(eqn):
            results[0] = fault.wrong(operands, results[0])
        values |= zip(eqn.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _called(eqn: core.JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation."""
    variables = list(dict.fromkeys(x for x in eqn.invars if not isinstance(x, core.Literal)))
    given = {
        atom: operand
        for atom, operand in zip(eqn.invars, operands, strict=True)
        if not isinstance(atom, core.Literal)
    }
    name = core.DebugInfo("planted", eqn.primitive.name, None, None)
    alone = core.Jaxpr((), variables, eqn.outvars, [eqn], eqn.effects, name)
    return list(core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))(*(given[x] for x in variables)))


def _with_fault_inside(eqn: core.JaxprEqn, fault: Fault) -> core.JaxprEqn:
    """The equation, its jaxprs with the fault where it may hit them."""

    def replaced(value: Any) -> Any:
        if not _is_jaxpr(value) or not is_hit(value, fault):
            return value
        avals: list[Any] = [variable.aval for variable in value.jaxpr.invars]
        specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        return jax.make_jaxpr(lambda *args: _values(value, fault, args))(*specs)

    if not any(is_hit(inner, fault) for inner in _inner(eqn)):
        return eqn
    params = jax.tree.map(replaced, eqn.params, is_leaf=_is_jaxpr)
    return eqn.replace(params=params)


def _inner(eqn: core.JaxprEqn) -> list[core.ClosedJaxpr]:
    return list(filter(_is_jaxpr, jax.tree.leaves(eqn.params, is_leaf=_is_jaxpr)))


def _is_jaxpr(value: Any) -> bool:
    """Whether a param is a jaxpr of arrays. One that writes to references keeps its equations."""
    return isinstance(value, core.ClosedJaxpr) and all(
        isinstance(variable.aval, jax.core.ShapedArray) for variable in value.jaxpr.invars
    )
