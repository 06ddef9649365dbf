"""Counts of a run."""

import io
import json
import re

import pytest
from rich.console import Console

from reports import results
from reports.__main__ import main
from tests.reports.rows import failure, row

ROWS = [
    row(),
    row(mode="graph", seconds=0.03),
    failure(mode="compiled"),
    failure("eigh_float32", family="linalg", limitation="eigh-cpu", verdict="ok"),
    row("lu_float32", family="linalg", outcome="crash", verdict="red", seconds=None),
    row("qr_float32", family="linalg", outcome="mismatch", limitation="qr-sign", ulps=9.0),
]


def line_of(printed: str, *first: str) -> list[str]:
    """The cells of the line that begins with these."""
    lines = (re.split(r"\s{2,}", line.strip()) for line in printed.splitlines())
    return next(line for line in lines if line[: len(first)] == list(first))


def test_counts_by_family(reports, write_results):
    status, printed = reports("summary", "--results", write_results("cpu.jsonl", ROWS))
    assert status == 0
    head = ["family", "cells", "pass", "mismatch", "error", "crash", "limited", "red", "s a cell"]
    assert line_of(printed, "family") == head  # no cell timed out
    assert line_of(printed, "elementwise") == [
        *("elementwise", "3", "2", "0", "1", "0"),
        *("0 (0.0%)", "1", "0.0167"),
    ]
    assert line_of(printed, "linalg") == [
        *("linalg", "3", "0", "1", "1", "1"),
        *("2 (66.7%)", "1", "0.0067"),
    ]
    assert line_of(printed, "all") == [
        *("all", "6", "2", "1", "2", "1"),
        *("2 (33.3%)", "2", "0.0117"),
    ]


def test_counts_by_lowering_and_mode(reports, write_results):
    _, printed = reports("summary", "--results", write_results("cpu.jsonl", ROWS))
    assert "by device, lowering, mode" in printed
    assert line_of(printed, "cpu", "xla", "graph")[3:5] == ["1", "1"]


def test_the_grouping_can_be_chosen(reports, write_results):
    path = write_results("cpu.jsonl", ROWS)
    _, printed = reports("summary", "--results", path, "--by", "primitive,mode")
    assert "by primitive, mode" in printed
    assert "by family" not in printed
    assert line_of(printed, "qr")[:4] == ["qr", "eager", "1", "0"]


def test_an_unknown_grouping_is_refused_with_the_fields_there_are(reports, write_results):
    path = write_results("cpu.jsonl", ROWS)
    status, printed = reports("summary", "--results", path, "--by", "family,colour")
    assert status == 2
    assert "cannot group by colour: a row has harness, family, primitive" in printed


def test_versions_and_red_cells_are_named(reports, write_results):
    path = write_results("cpu.jsonl", ROWS)
    _, printed = reports("summary", "--results", path)
    assert "jax2tf on cpu: JAX 0.12.0, TensorFlow 2.21.0, Python 3.12.3" in printed
    assert f"2 red cells: python -m limitations check --results {path} lists them" in printed


@pytest.mark.parametrize(
    ("changes", "ledger", "words"),
    [
        ({"lowering": "call_tf"}, None, "--direction call_tf"),
        ({}, "my ledger", "--ledger 'my ledger'"),
    ],
)
def test_the_command_for_red_cells_is_of_that_run(reports, write_results, changes, ledger, words):
    path = write_results("cpu.jsonl", [row(**changes) | {"verdict": "red"}])
    _ask(path, cells=1, ledger=ledger)
    _, printed = reports("summary", "--results", path)
    assert (
        f"1 red cells: python -m limitations check --results {path} {words} lists them" in printed
    )


def test_cells_that_did_not_run_are_counted(reports, write_results):
    path = write_results("cpu.jsonl", [row()])
    _ask(path, cells=3)
    _, printed = reports("summary", "--results", path)
    assert "2 of 3 cells did not run; go on with: python -m harnesses run --resume" in printed
    _ask(path, cells=1)
    assert "did not run" not in reports("summary", "--results", path)[1]


def test_jax_alone_is_named(reports, write_results):
    rows = [row(lowering="jax", mode="jax", device="gpu", tensorflow=None, impl=None)]
    _, printed = reports("summary", "--results", write_results("gpu.jsonl", rows))
    assert "JAX itself on gpu: JAX 0.12.0, Python 3.12.3" in printed


def test_several_files_are_one_run(reports, write_results):
    first = write_results("a.jsonl", [row()])
    second = write_results("b.jsonl", [row(device="gpu")])
    _, printed = reports("summary", "--results", first, "--results", second)
    assert line_of(printed, "all")[:2] == ["all", "2"]


def test_without_results_the_command_says_how_to_make_them(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    status, printed = reports("summary")
    assert status == 2
    assert "there are no results in" in printed
    assert "python -m harnesses run" in printed


def test_a_narrow_terminal_shows_every_column(write_results):
    printed = io.StringIO()
    path = write_results("cpu.jsonl", ROWS)
    main(["summary", "--results", str(path)], Console(file=printed, width=80))
    assert "s a cell" in printed.getvalue()
    assert "…" not in printed.getvalue()


def _ask(path, cells, ledger=None):
    """Writes what the run of a results file was asked for."""
    request = {"command": "python -m harnesses run", "cells": cells, "asked": {"ledger": ledger}}
    path.with_suffix(".run.json").write_text(json.dumps(request))
