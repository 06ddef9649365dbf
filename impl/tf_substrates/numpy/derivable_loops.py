"""Loops of any number of steps, with derivatives in both directions.

jax.lax.while_loop has no reverse derivatives, since it does not keep the values of each step. Here
a loop that a tape differentiates keeps those of some steps (`_SLOTS`; of every second one when all
slots are taken, and so on), and the derivative computes the others again from there. Up to 32
steps nothing is computed again, and up to 1024 steps each once.

A function with reverse derivatives of its own (jax.custom_vjp) has no forward ones, so it matters
which derivatives are taken, in which order: the tapes say so by `deriving`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

JAX_MODE = False
if JAX_MODE:
    import jax
    from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun, jaxprs_in_params

FORWARD, REVERSE = "forward", "reverse"
# A power of two.
_SLOTS = 32


class _Directions(threading.local):
    """The derivatives that are being taken, the outermost first."""

    def __init__(self) -> None:
        self.all: tuple[str, ...] = ()


_DIRECTIONS = _Directions()


@contextlib.contextmanager
def _directions(all_of_them: tuple[str, ...]) -> Iterator[None]:
    kept, _DIRECTIONS.all = _DIRECTIONS.all, all_of_them
    try:
        yield
    finally:
        _DIRECTIONS.all = kept


def deriving(direction: str) -> contextlib.AbstractContextManager[None]:
    """A block in which a function is differentiated, by jax.vjp or by jax.jvp."""
    return _directions((*_DIRECTIONS.all, direction))


def while_loop(holds: Callable, step: Callable, start: Any) -> Any:
    """jax.lax.while_loop, with the derivatives that are being taken."""
    if REVERSE not in _DIRECTIONS.all:
        return jax.lax.while_loop(holds, step, start)
    structure: Any
    leaves, structure = jax.tree.flatten(start)
    leaves = [_strong(leaf) for leaf in leaves]
    loop = _Loop(
        _Pure(lambda *at: [holds(jax.tree.unflatten(structure, at))], leaves),
        _Pure(lambda *at: jax.tree.leaves(step(jax.tree.unflatten(structure, at))), leaves),
    )
    *outer, innermost = _DIRECTIONS.all
    derivable = _with_reverse if innermost == REVERSE else _with_forward
    return jax.tree.unflatten(structure, derivable(loop, tuple(outer))(leaves, loop.consts))


def evaluated(program: Any, args: list) -> list:
    """The results of a traced program, whose loops have the derivatives that are being taken."""
    if REVERSE not in _DIRECTIONS.all or not _has_loop(program.jaxpr):
        return jaxpr_as_fun(program)(*args)
    values = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    values |= dict(zip(program.jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in program.jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        if equation.primitive.name == "while":
            results = _while(given, **equation.params)
        else:
            params = equation.params
            if equation.primitive.name in _WITH_PROGRAMS:
                params = {name: _derivable(value) for name, value in params.items()}
            params = equation.primitive.get_bind_params(params)
            results = equation.primitive.bind(*given, **params)
            results = results if equation.primitive.multiple_results else [results]
        values |= dict(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.jaxpr.outvars]


# Primitives that run the programs in their params as they are.
_WITH_PROGRAMS = frozenset({"cond", "scan", "jit", "pjit"})


def _has_loop(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name == "while" or any(map(_has_loop, jaxprs_in_params(equation.params)))
        for equation in jaxpr.eqns
    )


def _derivable(param: Any) -> Any:
    """A param of a primitive, programs with derivable loops."""
    if isinstance(param, tuple):
        return tuple(map(_derivable, param))
    if not isinstance(param, ClosedJaxpr) or not _has_loop(param.jaxpr):
        return param
    return jax.make_jaxpr(lambda *args: evaluated(param, list(args)))(*param.in_avals)


def _while(
    given: list, *, cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int, body_jaxpr: Any
) -> list:
    of_cond, rest = given[:cond_nconsts], given[cond_nconsts:]
    of_body, start = rest[:body_nconsts], rest[body_nconsts:]
    return while_loop(
        lambda leaves: evaluated(cond_jaxpr, [*of_cond, *leaves])[0],
        lambda leaves: evaluated(body_jaxpr, [*of_body, *leaves]),
        start,
    )


def _strong(leaf: Any) -> Any:
    array = jax.numpy.asarray(leaf)
    return jax.lax.convert_element_type(array, array.dtype) if array.weak_type else array


class _Pure:
    """A function without what it closes over, which is `consts`."""

    def __init__(self, function: Callable, like: list):
        self.jaxpr = jax.make_jaxpr(function)(*like)
        self.consts = [jax.numpy.asarray(const) for const in self.jaxpr.consts]

    def __call__(self, consts: list, leaves: list) -> list:
        return evaluated(self.jaxpr.replace(consts=consts), leaves)


class _Loop:
    """The condition and the step of a loop, of constants and of the carried leaves."""

    def __init__(self, condition: _Pure, step: _Pure):
        self._condition, self._step = condition, step
        self.consts = [*condition.consts, *step.consts]

    def holds(self, consts: list, leaves: list) -> Any:
        return self._condition(consts[: len(self._condition.consts)], leaves)[0]

    def step(self, consts: list, leaves: list) -> list:
        return self._step(consts[len(self._condition.consts) :], leaves)

    def run(self, leaves: list, consts: list) -> list:
        return jax.lax.while_loop(
            lambda at: self.holds(consts, at), lambda at: self.step(consts, at), leaves
        )


def _is_float(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)


def _floats(of: list, like: list) -> list:
    """The items of a list at the places where another one has floats."""
    return [item for item, leaf in zip(of, like, strict=True) if _is_float(leaf)]


def _filled(floats: list, like: list, other: Callable = lambda leaf: leaf) -> list:
    """The reverse of that; `other` gives the items at the other places."""
    rest = iter(floats)
    return [next(rest) if _is_float(leaf) else other(leaf) for leaf in like]


# Forward.


def _with_forward(loop: _Loop, outer: tuple[str, ...]) -> Callable:
    """The loop, whose forward derivative is a loop with the derivatives taken around it."""
    run = jax.custom_jvp(loop.run)

    @run.defjvp
    def tangents_of(primals: tuple, tangents: tuple) -> tuple:
        (leaves, consts), (along, along_consts) = primals, tangents
        along_consts = _floats(along_consts, consts)

        def both(state: tuple) -> tuple:
            at, moving = state
            function = _step_of_floats(loop, at, consts)
            with deriving(FORWARD):
                _, moved = jax.jvp(
                    function, (_floats(at, at), _floats(consts, consts)), (moving, along_consts)
                )
            return loop.step(consts, at), moved

        with _directions(outer):
            results, moved = while_loop(
                lambda state: loop.holds(consts, state[0]), both, (leaves, _floats(along, leaves))
            )
        return results, _filled(moved, results, lambda x: np.zeros(x.shape, jax.dtypes.float0))

    return run


def _step_of_floats(loop: _Loop, leaves: list, consts: list) -> Callable:
    """A step from these values, as a function of the floats among them."""

    def function(of_leaves: list, of_consts: list) -> list:
        results = loop.step(_filled(of_consts, consts), _filled(of_leaves, leaves))
        return _floats(results, leaves)

    return function


# Reverse.


def _with_reverse(loop: _Loop, outer: tuple[str, ...]) -> Callable:
    """The loop, whose reverse derivative is a loop with the derivatives taken around it."""
    run = jax.custom_vjp(loop.run)

    def forward(leaves: list, consts: list) -> tuple:
        with _directions(outer):
            last, count, stride, slots = _kept_steps(loop, leaves, consts)
        return last, (consts, count, stride, slots)

    def backward(kept: tuple, upstream: list) -> tuple:
        consts, count, stride, slots = kept
        like = [slot[0] for slot in slots]
        with _directions(outer):
            of_leaves, of_consts = _pulled(
                loop, consts, count, stride, slots, _floats(upstream, like)
            )
        nothing: Callable = lambda _: None  # noqa: E731  # integers have no derivatives
        return _filled(of_leaves, like, nothing), _filled(of_consts, consts, nothing)

    run.defvjp(forward, backward)
    return run


def _empty_slots(leaves: list) -> list:
    return [jax.numpy.broadcast_to(leaf, (_SLOTS, *leaf.shape)) for leaf in leaves]


def _stored(slots: list, leaves: list, at: Any) -> list:
    return [
        jax.lax.dynamic_update_index_in_dim(slot, leaf, at, 0)
        for slot, leaf in zip(slots, leaves, strict=True)
    ]


def _read(slots: list, at: Any) -> list:
    return [jax.lax.dynamic_index_in_dim(slot, at, 0, keepdims=False) for slot in slots]


def _kept_steps(loop: _Loop, leaves: list, consts: list) -> tuple:
    """The last values, the number of steps, and the values before every `stride`-th step."""

    def every_second(stride_and_slots: tuple) -> tuple:
        stride, slots = stride_and_slots
        halves = [slot[::2] for slot in slots]
        return stride * 2, [jax.numpy.concatenate([half, half]) for half in halves]

    def step(state: tuple) -> tuple:
        leaves, count, stride, slots = state
        stride, slots = jax.lax.cond(
            count == _SLOTS * stride, every_second, lambda same: same, (stride, slots)
        )
        slots = jax.lax.cond(
            count % stride == 0,
            lambda: _stored(slots, leaves, count // stride),
            lambda: slots,
        )
        return loop.step(consts, leaves), count + 1, stride, slots

    start = (leaves, np.int32(0), np.int32(1), _empty_slots(leaves))
    return while_loop(lambda state: loop.holds(consts, state[0]), step, start)


def _advanced(loop: _Loop, consts: list, leaves: list, steps: Any) -> list:
    """The values some steps later."""
    return while_loop(
        lambda state: state[0] < steps,
        lambda state: (state[0] + 1, loop.step(consts, state[1])),
        (np.int32(0), leaves),
    )[1]


def _steps_of_segment(loop: _Loop, consts: list, leaves: list, length: Any, stride: Any) -> list:
    """The values before every `stride`-th of the steps from these values on."""

    def step(state: tuple) -> tuple:
        count, leaves, slots = state
        count, leaves = count + 1, loop.step(consts, leaves)
        slots = jax.lax.cond(
            count % stride == 0,
            lambda: _stored(slots, leaves, count // stride),
            lambda: slots,
        )
        return count, leaves, slots

    start = (np.int32(0), leaves, _empty_slots(leaves))
    return while_loop(lambda state: state[0] < length - 1, step, start)[2]


def _pulled(
    loop: _Loop, consts: list, count: Any, stride: Any, slots: list, upstream: list
) -> tuple[list, list]:
    """The derivatives of the first values and of the constants, floats alone."""
    inner_stride = jax.numpy.maximum(1, stride // _SLOTS)

    def pull(leaves: list, upstream: list, of_consts: list) -> tuple[list, list]:
        function = _step_of_floats(loop, leaves, consts)
        with deriving(REVERSE):
            _, back = jax.vjp(function, _floats(leaves, leaves), _floats(consts, consts))
        of_leaves, more = back(upstream)
        return of_leaves, [a + b for a, b in zip(of_consts, more, strict=True)]

    def segment(state: tuple) -> tuple:
        number, upstream, of_consts = state
        length = jax.numpy.minimum(stride, count - number * stride)
        first = _read(slots, number)
        inner = _steps_of_segment(loop, consts, first, length, inner_stride)

        def step_back(state: tuple) -> tuple:
            at, upstream, of_consts = state
            leaves = _read(inner, at // inner_stride)
            leaves = _advanced(loop, consts, leaves, at % inner_stride)
            return at - 1, *pull(leaves, upstream, of_consts)

        _, upstream, of_consts = while_loop(
            lambda state: state[0] >= 0, step_back, (length - 1, upstream, of_consts)
        )
        return number - 1, upstream, of_consts

    zeros = [jax.numpy.zeros_like(const) for const in _floats(consts, consts)]
    last = (count + stride - 1) // stride - 1
    _, upstream, of_consts = while_loop(
        lambda state: state[0] >= 0, segment, (last, upstream, zeros)
    )
    return upstream, of_consts
