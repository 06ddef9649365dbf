"""`python -m reports culprits FILE ...`: who is off where JAX and the judged differ.

It prints the table of the rows; `--into FOLDER` writes it there, with its figures. The project's
own table is written with `--into reports/tables`.

Of the cells that differ by more than one ULP, the third opinion says who is off; see
`harnesses.engine.opinion`. JAX's own errors are a section of their own: each says enough, with its
numbers and the versions, to be reported to JAX.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from harnesses.cell.outcomes import BOTH, JAX, JUDGED, NEITHER
from reports import rendering, results
from reports.results import ResultsError, Row
from reports.summary import version_line

TABLE = "culprits.md"
_ULPS = {JAX: "jax_ulps", JUDGED: "judged_ulps", BOTH: "judged_ulps"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a results file")
    parser.add_argument(
        "--into",
        type=Path,
        help="the table's folder; default: print the table of FILE, or write that of the project",
    )
    parser.add_argument("--check", action="store_true", help="say whether the table is current")


def main(options: argparse.Namespace, console: Console) -> int:
    is_printed = bool(options.files) and options.into is None and not options.check
    options.into = options.into or rendering.TABLES
    if options.files:
        rows = [row for path in options.files for row in results.read(path).values()]
        commands = {results.command_of(path) for path in options.files}
        data = gather(rows) | {"commands": sorted(filter(None, commands))}
    else:
        data = rendering.read_data("culprits", options.into)
        if not data:
            raise ResultsError("there are no figures yet: name the results files of runs")
    texts = culprit_files(data)
    if is_printed:
        console.print(texts[TABLE], markup=False, highlight=False, soft_wrap=True)
        return 0
    return rendering.write_or_check(texts, options, console, "python -m reports culprits")


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return culprit_files(rendering.read_data("culprits", folder))


def gather(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of the table: what the rows are of, how many differ, and the worst of each.

    Raises:
      ResultsError: the rows are of several implementations.
    """
    impls = sorted({str(row["impl"]) for row in rows})
    if len(impls) > 1:
        raise ResultsError(f"the rows are of {' and '.join(impls)}: name the files of one")
    counts = collections.Counter(row["culprit"] for row in rows if row["culprit"])
    differing = [row for row in rows if row["ulps"] is not None and row["ulps"] > 1]
    return {
        "impl": impls[0],
        "versions": sorted({version_line(row) for row in rows}),
        "origins": _origins(rows),
        "cells": len(rows),
        "differing": len(differing),
        "counts": {culprit: counts[culprit] for culprit in (JAX, JUDGED, BOTH, NEITHER)},
        "off": {culprit: _worst(rows, culprit) for culprit in _ULPS},
    }


def _origins(rows: Iterable[Row]) -> list[dict[str, str]]:
    """When and on which commits the rows were seen, each once."""
    found = {tuple(origin.of(row).values()) for row in rows}
    return [dict(zip(origin.KEYS, words, strict=True)) for words in sorted(found)]


def culprit_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its figures, by file name."""
    text = rendering.render(TABLE, **data)
    return {TABLE: text, "culprits.json": json.dumps(data, indent=1) + "\n"}


def _worst(rows: Iterable[Row], culprit: str) -> list[dict[str, Any]]:
    """For each primitive and dtype the cell that is off most; the worst of all comes first."""
    together: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row["culprit"] == culprit:
            together[row["primitive"], row["dtype"]].append(row)
    worst = []
    for (primitive, dtype), members in together.items():
        row = max(members, key=lambda row: float(row[_ULPS[culprit]]))
        worst.append(
            {"primitive": primitive, "dtype": dtype, "cells": len(members)}
            | {"modes": sorted({member["mode"] for member in members})}
            | {key: row[key] for key in ("harness", "jax_ulps", "judged_ulps", "opinion")}
            | {"example": row["example"]}
        )
    return sorted(worst, key=lambda entry: (-float(entry[_ULPS[culprit]]), entry["harness"]))
