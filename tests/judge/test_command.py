"""`python -m harnesses` as a user runs it: exit status, words, and workers that die."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses.engine.results import read

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def harnesses(tmp_path):
    """Runs the command with an empty ledger; returns the process and the rows that it wrote."""

    def run(*arguments: str):
        path = tmp_path / "rows.jsonl"
        if arguments[0] == "run":
            arguments = (*arguments, f"--ledger={tmp_path}", f"--results={path}")
        process = subprocess.run(
            [sys.executable, "-m", "harnesses", *arguments],
            cwd=_ROOT,
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
        )
        rows = {row["harness"]: row for row in read(path)} if path.exists() else {}
        return process, rows

    return run


@pytest.mark.parametrize(
    ("fake", "outcome", "message"),
    [
        ("dying", "crash", "the process died"),
        ("hanging", "timeout", "ended after 5 s"),
    ],
)
def test_lost_worker_costs_one_cell(harnesses, fake, outcome, message):
    process, rows = harnesses(
        "run",
        f"--impl=tests.judge.fakes.{fake}",
        *(f"--name=remat2_{dtype}" for dtype in ("bfloat16", "float16", "float32", "float64")),
        "--mode=eager",
        "--cell-timeout=5",
        "-n1",
    )
    lost = rows.pop("remat2_bfloat16")
    assert process.returncode != 0
    assert (lost["outcome"], lost["message"], lost["verdict"]) == (outcome, message, "red")
    assert {row["outcome"] for row in rows.values()} == {"pass"}
    assert set(rows) == {"remat2_float16", "remat2_float32", "remat2_float64"}
    command = "--name remat2_bfloat16 --device cpu --mode eager --lowering xla -n 0"
    assert f"{outcome}: {message}; no limitation declares it" in process.stdout
    assert f"python -m harnesses run {command}" in process.stdout


def test_worker_that_has_grown_is_replaced_at_the_cost_of_no_cell(harnesses):
    dtypes = ("bfloat16", "float16", "float32", "float64")
    names = [f"--name=remat2_{dtype}" for dtype in dtypes]
    # Every worker holds more than that, so each takes the one cell without which it would be idle.
    process, rows = harnesses("run", *names, "--mode=eager", "--worker-memory=0.01", "-n1")
    assert process.returncode == 0, process.stdout
    assert set(rows) == {f"remat2_{dtype}" for dtype in dtypes}
    assert {row["outcome"] for row in rows.values()} == {"pass"}
    summary = re.search(r"4 cells \(4 pass\);.* ([\d.]+) s of processor time", process.stdout)
    assert summary
    assert float(summary[1]) > 4 * 1.0  # four processes imported JAX and TensorFlow


def test_empty_selection_is_a_failure(harnesses):
    process, _ = harnesses("run", "--name=no_such_harness", "-n0")
    assert process.returncode != 0
    assert "no cell was executed, so nothing is proved" in process.stdout


def test_implementation_that_does_not_exist(harnesses):
    process, _ = harnesses("run", "--impl=jax3tf.convert", "-n0")
    assert process.returncode != 0
    assert "--impl jax3tf.convert: there is no such module to judge" in process.stderr


def test_jax_alone_needs_no_tensorflow(harnesses):
    process, rows = harnesses("run", "--name=jit_float32", "--side=jax", "-n0")
    row = rows["jit_float32"]
    assert process.returncode == 0, process.stdout + process.stderr
    assert (row["mode"], row["lowering"], row["outcome"]) == ("jax", "jax", "pass")
    assert (row["tensorflow"], row["impl"]) == (None, None)
    imports = "import sys, harnesses.engine.plugin as _; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", imports], cwd=_ROOT, check=True)


def test_list_and_show(harnesses):
    listed, _ = harnesses("list", "--name=jit_float32")
    assert listed.stdout == "jit_float32\n"
    assert listed.stderr == "1 harnesses: calls 1\n"
    shown, _ = harnesses("show", "--name=jit_float32")
    assert "Normal(shape=(2, 3), dtype=dtype('float32'))" in shown.stdout
    assert "name=transpose" in shown.stdout
