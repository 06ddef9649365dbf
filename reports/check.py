"""`python -m reports check`: is each file of reports/tables current, and which command makes it?

A table is current if the ledger, the harnesses, the templates and the figures that are kept beside
it give the same text. A file that no command makes is a finding too: nothing would ever say that it
is stale. Nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from rich.console import Console

from reports import explained, rendering
from reports.results import ResultsError

# The commands whose tables are made of data of this repository. `tables` makes those of benchmarks.
COMMANDS = (
    "tables",
    "call_tf",
    "substrates",
    "libraries",
    "culprits",
    "beside",
    "versions",
    "mutation",
    "planted",
)
# Rows of runs, from which a table is made: they are kept as they came.
KEPT = {
    "engine_rows.json": "python -m reports consumers FILE",
    "beside.rows.xz": "python -m reports beside NAME=FILE",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the tables' folder")


def main(options: argparse.Namespace, console: Console) -> int:
    if not options.into.is_dir():
        raise ResultsError(f"there is no folder {options.into}")
    made, findings = set(KEPT), []
    for command in COMMANDS:
        texts = importlib.import_module(f"reports.{command}").files(options.into)
        findings += _stale(texts, options.into, command)
        made.update(texts)
    carried = importlib.import_module("reports.tables").carried_files()
    findings += _stale(carried, explained.FOLDER, "tables")
    findings += [
        f"{path} is made by no command of this check"
        for path in sorted(options.into.iterdir())
        if path.name not in made
    ]
    for finding in findings:
        console.print(finding, style="red", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(made) + len(carried)} files checked, {len(findings)} findings")
    return 1 if findings else 0


def _stale(texts: dict[str, str], folder: Path, command: str) -> list[str]:
    return [
        f"{path} is stale. Write it anew with: python -m reports {command}"
        for path in rendering.stale(texts, folder)
    ]
