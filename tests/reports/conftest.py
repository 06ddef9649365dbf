"""Made-up runs for the reports to report on."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from reports.__main__ import main


@pytest.fixture
def write_results(tmp_path: Path):
    """`write_results("old.jsonl", rows)` writes a results file and returns its path."""

    def write(name: str, rows: list[dict]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def reports():
    """`reports("summary", ...)` runs the command; returns its exit status and what it printed."""

    def run(*arguments) -> tuple[int, str]:
        printed = io.StringIO()
        status = main([str(a) for a in arguments], Console(file=printed, width=200))
        return status, printed.getvalue()

    return run
