"""The table of modes."""

import pytest

from harnesses.cell import modes, names
from harnesses.cell.modes import MODES
from harnesses.engine.options import _MODES as ASKABLE
from harnesses.engine.transformations import TRANSFORMATIONS


def test_no_two_entries_are_of_one_mode():
    assert len(MODES) == len(modes._ALL)


@pytest.mark.parametrize("entry", modes._ALL, ids=lambda mode: f"{mode.direction}-{mode.name}")
def test_each_mode_has_a_judge_that_runs_cells(entry):
    assert callable(entry.judge_class().run)
    assert entry.says


def test_every_mode_that_can_be_asked_for_is_in_the_table():
    known = {mode.name for mode in modes._ALL} | set(names.GROUPS)
    sides = {mode.name for mode in modes._ALL if mode.group == modes.SIDE}
    assert set(ASKABLE) == known - sides


def test_each_transformation_is_a_mode():
    assert set(TRANSFORMATIONS) == set(names.UNDER_MODES)
