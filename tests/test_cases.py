"""The part of the cases that a run with `--cases 1/N` takes."""

import argparse
import itertools

import pytest

from tests.cases import other_cases, share_of, shuffled, some_cases

MANY = [f"tests/impl/test_dims.py::test_values[{case}]" for case in range(90)]
ONE = "tests/impl/test_dims.py::test_one"
CELLS = [f"harnesses/engine/test_matrix.py::test_cell[{case}]" for case in range(9)]


def test_a_third_of_the_cases_of_a_test_and_all_cells():
    kept, left_out = some_cases([*MANY, ONE, *CELLS], 3)
    assert {*kept, *left_out} == {*MANY, ONE, *CELLS}
    assert len(kept) + len(left_out) == 100
    assert {ONE, *CELLS} <= set(kept)
    assert 20 <= len(set(kept) & set(MANY)) <= 40


def test_every_test_keeps_a_case():
    for share in (1, 2, 1000):
        kept, _ = some_cases([*MANY[:2], ONE], share)
        assert {name.partition("[")[0] for name in kept} == {MANY[0].partition("[")[0], ONE}


def test_two_runs_have_every_case_between_them():
    names = [*MANY, ONE, *CELLS]
    first, _ = some_cases(names, 3)
    second, left_out = other_cases(names, 3)
    assert {*first, *second} == set(names)
    assert set(first) & set(second) == {ONE, *CELLS}
    assert left_out == sorted(set(first) - {ONE, *CELLS})


def test_cases_of_one_run_are_kept_whole_in_it():
    names = [*MANY, ONE]
    assert other_cases(names, 3, whole=MANY) == (names, [])


def test_a_test_is_in_both_runs_if_one_has_all_its_cases():
    assert other_cases(MANY[:1], 1000)[0] == MANY[:1]


def test_a_new_case_changes_none_of_the_others():
    before, _ = some_cases(MANY, 3)
    after, _ = some_cases([MANY[0].replace("[0]", "[new]"), *MANY], 3)
    assert set(after) & set(MANY) == set(before)


def test_every_case_is_kept_in_its_order():
    assert some_cases([*CELLS, ONE, *MANY], 1) == ([*CELLS, ONE, *MANY], [])


@pytest.mark.parametrize("text", ["", "3", "1/0", "1/-2", "2/3", "1/two"])
def test_what_is_no_share(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected 1/N"):
        share_of(text)
    assert share_of("1/3") == 3


def test_another_order_keeps_files_together_and_cells_last():
    other = [f"tests/judge/test_cells.py::test_{name}" for name in "abcdefgh"]
    names = [*MANY, *CELLS, *other]
    first, again, second = shuffled(names, 1), shuffled(names, 1), shuffled(names, 2)
    assert first == again != second
    assert sorted(first) == sorted(names)
    assert first[-len(CELLS) :] == CELLS
    places = [name.partition("::")[0] for name in first]
    assert sum(a != b for a, b in itertools.pairwise(places)) == 2
    assert [name for name in first if name in MANY] != MANY
