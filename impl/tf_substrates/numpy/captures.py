"""Branches and steps of loops that JAX traces, as recorded calls of what they capture.

A branch of tf.cond is a function without arguments: it closes over the tensors that it needs. A
tape sees what goes into a call. So while JAX traces a branch, an argument of the trace stands for
every watched array that the branch uses (`stands_for`), and the recorded call has these arrays for
its inputs. TensorFlow's graphs of branches capture tensors in the same way. The trace is a jaxpr,
which a derivative runs again; the Python function runs once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tf_substrates.numpy import derivable_loops
from tf_substrates.numpy.recording import Frame, current_tapes, frame, record, stands_for

JAX_MODE = False
if JAX_MODE:
    import jax


def captured_call(run: Callable, functions: Sequence[Callable], operands: list) -> Any:
    """`run(functions, operands)`, as one call that the recording tapes see.

    Args:
      run: of the functions and the operands; it may trace the functions as often as it likes.
      functions: each of values that are like the operands, or of no arguments if there are no
        operands. They may close over watched arrays.
      operands: arrays, and structures of them that JAX knows.
    """
    if not current_tapes():
        return run(functions, operands)
    operands = jax.tree.map(stands_for, operands)
    candidates = _tracked()
    programs = [_traced(function, candidates, operands) for function in functions]
    while missed := _all(program.missed for program in programs):
        # A variable that no tape has seen yet was read.
        candidates = _all([candidates, missed])
        programs = [_traced(function, candidates, operands) for function in functions]
    used = set().union(*(program.used for program in programs))
    captured = [array for array in candidates if id(array) in used]

    def call(operands: list, captured: list) -> Any:
        values = iter(captured)
        given = [next(values) if id(a) in used else None for a in candidates]  # None is not read
        return run([functools.partial(program, given) for program in programs], operands)

    return record(call, (operands, captured), {})


def _tracked() -> list:
    """The arrays that the tapes watch, or that were computed from these."""
    return _all([list(log.tracked.values()) for log in current_tapes()])


def _all(groups: Any) -> list:
    """The arrays of several lists, each once."""
    return list({id(array): array for group in groups for array in group}.values())


class _Program:
    """A function of captured arrays and of its arguments, as JAX has traced it."""

    def __init__(self, jaxpr: Any, structure: Any, entered: Frame):
        self._jaxpr, self._structure = jaxpr, structure
        self.used, self.missed = entered.used, entered.missed

    def __call__(self, captured: list, *args: Any) -> Any:
        results = derivable_loops.evaluated(self._jaxpr, [*captured, *jax.tree.leaves(args)])
        return jax.tree.unflatten(self._structure, results)


def _traced(function: Callable, candidates: list, operands: list) -> _Program:
    entered: list[Frame] = []
    structures: list = []
    leaves, structure = jax.tree.flatten(operands)

    def program(captured: list, leaves: list) -> list:
        args = (jax.tree.unflatten(structure, leaves),) if operands else ()
        with frame(candidates, captured) as this:
            entered.append(this)
            results = jax.tree.map(stands_for, function(*args))
        flat, of_results = jax.tree.flatten(results)
        structures.append(of_results)
        return flat

    jaxpr = jax.make_jaxpr(program)([_like(a) for a in candidates], [_like(a) for a in leaves])
    return _Program(jaxpr, structures[-1], entered[-1])


def _like(array: Any) -> Any:
    kind = jax.typeof(array)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak_type)
