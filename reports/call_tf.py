"""`python -m reports call_tf`: which TensorFlow functions JAX can call, and how, as Markdown.

reports/tables/call_tf.md is made of the database of the other direction (harnesses/call_tf/) and of
its ledger (limitations/directions/call_tf.toml).
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell.cells import Cell, modes_of
from harnesses.cell.names import CALL_TF_MODES, JAX_SIDE
from harnesses.cell.rows import VERSIONS, Row, row_of
from harnesses.harness import CALL_TF, Harness, all_harnesses
from limitations.ledger import Limitation, load
from reports import directions, rendering

NAME, TABLE = "call_tf", "call_tf.md"
add_arguments = directions.add_arguments

_NO_VERSIONS: Row = dict.fromkeys(VERSIONS)


@dataclass(frozen=True)
class OpRow:
    """What is asked about a TensorFlow function, and how it goes in each mode."""

    op: str
    dtypes: str
    modes: Sequence[str]  # "yes", "no", "partly", "TensorFlow has none", "" where nothing is asked


def main(options: argparse.Namespace, console: Console) -> int:
    runs = directions.runs_of(options, NAME, _harnesses())
    texts = table_files(_harnesses(), load(direction=CALL_TF), runs)
    return rendering.write_or_check(texts, options, console, "python -m reports call_tf")


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, with the runs that `folder` keeps."""
    runs = directions.kept_runs(NAME, folder)
    return table_files(_harnesses(), load(direction=CALL_TF), runs)


def _harnesses() -> list[Harness]:
    return all_harnesses(jax_version=None, direction=CALL_TF)


def table_files(
    harnesses: Sequence[Harness],
    limitations: Sequence[Limitation],
    runs: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """The file of the table, and that of the runs, by name."""
    # The table is the same whatever versions it is made on: limitations of some are those of all.
    by_op: dict[str, list[Harness]] = collections.defaultdict(list)
    for harness in harnesses:
        by_op[harness.primitive].append(harness)
    rows = [_op_row(op, of_op, limitations) for op, of_op in sorted(by_op.items())]
    text = rendering.render(
        TABLE,
        modes=CALL_TF_MODES,
        rows=rows,
        harnesses=len(harnesses),
        shares=_shares(harnesses, limitations),
        runs=directions.counted(runs, harnesses),
        limitations=sorted(limitations, key=lambda limitation: limitation.primitive),
    )
    return {TABLE: text} | directions.files(NAME, runs)


def _op_row(op: str, harnesses: Sequence[Harness], limitations: Sequence[Limitation]) -> OpRow:
    dtypes = dict.fromkeys(harness.dtype.name for harness in harnesses)
    return OpRow(op, ", ".join(dtypes), [_word(m, harnesses, limitations) for m in CALL_TF_MODES])


def _word(mode: str, harnesses: Sequence[Harness], limitations: Sequence[Limitation]) -> str:
    outcomes = {
        _outcome(harness, mode, limitations)
        for harness in harnesses
        if mode in modes_of(harness, CALL_TF)
    }
    return "partly" if len(outcomes) > 1 else next(iter(outcomes), "")


def _outcome(harness: Harness, mode: str, limitations: Sequence[Limitation]) -> str:
    matching = _matching(harness, mode, limitations)
    if not matching:
        return "yes"
    return "TensorFlow has none" if matching[0].side == JAX_SIDE else "no"


def _matching(harness: Harness, mode: str, limitations: Sequence[Limitation]) -> list[Limitation]:
    row = row_of(Cell(harness, "cpu", CALL_TF, mode), _NO_VERSIONS)
    return [entry for entry in limitations if entry.matches(row)]


def _shares(
    harnesses: Sequence[Harness], limitations: Sequence[Limitation]
) -> Mapping[str, tuple[int, int]]:
    """For each mode, how many of the harnesses in float32 that XLA compiles pass."""
    floats = [harness for harness in harnesses if harness.dtype.name == "float32"]
    compilable = [
        h for h in floats if all(e.expect != "error" for e in _matching(h, "jit", limitations))
    ]
    shares = {}
    for mode in CALL_TF_MODES:
        asked = [h for h in compilable if mode in modes_of(h, CALL_TF)]
        passed = [h for h in asked if _outcome(h, mode, limitations) == "yes"]
        shares[mode] = (len(passed), len(asked))
    return shares
