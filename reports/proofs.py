"""What full runs proved, on which versions: the contents of proved.json, made of results files.

`runs` holds whole runs without a red cell; a list for each column beside the matrix holds its runs.
`seen` holds parts of runs on a device or with a lowering of which there is no whole run: what the
ledger says of these was seen, and is not proved.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from harnesses.cell.names import DEVICES, JAX_SIDE, LOWERINGS, MODE_NAMES
from harnesses.harness import Harness
from limitations.ledger import Limitation
from reports import results
from reports.columns import PROVED, without_columns
from reports.results import Row
from reports.summary import Tally


def with_proofs(
    proved: Mapping[str, Any],
    files: Sequence[Path],
    harnesses: Sequence[Harness],
    ledger: Sequence[Limitation],
    console: Console,
) -> dict[str, Any]:
    """`proved` with the full runs among the results files; a line about each file that is none."""
    runs, seen = list(proved.get("runs", [])), list(proved.get("seen", []))
    of_columns = {column.name: list(proved.get(column.name, [])) for column in PROVED}
    for file in files:
        rows = list(results.read(file).values())
        for column in PROVED:
            for run in column.runs_of(rows, harnesses, ledger):
                of_columns[column.name] = with_run(of_columns[column.name], run)
        for run, problem in full_runs(without_columns(rows), harnesses):
            if problem:
                console.print(
                    f"{file} ({run['device']} {run['lowering']}) changes no versions: {problem}",
                    soft_wrap=True,
                )
                if run["lowering"] in LOWERINGS:
                    seen = _with_part(seen, run, harnesses)
            else:
                runs = with_run(runs, run)
    return {"runs": runs, "seen": [part for part in seen if not _covers(runs, part)], **of_columns}


def with_run(runs: Sequence[dict[str, Any]], run: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs and another, which takes the place of one on the same line of versions.

    A sample does not take the place of a run that saw more.
    """
    same = [other for other in runs if _proof_key(other) == _proof_key(run)]
    if any(_share(run) < _share(other) for other in same):
        return list(runs)
    others = [other for other in runs if other not in same]
    return sorted([*others, run], key=_proof_key)


def _share(run: Mapping[str, Any]) -> float:
    return run["harnesses"] / run.get("of", run["harnesses"])


def full_runs(
    rows: Sequence[Row], harnesses: Sequence[Harness]
) -> list[tuple[dict[str, Any], str | None]]:
    """What the rows prove, for each device and lowering, and why it is no proof if it is none."""
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        groups[row["device"], row["lowering"]].append(row)
    return [
        (_run_of(device, lowering, members), _problem(lowering, members, harnesses))
        for (device, lowering), members in sorted(groups.items())
    ]


def _run_of(device: str, lowering: str, rows: Sequence[Row]) -> dict[str, Any]:
    tally = Tally(rows)
    versions = {name: rows[0][name] for name in ("impl", "jax", "tensorflow", "python")}
    return {
        "device": device,
        "lowering": lowering,
        **versions,
        **origin.of(rows[0]),
        "harnesses": len({row["harness"] for row in rows}),
        "cells": tally.cells,
        "passed": tally.outcomes["pass"],
        "limited": tally.limited,
    }


def added_since(run: Mapping[str, Any], harnesses: Sequence[Harness]) -> int:
    """How many more harnesses the run's version of JAX could run now than there were then."""
    there_were = run.get("of", run["harnesses"])
    return sum(harness.runs_on(run["jax"]) for harness in harnesses) - there_were


@dataclass(frozen=True)
class Places:
    """The devices and the lowerings of which runs are kept: whole ones, or parts.

    Attributes:
      proved: those of whole runs.
      seen: those of parts of runs.
    """

    proved: frozenset[str]
    seen: frozenset[str]

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]) -> Places:
        """The places of whole runs and of parts of runs."""
        return cls(_places(runs), _places(parts))

    def text(self, names: Sequence[str]) -> str:
        """The devices or lowerings of a limitation, with a mark at those that are not proved."""
        return ", ".join(map(self._word, names)) or "all"

    def lacking(self) -> list[str]:
        """The devices and lowerings of which no whole run is kept."""
        return [name for name in (*DEVICES, *LOWERINGS) if name not in self.proved]

    def _word(self, name: str) -> str:
        if name in self.proved:
            return name
        return f"{name} (seen, not proved)" if name in self.seen else f"{name} (not run)"


def _places(runs: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(run[key] for run in runs for key in ("device", "lowering"))


def _covers(runs: Iterable[Mapping[str, Any]], part: Mapping[str, Any]) -> bool:
    """Whether whole runs are kept of the device and of the lowering of a part."""
    return {part["device"], part["lowering"]} <= _places(runs)


def _with_part(
    seen: Sequence[Mapping[str, Any]], run: Mapping[str, Any], harnesses: Sequence[Harness]
) -> list[dict[str, Any]]:
    """The parts of runs with one more, if that saw more of its place than the one that is kept."""
    keys = ("device", "lowering", "jax", "tensorflow", *origin.KEYS, "cells")
    asked = sum(harness.runs_on(run["jax"]) for harness in harnesses) * len(MODE_NAMES)
    part = {key: run[key] for key in keys} | {"machine": origin.UNKNOWN, "of": asked}
    kept = [dict(other) for other in seen]
    same = [other for other in kept if _proof_key(other) == _proof_key(part)]
    if any(isinstance(o["cells"], int) and o["cells"] > part["cells"] for o in same):
        return kept
    return [*(other for other in kept if other not in same), part]


def _problem(lowering: str, rows: Sequence[Row], harnesses: Sequence[Harness]) -> str | None:
    modes = (JAX_SIDE,) if lowering == JAX_SIDE else MODE_NAMES
    asked = {
        (harness.name, mode)
        for harness in harnesses
        if harness.runs_on(rows[0]["jax"])
        for mode in modes
    }
    missing = asked.difference((row["harness"], row["mode"]) for row in rows)
    red = Tally(rows).red
    if missing:
        return f"{len(missing)} of {len(asked)} cells did not run"
    return f"{red} cells are red" if red else None


def _proof_key(run: Mapping[str, Any]) -> tuple[str, ...]:
    lines = (".".join((run[name] or "").split(".")[:2]) for name in ("jax", "tensorflow"))
    return (run["device"], run["lowering"], run.get("mode", ""), *lines)
