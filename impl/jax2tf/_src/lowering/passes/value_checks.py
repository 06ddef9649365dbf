"""Removes host callbacks that check values from a jaxpr, for `convert(..., value_checks=...)`.

The pass recognises a check by its equations:

1. A branch of a `cond` is a failure if it calls a function that never returns a value (it raises),
   or if callbacks compute its results while the other branch returns operands unchanged.
2. A case of a `select_n` is a failure if it comes from a callback that reads the predicate or
   another case, and if nothing else reads the results of this callback.

`"drop"` uses the other case for both. `"nan"` returns NaN in the failing case (for integers the
largest number, for bool True). All other callbacks stay.
"""

from __future__ import annotations

import collections
import dis
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, cast, get_args

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import (
    AnyJaxpr,
    branches_of,
    equations,
    inner_jaxprs,
    jaxprs_in,
    map_inner,
    rewriting,
    variables,
)
from jax2tf._src.tracing.primitives import jit_p
from jax2tf._src.tracing.traits import CALLBACKS_WITH_VALUES
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Array, Atom, Aval, Param, aval_of

Choice: TypeAlias = Literal["raise", "drop", "nan"]

CHOICES: tuple[Choice, ...] = get_args(Choice)


def without_checks(jaxpr: jex_core.ClosedJaxpr, choice: Choice) -> jex_core.ClosedJaxpr:
    """Returns the jaxpr without callbacks that check values; the same jaxpr if it has none.

    Derivative rules of custom_jvp and custom_vjp are functions, which this pass does not change.
    The pass must run again on the jaxpr of a derivative.
    """
    if choice == "raise":
        return jaxpr

    def rewrite(inner: jex_core.Jaxpr) -> jex_core.Jaxpr:
        return _Block(inner, choice, rewritten).result() if _has_callbacks(inner) else inner

    rewritten = rewriting(rewrite)
    return cast(jex_core.ClosedJaxpr, rewritten(jaxpr))


class _Block:
    """Removes the checks of one jaxpr.

    Attributes:
      equations: the equations of the result.
      instead: the replacements of variables whose equations are removed.
    """

    def __init__(
        self, jaxpr: jex_core.Jaxpr, choice: Choice, inner: Callable[[AnyJaxpr], AnyJaxpr]
    ):
        self._jaxpr = jaxpr
        self._choice = choice
        self._inner = inner
        self.equations: list[jex_core.JaxprEqn] = []
        self.instead: dict[jex_core.Var, Atom] = {}
        # Results of callbacks, also after equations that only move or cast their elements.
        self._given: set[jex_core.Var] = set()

    def result(self) -> jex_core.Jaxpr:
        pending = collections.deque(self._jaxpr.eqns)
        while pending:
            eqn = pending.popleft()
            eqn = eqn.replace(invars=[self._now(v) for v in eqn.invars])
            pending.extendleft(reversed(self._next(eqn)))
        results = [self._now(v) for v in self._jaxpr.outvars]
        self.equations = _without_cases(self.equations, results, self._choice)
        gone = _effects(self._jaxpr.eqns) - _effects(self.equations)
        return self._jaxpr.replace(
            eqns=self.equations, outvars=results, effects=self._jaxpr.effects - gone
        )

    def _now(self, atom: Atom) -> Atom:
        while isinstance(atom, jex_core.Var) and atom in self.instead:
            atom = self.instead[atom]
        return atom

    def _next(self, eqn: jex_core.JaxprEqn) -> list[jex_core.JaxprEqn]:
        """Appends the equation, perhaps changed, or returns the equations that replace it."""
        if eqn.primitive is lax.cond_p:
            failing, kept = _branches(eqn)
            if failing and len(kept) == 1 and self._choice == "drop":
                branch = branches_of(eqn)[kept[0]]
                if not branch.consts:
                    return self._opened(eqn, branch.jaxpr, eqn.invars[1:])
            if failing and kept:
                eqn = _with_instead(eqn, failing, kept, self._choice)
        reads_given = not self._given.isdisjoint(variables(eqn.invars))
        # jax.numpy.where is a jitted function with the select_n in it.
        if eqn.primitive is jit_p and reads_given and not eqn.params["jaxpr"].consts:
            return self._opened(eqn, eqn.params["jaxpr"].jaxpr, eqn.invars)
        if eqn.primitive in CALLBACKS_WITH_VALUES or (reads_given and eqn.primitive in _MOVES):
            self._given.update(eqn.outvars)
        self.equations.append(self._inside(eqn))
        return []

    def _inside(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        params = map_inner(eqn.params, self._inner)
        return eqn if params is eqn.params else _with_params(eqn, params)

    def _opened(
        self, eqn: jex_core.JaxprEqn, called: jex_core.Jaxpr, operands: Sequence[Atom]
    ) -> list[jex_core.JaxprEqn]:
        """Returns the equations of a jaxpr that the equation calls, with new variables."""
        own: dict[jex_core.Var, Atom] = dict(zip(called.invars, operands, strict=True))
        equations = []
        for inner in called.eqns:
            invars = [own[v] if isinstance(v, jex_core.Var) else v for v in inner.invars]
            outvars = [jex_core.Var(v.aval) for v in inner.outvars]
            own.update(zip(inner.outvars, outvars, strict=True))
            equations.append(inner.replace(invars=invars, outvars=outvars))
        results = [own[v] if isinstance(v, jex_core.Var) else v for v in called.outvars]
        self.instead.update(zip(eqn.outvars, results, strict=True))
        return equations


def _branches(eqn: jex_core.JaxprEqn) -> tuple[list[int], list[int]]:
    """Returns the branches of a cond that run if a check fails, and the other branches."""
    branches = [branch.jaxpr for branch in branches_of(eqn)]
    failing = [i for i, branch in enumerate(branches) if _never_ends(branch)]
    others = [i for i in range(len(branches)) if i not in failing]
    if not failing and len(branches) == 2:
        failing = [i for i in others if _replaces(branches[i], branches[1 - i])]
        others = [i for i in others if i not in failing]
    return failing, others


def _never_ends(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether a jaxpr always calls a function that never returns a value."""
    return any(
        not _may_give_values(eqn)
        if eqn.primitive in CALLBACKS_WITH_VALUES
        else eqn.primitive in traits.CALLS and any(map(_never_ends, inner_jaxprs(eqn)))
        for eqn in jaxpr.eqns
    )


def _may_give_values(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the function of a callback may return the values that the equation needs."""
    function = compat.jaxprs.callback_function(eqn.params)
    return not eqn.outvars or function is None or _may_return(function)


def _replaces(branch: jex_core.Jaxpr, other: jex_core.Jaxpr) -> bool:
    """Whether callbacks compute results of `branch`, and `other` returns operands unchanged."""
    given: set[jex_core.Var] = set()
    for eqn in branch.eqns:
        reads_given = not given.isdisjoint(variables(eqn.invars))
        if eqn.primitive in CALLBACKS_WITH_VALUES or (reads_given and eqn.primitive in _MOVES):
            given.update(eqn.outvars)
    return (
        not other.eqns
        and any(v in given for v in variables(branch.outvars))
        and all(v in given or v in branch.invars for v in variables(branch.outvars))
    )


def _with_instead(
    eqn: jex_core.JaxprEqn, failing: Sequence[int], kept: Sequence[int], choice: Choice
) -> jex_core.JaxprEqn:
    """Replaces failing branches of a cond: for "drop" by the only other branch, else by NaN."""
    branches = list(branches_of(eqn))
    of_one = branches[kept[0]] if choice == "drop" and len(kept) == 1 else None
    for i in failing:
        branches[i] = of_one or _failure(branches[i])
    return _with_params(eqn, {**eqn.params, "branches": tuple(branches)})


def _with_params(eqn: jex_core.JaxprEqn, params: dict[str, Param]) -> jex_core.JaxprEqn:
    """Replaces the params of an equation, and removes the effects that only the old jaxprs had."""
    gone = _effects_inside(eqn.params.values()) - _effects_inside(params.values())
    return eqn.replace(params=params, effects=eqn.effects - gone)


def _failure(branch: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in branch.in_avals]
    avals = branch.out_avals
    return jax.make_jaxpr(lambda *_: [_nan(aval) for aval in avals])(*specs)


def _nan(aval: Aval) -> Array:
    dtype = aval.dtype
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        data = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, dtype))
        impl = compat.jaxprs.prng_impl(dtype).name
        return jax.random.wrap_key_data(jnp.asarray(_nan(data)), impl=impl)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return lax.full(aval.shape, complex(jnp.nan, jnp.nan), dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        return lax.full(aval.shape, jnp.nan, dtype)
    return lax.full(aval.shape, jnp.issubdtype(dtype, jnp.bool_) or jnp.iinfo(dtype).max, dtype)


def _without_cases(
    equations: Sequence[jex_core.JaxprEqn], results: Sequence[Atom], choice: Choice
) -> list[jex_core.JaxprEqn]:
    """Removes callbacks whose results are used only as one case of a select_n."""
    readers: dict[jex_core.Var, list[jex_core.JaxprEqn]] = collections.defaultdict(list)
    for eqn in equations:
        for v in set(variables(eqn.invars)):
            readers[v].append(eqn)
    made = {v: eqn for eqn in equations for v in eqn.outvars}
    returned = set(variables(results))
    instead: dict[Identity, list[jex_core.JaxprEqn]] = {}
    for eqn in equations:
        if eqn.primitive not in CALLBACKS_WITH_VALUES or eqn.effects:
            continue
        selections, moves = _selections(eqn, readers, returned)
        if selections and all(_knows(eqn, selection, made) for selection, _ in selections):
            instead.update((Identity(gone), []) for gone in (eqn, *moves))
            instead.update((Identity(s), _with_case(s, case, choice)) for s, case in selections)
    return [new for eqn in equations for new in instead.get(Identity(eqn), [eqn])]


_Selections: TypeAlias = list[tuple[jex_core.JaxprEqn, jex_core.Var]]


def _selections(
    callback: jex_core.JaxprEqn,
    readers: Mapping[jex_core.Var, Sequence[jex_core.JaxprEqn]],
    returned: set[jex_core.Var],
) -> tuple[_Selections, list[jex_core.JaxprEqn]]:
    """Returns the select_n equations with a case from a callback, and the moves in between.

    Both lists are empty if anything else reads the results of the callback.
    """
    selections: _Selections = []
    moves: list[jex_core.JaxprEqn] = []
    pending = list(callback.outvars)
    while pending:
        var = pending.pop()
        if var in returned:
            return [], []
        for reader in readers.get(var, ()):
            if reader.primitive in _MOVES:
                moves.append(reader)
                pending += reader.outvars
            elif _is_case(reader, var):
                selections.append((reader, var))
            else:
                return [], []
    return selections, moves


def _is_case(eqn: jex_core.JaxprEqn, var: jex_core.Var) -> bool:
    """Whether an equation selects between `var` and one other case."""
    if eqn.primitive is not lax.select_n_p or len(eqn.invars) != 3:
        return False
    return [v is var for v in eqn.invars] in ([False, True, False], [False, False, True])


def _knows(
    callback: jex_core.JaxprEqn,
    selection: jex_core.JaxprEqn,
    made: Mapping[jex_core.Var, jex_core.JaxprEqn],
) -> bool:
    """Whether a callback reads the predicate or a case of a selection, perhaps moved."""
    selected = {_origin(v, made) for v in selection.invars}
    return any(_origin(v, made) in selected for v in variables(callback.invars))


# The number of equations, not counting moves, that `_origin` follows back.
_DEPTH = 8


def _origin(
    atom: Atom, made: Mapping[jex_core.Var, jex_core.JaxprEqn], depth: int = _DEPTH
) -> Hashable:
    """Returns a key that is equal for variables computed in the same way, apart from moves."""
    if isinstance(atom, jex_core.Literal):
        return str(atom)
    eqn = made.get(atom)
    if eqn is not None and eqn.primitive in _MOVES:
        return _origin(eqn.invars[0], made, depth)
    if eqn is None or eqn.effects or eqn.primitive.multiple_results or not depth:
        return atom
    operands = tuple(_origin(v, made, depth - 1) for v in eqn.invars)
    return eqn.primitive, str(eqn.params), operands


def _with_case(
    selection: jex_core.JaxprEqn, failing: jex_core.Var, choice: Choice
) -> list[jex_core.JaxprEqn]:
    """Replaces the failing case of a selection by NaN, or by the other case."""
    predicate, *cases = selection.invars
    (instead,) = (v for v in cases if v is not failing)
    equations: list[jex_core.JaxprEqn] = []
    if choice == "nan":
        with compat.jaxprs.bound_as(selection):
            made = jax.make_jaxpr(lambda: _nan(aval_of(failing)))().jaxpr
        equations, (instead,) = list(made.eqns), made.outvars
    changed = [instead if v is failing else v for v in cases]
    return [*equations, selection.replace(invars=[predicate, *changed])]


def _may_return(function: Callable[..., object]) -> bool:
    """Whether the code of a function may return a value other than None."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, types.CodeType) or code.co_flags & _SUSPENDS:
        return True
    instructions = list(dis.get_instructions(code))
    return any(
        after.opname.startswith("RETURN") and not _gives_none(before, after)
        for before, after in itertools.pairwise(instructions)
        if after.opname != "RETURN_GENERATOR"
    )


_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _gives_none(before: dis.Instruction, after: dis.Instruction) -> bool:
    """Whether a return gives None. Python 3.12 and 3.13 return a constant in one instruction."""
    loads = after if after.opname == "RETURN_CONST" else before
    return loads.opname in ("RETURN_CONST", "LOAD_CONST") and loads.argval is None


def _has_callbacks(jaxpr: jex_core.Jaxpr) -> bool:
    return any(eqn.primitive in CALLBACKS_WITH_VALUES for eqn in equations(jaxpr))


def _effects(equations: Iterable[jex_core.JaxprEqn]) -> frozenset[object]:
    return frozenset(effect for eqn in equations for effect in eqn.effects)


def _effects_inside(params: Iterable[Param]) -> frozenset[object]:
    return frozenset(effect for jaxpr in jaxprs_in(params) for effect in jaxpr.effects)


# Primitives that only move or cast the elements of their single operand.
_MOVES = traits.REARRANGES | traits.CASTS | (traits.IDENTITY - traits.ANNOTATES)
