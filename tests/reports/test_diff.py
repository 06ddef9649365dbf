"""What changed from one run to another."""

import json

import pytest

from reports.diff import KINDS
from tests.reports.rows import failure, row


def test_every_kind_of_change(reports, write_results):
    old = [
        row("sin_float32"),
        failure("cos_float32"),
        failure("tan_float32"),
        row("exp_float32", ulps=1.0),
        row("log_float32", ulps=1.0),
        row("abs_float32"),
    ]
    new = [
        failure("sin_float32"),
        row("cos_float32"),
        failure("tan_float32", phase="lower", exception="ValueError", message="no rule"),
        row("exp_float32", ulps=1.5),
        row("log_float32", ulps=3.0),
        row("neg_float32"),
    ]
    status, printed = reports(
        "diff", write_results("old.jsonl", old), write_results("new.jsonl", new)
    )
    assert status == 1
    assert printed.splitlines() == [
        "newly failing: 1",
        "  sin_float32 cpu xla eager: error in run (NotFoundError): Could not find device for node",
        "newly passing: 1",
        "  cos_float32 cpu xla eager: was error in run (NotFoundError): "
        "Could not find device for node",
        "failing otherwise: 1",
        "  tan_float32 cpu xla eager: error in run (NotFoundError): Could not find device for node"
        " -> error in lower (ValueError): no rule",
        "other ULPs: 2",
        "  by family: 2 elementwise",
        "  log_float32 cpu xla eager: 1 ULPs -> 3 ULPs",
        "  exp_float32 cpu xla eager: 1 ULPs -> 1.5 ULPs",
        "other numbers of nodes: 0",
        "new cells: 1",
        "  neg_float32 cpu xla eager: pass",
        "gone cells: 1",
        "  abs_float32 cpu xla eager: was pass",
    ]


def test_graphs_that_grew_come_first(reports, write_results):
    def graphs(*sizes):
        names = ("sin_float32", "cos_float32", "tan_float32", "exp_float32")
        rows = [row(n, mode="graph", nodes=s) for n, s in zip(names, sizes, strict=True)]
        return [*rows, *(r | {"mode": "compiled"} for r in rows)]

    old, new = graphs(4, 5, 6, None), graphs(2, 9, 6, 3)
    status, printed = reports(
        "diff", write_results("old.jsonl", old), write_results("new.jsonl", new)
    )
    assert status == 0
    assert printed.partition("other numbers of nodes: ")[2].splitlines()[:4] == [
        "2",
        "  by family: 2 elementwise",
        "  cos_float32 cpu xla graph: 5 -> 9 nodes",
        "  sin_float32 cpu xla graph: 4 -> 2 nodes",
    ]


def test_results_from_before_nodes_were_counted(reports, write_results):
    old = [{k: v for k, v in row().items() if k != "nodes"}]
    path = write_results("old.jsonl", old)
    _, printed = reports("diff", path, write_results("new.jsonl", [row(nodes=3)]))
    assert "other numbers of nodes: 0" in printed


def test_equal_runs_differ_in_nothing(reports, write_results):
    path = write_results("a.jsonl", [row(), failure("cos_float32")])
    slower = write_results("b.jsonl", [row(seconds=9.0), failure("cos_float32", seconds=9.0)])
    status, printed = reports("diff", path, slower)
    assert status == 0
    assert [line.split(": ")[1] for line in printed.splitlines()] == [
        *["0"] * 7,
        "0.0 s -> 18.0 s",
    ]


def test_versions_do_not_make_a_cell_another(reports, write_results):
    old = write_results("old.jsonl", [row(jax="0.10.2", python="3.11.8")])
    new = write_results("new.jsonl", [failure(jax="0.12.0")])
    status, printed = reports("diff", old, new)
    assert status == 1
    assert "newly failing: 1" in printed


def test_long_lists_are_cut_and_all_shows_them(reports, write_results):
    old = write_results("old.jsonl", [row(f"sin_{i}") for i in range(25)])
    new = write_results("new.jsonl", [failure(f"sin_{i}") for i in range(25)])
    _, printed = reports("diff", old, new)
    assert "sin_19 " in printed
    assert "sin_20 " not in printed
    assert "... and 5 more (--all lists them)" in printed
    _, printed = reports("diff", old, new, "--all")
    assert "sin_24 " in printed


def test_changes_are_counted_by_family_and_cause(reports, write_results):
    old = [row("sin_float32"), row("cos_float32"), row("rev_float32", family="arrays"), row()]
    failures = [
        failure("sin_float32", message="no kernel at 12:4 in /a/b.py"),
        failure("cos_float32", message="no kernel at 7:9 in /a/c.py"),
        failure("rev_float32", family="arrays", outcome="mismatch", message="3 of 4 differ"),
    ]
    _, printed = reports(
        "diff", write_results("old.jsonl", old), write_results("new.jsonl", failures)
    )
    assert printed.splitlines()[:3] == [
        "newly failing: 3",
        "  by family: 2 elementwise; 1 arrays",
        "  by cause: 2 NotFoundError: no kernel at ... in ...; 1 mismatch",
    ]


def test_markdown(reports, write_results, tmp_path):
    old = write_results("old.jsonl", [row(), row("cos_float32", seconds=2.0)])
    new = write_results("new.jsonl", [failure(message="a | b"), row("cos_float32", seconds=4.0)])
    into = tmp_path / "changes.md"
    status, printed = reports("diff", old, new, "--format", "markdown", "--into", into)
    assert (status, printed) == (1, f"wrote {into}\n")
    text = into.read_text()
    assert "| newly failing | 1 | elementwise 1 |\n| newly passing | 0 |  |\n" in text
    assert "## Newly failing: 1\n\n| cause | cells |\n| --- | ---: |\n" in text
    cell = "| `sin_float32 cpu xla eager` | error in run (NotFoundError): a \\| b |"
    assert f"| cell | what changed |\n| --- | --- |\n{cell}\n" in text
    assert text.endswith("| elementwise | 2.0 s | 4.0 s |\n")


def test_json_has_every_change(reports, write_results):
    old = write_results("old.jsonl", [row(f"sin_{i}", ulps=1.0) for i in range(25)])
    new = write_results("new.jsonl", [row(f"sin_{i}", ulps=2.0) for i in range(24)])
    status, printed = reports("diff", old, new, "--format", "json")
    data = json.loads(printed)
    assert status == 0
    assert {kind: len(data[kind]) for kind in KINDS} == dict.fromkeys(KINDS, 0) | {
        "ulps": 24,
        "gone": 1,
    }
    first = data["ulps"][0]
    assert (first["harness"], first["family"], first["cause"]) == ("sin_0", "elementwise", None)
    assert (first["before"]["ulps"], first["after"]["ulps"]) == (1.0, 2.0)
    assert data["gone"][0]["after"] is None


@pytest.mark.parametrize(
    ("kind", "changed", "status"),
    [
        ("ulps", {"ulps": 2.0}, 1),
        ("ulps", {"ulps": 0.5}, 0),
        ("nodes", {"nodes": 9}, 1),
        ("nodes", {"nodes": 3}, 0),
        ("gone", {"mode": "graph"}, 1),
    ],
)
def test_what_the_status_tells_besides(reports, write_results, kind, changed, status):
    old = write_results("old.jsonl", [row(ulps=1.0, nodes=5)])
    new = write_results("new.jsonl", [row(**{"ulps": 1.0, "nodes": 5} | changed)])
    assert reports("diff", old, new)[0] == 0
    assert reports("diff", old, new, "--fail-on", kind)[0] == status


def test_a_missing_file_ends_with_status_two(reports, write_results, tmp_path):
    status, printed = reports("diff", write_results("old.jsonl", [row()]), tmp_path / "new.jsonl")
    assert status == 2
    assert "new.jsonl does not exist" in printed
