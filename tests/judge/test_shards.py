"""Shards: all of a run, in parts that cost the same."""

import pytest

from harnesses.engine import shards
from harnesses.harness import all_harnesses
from tests.judge.rows import harness

COSTS = {"families": {"elementwise": 1.0}, "primitives": {"sin": 4.0}}
HARNESSES = [harness(name, "float32") for name in ("cos", "sin", "tan", "exp", "log")]


def _names(index, count):
    return [h.primitive for h in shards.shard(HARNESSES, index, count, COSTS)]


def test_what_costs_as_much_as_all_others_is_alone():
    assert (_names(1, 2), _names(2, 2)) == (["sin"], ["cos", "tan", "exp", "log"])
    assert _names(1, 1) == [h.primitive for h in HARNESSES]
    assert [_names(index, 6) for index in range(1, 7)].count([]) == 1


def test_a_primitive_costs_what_its_family_does_unless_it_is_named():
    sin, cos = harness("sin", "float32"), harness("cos", "float32")
    assert (shards.cost_of(sin, COSTS), shards.cost_of(cos, COSTS)) == (4.0, 1.0)
    assert shards.cost_of(cos, {"families": {}, "primitives": {}}) > 0


@pytest.mark.parametrize("count", [2, 5])
def test_committed_costs_divide_the_database(count):
    every = all_harnesses()
    parts = [shards.shard(every, index, count) for index in range(1, count + 1)]
    assert sorted(h.name for part in parts for h in part) == sorted(h.name for h in every)
    costs = [sum(map(shards.cost_of, part)) for part in parts]
    assert max(costs) < 1.01 * min(costs)
    # A part does not depend on the order in which harnesses are defined.
    turned = shards.shard(every[::-1], 1, count)
    assert {h.name for h in turned} == {h.name for h in parts[0]}


def test_every_family_has_a_cost():
    assert {h.family for h in all_harnesses()} == set(shards._committed()["families"])
