"""Which items are chosen against a fault, by what was recorded of them."""

import json

import pytest

from reports.mutation.items import Reach
from reports.mutation.mutants import Mutant, source_of

FAULT = Mutant("a.py", "f", "AddNot", 1, "if x:", 0, 0)


@pytest.fixture
def reach(tmp_path):
    """Makes a Reach of names of items, the seconds they take and the lines they reach."""

    def of(recorded):
        path = tmp_path / "reach.jsonl"
        rows = [
            {"item": name, "seconds": seconds, "lines": lines} for name, seconds, lines in recorded
        ]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return Reach(path)

    return of


def names(items):
    return [item.name for item in items]


AT_LINE = ["a.py", "f", "if x:"]
IN_FUNCTION = ["a.py", "f", "return x"]
ELSEWHERE = ["a.py", "g", "return y"]


def test_the_nearest_are_chosen_and_of_one_kind(reach):
    found = reach(
        [
            ("cell in_function", 1, [IN_FUNCTION, ["b.py", "f", "if x:"]]),
            ("cell in_module", 1, [ELSEWHERE]),
            ("cell in_another", 1, [["b.py", "f", "if x:"]]),
            ("test t.py::at_line", 1, [AT_LINE, IN_FUNCTION]),
            ("test t.py::in_function", 1, [IN_FUNCTION]),
            ("test u.py::in_module", 1, [ELSEWHERE]),
        ]
    )
    assert names(found.reaching(FAULT, file="t.py")) == ["test t.py::at_line"]
    assert names(found.reaching(FAULT, file="u.py")) == ["test u.py::in_module"]
    assert names(found.reaching(FAULT, file=None)) == ["cell in_function"]
    assert found.reaching(FAULT, file=None, near=True) == []
    assert names(found.of_module(FAULT)) == ["cell in_function", "cell in_module"]


def test_the_first_reach_most_in_least_time(reach):
    found = reach(
        [
            ("cell little", 1, [AT_LINE]),
            ("cell much", 1, [AT_LINE, IN_FUNCTION]),
            ("cell long", 9, [AT_LINE, IN_FUNCTION, ["b.py", "f", "if x:"]]),
            ("cell other", 4, [AT_LINE, ELSEWHERE]),
        ]
    )
    order = ["much", "other", "little", "long"]
    assert names(found.reaching(FAULT, file=None)) == [f"cell {name}" for name in order]


def test_what_a_module_names_is_reached_where_it_is_used(reach):
    source = source_of("primitives.py").splitlines()
    line, before = next((i, t) for i, t in enumerate(source, 1) if t.startswith("CALLBACKS = "))
    fault = Mutant("primitives.py", "", "ReplaceBinaryOperator_BitOr_BitAnd", line, before, 0, 0)
    found = reach(
        [
            ("cell of_the_module", 1, [["primitives.py", "named", "return found"]]),
            ("cell of_a_longer_name", 1, [["b.py", "f", "if x in DEBUG_CALLBACKS:"]]),
            ("cell of_its_use", 1, [["b.py", "f", "if x in CALLBACKS:"]]),
        ]
    )
    assert names(found.reaching(fault, file=None)) == ["cell of_its_use"]


def test_what_was_recorded_last_counts(reach):
    found = reach([("test t.py::t", 1, [AT_LINE]), ("test t.py::t", 2, [ELSEWHERE])])
    assert found.reaching(FAULT, file="t.py", near=True) == []
    assert names(found.reaching(FAULT, file="t.py")) == ["test t.py::t"]
