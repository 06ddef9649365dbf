"""`python -m reports mutation`: do the tests notice a fault that is planted in impl/jax2tf?

A sample of mutants over all modules, each tried in a process of its own against the cells of the
matrix and the tests that reach its line. A mutant is caught if one of them fails. One that is not
is a survivor: a test is missing, or the code is dead, or the mutant does what the code does, which
equivalent.toml explains.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from reports import rendering
from reports.mutation import table

SAMPLE, SEED = 300, 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="mutants to try")
    parser.add_argument("--first", type=int, metavar="K", help="of the sample, for want of time")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help="of the sample")
    parser.add_argument(
        "--module", action="append", metavar="M", help="such as _src/lowering/rules/arrays.py"
    )
    parser.add_argument("--mutant", action="append", metavar="NAME", help="this one, anew")
    parser.add_argument("--again", action="store_true", help="try those anew that survived")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of earlier runs")
    parser.add_argument("--check", action="store_true", help="write nothing; is the table current?")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return table.files(table.read(folder))


def main(options: argparse.Namespace, console: Console) -> int:
    if options.check:
        stale = rendering.stale(files(options.into), options.into)
        for path in stale:
            console.print(f"{path} is stale. Write it anew with: python -m reports mutation")
        return 1 if stale else 0

    from reports.mutation import run  # needs cosmic-ray, and imports TensorFlow

    return run.main(options, console)
