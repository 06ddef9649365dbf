"""The table of what an engine takes, as a file of the implementation."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harnesses.cell import origin
from harnesses.probes.probe import ALL

FOLDER = Path(__file__).parents[2] / "impl/jax2tf/_src/targets/op_tables"

Uses = Mapping[str, Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class Table:
    """What came of all uses.

    Attributes:
      versions: of the distributions that were tried.
      seen: the date and the commit of the newest of the tries.
      uses: by use and dtype, the outcome in words. What TensorFlow has no kernel for is not there.
    """

    versions: Mapping[str, str]
    uses: Uses
    seen: Mapping[str, str] = dataclasses.field(default_factory=lambda: origin.of({}))


def read(path: Path) -> Table:
    """The table of a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    uses = {use: _by_dtype(row) for use, row in data["uses"].items()}
    return Table(data["versions"], uses, origin.of(data.get("seen", {})))


def write(table: Table, path: Path) -> None:
    """Writes the file anew, with a line for each use: its outcomes, each with its dtypes."""
    rows = [
        f"    {json.dumps(use)}: {json.dumps(_by_outcome(outcomes))}"
        for use, outcomes in table.uses.items()
    ]
    body = ",\n".join(rows)
    head = f'"versions": {json.dumps(table.versions)},\n  "seen": {json.dumps(table.seen)}'
    text = f'{{\n  {head},\n  "uses": {{\n{body}\n  }}\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _by_outcome(outcomes: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for dtype, outcome in outcomes.items():
        found.setdefault(outcome, []).append(dtype)
    return found


def _by_dtype(row: Mapping[str, Sequence[str]]) -> dict[str, str]:
    said = {dtype: outcome for outcome, dtypes in row.items() for dtype in dtypes}
    return {dtype: said[dtype] for dtype in ALL if dtype in said}


def differences(known: Uses, seen: Uses) -> Iterator[str]:
    """A line for each use that was seen to end otherwise than the table says."""
    for use, outcomes in seen.items():
        for dtype, outcome in outcomes.items():
            said = known.get(use, {}).get(dtype, "nothing")
            if said != outcome:
                yield f"{use} of {dtype}: the table says {said!r}, seen is {outcome!r}"


def merged(known: Uses, seen: Table, kept: Iterable[str]) -> Table:
    """The table of the uses `kept`, with what was seen in the place of what it said of that."""
    found = {use: {**known.get(use, {}), **seen.uses.get(use, {})} for use in kept}
    uses = {use: outcomes for use, outcomes in found.items() if outcomes}
    return Table(seen.versions, uses, seen.seen)
