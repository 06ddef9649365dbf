"""`python -m reports check`: is each file of reports/tables current, and does it say what it saw?

A table is current if the ledger, the harnesses, the templates and the figures that are kept beside
it give the same text. A file that no command makes is a finding too: nothing would ever say that it
is stale. So is a table that does not say when its figures were seen, on which commit and on which
versions, and a sentence of the documentation that the data do not give (`reports.statements`). With
`--write` it writes what is stale anew; without, nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Mapping
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
    "engine_culprits",
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
# What a table says of its figures. One of whose figures no run is kept says that instead.
_SAYS = {
    "a date": re.compile(r"\b20\d\d-\d\d-\d\d\b"),
    "a commit": re.compile(r"\bcommit\b"),
    "versions": re.compile(r"\bJAX (\d|unknown)|\| JAX \||tensorflow \d"),
    "how many of how many": re.compile(r"\d of (a sample of )?[\d,]+|\| (cells|harnesses) \|"),
}
_NO_RUN = re.compile(r"^No (full )?run (is kept|was made yet)\.", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the tables' folder")
    parser.add_argument("--write", action="store_true", help="write what is stale anew")


def main(options: argparse.Namespace, console: Console) -> int:
    if not options.into.is_dir():
        raise ResultsError(f"there is no folder {options.into}")
    made, findings = set(KEPT), []
    carried = importlib.import_module("reports.tables").carried_files()
    support = importlib.import_module("reports.support")
    for command in COMMANDS:
        texts = texts_of(command, options.into)
        if options.write:
            _write(texts, options.into, console)
        findings += stale(texts, options.into, command)
        findings += silent(texts, options.into)
        made.update(texts)
    if options.write:
        _write(carried, explained.FOLDER, console)
    findings += stale(carried, explained.FOLDER, "tables")
    findings += [
        f"{path} is made by no command of this check"
        for path in sorted(options.into.iterdir())
        if path.name not in made
    ]
    if options.into == rendering.TABLES:
        pages = support.files()
        if options.write:
            _write(pages, support.FOLDER, console)
        findings += stale(pages, support.FOLDER, "support")
        findings += _statements(options.write, console)
        made.update(pages)
    for finding in findings:
        console.print(finding, style="red", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(made) + len(carried)} files checked, {len(findings)} findings")
    return 1 if findings else 0


def _write(texts: Mapping[str, str], folder: Path, console: Console) -> None:
    for path in rendering.write(texts, folder):
        console.print(f"wrote {path}", soft_wrap=True)


def _statements(is_written: bool, console: Console) -> list[str]:
    """A line for each page of the documentation with a sentence that the data do not give."""
    statements = importlib.import_module("reports.statements")
    for path in statements.write() if is_written else ():
        console.print(f"wrote {path}", soft_wrap=True)
    return [
        f"{path} has a sentence that is stale. Write it anew with: python -m reports check --write"
        for path in statements.stale()
    ]


def texts_of(command: str, folder: Path) -> dict[str, str]:
    """What a command makes of the figures that a folder holds, by file name."""
    texts: dict[str, str] = importlib.import_module(f"reports.{command}").files(folder)
    return texts


def stale(texts: Mapping[str, str], folder: Path, command: str) -> list[str]:
    """A line for each file of the folder that holds another text."""
    return [
        f"{path} is stale. Write it anew with: python -m reports {command}"
        for path in rendering.stale(texts, folder)
    ]


def silent(texts: Mapping[str, str], folder: Path) -> list[str]:
    """A line for each table that does not say when and on what its figures were seen."""
    return [
        f"{folder / name} does not say {', '.join(lacking)} of what it shows"
        for name, text in texts.items()
        if name.endswith(".md")
        and not _NO_RUN.search(text)
        and (lacking := [what for what, said in _SAYS.items() if not said.search(text)])
    ]
