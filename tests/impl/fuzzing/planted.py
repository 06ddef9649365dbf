"""Whether a property test finds a bug that was planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st


def is_found(
    fuzzed: st.SearchStrategy,
    prop: Callable[..., None],
    examples: int,
    errors: tuple[type[BaseException], ...],
) -> bool:
    """Whether the property raises one of `errors` for one of the examples, the same every time."""

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
    )
    @hypothesis.given(fuzzed)
    def run(example: Any) -> None:
        prop(*example)

    try:
        run()
    except errors:
        return True
    return False
