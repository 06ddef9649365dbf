"""How long the tests of each file took, which shows where a run of all tests spends its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def seconds_by_file(reports: Iterable[pytest.TestReport]) -> Counter[str]:
    """The seconds that setup, tests and teardown of each file took, over all workers."""
    seconds: Counter[str] = Counter()
    for report in reports:
        seconds[report.nodeid.partition("::")[0]] += report.duration
    return seconds


def slowest(seconds: Counter[str], number: int) -> list[str]:
    """A line for each of the slowest files: seconds, share of all, and the file's path."""
    total = seconds.total()
    return [f"{s:8.1f} s {s / total:6.1%}  {file}" for file, s in seconds.most_common(number)]
