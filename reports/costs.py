"""`python -m reports costs FILE ...`: what harnesses cost, by which `--shard` divides a run.

Made of the seconds in the rows of runs: of an average harness of each family, and of an average
harness of those primitives that take more than twice or less than half as long.
"""

from __future__ import annotations

import argparse
import collections
import statistics
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from harnesses.engine import shards
from reports import rendering, results
from reports.results import ResultsError, Row

# Of a primitive that is farther than this from its family the costs are kept.
_FAR = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="FILE", help="a results file")
    parser.add_argument("--into", type=Path, default=shards.FILE, metavar="FILE", help="the costs")


def main(options: argparse.Namespace, console: Console) -> int:
    rows = [row for path in options.runs for row in results.read(path).values()]
    results.refuse_inputs(options.into, options.runs)
    results.refuse_rows_of_others(rows, options.into, shards.FILE)
    costs = costs_of(rows)
    rendering.write({options.into.name: rendering.figures(costs)}, options.into.parent)
    kept = f"{len(costs['families'])} families and {len(costs['primitives'])} primitives"
    console.print(f"{options.into}: {kept}", markup=False, highlight=False, soft_wrap=True)
    return 0


def costs_of(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """The costs that the rows show, in seconds of a harness.

    Raises:
      ResultsError: no row says how long it took.
    """
    seconds: dict[str, float] = collections.defaultdict(float)
    place: dict[str, tuple[str, str]] = {}
    for row in rows:
        seconds[row["harness"]] += row["seconds"] or 0.0  # a crash has none
        place[row["harness"]] = row["family"], row["primitive"]
    if not any(seconds.values()):
        raise ResultsError("no row of these runs says how long it took")
    of_family: dict[str, list[float]] = collections.defaultdict(list)
    of_primitive: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for harness, (family, primitive) in place.items():
        of_family[family].append(seconds[harness])
        of_primitive[family, primitive].append(seconds[harness])
    families = {family: _mean(each) for family, each in of_family.items()}
    primitives = {key: _mean(each) for key, each in of_primitive.items()}
    return {
        "families": families,
        "primitives": {
            primitive: cost
            for (family, primitive), cost in primitives.items()
            if not families[family] / _FAR <= cost <= families[family] * _FAR
        },
    }


def _mean(seconds: Iterable[float]) -> float:
    """Two digits are more than another machine keeps."""
    return float(f"{statistics.fmean(seconds):.2g}")
