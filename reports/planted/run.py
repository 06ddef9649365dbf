"""A run: which faults there are, which are planted, and what came of each."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
from rich.console import Console

from harnesses.cell import origin
from harnesses.engine.versions import versions as engine_versions
from harnesses.harness import all_harnesses
from reports import rendering
from reports.planted import faults, table
from reports.planted.faults import Fault
from reports.planted.trial import Trial
from reports.results import ResultsError, Row

# What JAX has compiled is forgotten after so many faults: it would fill the memory.
_FORGOTTEN_AFTER = 20


def main(options: argparse.Namespace, console: Console) -> int:
    """Plants the faults that the options choose; returns 1 if one was not noticed."""
    trial = Trial(all_harnesses())
    every = _every(trial, options)
    chosen = every if options.all or options.fault else None
    chosen = chosen or faults.sample(every, options.sample, options.seed)
    known = table.reasons()
    rows: list[Row] = []
    for number, fault in enumerate(chosen, start=1):
        harness, tried = trial.caught_by(fault)
        row = dataclasses.asdict(fault) | {"tried": tried, "caught_by": harness and harness.name}
        rows.append(row)
        console.print(f"{number}/{len(chosen)} {fault}: {_outcome(row, known)}", **_PLAIN)
        if number % _FORGOTTEN_AFTER == 0:
            jax.clear_caches()
    versions = engine_versions(None) | origin.now()
    data = table.data_of(rows, options.seed, len(every), versions)
    left = [row for row in data["survivors"] if table.reason_of(row, known) is None]
    if not (options.primitive or options.fault):
        for path in rendering.write(table.files(data), options.into):
            console.print(f"wrote {path}", soft_wrap=True)
    console.print(
        f"{len(rows)} faults, {len(data['survivors'])} not caught, {len(left)} of those without a "
        f"reason: {table.score(data):.1%}"
    )
    return 1 if left else 0


def _every(trial: Trial, options: argparse.Namespace) -> list[Fault]:
    """The faults to choose from.

    Raises:
      ResultsError: a primitive or a fault that the options name is not there.
    """
    named = options.primitive or [name.partition(":")[0] for name in options.fault or []]
    for name in named:
        if name not in trial.harnesses:
            raise ResultsError(f"no harness is of {name!r}; `python -m harnesses list` has all")
    found = list(_of_primitives(trial, named or trial.harnesses))
    if not options.fault:
        return found
    by_name = {str(fault): fault for fault in found}
    for name in options.fault:
        if name not in by_name:
            near = ", ".join(str(f) for f in found if f.primitive == name.partition(":")[0])
            raise ResultsError(f"there is no fault {name!r}; of that primitive there are: {near}")
    return [by_name[name] for name in options.fault]


def _of_primitives(trial: Trial, names: Iterable[str]) -> Iterable[Fault]:
    for name in names:
        yield from faults.of_primitive(name, trial.harnesses[name])


def _outcome(row: Row, known: list[table.Reason]) -> str:
    if row["caught_by"] is not None:
        return f"caught by {row['caught_by']}"
    reason = table.reason_of(row, known)
    return f"not caught by {row['tried']} harnesses" + (f": {reason}" if reason else "")


_PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
