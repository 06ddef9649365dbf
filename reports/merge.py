"""`python -m reports merge SHARD ... --into FILE`: the shards of one run as one results file.

A shard is the file of `python -m harnesses run --shard I/N`. The shards of a run have to be of the
same options, code and versions: rows of mixed versions prove nothing together. What is not there
is counted: a shard without a file, and the cells that a shard did not come to. Exits with 1 if
cells are missing or red, like a run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import journal
from harnesses.cell.journal import Journal, Request
from harnesses.cell.rows import Row
from reports.results import ResultsError
from reports.summary import Tally

_RUN = "python -m harnesses run"
# Options of one shard alone.
_OF_A_SHARD = ("--shard", "--results")
# Each row says on what kind of processor it was seen: a fleet may have several.
_MAY_DIFFER = "processor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shards", nargs="+", type=Path, metavar="SHARD", help="a results file")
    parser.add_argument("--into", type=Path, required=True, metavar="FILE", help="the whole")


def main(options: argparse.Namespace, console: Console) -> int:
    whole = merge([Shard.read(path) for path in options.shards])
    whole.write(options.into)
    for line in whole.lines(options.into):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 1 if whole.missing or whole.red else 0


@dataclasses.dataclass(frozen=True)
class Shard:
    """One file: which of how many shards it is, what it was asked for, the rows that it has."""

    path: Path
    index: int
    count: int
    request: Request
    rows: list[Row]

    @classmethod
    def read(cls, path: Path) -> Shard:
        """The shard that stands in a file.

        Raises:
          ResultsError: there is no such file, or it does not say that it is a shard.
        """
        rows, request = journal.read(path), journal.request_of(path)
        if request is None:
            raise ResultsError(
                f"{path} has no {path.stem}.run.json beside it, which says what its run was asked "
                "for. Keep both files together"
            )
        shard = request["asked"]["shard"]
        if shard is None:
            raise ResultsError(f"{path} is of a whole run, not of one with --shard I/N")
        index, count = map(int, shard.split("/"))
        return cls(path, index, count, request, rows)

    @property
    def left(self) -> int:
        """How many of its cells did not run."""
        return self.request["cells"] - len(self.rows)


@dataclasses.dataclass(frozen=True)
class Whole:
    """The shards of one run together.

    Attributes:
      shards: those that are there, in their order.
      absent: the numbers of those that are not.
      request: what the run was asked for that the shards are parts of.
    """

    shards: Sequence[Shard]
    absent: Sequence[int]
    request: Request

    @property
    def rows(self) -> list[Row]:
        """The rows of all shards."""
        return [row for shard in self.shards for row in shard.rows]

    @property
    def missing(self) -> int:
        """How many cells did not run."""
        return self.request["cells"] - len(self.rows)

    @property
    def red(self) -> int:
        """How many cells are red."""
        return Tally(self.rows).red

    def write(self, path: Path) -> None:
        """Writes the rows to a new file, and beside it the request of the whole.

        Raises:
          ResultsError: if the file is there already.
        """
        journal.check_free(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.unfinished")
        beside.write_text("".join(f"{json.dumps(row)}\n" for row in self.rows), encoding="utf-8")
        Journal(path).write_request(self.request)
        beside.replace(path)

    def lines(self, path: Path) -> list[str]:
        """What was merged, what is missing and how to run it, and what to look at next."""
        count = self.shards[0].count
        command = f"{self.request['command']} --results {shlex.quote(str(path))}"
        lines = [
            f"{path}: {len(self.shards)} of {count} shards; {self.request['cells']} cells asked "
            f"for, {len(self.rows)} ran, {self.red} red, {self.missing} did not run"
        ]
        lines += [f"shard {index}/{count} is missing" for index in self.absent]
        lines += [
            f"shard {shard.index}/{count} stopped: {shard.left} of its {shard.request['cells']} "
            f"cells did not run ({shard.path})"
            for shard in self.shards
            if shard.left
        ]
        if self.missing:
            lines.append(f"what is missing runs with: {command} --resume")
        else:
            check = f"python -m limitations check --results {shlex.quote(str(path))}"
            lines.append(f"the ledger is held against all of it with: {check}")
        return lines


def merge(shards: Sequence[Shard]) -> Whole:
    """The shards of one run together.

    Raises:
      ResultsError: two are the same shard, or they are of different runs, code or versions.
    """
    by_index: dict[int, Shard] = {}
    for shard in shards:
        other = by_index.setdefault(shard.index, shard)
        if other is not shard:
            raise ResultsError(
                f"{other.path} and {shard.path} are both shard {shard.index}/{shard.count}: "
                "leave one of them out"
            )
        _check_same(shards[0], shard)
    count = shards[0].count
    absent = [index for index in range(1, count + 1) if index not in by_index]
    present = [by_index[index] for index in sorted(by_index)]
    return Whole(present, absent, _whole_request(present))


def _whole_request(shards: Sequence[Shard]) -> Request:
    first = shards[0].request
    processors = sorted({str(shard.request["versions"][_MAY_DIFFER]) for shard in shards})
    return first | {
        "command": _without_shard(first["command"]),
        "cells": first["cells_of_all_shards"],
        "asked": first["asked"] | {"shard": None},
        "versions": first["versions"] | {_MAY_DIFFER: " or ".join(processors)},
    }


def _check_same(first: Shard, other: Shard) -> None:
    """Raises ResultsError if two shards are not of the same run."""
    pairs = [(f"--shard I/{shard.count}", _identity(shard.request)) for shard in (first, other)]
    (ours, one), (theirs, another) = pairs
    differing = [] if ours == theirs else [f"{ours} and {theirs}"]
    differing += [
        f"{key} is {one.get(key)!r} and {another.get(key)!r}"
        for key in one | another
        if one.get(key) != another.get(key)
    ]
    if differing:
        raise ResultsError(
            f"{first.path} and {other.path} are not shards of one run: {'; '.join(differing)}"
        )


def _identity(request: Request) -> dict[str, Any]:
    """What the shards of a run have in common."""
    parts = [request["asked"], request["versions"], request["code"]]
    same = {key: value for part in parts for key, value in part.items()}
    same["cells of all shards"] = request["cells_of_all_shards"]
    return {key: value for key, value in same.items() if key not in ("shard", _MAY_DIFFER)}


def _without_shard(command: str) -> str:
    """The command line of the run that a shard is a part of."""
    before, run, after = command.partition(_RUN)
    words = shlex.split(after)
    for option in _OF_A_SHARD:
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    return " ".join([before + run, *map(shlex.quote, words)])
