"""`python -m reports planted`: does the matrix notice an implementation that is wrong in one place?

Faults of one dtype, one value of a param, one axis or one edge are planted in JAX's own functions,
one at a time; each harness of the primitive is then compared as the judge compares. This tries the
harnesses and the comparison, and no implementation. A fault that no harness notices is a survivor:
a harness is missing, or reasons.toml says why none can notice it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from reports import rendering
from reports.planted import table

SAMPLE, SEED = 200, 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="faults to plant")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help="of the sample")
    parser.add_argument("--all", action="store_true", help="plant all; with --primitive, all of it")
    parser.add_argument("--primitive", action="append", metavar="P", help="faults of these alone")
    parser.add_argument("--fault", action="append", metavar="F", help="one: 'cumsum: reverse=True'")
    parser.add_argument("--check", action="store_true", help="write nothing; is the table current?")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return table.files(rendering.read_data(table.NAME, folder))


def main(options: argparse.Namespace, console: Console) -> int:
    if options.check:
        command = "python -m reports planted"
        return rendering.write_or_check(files(options.into), options, console, command)

    from reports.planted import run  # compiles with JAX

    return run.main(options, console)
