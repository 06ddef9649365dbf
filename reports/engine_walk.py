"""Asks for one cell of an engine that differs from JAX which operation does it, and who is wrong.

`jax2tf.locate` answers first. Where it names no equation, the program is made smaller as long as
the judge finds the same mismatch, and what remains runs in TensorFlow, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import jax2tf
from harnesses.cell.cells import Cell
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.cell.outcomes import JAX
from harnesses.cell.rows import Row
from harnesses.engine import consumers, located
from harnesses.engine.consumers.graph import graph_of
from harnesses.engine.consumers.judge import ConsumerJudge
from harnesses.engine.shrinking import cells
from harnesses.harness import Harness

LOWERING = "no_xla"
MISMATCH = "mismatch"
# How long programs are made smaller.
_SHRINKING = 20.0
# So many arguments of what remains are shown.
_SHOWN = 4

LOCATE, SHRINK, NOTHING = "locate", "shrink", ""
JAX_IS_OFF, LOWERING_IS_OFF = "JAX's rounding", "the lowering of jax2tf"
ENGINE_IS_OFF, UNKNOWN = "the engine or its converter", "not known"


@dataclasses.dataclass(frozen=True)
class Walked:
    """What came of one cell.

    Attributes:
      engine: the mode of the cell.
      harness: the name of its harness.
      outcome: what the judge saw.
      message: what it said.
      primitives: the operations that do it; several if they are wrong only together.
      party: who is wrong.
      how: who found it: locate or shrink; empty if neither did.
      why: how the party is known.
    """

    engine: str
    harness: str
    outcome: str
    message: str
    primitives: tuple[str, ...] = ()
    party: str = ""
    how: str = NOTHING
    why: str = ""


def walk(harness: Harness, engine: str) -> Walked:
    """Runs a cell, and looks for its culprit if the cell is a mismatch."""
    row = ConsumerJudge(DEFAULT_IMPLEMENTATION).run(Cell(harness, "cpu", LOWERING, engine))
    seen = Walked(engine, harness.name, row["outcome"], str(row.get("message") or ""))
    if row["outcome"] != MISMATCH:
        return seen
    name = f"{harness.name}-cpu-{LOWERING}-{engine}"
    try:
        found = located.located(name, DEFAULT_IMPLEMENTATION)
    # The judge runs more than `export` writes: it gives engines the parts of complex numbers.
    except (jax2tf.UnsupportedPrimitiveError, jax2tf.ExportError):
        return _shrunk(seen, name)
    if found.equation is None:
        return _shrunk(seen, name)
    return dataclasses.replace(
        seen,
        primitives=(found.primitive,),
        party=found.party.value,
        how=LOCATE,
        why=found.reason,
    )


def _shrunk(seen: Walked, name: str) -> Walked:
    """The answer of the smallest program that is a mismatch, by the judge's own measure."""
    asked = cells.of_cell(name, DEFAULT_IMPLEMENTATION)
    found = asked.shrink(seconds=_SHRINKING)
    program = found.program
    smallest = cells.like(asked.harness, program, program.args, 0)
    cell = Cell(smallest, "cpu", LOWERING, seen.engine)
    row = ConsumerJudge(DEFAULT_IMPLEMENTATION).run(cell)
    in_tensorflow = _InTensorFlow(DEFAULT_IMPLEMENTATION).run(cell)
    party, why = _party(row, in_tensorflow)
    shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in program.args[:_SHOWN])
    end = f" (the search ended after {_SHRINKING:g} s)" if found.is_over else ""
    return dataclasses.replace(
        seen,
        primitives=tuple(dict.fromkeys(eqn.primitive.name for eqn in program.equations)),
        party=party,
        how=SHRINK,
        why=f"of {shapes}{end}: {row.get('message')}; {why}",
    )


def _party(row: Row, in_tensorflow: Row) -> tuple[str, str]:
    if row["outcome"] != MISMATCH:
        return UNKNOWN, f"run once more it is: {row['outcome']}"
    if row.get("culprit") == JAX:
        return JAX_IS_OFF, f"more digits ({row['opinion']}) say that JAX is off"
    if in_tensorflow["outcome"] == "pass":
        return ENGINE_IS_OFF, "TensorFlow gives JAX's result of the same ops"
    said = f"the same ops in TensorFlow: {in_tensorflow['outcome']}: {in_tensorflow.get('message')}"
    return LOWERING_IS_OFF if in_tensorflow["outcome"] == MISMATCH else UNKNOWN, said


class _InTensorFlow(ConsumerJudge):
    """Runs the ops that are lowered for an engine in TensorFlow."""

    def _model(self, cell: Cell, args: tuple) -> tuple[consumers.Model, Any]:
        specs = [_spec(leaf) for leaf in args]
        graph = graph_of(self._converted(cell), tuple(specs))
        return consumers.engine("savedmodel").convert(graph), graph.tree


def _spec(leaf: np.ndarray) -> Any:
    return tf.TensorSpec(leaf.shape, leaf.dtype)
