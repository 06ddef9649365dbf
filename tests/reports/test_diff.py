"""What changed from one run to another."""

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
    assert printed.partition("other numbers of nodes: ")[2].splitlines()[:3] == [
        "2",
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
    assert [line.split(": ")[1] for line in printed.splitlines()] == ["0"] * 7


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


def test_a_missing_file_ends_with_status_two(reports, write_results, tmp_path):
    status, printed = reports("diff", write_results("old.jsonl", [row()]), tmp_path / "new.jsonl")
    assert status == 2
    assert "new.jsonl does not exist" in printed
