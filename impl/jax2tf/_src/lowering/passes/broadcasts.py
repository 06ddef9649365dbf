"""Removes broadcasts and reshapes of operands that TensorFlow's ops broadcast anyway."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes import Instead, legalize
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import traits
from jax2tf._src.util.dtypes import is_key
from jax2tf._src.util.typing import Atom, Dim, aval_of

# Every engine's SelectV2 broadcasts arrays with at most this many dimensions.
_MAX_RANK = 5
# Binary ops whose operands broadcast against each other.
_OF_TWO = traits.ARITHMETIC | traits.COMPARES
# Not the narrow dtypes, which are emulated in others, nor complex numbers, which may be pairs.
_FLOATS = frozenset(np.dtype(x) for x in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64))
_DTYPES = _FLOATS | {np.dtype(np.int32), np.dtype(np.int64)}


def unrepeated_operands(jaxpr: jex_core.Jaxpr, target: Target) -> dict[jex_core.JaxprEqn, Instead]:
    """Replaces operands that JAX broadcast by the operands before the broadcast.

    Every target gets scalars of select_n; other operands depend on the target's optimisations.
    """
    before: dict[Atom, Atom] = {
        eqn.outvars[0]: eqn.invars[0] for eqn in jaxpr.eqns if _is_aligned(eqn)
    }
    found = {}
    for eqn in jaxpr.eqns if before else ():
        if eqn.primitive is lax.select_n_p:
            operands = _of_choice(eqn, before, target.wants(Optimization.BROADCAST_CHOICES))
        elif eqn.primitive in _OF_TWO and target.wants(Optimization.BROADCAST_OPERANDS):
            operands = _of_two(eqn, before, target)
        else:
            continue
        if operands != eqn.invars:
            found[eqn] = Instead(operands)
    return found


def _is_aligned(eqn: jex_core.JaxprEqn) -> bool:
    """Whether TensorFlow's implicit broadcasting aligns the dimensions as the equation does."""
    if eqn.primitive not in (lax.broadcast_in_dim_p, lax.reshape_p):
        return False
    if is_key(aval_of(eqn.invars[0]).dtype):
        return False
    old, new = _shape(eqn.invars[0]), _shape(eqn.outvars[0])
    if eqn.primitive is lax.reshape_p:
        return _adds_ones_in_front(old, new)
    places = tuple(eqn.params["broadcast_dimensions"])
    is_last = places == tuple(range(len(new) - len(old), len(new)))
    return not old or (is_last and len(new) <= _MAX_RANK)


def _adds_ones_in_front(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> bool:
    return new == (1,) * (len(new) - len(old)) + old


def _of_choice(
    eqn: jex_core.JaxprEqn, before: Mapping[Atom, Atom], repeats_arrays: bool
) -> list[Atom]:
    """Returns the operands of a select_n. At least one operand keeps its shape."""
    if not _shape(eqn.invars[0]):
        return eqn.invars
    operands = [_before(x, before, repeats_arrays) for x in eqn.invars]
    has_whole = any(one is other for one, other in zip(operands, eqn.invars, strict=True))
    if not has_whole or not _shape(operands[0]):
        operands[0] = eqn.invars[0]
    return operands


def _of_two(eqn: jex_core.JaxprEqn, before: Mapping[Atom, Atom], target: Target) -> list[Atom]:
    """Returns the operands of a binary op. The other operand keeps the shape of the result."""
    shape = _shape(eqn.outvars[0])
    for place in (1, 0):
        operands = list(eqn.invars)
        operand, other = operands[place], operands[1 - place]
        operands[place] = _before(operand, before, repeats_arrays=True)
        if operands[place] is operand or len(_shape(other)) != len(shape):
            continue
        # Leading dimensions of size one repeat nothing, whatever the other operand's sizes are.
        only_adds = _adds_ones_in_front(_shape(operands[place]), _shape(operand))
        if not only_adds and _shape(other) != shape:
            continue
        is_one_op = aval_of(operand).dtype in _DTYPES and legalize.found(eqn, target) is None
        return operands if is_one_op else eqn.invars
    return eqn.invars


def _before(atom: Atom, before: Mapping[Atom, Atom], repeats_arrays: bool) -> Atom:
    if isinstance(atom, jex_core.Literal):
        return atom
    found = before.get(atom, atom)
    return found if repeats_arrays or not _shape(found) else atom


# Reductions whose rules can keep dimensions.
_REDUCTIONS = frozenset({lax.reduce_sum_p, lax.reduce_max_p, lax.reduce_min_p})
# jax.nn.softmax takes `max(-inf, m)` of the row maximum `m` before it broadcasts it.
_EXTREMES = {lax.max_p: lax.reduce_max_p, lax.min_p: lax.reduce_min_p}


def with_kept_dimensions(
    equations: Sequence[jex_core.JaxprEqn],
    replaced: Mapping[jex_core.JaxprEqn, Sequence[Atom]],
    results: Collection[Atom],
    target: Target,
) -> Sequence[jex_core.JaxprEqn]:
    """Makes reductions keep dimensions that JAX adds back to their results.

    Args:
      equations: the equations that are lowered.
      replaced: the equations that earlier passes replaced, with their new operands.
      results: the results of the jaxpr.
      target: the target for which the equations are lowered.
    """
    made: dict[Atom, jex_core.JaxprEqn] = {
        eqn.outvars[0]: eqn
        for eqn in equations
        if (eqn.primitive in _REDUCTIONS or eqn.primitive in _EXTREMES) and eqn not in replaced
    }
    if not target.wants(Optimization.BROADCAST_OPERANDS) or not made:
        return equations
    atoms = [*results, *(x for eqn in equations for x in replaced.get(eqn, eqn.invars))]
    reads: collections.Counter[Atom] = collections.Counter(
        x for x in atoms if not isinstance(x, jex_core.Literal)
    )
    instead: dict[jex_core.JaxprEqn, jex_core.JaxprEqn | None] = {}
    for eqn in equations:
        if eqn.primitive is not lax.broadcast_in_dim_p or eqn in replaced:
            continue
        reduction, between = _reduction_before(eqn, made, reads)
        if reduction is None or not _gives_dimensions_back(eqn, reduction):
            continue
        if legalize.found(reduction, target) is None:
            instead |= dict.fromkeys([eqn, *between])
            instead[reduction] = reduction.replace(outvars=eqn.outvars)
    changed = (instead.get(eqn, eqn) for eqn in equations)
    return [eqn for eqn in changed if eqn is not None]


def _reduction_before(
    eqn: jex_core.JaxprEqn, made: Mapping[Atom, jex_core.JaxprEqn], reads: Mapping[Atom, int]
) -> tuple[jex_core.JaxprEqn | None, list[jex_core.JaxprEqn]]:
    """Returns the reduction whose result only `eqn` reads, and the neutral equations between."""
    between: list[jex_core.JaxprEqn] = []
    operand = eqn.invars[0]
    while not isinstance(operand, jex_core.Literal) and operand in made and reads[operand] == 1:
        maker = made[operand]
        if maker.primitive in _REDUCTIONS:
            are_neutral = all(_is_neutral(other, maker) for other in between)
            return (maker if are_neutral else None), between
        between.append(maker)
        operand = maker.invars[1]
    return None, between


def _gives_dimensions_back(eqn: jex_core.JaxprEqn, reduction: jex_core.JaxprEqn) -> bool:
    aval = aval_of(reduction.invars[0])
    axes = reduction.params["axes"]
    kept = tuple(1 if d in axes else size for d, size in enumerate(aval.shape))
    return (
        bool(axes)
        and aval.dtype in _FLOATS
        and tuple(eqn.params["shape"]) == kept
        and tuple(eqn.params["broadcast_dimensions"])
        == tuple(d for d in range(len(kept)) if d not in axes)
    )


def _is_neutral(eqn: jex_core.JaxprEqn, reduction: jex_core.JaxprEqn) -> bool:
    """Whether `eqn` is max(-inf, m) or min(inf, m) of a reduction's result, which it keeps."""
    number, _ = traits.NEUTRAL[eqn.primitive]
    literal = eqn.invars[0]
    return (
        reduction.primitive is _EXTREMES[eqn.primitive]
        and isinstance(literal, jex_core.Literal)
        and literal.val == number
    )


def _shape(atom: Atom) -> tuple[Dim, ...]:
    return aval_of(atom).shape
