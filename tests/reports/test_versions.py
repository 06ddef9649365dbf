"""The same cells on several versions: what the table counts, and what it is refused for."""

import pytest

from tests.reports.rows import failure, row


@pytest.fixture
def table(reports, write_results, tmp_path):
    """`table(rows, rows, ...)` gathers the runs; returns the exit status and the text, or words."""

    def make(*runs):
        files = [write_results(f"{i}.jsonl", rows) for i, rows in enumerate(runs)]
        status, printed = reports("versions", files[0].parent, "--into", tmp_path / "tables")
        path = tmp_path / "tables" / "versions.md"
        return status, path.read_text() if path.exists() else printed

    return make


def on(jax, rows):
    return [r | {"jax": jax} for r in rows]


def test_runs_are_counted_in_the_order_of_their_versions(table):
    declared = failure("cos_float32", verdict="ok", limitation="elementwise.toml:3")
    _, text = table(on("0.12.0", [row(), declared]), on("0.9.1", [row()]), on("0.12.0rc1", [row()]))
    assert [line for line in text.splitlines() if line.startswith("| JAX")] == [
        "| JAX 0.9.1, TensorFlow 2.21.0, Python 3.12.3 | unknown | unknown | 1 | 1 | 0 | 0 |",
        "| JAX 0.12.0rc1, TensorFlow 2.21.0, Python 3.12.3 | unknown | unknown | 1 | 1 | 0 | 0 |",
        "| JAX 0.12.0, TensorFlow 2.21.0, Python 3.12.3 | unknown | unknown | 2 | 1 | 1 | 0 |",
    ]
    assert "; 1 cells ran on\nall of them" in text
    assert "Nothing: every cell came out alike wherever it ran." in text


def test_what_differs_is_listed_by_primitive(table):
    names = ("sin_float32", "sin_bfloat16", "cos_float32")
    old = [failure(name, message="no kernel at 1:2") for name in names[:2]] + [row(names[2])]
    status, text = table(on("0.10.2", old), on("0.12.0", [row(name) for name in names]))
    assert status == 1  # what is red in a run is red here
    assert text.splitlines()[-1] == (
        "| elementwise | sin | bfloat16, float32 | eager | 2 "
        "| NotFoundError: no kernel at ... | pass |"
    )
    assert "| cos |" not in text


def test_a_cell_that_one_version_does_not_have_is_no_difference(table):
    runs = [on("0.10.2", [row()]), on("0.11.0", [row()]), on("0.12.0", [failure()])]
    _, text = table(*runs, on("0.9.0", [row("cos_float32")]))
    assert text.splitlines()[-1].endswith(
        "| not there | pass | pass | NotFoundError: Could not find device for node second line |"
    )
    assert "| cos |" not in text


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([[row()]], "nothing to be compared with"),
        ([[row()], [row()]], "two of the files are of JAX 0.12.0, TensorFlow 2.21.0, Python"),
        ([[row()], on("0.11.0", [row(impl="other")])], "the runs are of jax2tf and other"),
    ],
)
def test_what_is_refused(table, runs, words):
    status, printed = table(*runs)
    assert status == 2
    assert words in printed


def test_the_table_is_made_anew_from_its_figures(reports, table, tmp_path):
    table(on("0.10.2", [row()]), on("0.12.0", [row()]))
    into = tmp_path / "tables"
    assert reports("versions", "--check", "--into", into) == (0, "")
    (into / "versions.md").write_text("another")
    status, printed = reports("versions", "--check", "--into", into)
    assert (status, "is stale" in printed) == (1, True)
    assert reports("versions", "--into", into)[0] == 0
    assert reports("versions", "--check", "--into", into) == (0, "")
