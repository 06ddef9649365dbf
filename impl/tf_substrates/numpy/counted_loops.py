"""Loops whose condition reads counters alone, so that it is known how many steps they take.

jax.lax.while_loop has no reverse derivatives, and a scan of as many steps has. A program says
`tf.while_loop(lambda i, x: i < n, ...)` without `maximum_iterations`; where `i` starts at a known
integer and each step computes the next one from it alone, the counters are run by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as xp

from tf_substrates.numpy.tensors import traced

JAX_MODE = False
if JAX_MODE:
    import jax
    from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

# Counting further would take longer than it is worth.
_MOST_STEPS = 100_000


def known_length(
    holds: Callable, step: Callable, start: list, given: list
) -> tuple[int | None, Callable]:
    """How many steps a loop takes, or None, and its step, which is not traced again.

    Args:
      holds, step: of the carried values, of which `start` are the first: whether there is another
        step, and the values after it.
      given: what `start` was made of, where numbers that are known are not traced.
    """
    structure: Any
    values, structure = jax.tree.flatten(start)
    given = jax.tree.leaves(given)
    condition = _of_leaves(lambda leaves: [holds(structure.unflatten(leaves))], values)
    counters = _read(condition, [0])
    if not counters or not all(_is_counter(given[i]) for i in counters):
        return None, step
    following = _of_leaves(
        lambda leaves: jax.tree.leaves(step(structure.unflatten(leaves))), values
    )
    again = lambda carried: structure.unflatten(  # noqa: E731  # the traced step
        jaxpr_as_fun(following)(*jax.tree.leaves(carried))
    )
    while not (read := _read(following, counters)) <= counters:
        counters = counters | read
        if not all(_is_counter(given[i]) for i in counters):
            return None, again
    return _counted(condition, following, sorted(counters), given), again


def _of_leaves(function: Callable, values: list) -> Any:
    return jax.make_jaxpr(lambda *leaves: function(list(leaves)))(*values)


def _is_counter(value: Any) -> bool:
    return not traced(value) and value.size == 1 and value.dtype.kind in "iub"


def _slice(program: Any, outputs: list[int]) -> tuple[Any, set]:
    """A program of some of the outputs alone, and the variables that it reads."""
    results = [program.jaxpr.outvars[i] for i in outputs]
    needed = {id(v) for v in results if not isinstance(v, Literal)}
    equations = []
    for equation in reversed(program.jaxpr.eqns):
        if any(id(v) in needed for v in equation.outvars):
            equations.append(equation)
            needed |= {id(v) for v in equation.invars if not isinstance(v, Literal)}
    jaxpr = program.jaxpr.replace(eqns=equations[::-1], outvars=results)
    return ClosedJaxpr(jaxpr, program.consts), needed


def _read(program: Any, outputs: Iterable[int]) -> frozenset:
    """The arguments that outputs of a program are computed from."""
    _, needed = _slice(program, list(outputs))
    return frozenset(i for i, v in enumerate(program.jaxpr.invars) if id(v) in needed)


def _is_known(program: Any, needed: set) -> bool:
    """Whether what a program closes over, and these variables hold, is known."""
    closed_over = zip(program.jaxpr.constvars, program.consts, strict=True)
    return not any(id(v) in needed and traced(value) for v, value in closed_over)


def _counted(condition: Any, following: Any, counters: list[int], given: list) -> int | None:
    """How often the condition holds, by running the counters alone; None for too many times."""
    (ends, of_ends), (steps, of_steps) = _slice(condition, [0]), _slice(following, counters)
    if not _is_known(condition, of_ends) or not _is_known(following, of_steps):
        return None

    def run(program: Any, carried: list) -> list:
        arguments: list = [None] * len(given)  # the others are not read
        for i, value in zip(counters, carried, strict=True):
            arguments[i] = value
        return jaxpr_as_fun(program)(*arguments)

    def goes_on(state: tuple) -> Any:
        count, carried = state
        return (count < _MOST_STEPS) & run(ends, carried)[0]

    with jax.ensure_compile_time_eval():
        start = (xp.asarray(0), [xp.asarray(given[i]) for i in counters])
        count, _ = jax.lax.while_loop(
            goes_on, lambda state: (state[0] + 1, run(steps, state[1])), start
        )
        return int(count) if int(count) < _MOST_STEPS else None
