"""The tables of transformed harnesses: what they list, and what counts as proof."""

import dataclasses
import json

import pytest

from limitations.ledger import load
from reports import proofs, results, tables
from reports.columns import GRADIENTS, MESHES, SHAPE_POLYMORPHISM
from tests.reports.rows import failure, row
from tests.reports.test_tables import DATABASE, table_under

LEDGER = """
[[limitation]]
primitive = "sin"
harness = "sin_float32"
modes = ["gradient"]
expect = "mismatch"
ulps = 300
reason = "in another order"

[[limitation]]
primitive = "eigh"
dtypes = ["float32"]
modes = ["eager", "graph", "compiled", "gradient_compiled", "poly"]
expect = "error"
phase = "lower"
exception = "TypeError"
reason = "no kernel"
"""

MODE = "gradient_graph"
OF_HARNESS = ("primitive", "family", "dtype")


@pytest.fixture
def ledger(tmp_path):
    (tmp_path / "linalg.toml").write_text(LEDGER)
    return load(tmp_path)


def whole_run(mode=MODE, **changed) -> list[dict]:
    rows = [
        row(h.name, **{name: str(getattr(h, name)) for name in OF_HARNESS}, mode=mode, **changed)
        for h in DATABASE
    ]
    rows[0] |= {"outcome": "inapplicable"}
    rows[-1] |= {"outcome": "mismatch", "limitation": "linalg#1"}
    return rows


def test_limitations_of_gradients(ledger):
    text = tables.table_files(DATABASE, ledger, {}, {})[GRADIENTS.table]
    rows = table_under(text, "What TensorFlow does not differentiate as JAX does")
    assert [row[:3] + row[6:7] for row in rows] == [
        ["eigh", "no kernel", "error", "eager, graph, compiled, gradient_compiled, poly"],
        ["sin", "in another order", "mismatch of at most 300 ULPs", "gradient"],
    ]
    assert "No full run was made yet." in text


def test_other_tables_list_what_is_not_about_gradients_alone(ledger):
    text = tables.table_files(DATABASE, ledger, {}, {})[tables.LIMITED_SUPPORT]
    assert [row[0] for row in table_under(text, "Failures")] == ["eigh"]
    assert "in another order" not in text


def test_limitations_of_polymorphic_batches(ledger):
    text = tables.table_files(DATABASE, ledger, {}, {})[SHAPE_POLYMORPHISM.table]
    rows = table_under(text, "What one graph for every batch does not give as JAX does")
    assert [row[:3] for row in rows] == [["eigh", "no kernel", "error"]]


@pytest.mark.parametrize("column", [GRADIENTS, SHAPE_POLYMORPHISM], ids=lambda c: c.name)
def test_a_whole_run_is_shown_by_mode_and_family(column):
    mode = column.modes[0]
    (run,) = column.runs_of(whole_run(mode), DATABASE)
    text = tables.table_files(DATABASE, [], {}, {column.name: [run]})[column.table]
    (proof, *_), families = (
        [line.split(" | ") for line in part.splitlines() if line.startswith(start)]
        for part, start in ((text, "| cpu"), (text.split("By family")[1], "| "))
    )
    assert proof[2:4] == [mode, "0.12.0"]
    assert [p.strip(" |") for p in proof[8:]] == ["5 of 5", "4", "3", "75.0%"]
    assert [[f.strip(" |") for f in line] for line in families[2:4]] == [
        ["elementwise", "2", "2", "1"],
        ["linalg", "3", "2", "2"],
    ]
    by_dtype = [line for line in text.split("By dtype")[1].splitlines() if line.startswith("| ")]
    assert by_dtype[2:4] == [
        "| float32, int32, bool | 3 | 2 | 2 | 100.0% |",
        "| all others | 2 | 2 | 1 | 50.0% |",
    ]


def test_meshes_are_shown_by_mode_and_primitive():
    meshed = [dataclasses.replace(h, family="sharding") for h in DATABASE]
    rows = whole_run("dtensor", lowering="no_xla")
    (run,) = MESHES.runs_of(rows, [*DATABASE, *meshed[1:]])
    assert (run["mode"], run["harnesses"], run["of"]) == ("dtensor", 5, 4)
    text = tables.table_files(DATABASE, [], {}, {MESHES.name: [run]})[MESHES.table]
    lines = text.splitlines()
    (proof,) = (line for line in lines if line.startswith("| cpu"))
    assert proof.startswith("| cpu | no_xla | dtensor | 0.12.0 |")
    assert proof.endswith("| 5 of 4 (-4 since) | 4 | 3 | 75.0% |")
    assert "By primitive, in the largest run of dtensor:" in lines
    assert [line for line in lines if line.startswith(("| eigh", "| sin"))] == [
        "| eigh | 3 | 2 | 2 |",
        "| sin | 2 | 2 | 1 |",
    ]


def test_limitations_of_meshes_alone_are_in_their_table_alone(tmp_path):
    of_mesh = LEDGER.split("[[")[1].replace('"gradient"', '"dtensor"')
    (tmp_path / "elementwise.toml").write_text(f"[[{of_mesh}")
    texts = tables.table_files(DATABASE, load(tmp_path), {}, {})
    (listed,) = table_under(texts[MESHES.table], "What a mesh does not give as JAX does")
    assert [listed[0], listed[1], listed[6]] == ["sin", "in another order", "dtensor"]
    others = {name: text for name, text in texts.items() if name != MESHES.table}
    assert [name for name, text in others.items() if "in another order" in text] == []


def test_a_red_run_proves_nothing():
    rows = [*whole_run()[:-1], failure("sin_bfloat16", mode=MODE)]
    assert list(GRADIENTS.runs_of(rows, DATABASE)) == []


def test_what_fails_in_jax_itself_is_not_applicable(ledger):
    of_jax = dataclasses.replace(ledger[0], where="linalg#9", side="jax", expect="crash")
    rows = whole_run()
    rows[-1] |= {"outcome": "crash", "limitation": of_jax.where}
    (counted,) = GRADIENTS.runs_of(rows, DATABASE)
    (run,) = GRADIENTS.runs_of(rows, DATABASE, [*ledger, of_jax])
    assert run["applicable"] == counted["applicable"] - 1
    assert (run["harnesses"], run["passed"]) == (counted["harnesses"], counted["passed"])


def test_a_sample_says_of_how_many_and_replaces_no_larger_run():
    kept: list[dict] = []
    for first in (2, 0, 1):
        (run,) = GRADIENTS.runs_of(whole_run()[first:], DATABASE)
        assert (run["harnesses"], run["of"]) == (5 - first, 5)
        kept = proofs.with_run(kept, run)
    assert [run["harnesses"] for run in kept] == [5]


def test_runs_of_gradients_are_kept_beside_the_others(
    reports, write_results, tmp_path, monkeypatch
):
    monkeypatch.setattr(tables, "all_harnesses", lambda jax_version: DATABASE)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "no results")
    into = tmp_path / "tables"
    for rows in (
        whole_run(),
        whole_run("gradient_eager"),
        whole_run("poly"),
        whole_run(jax="0.12.1"),
    ):
        path = write_results("gradients.jsonl", rows)
        status, printed = reports("tables", "--into", into, "--results", path)
        assert status == 0
        assert "changes no versions" not in printed
    proved = json.loads((into / "proved.json").read_text())
    assert [(run["mode"], run["jax"]) for run in proved["gradients"]] == [
        ("gradient_eager", "0.12.0"),
        (MODE, "0.12.1"),
    ]
    assert [run["mode"] for run in proved["shape_polymorphism"]] == ["poly"]
    assert proved["runs"] == []
    assert proofs.full_runs([], DATABASE) == []
