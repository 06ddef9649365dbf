"""The table of converters beside each other: what is counted, and what is refused."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from harnesses.cell.journal import Journal
from reports import kept_rows, rendering
from reports.__main__ import main
from reports.beside import gather
from tests.judge.rows import error, harness, mismatch, passing

SIN, COS, SORT = (harness(name, "float32") for name in ("sin", "cos", "sort"))


@pytest.fixture
def run(tmp_path):
    """Writes the rows of a run; returns NAME=FILE."""

    def make(name, *rows, **changes):
        path = tmp_path / f"{name}.jsonl"
        journal = Journal(path)
        journal.create({"command": f"X=1 python -m harnesses run --results {path} --sample 3"})
        for row in rows:
            journal.append({**row, **changes})
        journal.close()
        return f"{name}={path}"

    return make


def beside(tmp_path, *runs):
    console = Console(record=True, width=200)
    status = main(["beside", *runs, "--into", str(tmp_path / "tables")], console)
    return status, console.export_text()


def test_shares_of_the_harnesses_that_all_have(tmp_path, run):
    ours = run("ours", passing(SIN), passing(COS), passing(SORT))
    jax_lacks = error(SORT, phase="trace")
    other = run("other", passing(SIN), error(COS), jax_lacks, tensorflow=None, impl_versions="o 1")
    assert beside(tmp_path, ours, other)[0] == 0
    figures = json.loads((tmp_path / "tables/beside.json").read_text())
    assert figures["families"] == {
        "elementwise": {"harnesses": 2, "passed": {"ours": 2, "other": 1}}
    }
    assert figures["runs"]["ours"] == {
        "made_of": "TensorFlow 2.21.0",
        "python": "3.12.1",
        "date": "unknown",
        "commit": "unknown",
        "cells": 3,
        "command": "python -m harnesses run --sample 3",
        "failures": [],
    }
    assert figures["runs"]["other"]["failures"] == [["TypeError: no kernel", 1]]
    text = (tmp_path / "tables/beside.md").read_text()
    assert "| elementwise | 2 | 100.0% | 50.0% |" in text
    assert "| all | 2 | 100.0% | 50.0% |" in text


def test_a_harness_passes_in_all_of_its_modes_or_not(tmp_path, run):
    run_ = run("ours", passing(SIN, "eager"), error(SIN, "graph"))
    beside(tmp_path, run_)
    figures = json.loads((tmp_path / "tables/beside.json").read_text())
    assert figures["families"]["elementwise"]["passed"] == {"ours": 0}


def test_runs_that_cannot_stand_beside_each_other(tmp_path, run):
    ours, newer = run("ours", passing(SIN)), run("newer", passing(SIN), jax="0.13.0")
    status, said = beside(tmp_path, ours, newer)
    assert status == 2
    assert "the runs are of JAX 0.12.0 and 0.13.0; run them on one version" in said
    status, said = beside(tmp_path, ours, run("cos", passing(COS)))
    assert status == 2
    assert "no harness in common: ask each for the same --sample" in said
    status, said = beside(tmp_path, "ours.jsonl")
    assert status == 2
    assert "'ours.jsonl' is not NAME=FILE" in said


def test_failures_are_told_without_places(tmp_path, run):
    said = "error at /home/me/f.py:3:17: no rule for primitive 'sin' of jax2tf, 12 of 13"
    beside(tmp_path, run("ours", error(SIN, message=said)))
    figures = json.loads((tmp_path / "tables/beside.json").read_text())
    words = "TypeError: error at ... no rule for primitive ... of jax2tf, ... of ..."
    assert figures["runs"]["ours"]["failures"] == [[words, 1]]


def test_the_table_says_whether_the_runs_are_whole(tmp_path, run):
    beside(tmp_path, run("ours", passing(SIN)))
    assert "The runs are samples" in (tmp_path / "tables/beside.md").read_text()
    whole = kept_rows.Run("python -m harnesses run --dtype float32", [passing(SIN)])
    assert gather({"ours": whole})["whole"]


def test_the_rows_are_kept_and_give_the_figures_again(tmp_path, run):
    far = mismatch(SIN, 1234.5)
    beside(tmp_path, run("ours", passing(COS), far), run("other", passing(SIN), error(COS)))
    first = (tmp_path / "tables/beside.md").read_text()
    kept = kept_rows.read(tmp_path / "tables/beside.rows.xz")
    assert [row["harness"] for row in kept["ours"].rows] == ["cos_float32", "sin_float32"]
    assert [row["ulps"] for row in kept["ours"].rows] == [0.0, 1230.0]
    assert kept["other"].rows[1]["message"] == "no kernel"
    assert beside(tmp_path)[0] == 0
    assert (tmp_path / "tables/beside.md").read_text() == first
    assert beside(tmp_path, "--check")[0] == 0


def test_nothing_to_make_a_table_of(tmp_path):
    status, said = beside(tmp_path)
    assert (status, "there are no figures yet" in said) == (2, True)


def test_the_committed_table_comes_from_rows_of_whole_runs():
    assert main(["beside", "--check"], Console()) == 0
    kept = kept_rows.read(rendering.TABLES / "beside.rows.xz")
    assert gather(kept)["whole"]
    assert len({frozenset(row["harness"] for row in run.rows) for run in kept.values()}) == 1
