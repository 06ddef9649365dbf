"""Which runs prove the tables of the other directions, and what came since."""

import json

import numpy as np
import pytest

from harnesses.harness import CALL_TF
from harnesses.harness.definition import Harness
from reports import call_tf, directions
from reports.results import ResultsError
from tests.reports.rows import row

MODES = ("op_by_op", "jit", "grad", "jvp", "vmap")


def harness(op: str) -> Harness:
    fields = (CALL_TF, op, f"{op}_float32", abs, [], np.dtype("float32"), {}, 4, "array", True)
    return Harness(*fields, frozenset(), None, "here:1")


HARNESSES = [harness("tf.sin"), harness("tf.cos")]


def run_of(*harnesses: Harness, **changed) -> list[dict]:
    return [
        row(h.name, lowering=CALL_TF, mode=mode, **changed) for h in harnesses for mode in MODES
    ]


def test_a_run_is_counted_of_the_cells_that_there_are():
    rows = run_of(HARNESSES[0], date="2026-11-28", commit="7d40e7c")
    rows[0] |= {"outcome": "error", "limitation": "call_tf#1"}
    (run,) = directions.with_rows([], rows, HARNESSES)
    seen = {key: run[key] for key in ("cells", "of", "passed", "limited", "red")}
    assert seen == {"cells": 5, "of": 10, "passed": 4, "limited": 1, "red": 0}
    assert (run["date"], run["commit"]) == ("2026-11-28", "7d40e7c")


def test_a_run_takes_the_place_of_one_on_the_same_versions():
    first = directions.with_rows([], run_of(HARNESSES[0]), HARNESSES)
    second = directions.with_rows(first, run_of(*HARNESSES), HARNESSES)
    third = directions.with_rows(second, run_of(*HARNESSES, jax="0.10.2"), HARNESSES)
    assert [(run["jax"], run["cells"]) for run in third] == [("0.10.2", 10), ("0.12.0", 10)]


def test_cells_that_came_since_are_counted():
    runs = directions.with_rows([], run_of(HARNESSES[0]), HARNESSES[:1])
    text = call_tf.table_files(HARNESSES, [], runs)[call_tf.TABLE]
    assert "| unknown | unknown | 5 of 5 (+5 since) | 5 | 0 | 0 |" in text


def test_a_table_without_a_run_says_so():
    files = call_tf.table_files(HARNESSES, [])
    assert "No run is kept." in files[call_tf.TABLE]
    assert list(files) == [call_tf.TABLE]


def test_rows_of_another_direction_are_refused():
    with pytest.raises(ResultsError, match="hold no cell of the direction call_tf"):
        directions.with_rows([], [row()], HARNESSES)


def test_the_command_keeps_a_run(reports, tmp_path, write_results, monkeypatch):
    monkeypatch.setattr(call_tf, "_harnesses", lambda: HARNESSES)
    monkeypatch.setattr(call_tf, "load", lambda direction: [])
    path = write_results("run.jsonl", run_of(*HARNESSES))
    into = tmp_path / "tables"
    status, printed = reports("call_tf", "--results", path, "--into", into)
    assert status == 0
    assert f"wrote {into / 'call_tf.json'}" in printed
    assert json.loads((into / "call_tf.json").read_text())["runs"][0]["cells"] == 10
    assert reports("call_tf", "--check", "--into", into) == (0, "")


def test_the_projects_own_table_takes_the_latest_whole_run(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(call_tf, "_harnesses", lambda: HARNESSES)
    monkeypatch.setattr(call_tf, "load", lambda direction: [])
    monkeypatch.setattr(directions.rendering, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(directions.results, "RESULTS", tmp_path)
    lines = [json.dumps(row) + "\n" for row in run_of(*HARNESSES)]
    (tmp_path / "cpu-call_tf.jsonl").write_text("".join(lines))
    assert reports("call_tf", "--into", tmp_path / "tables")[0] == 0
    assert directions.kept_runs("call_tf", tmp_path / "tables")[0]["cells"] == 10
    assert reports("call_tf", "--into", tmp_path / "other")[0] == 0
    assert directions.kept_runs("call_tf", tmp_path / "other") == []
