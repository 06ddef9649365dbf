"""`python -m reports versions FILE ...`: the same cells on several versions of JAX and TensorFlow.

Each file holds the rows of a run of one implementation on one set of versions, all of the same
`--sample`; `tox run -m versions` makes them. The table says how each run went, and for each
primitive what differs from version to version. A cell that JAX's own version does not have is not
counted as a difference.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version
from rich.console import Console

from harnesses.cell import origin
from reports import rendering, results
from reports.causes import cause_of
from reports.results import Cell, ResultsError, Row
from reports.summary import Tally

TABLE = "versions.md"
_VERSIONS = ("jax", "tensorflow", "python")
_TITLES = {"jax": "JAX", "tensorflow": "TensorFlow", "python": "Python"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="a results file, or a folder of them"
    )
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--check", action="store_true", help="say whether the table is current")


def main(options: argparse.Namespace, console: Console) -> int:
    if options.files:
        runs = [results.read(file) for path in options.files for file in _files(path)]
        if not options.check:
            rows = [row for run in runs for row in run.values()]
            results.refuse_rows_of_others(rows, options.into, rendering.TABLES)
        data = gather(runs)
    else:
        data = rendering.read_data("versions", options.into)
        if not data:
            raise ResultsError("there are no figures yet: name the results files of runs")
    texts = version_files(data)
    status = rendering.write_or_check(texts, options, console, "python -m reports versions")
    if options.check:
        return status
    return 1 if any(run["red"] for run in data["runs"].values()) else 0


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return version_files(rendering.read_data("versions", folder))


def gather(runs: Sequence[Mapping[Cell, Row]]) -> dict[str, Any]:
    """The figures of the table: how each run went, and what differs.

    Raises:
      ResultsError: there are less than two runs, two of the same versions, or runs of several
        implementations.
    """
    by_versions: dict[str, Mapping[Cell, Row]] = {}
    for rows in runs:
        title = _title(next(iter(rows.values())))
        if title in by_versions:
            raise ResultsError(f"two of the files are of {title}")
        by_versions[title] = rows
    by_versions = dict(sorted(by_versions.items(), key=lambda item: _key(item[1])))
    if len(by_versions) < 2:
        raise ResultsError("one set of versions has nothing to be compared with: name more files")
    impls = sorted({str(row["impl"]) for rows in runs for row in rows.values()})
    if len(impls) > 1:
        raise ResultsError(
            f"the runs are of {' and '.join(impls)}: `python -m reports beside` compares those"
        )
    return {
        "impl": impls[0],
        "runs": {title: _counts(rows) for title, rows in by_versions.items()},
        "common": len(set.intersection(*map(set, by_versions.values()))),
        "differences": _differences(by_versions),
    }


def version_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its figures, by file name."""
    text = rendering.render(TABLE, **data)
    return {TABLE: text, "versions.json": json.dumps(data, indent=1) + "\n"}


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def _title(row: Row) -> str:
    """`JAX 0.12.0, TensorFlow 2.21.0, Python 3.12.1`."""
    return ", ".join(f"{_TITLES[name]} {row[name]}" for name in _VERSIONS if row[name])


def _key(rows: Mapping[Cell, Row]) -> list[Version]:
    row = next(iter(rows.values()))
    return [Version(row[name] or "0") for name in _VERSIONS]


def _counts(rows: Mapping[Cell, Row]) -> dict[str, Any]:
    tally = Tally(rows.values())
    return {
        **origin.of(next(iter(rows.values()))),
        "cells": tally.cells,
        "passed": tally.outcomes["pass"],
        "declared": tally.limited,
        "red": tally.red,
    }


def _differences(runs: Mapping[str, Mapping[Cell, Row]]) -> list[dict[str, Any]]:
    """What does not come out alike wherever it runs: cells that differ in the same way together."""
    together: dict[tuple[Any, ...], list[Row]] = collections.defaultdict(list)
    for cell in dict.fromkeys(cell for rows in runs.values() for cell in rows):
        rows = {title: rows[cell] for title, rows in runs.items() if cell in rows}
        came = {title: _came(row) for title, row in rows.items()}
        if len(set(came.values())) > 1:
            row = next(iter(rows.values()))
            together[row["family"], row["primitive"], tuple(came.items())].append(row)
    return [
        {
            "family": family,
            "primitive": primitive,
            "cells": len(rows),
            "dtypes": sorted({row["dtype"] for row in rows}),
            "modes": sorted({row["mode"] for row in rows}),
            "came": dict(came),
        }
        for (family, primitive, came), rows in sorted(together.items())
    ]


def _came(row: Row) -> str:
    """What came of a cell: "pass" or why it failed."""
    return "pass" if row["outcome"] == "pass" else cause_of(row)
