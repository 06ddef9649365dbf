"""The wrong equation inside of a loop or a branch: its body runs step by step, as a program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.api.errors import ConversionError
from jax2tf._src.export.signatures import Input
from jax2tf._src.locate import files, finding, graphs
from jax2tf._src.locate.files import Files
from jax2tf._src.locate.finding import Suspect
from jax2tf._src.locate.graphs import Graph
from jax2tf._src.locate.parties import Case
from jax2tf._src.locate.program import Program, Values, as_numpy, flat, is_key, numbered
from jax2tf._src.tracing import jaxprs
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Array

# Loops of more steps are followed so far.
_MOST_STEPS = 256

# Returns the results of a program's equations on the other side, for any arguments of its shapes.
Runner: TypeAlias = Callable[[Program], Values]
# Makes the runner of the programs of one body.
Runners: TypeAlias = Callable[[Program], Runner]


@dataclasses.dataclass(frozen=True)
class Inside:
    """A wrong equation inside of another one.

    Attributes:
      program: the body with the arguments of the step.
      suspect: the equation.
      steps: the step of each loop, and each branch, from the outside.
    """

    program: Program
    suspect: Suspect
    steps: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Step:
    title: str
    body: jex_core.ClosedJaxpr
    leaves: Sequence[Array]


def inside(case: Case, runners: Runners) -> Inside | None:
    """The first wrong equation in the first wrong step; None if each step is right by itself."""
    known: dict[Identity, tuple[jex_core.ClosedJaxpr, Runner]] = {}
    for step in _steps(case.eqn, case.suspect.operands):
        key = Identity(step.body)
        body = known[key][0] if key in known else flat(step.body)
        names = tuple(f"y{i}" for i in range(len(body.jaxpr.outvars)))
        leaves = tuple(x if is_key(x) else as_numpy(x) for x in step.leaves)
        program = Program(body, leaves, 0, names)
        if key not in known:
            try:
                known[key] = body, runners(program)
            except (TypeError, ConversionError):
                return None
        values = known[key][1](program)
        found = finding.compare(program, values)
        state = {**program.reference, **values}
        suspect = finding.culprit(program, found, program.outputs(state))
        if suspect is not None:
            inner = Case.of(program.equations, suspect)
            deeper = inside(inner, runners) if _steps_in(inner.eqn) else None
            if deeper is None:
                return Inside(program, suspect, (step.title,))
            return dataclasses.replace(deeper, steps=(step.title, *deeper.steps))
    return None


def _steps_in(eqn: jex_core.JaxprEqn) -> bool:
    return eqn.primitive in (lax.scan_p, lax.while_p, lax.cond_p)


def _steps(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Iterator[_Step]:
    """The steps of a loop, or the branch that is taken, with JAX's values as arguments."""
    if eqn.primitive is lax.scan_p:
        yield from _of_scan(eqn, operands)
    elif eqn.primitive is lax.while_p:
        yield from _of_while(eqn, operands)
    elif eqn.primitive is lax.cond_p:
        branches = jaxprs.branches_of(eqn)
        index = int(np.clip(int(as_numpy(operands[0])), 0, len(branches) - 1))
        yield _Step(f"branch {index}", branches[index], operands[1:])


def _of_scan(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Iterator[_Step]:
    scan = jaxprs.Scan.of(eqn)
    consts, carry, xs = scan.split(operands)
    for i in range(min(int(scan.length), _MOST_STEPS)):
        row = int(scan.length) - 1 - i if scan.reverse else i
        leaves = [*consts, *carry, *(x[row] for x in xs)]
        yield _Step(f"step {i} of scan", scan.body, leaves)
        carry = _results(scan.body, leaves)[: scan.n_carry]


def _of_while(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> Iterator[_Step]:
    loop = jaxprs.While.of(eqn)
    of_condition, of_body, carry = loop.split(operands)
    for i in range(_MOST_STEPS):
        leaves = [*of_condition, *carry]
        yield _Step(f"condition before step {i} of while", loop.condition, leaves)
        (goes_on,) = _results(loop.condition, leaves)
        if not bool(as_numpy(goes_on)):
            return
        leaves = [*of_body, *carry]
        yield _Step(f"step {i} of while", loop.body, leaves)
        carry = _results(loop.body, leaves)


def _results(closed: jex_core.ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    results: list[Array] = jex_core.jaxpr_as_fun(closed)(*leaves)
    return results


def in_files(maker: Files) -> Runners:
    """Writes a body as a file once, whose inputs are all its arguments."""
    return functools.partial(_runner_of_file, maker)


def _runner_of_file(maker: Files, program: Program) -> Runner:
    inputs = [Input(f"x{i}", f"x{i}", x.shape, x.dtype) for i, x in enumerate(program.inputs)]
    names = dict(numbered(program.readable()))
    closed = program.with_outputs(list(names.values()))
    signature = files.signature_of(closed, list(names), inputs, "serving_default")
    path, job = maker.write(signature, None)
    run = maker.format.engine.load(path, job)

    def values(program: Program) -> Values:
        feeds = files.feeds_of(signature, files.real_arrays(program.inputs))
        outputs = files.joined(dict(run("serving_default", feeds)))
        return {v: outputs[name] for name, v in names.items() if name in outputs}

    return values


def in_graphs(side: Graph) -> Runners:
    """Runs a body in TensorFlow."""

    def values(program: Program) -> Values:
        return graphs.Graph(program, side.mode, side.options).values()

    return lambda program: values
