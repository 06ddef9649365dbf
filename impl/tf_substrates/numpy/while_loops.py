"""tf.while_loop: Python's own on NumPy, jax.lax's on JAX."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import derivable_loops, nest
from tf_substrates.numpy.branches import switch
from tf_substrates.numpy.captures import captured_call
from tf_substrates.numpy.carried import arrays_of, converted
from tf_substrates.numpy.counted_loops import known_length
from tf_substrates.numpy.errors import DrawnInLoopError, StatefulError, UnknownValueError
from tf_substrates.numpy.known_values import known
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.random import step_of_loop
from tf_substrates.numpy.recording import current_tapes, staged
from tf_substrates.numpy.tensors import convert, traced, wrap
from tf_substrates.numpy.traced_variables import Carried, carrying

JAX_MODE = False
if JAX_MODE:
    import jax


@export("while_loop")
def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """Repeats `body` while `cond` holds, on the variables of `loop_vars` and its structure.

    On JAX it is jax.lax.while_loop, so it compiles and has forward derivatives; with
    `maximum_iterations` known, or where `cond` reads known counters alone, it is a scan of that
    many steps, which has reverse ones too. Where the variables change their shapes, or a step needs
    to know how many were before it, the loop runs step by step if it is known when it ends, and
    where it is known how far it may go, as one branch after the other. A sampler with a state draws
    anew in every step. A tf.Variable that `body` assigns goes from step to step.

    >>> from tf_substrates.numpy import tf
    >>> i, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, 1.0))
    >>> print(i, x)
    tf.Tensor(3, shape=(), dtype=int32) tf.Tensor(8.0, shape=(), dtype=float32)

    Raises:
      TypeError: `cond` or `body` is no function, or on JAX a variable changes its shape and what
        JAX traces decides when the loop ends.
      ValueError: there are no variables, or `body` returns another structure.
      StatefulError: `cond` assigns a tf.Variable where JAX traces the loop.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not nest.is_nested(loop_vars) or not nest.flatten(loop_vars):
        raise ValueError("'loop_vars' must be provided.")
    values = converted(loop_vars)
    limit = None if maximum_iterations is None else convert(maximum_iterations, hint=np.int32)
    if JAX_MODE and (traced(limit) or not current_tapes()):
        return _carried(cond, body, values, limit)
    steps = 0
    while limit is None or steps < limit:
        holds = convert(_call(cond, values))
        if traced(holds):
            return _carried(cond, body, values, None if limit is None else limit - steps)
        if not bool(holds):
            break
        values = _next(body, values)
        steps += 1
    return values


def _carried(cond: Callable, body: Callable, values: Any, limit: Any) -> Any:
    """The loop as jax.lax's, and where that cannot carry it as Python's own."""
    try:
        return _one_step_for_all(cond, body, values, limit)
    except (TypeError, IndexError, UnknownValueError) as error:
        not_carried = error
    return _step_by_step(cond, body, values, limit, not_carried)


def _one_step_for_all(cond: Callable, body: Callable, values: Any, limit: Any) -> Any:
    """The loop as jax.lax's, with the number of the step where one draws from a generator.

    Raises:
      DrawnInLoopError: one draws, and outside of jax.jit, where generators have their state.
    """
    try:
        with step_of_loop(None):
            return _jax_while(cond, body, values, limit)
    except DrawnInLoopError:
        if not staged():
            raise

    def counted(step: Any, values: Any) -> tuple:
        with step_of_loop(step):
            return step + 1, _next(body, values)

    start = (xp.asarray(0, np.int32), values)
    return _jax_while(lambda _, values: _call(cond, values), counted, start, limit)[1]


def _step_by_step(cond: Callable, body: Callable, values: Any, limit: Any, error: Exception) -> Any:
    """The loop as Python's own, where jax.lax cannot carry it, which `error` says.

    Raises:
      the error: what JAX traces decides when the loop ends, and that is not why it is not carried.
    """
    if traced(limit):
        raise error
    values = _with_known(values)
    steps = 0
    while limit is None or steps < limit:
        holds = convert(_call(cond, values))
        if traced(holds):
            if isinstance(error, (DrawnInLoopError, TypeError)):
                raise error
            return _branches(cond, body, values, None if limit is None else limit - steps, error)
        if not bool(holds):
            break
        with step_of_loop(steps) if staged() else contextlib.nullcontext():
            values = _with_known(_next(body, values))
        steps += 1
    return values


# JAX compiles each branch, so the time to compile grows with their number.
_MOST_BRANCHES = 64


def _branches(cond: Callable, body: Callable, values: Any, limit: Any, error: Exception) -> Any:
    """The loop as one branch after the other, of which each knows how many steps were before it.

    Raises:
      the error: it may go on beyond the most branches.
    """
    result, alive = values, np.asarray(True)
    for _ in range(_MOST_BRANCHES if limit is None else min(_MOST_BRANCHES, int(limit))):
        holds = convert(_call(cond, values))
        if not traced(holds) and not bool(holds):
            return result
        alive = alive & xp.asarray(holds).reshape(())
        result, values = _step_while(alive, body, values, result)
    if limit is None or int(limit) > _MOST_BRANCHES:
        raise error
    return result


def _step_while(alive: Any, body: Callable, values: Any, result: Any) -> tuple[Any, Any]:
    """The variables after a step, if the loop has not ended, and those of the next step.

    What is known of the next step is known whether or not the loop has ended.
    """
    following: list = []

    def go_on() -> Any:
        following.append(_with_known(_next(body, values)))
        return following[0]

    result = switch(alive.astype(np.int32), [lambda: result, go_on])
    leaves = [
        chosen if traced(new) else new
        for new, chosen in zip(
            nest.flatten(following[0], True), nest.flatten(result, True), strict=True
        )
    ]
    return result, nest.pack_sequence_as(result, leaves, True)


def _with_known(values: Any) -> Any:
    """The variables, those that are known while JAX traces as such."""
    return nest.map_structure(known, values, expand_composites=True) if staged() else values


def _call(function: Callable, values: Any) -> Any:
    return function(**values) if isinstance(values, dict) else function(*values)


def _next(body: Callable, values: Any) -> Any:
    """One step, whose results have the structure and the dtypes of the variables."""
    results = _call(body, values)
    if not nest.is_nested(results):
        results = [results]
    nest.assert_same_structure(values, results, check_types=False)
    leaves = [
        new if hasattr(new, "_as_carry") else wrap(convert(new, dtype=old.dtype))
        for old, new in zip(nest.flatten(values, True), nest.flatten(results, True), strict=True)
    ]
    return nest.pack_sequence_as(values, leaves, True)


def _jax_while(cond: Callable, body: Callable, values: Any, limit: Any) -> Any:
    return carrying(functools.partial(_while_with, cond, body, values, limit))


def _while_with(cond: Callable, body: Callable, values: Any, limit: Any, carried: Carried) -> tuple:
    """The variables of the loop at its end, and the values of the tf.Variables that it assigns."""
    first = arrays_of(values)
    size = len(first)

    def step(leaves: list) -> list:
        with carried.region(leaves[size:]) as region:
            new = arrays_of(_next(body, nest.pack_sequence_as(values, leaves[:size], True)))
            after = region.after(carried.variables)
        carried.require_whole()
        return [*new, *after]

    def holds(leaves: list) -> Any:
        with carried.region(leaves[size:], _ASSIGNED_IN_CONDITION):
            holds = convert(_call(cond, nest.pack_sequence_as(values, leaves[:size], True)))
        return xp.asarray(holds).reshape(())

    of_variables = carried.start()
    start = _with_element_shapes(step, [*first, *of_variables])
    given = [
        known if hasattr(leaf, "_as_carry") else convert(leaf)
        for leaf, known in zip([*nest.flatten(values, True), *of_variables], start, strict=True)
    ]
    leaves = captured_call(functools.partial(_loop, limit, given), [holds, step], start)
    return nest.pack_sequence_as(values, leaves[:size], True), leaves[size:]


_ASSIGNED_IN_CONDITION = (
    StatefulError,
    "tf.while_loop: `cond` assigns the variable {name}, and on JAX it may only read. What to do:"
    " assign it in `body`.",
)


def _loop(limit: Any, given: list, functions: list, start: list) -> list:
    """The carried values at the end of a loop of a condition and a step.

    Args:
      given: what `start` was made of, where numbers that are known are not traced.
    """
    holds, step = functions
    if limit is None:
        length, step = known_length(holds, step, start, given)
        if length is None:
            return derivable_loops.while_loop(holds, step, start)
        return jax.lax.scan(lambda kept, _: (step(kept), None), start, None, length=length)[0]
    if traced(limit):
        count = (xp.asarray(0, limit.dtype), start)
        return derivable_loops.while_loop(
            lambda c: (c[0] < limit) & holds(c[1]), lambda c: (c[0] + 1, step(c[1])), count
        )[1]

    # Of known length, and so with reverse derivatives: what has ended stays as it is.
    def bounded(leaves: list, _: Any) -> tuple:
        return jax.lax.cond(holds(leaves), step, lambda kept: kept, leaves), None

    return jax.lax.scan(bounded, start, None, length=int(limit))[0]


def _with_element_shapes(step: Callable, start: list) -> list:
    """Carried TensorArrays, those of no known element shape with the shape that a step gives."""
    if not any(hasattr(leaf, "_as_carry") and leaf._data is None for leaf in start):
        return start
    return [
        leaf._with_elements_of(new) if hasattr(leaf, "_as_carry") else leaf
        for leaf, new in zip(start, jax.eval_shape(step, start), strict=True)
    ]
