"""Fixtures of the judge's own tests."""

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnesses.engine.matrix import Matrix
from harnesses.engine.options import add_options


@pytest.fixture
def matrix(tmp_path: Path) -> Iterator[Callable[..., Matrix]]:
    """Makes a run against a fake, with the ledger that is given as text."""

    closing = contextlib.ExitStack()

    def make(fake: str, *arguments: str, ledger: str = "") -> Matrix:
        (tmp_path / "calls.toml").write_text(ledger)
        parser = argparse.ArgumentParser()
        add_options(parser.add_argument)
        options = parser.parse_args(
            [
                f"--impl=tests.judge.fakes.{fake}",
                f"--ledger={tmp_path}",
                f"--results={tmp_path / 'rows.jsonl'}",
                *arguments,
            ]
        )
        run = Matrix(options, "main", None)
        closing.callback(run.close)
        return run

    with closing:
        yield make
