"""`python -m reports beside NAME=FILE ...`: converters beside each other on the same harnesses.

Each file holds the rows of a run; beside.rows.xz keeps of them what the figures come from. Counted
are the harnesses that every run has and that JAX itself runs; a harness passes where all of its
cells do. One that a converter declines does not pass: the question is what a user gets.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from reports import kept_rows, rendering
from reports.causes import cause_of
from reports.kept_rows import Run
from reports.results import ResultsError, Row

TABLE, ROWS = "beside.md", "beside.rows.xz"
# How many kinds of failures are shown for each run.
_MOST = 6
# Options by which a run takes a part of the harnesses of its dtypes.
_OF_A_PART = ("--sample", "--shard", "--family", "--primitive", "--name")
_NOT_OF_THE_CONVERTER = "trace"  # the phase of an error of JAX itself


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="NAME=FILE", help="a run and its column's name")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--check", action="store_true", help="say whether the table is current")


def main(options: argparse.Namespace, console: Console) -> int:
    kept = options.into / ROWS
    if options.runs and not options.check:
        runs = {name: Run.read(path) for name, path in map(_named, options.runs)}
        data = gather(runs)
        kept_rows.write(kept, runs)
    else:
        data = gather(kept_rows.read(kept))
    command = f"python -m reports beside --into {options.into}"
    return rendering.write_or_check(beside_files(data), options, console, command)


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the rows that `folder` keeps."""
    return beside_files(gather(kept_rows.read(folder / ROWS)))


def gather(runs: Mapping[str, Run]) -> dict[str, Any]:
    """The figures of the table: for each run what it is, for each family what passed.

    Raises:
      ResultsError: there is no run, or they have no harness in common, or several versions of JAX.
    """
    if not runs:
        raise ResultsError("there are no figures yet: name runs, as in ours=ours.jsonl")
    by_name = {name: run.rows for name, run in runs.items()}
    versions = sorted({str(row["jax"]) for rows in by_name.values() for row in rows})
    if len(versions) > 1:
        raise ResultsError(f"the runs are of JAX {' and '.join(versions)}; run them on one version")
    passed = {name: _passed(rows) for name, rows in by_name.items()}
    common = set.intersection(*map(set, passed.values()))
    if not common:
        raise ResultsError("the runs have no harness in common: ask each for the same --sample")
    families: dict[str, list[str]] = collections.defaultdict(list)
    for rows in by_name.values():
        for row in rows:
            if row["harness"] in common and row["harness"] not in families[row["family"]]:
                families[row["family"]].append(row["harness"])
    return {
        "jax": versions[0],
        "dtypes": sorted({row["dtype"] for rows in by_name.values() for row in rows}),
        "whole": not any(
            word in _OF_A_PART for run in runs.values() for word in run.command.split()
        ),
        "runs": {name: _described(run, common) for name, run in runs.items()},
        "families": {
            family: {
                "harnesses": len(names),
                "passed": {run: sum(of[name] for name in names) for run, of in passed.items()},
            }
            for family, names in sorted(families.items())
        },
    }


def beside_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its figures, by file name."""
    families = data["families"]
    total = {
        "harnesses": sum(family["harnesses"] for family in families.values()),
        "passed": {
            run: sum(family["passed"][run] for family in families.values()) for run in data["runs"]
        },
    }
    text = rendering.render(TABLE, **data, rows=[*families.items(), ("all", total)])
    return {TABLE: text, "beside.json": json.dumps(data, indent=1) + "\n"}


def _named(text: str) -> tuple[str, Path]:
    name, separator, path = text.rpartition("=")
    if not (separator and name):
        raise ResultsError(f"{text!r} is not NAME=FILE, such as ours=ours.jsonl")
    return name, Path(path)


def _passed(rows: Sequence[Row]) -> dict[str, bool]:
    """Whether each harness passes in all of its cells; without those that JAX itself lacks."""
    of_jax = {row["harness"] for row in rows if row["phase"] == _NOT_OF_THE_CONVERTER}
    passed: dict[str, bool] = {}
    for row in rows:
        if row["harness"] not in of_jax:
            before = passed.get(row["harness"], True)
            passed[row["harness"]] = before and row["outcome"] == "pass"
    return passed


def _described(run: Run, counted: Set[str]) -> dict[str, Any]:
    row = run.rows[0]
    made_of = row["impl_versions"] or ""
    if row["tensorflow"]:
        made_of = f"TensorFlow {row['tensorflow']}"
    failures = {r["harness"]: cause_of(r) for r in run.rows if r["outcome"] != "pass"}
    counts = collections.Counter(text for name, text in failures.items() if name in counted)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
    return {
        "made_of": made_of,
        "python": row["python"],
        **origin.of(row),
        "cells": len(run.rows),
        "command": run.command,
        "failures": most,
    }
