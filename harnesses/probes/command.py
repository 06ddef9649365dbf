"""`python -m harnesses probe TARGET`: the command line of the probes."""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from harnesses.probes.names import ENGINES

if TYPE_CHECKING:
    from harnesses.probes.table import Table


def add_options(add_argument: Callable[..., object]) -> None:
    """The options, by the function of a parser that adds one."""
    add_argument("target", choices=tuple(ENGINES), help="what the ops are tried in")
    add_argument(
        "--op",
        action="append",
        default=[],
        help="an op, or a glob of uses such as 'Conv*: in groups'; may be repeated",
    )
    add_argument("--dtype", action="append", default=[], help="a dtype; may be repeated")
    add_argument(
        "-n", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    add_argument(
        "--check", action="store_true", help="write nothing; fail where the table is wrong"
    )
    add_argument("--table", type=Path, help="the table's file (default: the implementation's own)")


def run(options: argparse.Namespace, console: Console) -> int:
    """Tries the uses, and checks the table of the target or writes it.

    Returns 1 where `--check` finds a difference. What was not asked for stays in the table as it
    is.

    Raises:
      EngineError: the engine is not installed, or an option is of no use.
    """
    from harnesses.probes import table as tables
    from harnesses.probes.catalogue import catalogue
    from harnesses.probes.probing import chosen

    path = options.table or tables.FOLDER / f"{options.target}.json"
    asked = chosen(options.target, options.op, options.dtype)
    seen = _probed(options, asked, console)
    counts = collections.Counter(
        outcome.partition(":")[0].partition(";")[0]
        for outcomes in seen.uses.values()
        for outcome in outcomes.values()
    )
    said = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    console.print(f"{options.target}: {sum(counts.values())} uses with a dtype: {said}")
    known = tables.read(path).uses if path.exists() else {}
    found = list(tables.differences(known, seen.uses))
    for line in found:
        console.print(line, highlight=False, soft_wrap=True)
    if options.check:
        return 1 if found or not counts else 0
    is_whole = not (options.op or options.dtype)
    tables.write(seen if is_whole else tables.merged(known, seen, catalogue()), path)
    return 0 if counts else 1


def _probed(options: argparse.Namespace, asked: list[tuple[str, str]], console: Console) -> Table:
    from harnesses.probes.probing import probed

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"ops in {options.target}", total=len(asked))
        return probed(options.target, asked, options.n, lambda: progress.advance(task))
