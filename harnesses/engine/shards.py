"""Parts of a run that take about as long as each other, the same ones on every machine.

What a harness costs stands in costs.json, which `python -m reports costs` makes of the rows of
runs: the seconds of an average harness of each family, and of primitives that are far from it.
"""

import functools
import heapq
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from harnesses.harness import Harness

FILE = Path(__file__).with_name("costs.json")
# What a harness of a new family costs, in seconds.
_UNKNOWN = 0.1

Costs = Mapping[str, Mapping[str, float]]


def shard(
    harnesses: Sequence[Harness], index: int, count: int, costs: Costs | None = None
) -> list[Harness]:
    """Part `index`, from 1, of `count` parts of the harnesses, in their order.

    The most expensive harness that is left goes to the part that costs least so far.
    """
    known = _committed() if costs is None else costs
    loads = [(0.0, part) for part in range(1, count + 1)]
    chosen = set()
    by_cost = sorted((-cost_of(harness, known), harness.name) for harness in harnesses)
    for negative_cost, name in by_cost:
        load, part = loads[0]
        heapq.heapreplace(loads, (load - negative_cost, part))
        if part == index:
            chosen.add(name)
    return [harness for harness in harnesses if harness.name in chosen]


def cost_of(harness: Harness, costs: Costs | None = None) -> float:
    """The seconds that a harness takes, of those of its primitive or else of its family."""
    known = _committed() if costs is None else costs
    family = known["families"].get(harness.family, _UNKNOWN)
    return known["primitives"].get(harness.primitive, family)


@functools.cache
def _committed() -> Costs:
    return json.loads(FILE.read_text(encoding="utf-8"))
