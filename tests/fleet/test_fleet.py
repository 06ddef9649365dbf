"""Runs on a local Ray cluster of two workers, some of which die."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses.cell import journal

_ROOT = Path(__file__).parents[2]
_DTYPES = ("bfloat16", "float16", "float32", "float64")
_NAMES = [f"--name=remat2_{dtype}" for dtype in _DTYPES]


@pytest.fixture
def fleet(tmp_path):
    """Runs four cells of a fake with an empty ledger; returns the process and the rows."""

    def run(impl, *arguments, **environment):
        path = tmp_path / "rows.jsonl"
        words = ["run", "--ray=local", "-n2", *_NAMES, f"--results={path}"]
        words += [f"--impl=tests.judge.{impl}", f"--ledger={tmp_path}", *arguments]
        process = subprocess.run(
            [sys.executable, "-m", "harnesses", *words],
            cwd=_ROOT,
            env={**os.environ, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
        )
        return process, {row["harness"]: row for row in journal.read(path)}

    return run


def test_a_worker_that_is_killed_costs_nothing(fleet, tmp_path):
    note = tmp_path / "preempted"
    process, rows = fleet("fakes.preempted", "--mode=eager", PREEMPTED=str(note))
    assert note.exists()
    assert process.returncode == 0, process.stdout + process.stderr
    assert {name: row["outcome"] for name, row in rows.items()} == {
        f"remat2_{dtype}": "pass" for dtype in _DTYPES
    }
    last = process.stdout.splitlines()[-1]
    assert last.startswith("4 cells asked for, 4 ran (4 pass), 0 red, 0 did not run; ")


@pytest.mark.parametrize(
    ("fake", "outcome", "message"),
    [("Dying", "crash", "the process died"), ("Hanging", "timeout", "ended after 5 s")],
)
def test_a_cell_that_ends_its_worker_twice_is_at_fault(fleet, fake, outcome, message):
    process, rows = fleet(f"fake_converters:{fake}", "--cell-timeout=5")
    assert process.returncode == 1, process.stdout + process.stderr
    assert len(rows) == 4, process.stdout + process.stderr
    lost = rows.pop("remat2_bfloat16")
    assert (lost["outcome"], lost["message"], lost["verdict"]) == (outcome, message, "red")
    assert {row["outcome"] for row in rows.values()} == {"pass"}
    assert f"{outcome}: {message}; no limitation declares it" in process.stdout
    assert f"--impl tests.judge.fake_converters:{fake}" in process.stdout


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_an_address_without_a_cluster(address):
    words = ["run", f"--ray={address}", "--name=remat2_float32", "--mode=eager"]
    process = subprocess.run(
        [sys.executable, "-m", "harnesses", *words], cwd=_ROOT, capture_output=True, text=True
    )
    assert process.returncode == 2
    assert f"there is no Ray cluster at '{address}': " in process.stdout
    assert "`ray start --head`, or give --ray local" in process.stdout.replace("\n", " ")
