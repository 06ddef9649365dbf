"""Bugs that the code once had are found by random combinations when they are planted back."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from jax2tf import callables, gradients, identity
from jax2tf.lowering import rules
from tests.impl.fuzzing.planted import is_found
from tests.impl.fuzzing.uses import Combination, combinations

EXAMPLES = 300


class Found(Exception):
    """An example failed, in whatever way."""


def gives_what_jax_gives(combination: Combination) -> None:
    # What Hypothesis itself raises is not found.
    try:
        combination.check()
    except Exception as error:
        raise Found from error


def views_by_address(patch):
    """The bug of captured views: one variable for all that begins at one address."""
    patch(identity.SameElements, "of", lambda array: array.__array_interface__["data"][0])


def rules_by_name(patch):
    by_name = {(p.name, op_set): rule for (p, op_set), rule in rules._RULES.items()}
    patch(rules, "find", lambda primitive, op_set: by_name.get((primitive.name, op_set)))


def statics_ignored(patch):
    """All static values are one for the cache of traces."""
    patch(callables.Static, "__eq__", lambda self, other: isinstance(other, callables.Static))
    patch(callables.Static, "__hash__", lambda self: 0)


def no_tangents(patch):
    """A ForwardAccumulator in a graph goes unseen."""
    patch(gradients.compat, "accumulator_watches", lambda tensors: False)


@pytest.mark.parametrize(
    ("plant", "order", "use"),
    [
        (views_by_address, "calls", "Module"),
        (rules_by_name, "calls", "call"),
        (statics_ignored, "calls", "call"),
        (no_tangents, "second order", "forward accumulator"),
    ],
)
def test_a_planted_bug_is_found(plant, order, use, monkeypatch):
    plant(monkeypatch.setattr)
    fuzzed = st.tuples(combinations(order, use))
    assert is_found(fuzzed, gives_what_jax_gives, EXAMPLES, (Found,))
