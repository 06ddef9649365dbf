"""The times of files are sums over their tests, and over setup and teardown of each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.file_times import seconds_by_file, slowest


def report(nodeid: str, when: str, duration: float) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, when, duration=duration)


def test_setup_and_teardown_count() -> None:
    reports = [
        report("a.py::test_x[1]", "setup", 1.0),
        report("a.py::test_x[1]", "call", 2.0),
        report("a.py::TestY::test_z", "teardown", 4.0),
        report("b.py::test_x", "call", 3.0),
    ]
    assert seconds_by_file(reports) == {"a.py": 7.0, "b.py": 3.0}


def test_the_slowest_comes_first() -> None:
    lines = slowest(Counter({"b.py": 1.0, "a.py": 3.0, "c.py": 0.5}), 2)
    assert [line.split() for line in lines] == [
        ["3.0", "s", "66.7%", "a.py"],
        ["1.0", "s", "22.2%", "b.py"],
    ]


def test_nothing_ran() -> None:
    assert slowest(Counter(), 3) == []
