"""Reading results files: what a row must have, and the words for files that cannot be used."""

import json

import pandas
import pytest

from harnesses.cell.rows import COLUMNS, UNKNOWN
from reports import results
from reports.results import Cell, ResultsError
from tests.reports.rows import row


def test_rows_are_read_by_cell(write_results):
    path = write_results("a.jsonl", [row(), row(mode="graph")])
    assert list(results.read(path)) == [
        Cell("sin_float32", "cpu", "xla", "eager"),
        Cell("sin_float32", "cpu", "xla", "graph"),
    ]


def test_the_later_row_of_a_cell_counts(write_results):
    path = write_results("a.jsonl", [row(seconds=1.0), row(seconds=2.0)])
    assert [r["seconds"] for r in results.read(path).values()] == [2.0]


def test_a_part_is_summed_up_where_there_is_no_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    part, whole = tmp_path / "parts" / "cpu.jsonl", tmp_path / "cpu.jsonl"
    part.parent.mkdir()
    part.touch()
    assert results.latest_files() == [part]
    whole.touch()
    assert results.latest_files() == [whole]


def test_infinite_errors_are_read(write_results):
    path = write_results("a.jsonl", [row(ulps=float("inf"))])
    assert next(iter(results.read(path).values()))["ulps"] == float("inf")


def test_a_missing_file_is_named_with_the_command_that_makes_it(tmp_path):
    with pytest.raises(ResultsError, match=r"none\.jsonl does not exist.*python -m harnesses run"):
        results.read(tmp_path / "none.jsonl")


def test_a_file_without_rows_is_refused(write_results):
    with pytest.raises(ResultsError, match="executed no cell"):
        results.read(write_results("empty.jsonl", []))


@pytest.mark.parametrize("line", ["{not json", "[]", json.dumps({"harness": "sin_float32"})])
def test_a_line_that_is_no_row_is_named(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row()) + "\n" + line + "\n")
    with pytest.raises(ResultsError, match=r"a\.jsonl:2 is not a row"):
        results.read(path)


def test_a_file_of_other_bytes_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(row()).encode() + b"\n\x00\xff\xfe\n")
    with pytest.raises(ResultsError, match=r"a\.jsonl:2 is not a row"):
        results.read(path)


def test_a_row_of_another_version_is_named_with_what_it_lacks(write_results):
    older = {key: value for key, value in row().items() if key not in ("verdict", "dtype")}
    path = write_results("a.jsonl", [row(), older])
    words = r"a\.jsonl:2 is a row of another version of the judge: it lacks dtype, verdict\."
    with pytest.raises(ResultsError, match=words):
        results.read(path)


def test_what_an_earlier_version_did_not_know_is_null(write_results):
    older = {key: value for key, value in row().items() if key not in ("nodes", "processor")}
    (read,) = results.read(write_results("a.jsonl", [older])).values()
    assert {column: read[column] for column in COLUMNS} == UNKNOWN | row()


def test_pandas_reads_a_results_file(write_results):
    frame = pandas.read_json(write_results("a.jsonl", [row(), row(mode="graph")]), lines=True)
    assert list(frame["mode"]) == ["eager", "graph"]
    assert list(frame.columns) == list(row())
