"""Finds the operand of a jaxpr that a variable equals, without running the jaxpr."""

from __future__ import annotations

import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import Scan, While, branches_of, inner_jaxprs
from jax2tf._src.util.typing import Atom, aval_of


def source_of(jaxpr: jex_core.Jaxpr, result: Atom) -> int | None:
    """The index of the operand that a variable equals, if no op computes it; else None."""
    made_by = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    while isinstance(result, jex_core.Var) and result in made_by:
        eqn, number = made_by[result]
        operand = _operand(eqn, number)
        if operand is None:
            return None
        result = eqn.invars[operand]
    return places.get(result) if isinstance(result, jex_core.Var) else None


def _operand(eqn: jex_core.JaxprEqn, result: int) -> int | None:
    """The index of the operand that a result of an equation equals; None if there is none."""
    primitive = eqn.primitive
    if primitive in traits.IDENTITY:
        return result
    if primitive in traits.REARRANGES or primitive in (lax.slice_p, lax.convert_element_type_p):
        # A slice or broadcast of all elements returns its operand.
        old = aval_of(eqn.invars[0])
        new = aval_of(eqn.outvars[0])
        return 0 if old.size == new.size and old.dtype == new.dtype else None
    if primitive in traits.NEUTRAL:
        # A converter replaces the result by the other operand.
        number, places = traits.NEUTRAL[primitive]
        return next((1 - i for i in places if _is_number(eqn.invars[i], number)), None)
    if primitive is lax.while_p:
        loop = While.of(eqn)
        stays = _stays(loop.body.jaxpr, loop.n_body, result)
        return loop.n_condition + loop.n_body + result if stays else None
    if primitive is lax.scan_p:
        scan = Scan.of(eqn)
        stays = result < scan.n_carry and _stays(scan.body.jaxpr, scan.n_consts, result)
        return scan.n_consts + result if stays else None
    if primitive is lax.cond_p:
        sources = {source_of(b.jaxpr, b.jaxpr.outvars[result]) for b in branches_of(eqn)}
        (source, *others) = sources
        return None if others or source is None else 1 + source
    called = list(inner_jaxprs(eqn))
    if len(called) == 1 and len(called[0].invars) == len(eqn.invars):
        return source_of(called[0], called[0].outvars[result])
    return None


def _stays(body: jex_core.Jaxpr, n_consts: int, carry: int) -> bool:
    """Whether the step of a loop returns the carry with this index unchanged."""
    return source_of(body, body.outvars[carry]) == n_consts + carry


def _is_number(atom: Atom, number: float) -> bool:
    return isinstance(atom, jex_core.Literal) and bool(np.all(np.asarray(atom.val) == number))
