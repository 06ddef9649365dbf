"""Programs as flat lists of equations with the arrays that they are run on."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core
from jax.extend.core import primitives

# Equations of these are replaced by those of the jaxpr that they call.
_CALLS = frozenset(
    {
        *(primitives.jit_p, primitives.closed_call_p, primitives.call_p, primitives.remat_p),
        *(primitives.custom_jvp_call_p, primitives.custom_vjp_call_p),
    }
)
# Params that hold sizes of dimensions.
SIZES = frozenset(
    {
        *("shape", "new_sizes", "slice_sizes", "sizes", "limit_indices", "dimension", "length"),
        *("axis_size", "out_shape", "batch_dims_sizes"),
    }
)
# Steps of a loop that are tried as programs of their own.
_STEPS = 8


class Unfit(Exception):
    """A change that makes no program."""


@dataclasses.dataclass(frozen=True)
class Change:
    """What is put in place of sizes and dtypes in all equations."""

    sizes: Mapping[int, int] = dataclasses.field(default_factory=dict)
    dtypes: Mapping[np.dtype, np.dtype] = dataclasses.field(default_factory=dict)

    def of_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params with other sizes and dtypes."""
        return {name: self._of_param(name, value) for name, value in params.items()}

    def _of_param(self, name: str, value: Any) -> Any:
        if name in SIZES and isinstance(value, tuple):
            return tuple(self.sizes.get(n, n) if isinstance(n, int) else n for n in value)
        if name in SIZES and isinstance(value, int) and not isinstance(value, bool):
            return self.sizes.get(value, value)
        return self.dtypes.get(value, value) if isinstance(value, np.dtype) else value

    def of_array(self, value: Any) -> Any:
        """A literal in its dtype."""
        array = np.asarray(value)
        return array.astype(self.dtypes.get(array.dtype, array.dtype))


UNCHANGED = Change()


# A program is equal to no other one, as functions are.
@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Equations, and the arguments that they are run on.

    Attributes:
      closed: the equations, without constants.
      args: an array for each of its variables.
    """

    closed: core.ClosedJaxpr
    args: tuple[np.ndarray, ...]

    @property
    def equations(self) -> Sequence[core.JaxprEqn]:
        """The equations in the order of the program."""
        return self.closed.jaxpr.eqns

    def __call__(self, *args: Any) -> list[Any]:
        results: list[Any] = core.jaxpr_as_fun(self.closed)(*args)
        return results

    def itself(self) -> Program:
        """This program."""
        return self

    @functools.cached_property
    def values(self) -> dict[core.Var, Any]:
        """JAX's value of each variable, one equation after the other."""
        values: dict[core.Var, Any] = dict(zip(self.closed.jaxpr.invars, self.args, strict=True))
        for eqn in self.equations:
            results = bind(eqn, operands_of(eqn, values), UNCHANGED)
            values.update(zip(eqn.outvars, results, strict=True))
        return values

    @property
    def size(self) -> tuple[int, int, int]:
        """The number of equations, of elements of arguments, and of those that are not zero."""
        elements = sum(x.size for x in self.args)
        return len(self.equations), elements, sum(int(np.count_nonzero(x)) for x in self.args)


def program_of(fun: Callable[..., Any], args: Sequence[Any], *, inlined: bool) -> Program:
    """The program of a function of pytrees of arrays; calls are inlined if that is asked for."""
    leaves, tree = jax.tree.flatten(tuple(args))

    def of_leaves(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(fun(*jax.tree.unflatten(tree, leaves)))

    closed = jax.make_jaxpr(of_leaves)(*leaves)
    if inlined:
        closed = jax.make_jaxpr(functools.partial(evaluated, closed, UNCHANGED))(*leaves)
    return without_constants(closed, [np.asarray(leaf) for leaf in leaves])


def without_constants(closed: core.ClosedJaxpr, args: Sequence[np.ndarray]) -> Program:
    """A program whose constants are arguments."""
    jaxpr = closed.jaxpr
    variables = [*jaxpr.constvars, *jaxpr.invars]
    arrays = [*map(_array, closed.consts), *args]
    return _made(jaxpr.eqns, dict(zip(variables, arrays, strict=True)), jaxpr.outvars)


def part(
    program: Program, kept: Sequence[int], outputs: Sequence[core.Var] | None = None
) -> Program:
    """The program of some equations; what others made are arguments with the values of JAX.

    Args:
      program: the whole program.
      kept: the numbers of the equations.
      outputs: what it returns; by default the results that none of these equations reads.

    Raises:
      Unfit: an operand is no array of numbers.
    """
    equations = [program.equations[i] for i in sorted(kept)]
    read = {v for eqn in equations for v in eqn.invars if isinstance(v, core.Var)}
    if outputs is None:
        outputs = [v for eqn in equations for v in eqn.outvars if v not in read]
    return _made(equations, program.values, outputs)


def _made(
    equations: Sequence[core.JaxprEqn], values: Mapping[core.Var, Any], outputs: Sequence[Any]
) -> Program:
    """The equations that outputs need, with values for what they do not make."""
    needed = {v for v in outputs if isinstance(v, core.Var)}
    kept: list[core.JaxprEqn] = []
    for eqn in reversed(equations):
        if eqn.effects or not needed.isdisjoint(eqn.outvars):
            kept.insert(0, eqn)
            needed |= {v for v in eqn.invars if isinstance(v, core.Var)}
    made = {v for eqn in kept for v in eqn.outvars}
    free = [v for v in values if v in needed and v not in made]
    returned = [v for v in outputs if v in made] if kept else []
    if not returned:
        raise Unfit("nothing is returned")
    effects = frozenset().union(*(eqn.effects for eqn in kept))
    jaxpr = core.Jaxpr([], free, returned, kept, effects, debug_info=_SHRUNK)
    return Program(core.ClosedJaxpr(jaxpr, []), tuple(_array(values[v]) for v in free))


_SHRUNK = core.DebugInfo("harnesses shrink", "a program", None, None)


def _array(value: Any) -> np.ndarray:
    if not hasattr(value, "dtype") or jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        raise Unfit("an operand is no array of numbers")
    return np.asarray(value)


def changed(program: Program, args: Sequence[np.ndarray], change: Change) -> Program:
    """The same equations on other arguments, with other sizes and dtypes in their params.

    Raises:
      Unfit: JAX refuses the equations on these.
    """
    try:
        function = functools.partial(evaluated, program.closed, change)
        return without_constants(jax.make_jaxpr(function)(*args), args)
    # Whatever JAX says of an equation that does not fit the sizes.
    except Exception as error:
        raise Unfit(str(error)) from error


def operands_of(eqn: core.JaxprEqn, values: Mapping[core.Var, Any]) -> list[Any]:
    """The operands of an equation."""
    return [v.val if isinstance(v, core.Literal) else values[v] for v in eqn.invars]


def evaluated(closed: core.ClosedJaxpr, change: Change, *args: Any) -> list[Any]:
    """The results of a jaxpr, with calls inlined and other sizes and dtypes."""
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return change.of_array(atom.val) if isinstance(atom, core.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        called = _called(eqn)
        if called is None:
            results = bind(eqn, operands, change)
        else:
            results = evaluated(called, change, *operands)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _called(eqn: core.JaxprEqn) -> core.ClosedJaxpr | None:
    if eqn.primitive not in _CALLS:
        return None
    return next((_closed(j) for j in eqn.params.values() if _is_jaxpr(j)), None)


def _has_jaxpr(eqn: core.JaxprEqn) -> bool:
    """Whether params hold a jaxpr: those of shard_map do not fit its `bind` as they are."""
    return any(map(_is_jaxpr, eqn.params.values()))


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, core.ClosedJaxpr | core.Jaxpr)


def _closed(jaxpr: Any) -> core.ClosedJaxpr:
    return jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, [])


def bind(eqn: core.JaxprEqn, operands: Sequence[Any], change: Change) -> list[Any]:
    """The results of one equation, with other sizes and dtypes."""
    if change is not UNCHANGED and eqn.primitive in _LOOPS:
        return list(_LOOPS[eqn.primitive](eqn, operands, change))
    if eqn.primitive in _CALLS or (change is UNCHANGED and _has_jaxpr(eqn)):
        return _call(eqn, operands)
    results = eqn.primitive.bind(*operands, **change.of_params(eqn.params))
    return list(results) if eqn.primitive.multiple_results else [results]


def _call(eqn: core.JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    values = {v: x for v, x in zip(eqn.invars, operands, strict=True) if isinstance(v, core.Var)}
    jaxpr = core.Jaxpr([], list(values), eqn.outvars, [eqn], eqn.effects, debug_info=_SHRUNK)
    results: list[Any] = core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))(*values.values())
    return results


def scan_parts(eqn: core.JaxprEqn, operands: Sequence[Any]) -> tuple[list[Any], ...]:
    """The constants, the carry and the arrays that a scan walks.

    The arrays are told by their shapes: each has one dimension more than the row that a step takes.
    The params that count them differ between the versions of JAX.
    """
    body = eqn.params["jaxpr"]
    n_xs = _longer(eqn.invars, body.in_avals)
    n_carry = len(eqn.outvars) - _longer(eqn.outvars, body.out_avals)
    ends = len(operands) - n_xs - n_carry, len(operands) - n_xs
    return list(operands[: ends[0]]), list(operands[ends[0] : ends[1]]), list(operands[ends[1] :])


def _longer(atoms: Sequence[Any], avals: Sequence[Any]) -> int:
    return sum(v.aval.ndim > aval.ndim for v, aval in zip(atoms, avals, strict=True))


def while_parts(eqn: core.JaxprEqn, operands: Sequence[Any]) -> tuple[list[Any], ...]:
    """The constants of the condition, those of the body, and the carry."""
    params = eqn.params
    ends = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    return list(operands[: ends[0]]), list(operands[ends[0] : ends[1]]), list(operands[ends[1] :])


def _scan(eqn: core.JaxprEqn, operands: Sequence[Any], change: Change) -> Sequence[Any]:
    params = eqn.params
    consts, carry, xs = scan_parts(eqn, operands)
    n = len(carry)

    def body(carry: Any, row: Any) -> Any:
        results = evaluated(params["jaxpr"], change, *consts, *carry, *row)
        return results[:n], results[n:]

    length = change.sizes.get(params["length"], params["length"])
    last, rows = lax.scan(body, carry, xs, length, params["reverse"], params["unroll"])
    return [*last, *rows]


def _while(eqn: core.JaxprEqn, operands: Sequence[Any], change: Change) -> Sequence[Any]:
    params = eqn.params
    of_condition, of_body, carry = while_parts(eqn, operands)
    results: Sequence[Any] = lax.while_loop(
        lambda c: evaluated(params["cond_jaxpr"], change, *of_condition, *c)[0],
        lambda c: evaluated(params["body_jaxpr"], change, *of_body, *c),
        carry,
    )
    return results


def _cond(eqn: core.JaxprEqn, operands: Sequence[Any], change: Change) -> Sequence[Any]:
    params = eqn.params
    branches = [functools.partial(evaluated, branch, change) for branch in params["branches"]]
    results: Sequence[Any] = lax.switch(operands[0], branches, *operands[1:])
    return results


_LOOPS: Mapping[core.Primitive, Callable[..., Sequence[Any]]] = {
    primitives.scan_p: _scan,
    primitives.while_p: _while,
    primitives.cond_p: _cond,
}


def inside(program: Program) -> Iterator[Program]:
    """Of a program that is one loop or branch: its first steps, or the branch that is taken."""
    if len(program.equations) != 1:
        return
    (eqn,) = program.equations
    operands = operands_of(eqn, program.values)
    if eqn.primitive is primitives.cond_p:
        branches = eqn.params["branches"]
        index = int(np.clip(int(operands[0]), 0, len(branches) - 1))
        yield _inner(branches[index], operands[1:])
    elif eqn.primitive is primitives.scan_p:
        consts, carry, xs = scan_parts(eqn, operands)
        length, body = eqn.params["length"], eqn.params["jaxpr"]
        for i in range(min(length, _STEPS)):
            row = length - 1 - i if eqn.params["reverse"] else i
            leaves = [*consts, *carry, *(x[row] for x in xs)]
            yield _inner(body, leaves)
            carry = core.jaxpr_as_fun(body)(*leaves)[: len(carry)]
    elif eqn.primitive is primitives.while_p:
        of_condition, of_body, carry = while_parts(eqn, operands)
        for _ in range(_STEPS):
            yield _inner(eqn.params["cond_jaxpr"], [*of_condition, *carry])
            if not bool(core.jaxpr_as_fun(eqn.params["cond_jaxpr"])(*of_condition, *carry)[0]):
                return
            yield _inner(eqn.params["body_jaxpr"], [*of_body, *carry])
            carry = core.jaxpr_as_fun(eqn.params["body_jaxpr"])(*of_body, *carry)


def _inner(closed: core.ClosedJaxpr, leaves: Sequence[Any]) -> Program:
    return program_of(core.jaxpr_as_fun(closed), list(map(_array, leaves)), inlined=True)
