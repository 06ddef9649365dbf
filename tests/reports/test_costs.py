"""What harnesses cost, made of the seconds in rows."""

import json

import pytest

from reports.costs import costs_of
from reports.results import ResultsError
from tests.reports.rows import row


def _rows(**seconds):
    return [row(f"{name}_float32", primitive=name, seconds=each) for name, each in seconds.items()]


def test_primitives_far_from_their_family_are_named(reports, write_results, tmp_path):
    rows = [*_rows(sin=1.0, cos=1.0, tan=0.1), row("tan_float64", primitive="tan", seconds=0.1)]
    rows.append(row("sin_float32", mode="graph", primitive="sin", seconds=1.0))
    into = tmp_path / "costs.json"
    status, printed = reports("costs", write_results("run.jsonl", rows), "--into", into)
    assert (status, printed.strip()) == (0, f"{into}: 1 families and 2 primitives")
    family = rows[0]["family"]
    # A harness costs what all of its cells do: 2, 1, 0.1 and 0.1 seconds.
    assert json.loads(into.read_text()) == {
        "families": {family: 0.8},
        "primitives": {"sin": 2.0, "tan": 0.1},
    }


def test_rows_without_seconds_say_nothing():
    with pytest.raises(ResultsError, match="how long"):
        costs_of(_rows(sin=None))
