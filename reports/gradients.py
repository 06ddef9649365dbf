"""The table of gradients, gradients.md: what TensorFlow does not differentiate as JAX does.

It is made of those limitations that speak of gradients, and of what full runs in the modes of
gradients saw, which proved.json keeps: by mode and versions, and by family for the latest of them.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harnesses.engine.cells import GRADIENT, GRADIENT_MODES, SAVED_GRADIENT
from harnesses.harness import Harness
from limitations.ledger import Limitation
from reports.results import Row
from reports.summary import Tally

TABLE = "gradients.md"

_MODES = frozenset({GRADIENT, *GRADIENT_MODES, SAVED_GRADIENT})


def is_about_gradients(limitation: Limitation) -> bool:
    """Whether a limitation speaks of gradients alone, so that no other table lists it."""
    return bool(limitation.modes) and _MODES.issuperset(limitation.modes)


def speaks_of_gradients(limitation: Limitation) -> bool:
    """Whether a limitation speaks of gradients, among others."""
    return not _MODES.isdisjoint(limitation.modes)


def runs_of(rows: Sequence[Row], harnesses: Sequence[Harness]) -> Iterable[dict[str, Any]]:
    """What the rows prove: a run for each device, lowering and mode that is whole and not red."""
    groups: dict[tuple[str, ...], list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row["mode"] in GRADIENT_MODES:
            groups[row["device"], row["lowering"], row["mode"]].append(row)
    for (device, lowering, mode), members in sorted(groups.items()):
        asked = {harness.name for harness in harnesses if harness.runs_on(members[0]["jax"])}
        if asked <= {row["harness"] for row in members} and not Tally(members).red:
            yield _run_of(device, lowering, mode, members)


def _run_of(device: str, lowering: str, mode: str, rows: Sequence[Row]) -> dict[str, Any]:
    by_family: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        by_family[row["family"]].append(row)
    return {
        "device": device,
        "lowering": lowering,
        "mode": mode,
        **{name: rows[0][name] for name in ("impl", "jax", "tensorflow", "python")},
        **_counts(rows),
        "families": {family: _counts(by_family[family]) for family in sorted(by_family)},
    }


def _counts(rows: Sequence[Row]) -> Mapping[str, int]:
    tally = Tally(rows)
    applicable = len(rows) - tally.outcomes["inapplicable"]
    return {"harnesses": len(rows), "applicable": applicable, "passed": tally.outcomes["pass"]}
