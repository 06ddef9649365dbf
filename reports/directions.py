"""What runs of the other directions saw: call_tf.json and substrates.json, beside their tables.

The words of these tables are the ledger's, which a run proves. The file says which run did, on
which versions, when, and how many of the cells it asked. Without a run the table says so.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesses.cell import origin
from harnesses.cell.cells import direction_of, modes_of
from harnesses.harness import Harness
from reports import rendering, results
from reports.results import Row
from reports.summary import Tally

_VERSIONS = ("jax", "tensorflow", "python")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command of a direction's table."""
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the table is not current"
    )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        help="a run of the direction, to keep; default: the latest whole run of this checkout",
    )
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def runs_of(options: argparse.Namespace, name: str, harnesses: Sequence[Harness]) -> list[Any]:
    """The runs that the figures NAME keep, with those of `options.results` in their place."""
    kept = kept_runs(name, options.into)
    for path in () if options.check else _files(options, name):
        rows = list(results.read(path).values())
        results.refuse_rows_of_others(rows, options.into, rendering.TABLES)
        kept = with_rows(kept, rows, harnesses)
    return kept


def _files(options: argparse.Namespace, name: str) -> list[Path]:
    """The results files to take in; of the project's own table the latest whole run is one."""
    if options.results is not None:
        return list(options.results)
    latest = results.RESULTS / f"cpu-{name}.jsonl"
    return [latest] if options.into == rendering.TABLES and latest.exists() else []


def kept_runs(name: str, folder: Path) -> list[Any]:
    """The runs that the figures NAME of a folder keep; none where there is no such file."""
    return list(rendering.read_data(name, folder).get("runs", []))


def with_rows(
    kept: Sequence[Mapping[str, Any]], rows: Sequence[Row], harnesses: Sequence[Harness]
) -> list[dict[str, Any]]:
    """The runs with those of the rows, by lowering, in the place of those of the same versions."""
    direction = harnesses[0].direction
    by_lowering: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        if direction_of(row["lowering"]) == direction:
            by_lowering[row["lowering"]].append(row)
    if not by_lowering:
        raise results.ResultsError(f"the rows hold no cell of the direction {direction}")
    runs = {_key(run): dict(run) for run in kept}
    for lowering, members in by_lowering.items():
        tally = Tally(members)
        run = {
            "lowering": lowering,
            **{name: members[0][name] for name in _VERSIONS},
            **origin.of(members[0]),
            "cells": tally.cells,
            "of": len(_cells(harnesses, lowering, members[0]["jax"])),
            "passed": tally.outcomes["pass"],
            "limited": tally.limited,
            "red": tally.red,
        }
        runs[_key(run)] = run
    return [runs[key] for key in sorted(runs)]


def counted(
    runs: Sequence[Mapping[str, Any]], harnesses: Sequence[Harness]
) -> list[dict[str, Any]]:
    """The runs, each with the number of cells that came since."""
    return [
        {**run, "since": len(_cells(harnesses, run["lowering"], run["jax"])) - run["of"]}
        for run in runs
    ]


def files(name: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The file of the figures, by name; none where there is no run."""
    return {f"{name}.json": rendering.figures({"runs": list(runs)})} if runs else {}


def _cells(harnesses: Sequence[Harness], lowering: str, jax: str) -> list[tuple[str, str]]:
    runnable = [harness for harness in harnesses if harness.runs_on(jax)]
    return [(h.name, mode) for h in runnable for mode in modes_of(h, lowering)]


def _key(run: Mapping[str, Any]) -> tuple[str, ...]:
    return (run["lowering"], *(str(run[name]) for name in _VERSIONS))
