"""`python -m harnesses` as a user runs it: exit status, words, and workers that die."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses import __main__ as command_line
from harnesses.cell.journal import read

_ROOT = Path(__file__).parents[2]
# A converter that does not end in TensorFlow: a process without it starts twice as fast.
_FAKES = "tests.judge.fake_converters"
_DTYPES = ("bfloat16", "float16", "float32", "float64")


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
        ("Dying", "crash", "the process died"),
        ("Hanging", "timeout", "ended after 5 s"),
    ],
)
def test_lost_worker_costs_one_cell(harnesses, fake, outcome, message):
    process, rows = harnesses(
        "run",
        f"--impl={_FAKES}:{fake}",
        *(f"--name=remat2_{dtype}" for dtype in _DTYPES),
        "--cell-timeout=5",
        "-n1",
    )
    lost = rows.pop("remat2_bfloat16")
    assert process.returncode != 0
    assert (lost["outcome"], lost["message"], lost["verdict"]) == (outcome, message, "red")
    assert {row["outcome"] for row in rows.values()} == {"pass"}
    assert set(rows) == {"remat2_float16", "remat2_float32", "remat2_float64"}
    command = (
        "python -m harnesses run --name remat2_bfloat16 --device cpu "
        f"--impl {_FAKES}:{fake} --ledger "
    )
    assert f"{outcome}: {message}; no limitation declares it" in process.stdout
    assert command in process.stdout
    # Not in the run's own process, which would end without a row.
    assert "--cell-timeout 5 -n 1\n" in process.stdout
    assert "4 cells asked for, 4 ran (3 pass, 1 " in process.stdout.splitlines()[-1]


_BEFORE_IT_STOPS = {"jit_float32": "pass"}
_THREE = ("--name=jit_float32", "--name=remat2_bfloat16", "--name=remat2_float16")


@pytest.mark.parametrize("way", ["interrupt", "terminate"])
def test_run_that_is_ended_counts_what_did_not_run(harnesses, monkeypatch, way):
    monkeypatch.setenv("STOP_THE_RUN", way)
    process, rows = harnesses("run", f"--impl={_FAKES}:Stopping", *_THREE, "-n0")
    assert process.returncode != 0
    assert {name: row["outcome"] for name, row in rows.items()} == _BEFORE_IT_STOPS
    *_, remark, last = process.stdout.splitlines()
    assert "go on with: " in remark
    assert remark.endswith("rows.jsonl --resume")
    assert last.startswith("3 cells asked for, 1 ran (1 pass), 0 red, 2 did not run; ")


def test_run_that_is_killed_goes_on_where_it_stopped(harnesses, monkeypatch):
    arguments = ("run", f"--impl={_FAKES}:Stopping", *_THREE, "-n1")
    monkeypatch.setenv("STOP_THE_RUN", "kill parent")
    process, rows = harnesses(*arguments)
    assert process.returncode == -signal.SIGKILL
    assert {name: row["outcome"] for name, row in rows.items()} == _BEFORE_IT_STOPS
    monkeypatch.delenv("STOP_THE_RUN")
    process, after = harnesses(*arguments, "--resume")
    assert process.returncode == 0, process.stdout + process.stderr
    last = process.stdout.splitlines()[-1]
    assert last.startswith("3 cells asked for, 3 ran (3 pass), 0 red, 0 did not run; ")
    assert after["jit_float32"] == rows["jit_float32"]  # with its seconds: it did not run again


def test_worker_that_has_grown_is_replaced_at_the_cost_of_no_cell(harnesses):
    names = [f"--name=remat2_{dtype}" for dtype in _DTYPES]
    # Every worker holds more than that, so each takes the one cell without which it would be idle.
    process, rows = harnesses(
        "run", f"--impl={_FAKES}:Right", *names, "--worker-memory=0.01", "-n1"
    )
    assert process.returncode == 0, process.stdout
    assert set(rows) == {f"remat2_{dtype}" for dtype in _DTYPES}
    assert {row["outcome"] for row in rows.values()} == {"pass"}
    summary = re.search(r"4 ran \(4 pass\).* ([\d.]+) s of processor time", process.stdout)
    assert summary
    assert float(summary[1]) > 4 * 1.0  # four processes imported JAX


def test_what_was_compiled_is_found_by_the_next_run(harnesses, tmp_path):
    """A fault is found as well, and a line that repeats a cell does not speak of the folder."""
    folder = tmp_path / "compiled"
    exp = ("run", "--name=exp_float32", "--mode=compiled", f"--compile-cache={folder}", "-n1")

    def kept():
        return {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}

    def run(*more):
        (tmp_path / "rows.jsonl").unlink(missing_ok=True)
        process, rows = harnesses(*exp, *more)
        return process, {c: rows["exp_float32"][c] for c in ("outcome", "ulps", "nodes")}

    process, row = run("--name=neg_float32")
    assert process.returncode == 0, process.stdout + process.stderr
    first = kept()
    assert {file.parts[0] for file in first} == {"jax", "tensorflow"}
    process, again = run("--name=neg_float32")
    assert process.returncode == 0, process.stdout + process.stderr
    assert again == row
    assert kept() == first
    # TensorFlow numbers functions, and the cells before must not change the number.
    process, again = run("--name=cos_float32")
    assert again == row
    more = kept() - first
    assert sorted(file.parts[0] for file in more) == ["jax", "tensorflow"]
    process, _ = run("--impl=tests.judge.fakes.shape", "--name=exp_bfloat16")
    assert process.returncode != 0
    assert " red, 0 did not run" in process.stdout
    assert "XLA_FLAGS" not in process.stdout


def test_a_fleet_without_ray(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("PYTHONPATH", "")
    assert command_line.main(["run", "--ray=local", "--name=jit_float32"]) == 2
    assert "--ray needs Ray, which is not installed." in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        (("--name=jit_float32", "--mode=eager"), "0"),
        (("--name=jit_float32", "--mode=eager", "-n", "1"), "1"),
        (("--name=jit_*",), str(os.cpu_count())),
        (("--name=jit_float32", "--lowering=on_jax"), "0"),  # pytest's hooks refuse it
    ],
)
def test_one_cell_takes_no_worker(arguments, workers):
    options = command_line._parser().parse_args(["run", *arguments])
    assert command_line._workers(options) == workers


def test_a_single_cell_starts_without_what_takes_a_second(tmp_path):
    """No list of every file of every distribution, no collections of garbage by pytest, and no
    sparse solvers.
    """
    forbidden = (
        "import importlib.metadata, runpy, sys\n"
        "def never(*args): raise AssertionError('this takes a second')\n"
        "importlib.metadata.packages_distributions = never\n"
        "import _pytest.unraisableexception as unraisable\n"
        "unraisable.gc_collect_harder = never\n"
        "sys.modules['jax.experimental.sparse'] = None\n"
        "runpy.run_module('harnesses', run_name='__main__', alter_sys=True)\n"
    )
    path = tmp_path / "rows.jsonl"
    arguments = ("run", "--name=jit_float32", "--mode=eager", f"--results={path}")
    process = subprocess.run(
        [sys.executable, "-c", forbidden, *arguments], cwd=_ROOT, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    (row,) = read(path)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", row["tensorflow"])
