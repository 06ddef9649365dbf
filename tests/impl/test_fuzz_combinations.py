"""Random programs as users write them, and what users do with them: TensorFlow gives what JAX does.

Programs mix dtypes, trees, captured arrays, keys, static arguments and nested transformations;
uses mix tapes, graphs, SavedModels, modules, threads, calls from JAX, op sets and 64-bit types.
"""

from __future__ import annotations

import itertools

import hypothesis
import jax
import pytest

from tests.impl.fuzzing.uses import TOGETHER, USES, combinations

# The orders share what the profile allows. What counts is a program in one use, a tenth of a second
# of them: so many of these are drawn together.
EXAMPLES = hypothesis.settings().max_examples // len(USES) // TOGETHER
_CALLS = itertools.count(1)


def check(combination) -> None:
    # JAX keeps every program that it compiled.
    if next(_CALLS) % 200 == 0:
        jax.clear_caches()
    combination.check()


@pytest.mark.fuzz
@pytest.mark.parametrize("order", USES)
@hypothesis.settings(max_examples=EXAMPLES, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(data=hypothesis.strategies.data())
def test_a_combination_gives_what_jax_gives(order, data):
    check(data.draw(combinations(order)))
