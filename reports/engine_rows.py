"""What runs of the engines saw, kept beside the tables: a letter for each harness and engine.

    "abs_float32": "p.pm."

The letters stand in the order of MODES: the engines, then files of StableHLO that are loaded. A
dot, or no letter at the end, says that the cell was not run. Beside them are the dtypes of a
harness's arguments and results, where these are more than those of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax

from harnesses.cell import origin
from harnesses.cell.names import CONSUMER_MODES, STABLEHLO
from harnesses.engine.consumers import NO_ARRAYS_OF
from harnesses.harness import Harness
from reports.results import OUTCOMES, Row

NAME = "engine_rows"
MODES = (*CONSUMER_MODES, STABLEHLO)

NOT_RUN = "."
_INAPPLICABLE = "i"
_LETTERS = {outcome: outcome[0] for outcome in OUTCOMES}
PASSED = _LETTERS["pass"]


def merged(
    kept: Mapping[str, Any], rows: Iterable[Row], harnesses: Sequence[Harness]
) -> dict[str, Any]:
    """What is kept, with the rows in place of those of the same cells, without lost harnesses."""
    names = {harness.name for harness in harnesses}
    cells = {name: list(letters) for name, letters in kept.get("cells", {}).items()}
    versions = dict(kept.get("versions", {}))
    for row in rows:
        if row["mode"] not in MODES:
            continue
        letters = cells.setdefault(row["harness"], [])
        place = MODES.index(row["mode"])
        letters += [NOT_RUN] * (max(len(CONSUMER_MODES), place + 1) - len(letters))
        letters[place] = _letter(row)
        versions[row["mode"]] = {
            **{name: row[name] for name in ("jax", "tensorflow", "python")},
            **origin.of(row),
        }
    texts = {name: "".join(cells[name]) for name in sorted(cells) if name in names}
    dtypes = {name: kept["dtypes"][name] for name in kept.get("dtypes", {}) if name in names}
    return {"versions": dict(sorted(versions.items())), "dtypes": dtypes, "cells": texts}


def dtypes_of(harnesses: Iterable[Harness], known: Iterable[str]) -> dict[str, str]:
    """The dtypes of what harnesses take and give, for those that have others than the known."""
    found = {}
    for harness in harnesses:
        with jax.enable_x64(harness.x64):
            args = harness.make_args()
            leaves = jax.tree.leaves((args, jax.eval_shape(harness.fun, *args)))
        dtypes = {str(leaf.dtype) for leaf in leaves}
        if not dtypes <= {*known}:
            found[harness.name] = " ".join(sorted(dtypes))
    return dict(sorted(found.items()))


def is_storable(kept: Mapping[str, Any], harness: str, mode: str) -> bool:
    """Whether an engine has arrays of all that a harness takes and gives."""
    return NO_ARRAYS_OF[mode].isdisjoint(kept.get("dtypes", {}).get(harness, "").split())


def letter(kept: Mapping[str, Any], harness: str, mode: str) -> str:
    """What came of a cell; NOT_RUN if it was not run, or JAX itself cannot run it."""
    letters = kept.get("cells", {}).get(harness, "")
    found = letters.ljust(len(MODES), NOT_RUN)[MODES.index(mode)]
    return NOT_RUN if found == _INAPPLICABLE else found


def _letter(row: Row) -> str:
    # What does not trace is JAX's own failure.
    return _INAPPLICABLE if row["phase"] == "trace" else _LETTERS[row["outcome"]]
