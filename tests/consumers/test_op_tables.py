"""The tables of ops that engines take say what the engines do: a sample of the uses, tried again.

`python -m harnesses probe TARGET --check` tries all.
"""

from __future__ import annotations

import random

import pytest

from harnesses.engine import consumers
from harnesses.probes import table as tables
from harnesses.probes.catalogue import catalogue
from harnesses.probes.names import DTYPES, ENGINES
from harnesses.probes.probing import Ask, chosen, probed

HERE = [name for name in ENGINES if name != "coreml"]
SAMPLE = 40


def sample(target: str) -> list[Ask]:
    return random.Random(target).sample(chosen(target, [], []), SAMPLE)


@pytest.mark.parametrize("target", HERE)
def test_sample_of_uses_ends_as_the_table_says(target: str) -> None:
    if target in consumers.NEEDS and (lack := consumers.lack(target)) is not None:
        pytest.skip(f"{target} is not installed: {lack}")
    seen = probed(target, sample(target), workers=1)
    known = tables.read(tables.FOLDER / f"{target}.json")
    assert seen.uses
    assert list(tables.differences(known.uses, seen.uses)) == []


@pytest.mark.parametrize("target", list(ENGINES))
def test_table_is_of_the_whole_catalogue(target: str) -> None:
    """Each use that TensorFlow has a kernel for, and no other."""
    known = tables.read(tables.FOLDER / f"{target}.json").uses
    own = tables.read(tables.FOLDER / "tensorflow.json").uses
    assert own.keys() == catalogue().keys()
    for use, outcomes in own.items():
        tried = set(outcomes) & set(DTYPES.get(target, outcomes))
        assert set(known.get(use, ())) == tried <= set(catalogue()[use].dtypes)
