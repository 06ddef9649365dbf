"""Fixtures of the judge's own tests."""

import argparse
import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesses.engine.matrix import Matrix
from harnesses.engine.options import add_options

# A file that no other run of the test has.
NUMBERED = Path("NUMBERED")


@pytest.fixture
def parsed() -> Callable[..., argparse.Namespace]:
    """The options of a run as the command line gives them."""
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument)
    return lambda *arguments: parser.parse_args(arguments)


@pytest.fixture
def matrix(tmp_path: Path, parsed: Callable[..., Any]) -> Iterator[Callable[..., Matrix]]:
    """Makes a run against a fake, with the ledger that is given as text and a file of its own."""

    closing = contextlib.ExitStack()
    numbers = itertools.count()

    def make(
        fake: str, *arguments: str, ledger: str = "", results: Path | None = NUMBERED
    ) -> Matrix:
        (tmp_path / "calls.toml").write_text(ledger)
        if results is NUMBERED:
            results = tmp_path / f"rows{next(numbers)}.jsonl"
        options = parsed(
            f"--impl=tests.judge.fakes.{fake}",
            f"--ledger={tmp_path}",
            *([] if results is None else [f"--results={results}"]),
            *arguments,
        )
        run = Matrix(options, "main")
        closing.callback(run.close)
        return run

    with closing:
        yield make
