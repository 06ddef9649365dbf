"""The shards of a run as one file: what is counted as missing, and what is refused."""

import json

import pytest

from harnesses.cell import journal
from tests.reports.rows import failure, row

NAMES = ("sin_float32", "cos_float32", "tan_float32", "exp_float32")


@pytest.fixture
def write_shard(write_results):
    """`write_shard("1/2", rows)` writes the file of a shard and what it was asked for."""

    def write(shard, rows, name=None, cells=None, **changed):
        path = write_results(name or f"shard{shard[0]}.jsonl", rows)
        request = {
            "command": f"XLA_FLAGS='--a --b' python -m harnesses run --shard {shard} --dtype int8",
            "cells": len(rows) if cells is None else cells,
            "cells_of_all_shards": 4,
            "asked": {"shard": shard, "dtype": ["int8"]},
            "versions": {"jax": "0.12.0", "processor": "avx512f"},
            "code": {"the judge": "1f2e"},
        }
        for place, value in changed.items():
            part, _, key = place.partition("__")
            request[part] = request[part] | {key: value} if key else value
        path.with_suffix(".run.json").write_text(json.dumps(request))
        return path

    return write


def rows_of(*names):
    return [row(name) for name in names]


def test_all_shards_are_the_whole(reports, write_shard, tmp_path):
    second = write_shard("2/2", rows_of(*NAMES[2:]))
    first = write_shard("1/2", rows_of(*NAMES[:2]), versions__processor="")
    into = tmp_path / "whole" / "all.jsonl"
    status, printed = reports("merge", second, first, "--into", into)
    assert status == 0
    assert printed.splitlines() == [
        f"{into}: 2 of 2 shards; 4 cells asked for, 4 ran, 0 red, 0 did not run",
        f"the ledger is held against all of it with: python -m limitations check --results {into}",
    ]
    assert [r["harness"] for r in journal.read(into)] == list(NAMES)
    request = journal.request_of(into)
    assert request["command"] == "XLA_FLAGS='--a --b' python -m harnesses run --dtype int8"
    assert request["cells"] == 4
    assert request["asked"] == {"shard": None, "dtype": ["int8"]}
    assert request["versions"]["processor"] == " or avx512f"
    assert sorted(file.name for file in into.parent.iterdir()) == ["all.jsonl", "all.run.json"]


def test_a_missing_shard_and_a_stopped_one_are_missing_cells(reports, write_shard, tmp_path):
    only = write_shard("2/3", rows_of(*NAMES[:1]), cells=2)
    status, printed = reports("merge", only, "--into", tmp_path / "all.jsonl")
    assert status == 1
    assert printed.splitlines() == [
        f"{tmp_path / 'all.jsonl'}: 1 of 3 shards; 4 cells asked for, 1 ran, 0 red, 3 did not run",
        "shard 1/3 is missing",
        "shard 3/3 is missing",
        f"shard 2/3 stopped: 1 of its 2 cells did not run ({only})",
        "what is missing runs with: XLA_FLAGS='--a --b' python -m harnesses run --dtype int8 "
        f"--results {tmp_path / 'all.jsonl'} --resume",
    ]
    _, said = reports("summary", "--results", tmp_path / "all.jsonl")
    assert "3 of 4 cells did not run" in said


def test_red_cells_are_told_by_the_status(reports, write_shard, tmp_path):
    first = write_shard("1/2", rows_of(*NAMES[:2]))
    second = write_shard("2/2", [row(NAMES[2]), failure(NAMES[3])])
    status, printed = reports("merge", first, second, "--into", tmp_path / "all.jsonl")
    assert status == 1
    assert "4 ran, 1 red, 0 did not run" in printed


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"versions__jax": "0.10.2"}, "jax is '0.12.0' and '0.10.2'"),
        ({"code__the judge": "5c6d"}, "the judge is '1f2e' and '5c6d'"),
        ({"asked__dtype": ["int16"]}, "dtype is ['int8'] and ['int16']"),
        ({"cells_of_all_shards": 5}, "cells of all shards is 4 and 5"),
        ({"asked__shard": "2/3"}, "--shard I/2 and --shard I/3"),
    ],
)
def test_shards_of_different_runs_are_refused(reports, write_shard, tmp_path, changed, words):
    first = write_shard("1/2", rows_of(*NAMES[:2]))
    second = write_shard("2/2", rows_of(*NAMES[2:]), **changed)
    status, printed = reports("merge", first, second, "--into", tmp_path / "all.jsonl")
    assert status == 2
    assert f"{first} and {second} are not shards of one run: {words}" in printed
    assert not (tmp_path / "all.jsonl").exists()


def test_one_shard_twice_is_refused(reports, write_shard, tmp_path):
    paths = [write_shard("1/2", rows_of(*NAMES[:2]), name=name) for name in ("a.jsonl", "b.jsonl")]
    status, printed = reports("merge", *paths, "--into", tmp_path / "all.jsonl")
    assert status == 2
    assert "are both shard 1/2: leave one of them out" in printed


def test_what_is_no_shard_is_refused(reports, write_shard, write_results, tmp_path):
    whole = write_shard("1/2", rows_of(*NAMES), asked__shard=None)
    _, printed = reports("merge", whole, "--into", tmp_path / "all.jsonl")
    assert "is of a whole run, not of one with --shard I/N" in printed
    alone = write_results("alone.jsonl", rows_of(*NAMES))
    status, printed = reports("merge", alone, "--into", tmp_path / "all.jsonl")
    assert status == 2
    assert "alone.jsonl has no alone.run.json beside it" in printed


def test_no_file_is_written_over(reports, write_shard, write_results, tmp_path):
    there = write_results("all.jsonl", rows_of(NAMES[0]))
    status, printed = reports("merge", write_shard("1/1", rows_of(*NAMES)), "--into", there)
    assert status == 2
    assert "all.jsonl holds the rows of an earlier run" in printed
    assert len(journal.read(there)) == 1
