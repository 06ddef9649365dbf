"""`python -m reports engine_culprits`: which operation makes each mismatch of an engine.

The ledger's files of LiteRT, ONNX Runtime, OpenVINO and TensorFlow.js declare cells that run and
differ from JAX. `--walk ENGINE` runs a cell of each of these limitations and asks who does it; what
was found already stays, unless `--again` is given. Limitations of which no cell was looked at stand
at the end of the table.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import json
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from harnesses.cell.cells import Cell
from harnesses.cell.names import CONSUMER_MODES, DEFAULT_IMPLEMENTATION
from harnesses.cell.rows import Row, row_of
from harnesses.engine import devices
from harnesses.engine.versions import versions
from harnesses.harness import Harness, all_harnesses
from limitations.ledger import Limitation, load
from reports import engine_rows, rendering
from reports.consumers import ENGINE_NAMES

NAME = "engine_culprits"
TABLE = f"{NAME}.md"
ENGINES = tuple(mode for mode in CONSUMER_MODES if mode != "savedmodel")
_LOWERING = "no_xla"
_MISMATCH = "mismatch"
# So many cells of a limitation are tried before it counts as one without a mismatch.
_TRIED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--walk", choices=ENGINES, help="run the cells of this engine")
    parser.add_argument("--again", action="store_true", help="those that were found already, too")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--check", action="store_true", help="say whether the table is current")


def main(options: argparse.Namespace, console: Console) -> int:
    if options.walk:
        _walk(options, console)
    return rendering.write_or_check(
        files(options.into), options, console, f"python -m reports {NAME}"
    )


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return _files(rendering.read_data(NAME, folder) or {"engines": {}})


def mismatches() -> list[Limitation]:
    """The limitations that declare a mismatch in one of the engines."""
    return [
        each
        for each in load()
        if each.expect == _MISMATCH and each.modes and set(each.modes) <= set(ENGINES)
    ]


def _files(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        TABLE: table(data, mismatches(), _harnesses()),
        f"{NAME}.json": json.dumps(data, indent=1) + "\n",
    }


def table(
    data: Mapping[str, Any], limitations: Sequence[Limitation], harnesses: Iterable[Harness]
) -> str:
    """The text of the table.

    Args:
      data: the figures: the versions and rows of each engine's walk.
      limitations: those that declare a mismatch.
      harnesses: the database.
    """
    known = {harness.name: harness for harness in harnesses}
    sections, counts = [], collections.Counter[str]()
    for engine in ENGINES:
        run = data["engines"].get(engine)
        rows = [] if run is None else [row for row in run["rows"] if row["harness"] in known]
        lines, missing = [], []
        for each in limitations:
            if engine not in each.modes or (run is not None and not each.holds_for(run)):
                continue
            row = next((r for r in rows if _is_of(each, known[r["harness"]], engine, run)), None)
            if row is None:
                missing.append(each)
            else:
                lines.append({**row, "reason": each.reason})
                counts[row["party"]] += 1
        sections.append(
            {
                "engine": ENGINE_NAMES[engine],
                "run": run,
                "lines": lines,
                "missing": [{"id": x.where, "reason": x.reason} for x in missing],
            }
        )
    parties = [(party, n) for party, n in counts.most_common() if party]
    return rendering.render(TABLE, sections=sections, parties=parties)


@functools.cache
def _harnesses() -> list[Harness]:
    return list(all_harnesses(jax_version=None))


def _is_of(limitation: Limitation, harness: Harness, engine: str, run: Row) -> bool:
    """Whether a limitation speaks of the cell of a harness in an engine, on a run's versions."""
    return limitation.matches(row_of(Cell(harness, "cpu", _LOWERING, engine), run, phase="run"))


def _walk(options: argparse.Namespace, console: Console) -> None:
    # Imported here and not above: the table is checked where no engine is installed.
    from reports import engine_walk

    devices.prepare(("cpu",))
    engine, seen = options.walk, versions(DEFAULT_IMPLEMENTATION)
    data = rendering.read_data(NAME, options.into) or {"engines": {}}
    before = data["engines"].get(engine, {"rows": []})["rows"]
    rows = [] if options.again else before
    for limitation in mismatches():
        if engine not in limitation.modes or not limitation.holds_for(seen):
            continue
        candidates = _candidates(limitation, engine, seen)
        if {harness.name for harness in candidates} & {row["harness"] for row in rows}:
            continue
        for harness in candidates[:_TRIED]:
            console.print(f"{limitation.where}: {harness.name}", soft_wrap=True)
            try:
                walked = engine_walk.walk(harness, engine)
            # A program that cannot be asked stays without a culprit, which the table says.
            except Exception:
                console.print(traceback.format_exc(), markup=False, highlight=False)
                continue
            said = f"  {walked.outcome}: {', '.join(walked.primitives)}: {walked.party}"
            console.print(said, markup=False, highlight=False, soft_wrap=True)
            if walked.outcome == _MISMATCH:
                rows = [*rows, dataclasses.asdict(walked)]
                data["engines"][engine] = {**seen, **origin.now(), "rows": rows}
                rendering.write(_files(data), options.into)
                break


def _candidates(limitation: Limitation, engine: str, run: Row) -> list[Harness]:
    """The harnesses that a limitation speaks of; those that were seen to differ come first."""
    kept = rendering.read_data(engine_rows.NAME)["cells"]
    place = engine_rows.MODES.index(engine)
    found = [harness for harness in all_harnesses() if _is_of(limitation, harness, engine, run)]
    return sorted(found, key=lambda harness: kept.get(harness.name, "")[place : place + 1] != "m")
