"""Who is off: what is counted, which cell stands for a primitive, and what is refused."""

import pytest

from harnesses.engine import shards
from reports import rendering
from tests.reports.rows import row


def off(harness, culprit, jax_ulps, judged_ulps, **changed):
    told = {"culprit": culprit, "jax_ulps": jax_ulps, "judged_ulps": judged_ulps}
    return (
        row(harness, ulps=9.0, opinion="scipy", example="of 0.5: JAX 1, judged 2", **told) | changed
    )


ROWS = [
    row(),
    off("tan_float32", "jax", 3.0, 0.0),
    off("tan_float32", "jax", 7.0, 0.5, mode="graph"),
    off("exp_float32", "jax", float("inf"), 0.0, example="of 1: JAX a|b"),
    off("cos_bfloat16", "judged", 0.0, 4.0),
    off("log_float32", "neither", 1.0, 1.0),
    row("sqrt_float32", ulps=2.0),
]


@pytest.fixture
def table(reports, write_results, tmp_path):
    def make(rows):
        path = write_results("rows.jsonl", rows)
        status, printed = reports("culprits", path, "--into", tmp_path / "tables")
        file = tmp_path / "tables" / "culprits.md"
        return status, file.read_text() if file.exists() else printed

    return make


def test_each_is_named_with_the_worst_of_its_cells(table):
    status, text = table(ROWS)
    assert status == 0
    words = " ".join(text.split())
    assert "Of 7 cells, 6 differ from JAX by more than one ULP." in words
    assert "JAX in 3, jax2tf in 1, both in 0; in 1 neither is off" in words
    _, jax, judged, both = text.split("\n## ")
    assert [line for line in jax.splitlines() if "`" in line] == [
        "| exp | float32 | inf | 0 | scipy | of 1: JAX a\\|b | 1 | `exp_float32` |",
        "| tan | float32 | 7 | 0.5 | scipy | of 0.5: JAX 1, judged 2 | 2 | `tan_float32` |",
    ]
    assert "| cos | bfloat16 | 0 | 4 | scipy | of 0.5: JAX 1, judged 2 | 1 |" in judged
    assert both == "Both are off\n\nNowhere.\n"


def test_rows_from_before_there_were_examples(table):
    rows = [{k: v for k, v in off("tan_float32", "jax", 3.0, 0.0).items() if k != "example"}]
    assert "| tan | float32 | 3 | 0 | scipy |  | 1 | `tan_float32` |" in table(rows)[1]


def test_rows_of_two_implementations_are_refused(table):
    status, printed = table([row(), row("cos_float32", impl="other")])
    assert status == 2
    assert "the rows are of jax2tf and other: name the files of one" in printed


def test_the_table_is_made_anew_from_its_figures(reports, table, tmp_path):
    into = tmp_path / "tables"
    status, printed = reports("culprits", "--into", into)
    assert (status, "no figures yet" in printed) == (2, True)
    table(ROWS)
    assert reports("culprits", "--check", "--into", into) == (0, "")
    (into / "culprits.md").write_text("another")
    status, printed = reports("culprits", "--check", "--into", into)
    assert (status, "is stale" in printed) == (1, True)
    assert reports("culprits", "--into", into)[0] == 0
    assert reports("culprits", "--check", "--into", into) == (0, "")


@pytest.mark.parametrize("impl", ["jax2tf", "my_converter"])
def test_the_table_of_a_users_rows_is_printed(reports, write_results, monkeypatch, tmp_path, impl):
    monkeypatch.setattr(rendering, "TABLES", tmp_path / "own")
    path = write_results("mine.jsonl", [r | {"impl": impl} for r in ROWS])
    status, printed = reports("culprits", path)
    assert status == 0
    assert printed.startswith("# Who is off")
    assert "| tan | float32 | 7 | 0.5 | scipy |" in printed
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("command", ["consumers", "versions", "costs"])
def test_rows_of_another_converter_are_not_written_over_the_projects_own(
    reports, write_results, monkeypatch, tmp_path, command
):
    own = tmp_path / "own"
    monkeypatch.setattr(rendering, "TABLES", own)
    monkeypatch.setattr(shards, "FILE", own)
    path = write_results("mine.jsonl", [row(impl="my_converter", mode="litert")])
    status, printed = reports(command, path, "--into", tmp_path / "x" / ".." / "own")
    assert (status, "the rows are of my_converter" in printed) == (2, True)
    assert not own.exists()


@pytest.mark.parametrize("command", ["html", "diff", "costs"])
def test_a_file_that_is_read_is_not_written_over(reports, write_results, tmp_path, command):
    path = write_results("mine.jsonl", ROWS)
    (tmp_path / "linked.jsonl").symlink_to(path)
    before = path.read_bytes()
    files = [path, path] if command == "diff" else [path]
    for into in (path, tmp_path / "linked.jsonl"):
        status, printed = reports(command, *files, "--into", into)
        assert (status, "one of the files that are read" in printed) == (2, True)
    assert path.read_bytes() == before
