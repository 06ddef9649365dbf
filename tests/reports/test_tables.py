"""The tables: what they say of a made-up database and ledger, and when they are stale."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from harnesses.cell.names import CONSUMER_MODES
from harnesses.harness import ALL, FLOATS, Harness, all_harnesses
from limitations.ledger import load, load_uncovered
from reports import dtype_names, explained, rendering, results, tables
from reports.columns import PROVED, WITHOUT_XLA
from tests.reports.rows import failure, row


def harness(primitive: str, dtype: str, case: str = "", family: str = "linalg") -> Harness:
    name = "_".join(part for part in (primitive, case, dtype) if part)
    return Harness(
        family=family,
        primitive=primitive,
        name=name,
        fun=lambda x: x,
        args=[],
        dtype=np.dtype(dtype),
        params={},
        ulps=None,
        scale="element",
        x64=False,
        tags=frozenset(),
        check=None,
        where=f"{family}.py:7",
    )


DATABASE = [
    harness("eigh", "float32"),
    harness("eigh", "bfloat16"),
    harness("eigh", "float32", "batched"),
    harness("sin", "float32", family="elementwise"),
    harness("sin", "bfloat16", family="elementwise"),
]

LEDGER = """
[[limitation]]
primitive = "eigh"
dtypes = ["bfloat16"]
side = "jax"
expect = "error"
phase = "trace"
exception = "NotImplementedError"
reason = "LAPACK has no | bfloat16"

[[limitation]]
primitive = ["eigh", "sin"]
dtypes = ["float32"]
devices = ["gpu"]
lowerings = ["no_xla"]
modes = ["eager", "graph"]
jax = "<0.12"
expect = "error"
phase = "run"
exception = "NotFoundError"
reason = "no kernel"
link = "https://www.tensorflow.org/api_docs/python/tf/raw_ops/SelfAdjointEigV2"

[[limitation]]
primitive = "sin"
harness = "sin_bfloat16"
expect = "mismatch"
ulps = 3
reason = "rounds twice"

[[limitation]]
primitive = "sin"
harness = "sin_float32"
modes = ["compiled"]
expect = "crash"
reason = "overflows its stack"
"""

UNCOVERED = """
[[uncovered]]
primitives = ["xla_pmap", "all_gather"]
reason = "needs several devices"
"""

RUN = {
    "device": "cpu",
    "lowering": "xla",
    "impl": "jax2tf",
    "jax": "0.12.0",
    "tensorflow": "2.21.0",
    "python": "3.12.3",
    "date": "2026-11-28",
    "commit": "7d40e7c",
    "harnesses": 5,
    "cells": 1500,
    "passed": 1470,
    "limited": 30,
}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "limitations"
    folder.mkdir()
    (folder / "linalg.toml").write_text(LEDGER)
    (folder / "uncovered.toml").write_text(UNCOVERED)
    return folder


@pytest.fixture
def texts(ledger: Path) -> dict[str, str]:
    proved = {"runs": [RUN]}
    return tables.table_files(DATABASE, load(ledger), load_uncovered(ledger), proved)


def table_under(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its head."""
    lines = iter(text.split(f"\n## {heading}\n")[1].split("\n## ")[0].splitlines())
    rows = [re.split(r"(?<!\\)\|", line) for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row[1:-1]] for row in rows[2:]]


def test_coverage_counts_harnesses_and_supported_dtypes(texts):
    rows = table_under(texts[tables.COVERAGE], "Primitives")
    assert [row[:3] for row in rows] == [
        ["[eigh](../../harnesses/linalg.py)", "3", "float32"],  # JAX lacks its bfloat16
        ["[sin](../../harnesses/elementwise.py)", "2", "bfloat16, float32"],
    ]
    untried = "integer, complex, float8, narrow, exotic, float16, float64, bool"
    assert rows[0][3] == untried


def test_coverage_names_what_jax_lacks_and_what_has_no_harness(texts):
    text = texts[tables.COVERAGE]
    assert table_under(text, "What JAX itself does not implement") == [
        [
            *("eigh", r"LAPACK has no \| bfloat16", "bfloat16", "all", "all"),
            "[eigh_bfloat16](../../harnesses/linalg.py)",
        ]
    ]
    assert table_under(text, "Primitives without a harness") == [
        ["all_gather, xla_pmap", "needs several devices"]
    ]
    assert "5 harnesses over 2 primitives and public functions" in text


def test_failures_stand_by_primitive_with_their_conditions(texts):
    link = "https://www.tensorflow.org/api_docs/python/tf/raw_ops/SelfAdjointEigV2"
    conditions = ["float32", "gpu (not run)", "no_xla (not run)", "eager, graph", "JAX `<0.12`"]
    assert table_under(texts[tables.LIMITED_SUPPORT], "Failures") == [
        [
            *("eigh", f"no kernel ([source]({link}))", *conditions),
            "[eigh_float32](../../harnesses/linalg.py) and 1 more",
        ],
        [
            *("sin", f"no kernel ([source]({link}))", *conditions),
            "[sin_float32](../../harnesses/elementwise.py)",
        ],
        [
            *("sin", "crash: overflows its stack", "float32", "all", "all", "compiled", "all"),
            "[sin_float32](../../harnesses/elementwise.py)",
        ],
    ]


def test_numerical_differences_stand_apart_with_their_size(texts):
    text = texts[tables.LIMITED_SUPPORT]
    assert table_under(text, "Numerical differences") == [
        [
            *("sin", "rounds twice", "3", "bfloat16", "all", "all", "all", "all"),
            "[sin_bfloat16](../../harnesses/elementwise.py)",
        ]
    ]
    assert re.search(r"3 limitations,\s+3 failures and 1 numerical differences", text)


def test_what_is_left_without_xla_ops_stands_apart(ledger):
    for_one = (
        '[[limitation]]\nprimitive = "sin"\nexpect = "crash"\nreason = "{0}"\nlowerings = ["{0}"]\n'
    )
    lowerings = ("xla", "native")
    (ledger / "linalg.toml").write_text(LEDGER + "".join(map(for_one.format, lowerings)))
    with_xla, without = (full_run(lowering=lowering) for lowering in ("xla", "no_xla"))
    without[1] |= {"outcome": "mismatch", "limitation": "linalg#3"}
    runs = list(WITHOUT_XLA.runs_of(with_xla + without[:-3], DATABASE))
    proved = {WITHOUT_XLA.name: runs}
    text = tables.table_files(DATABASE, load(ledger), {}, proved)[tables.NO_XLA_LIMITATIONS]
    proofs = [line.split(" | ") for line in text.splitlines() if line.startswith("| cpu")]
    assert [line[1:3] + line[8:11] for line in proofs] == [
        ["no_xla", "compiled", "4 of 5", "4", "4"],
        ["no_xla", "eager", "4 of 5", "4", "4"],
        ["no_xla", "graph", "4 of 5", "4", "3"],
    ]
    alone = table_under(text, "Without XLA ops alone")
    assert [row[:2] + row[4:6] for row in alone] == [
        ["eigh", "error", "float32", "gpu (not run)"],
        ["sin", "error", "float32", "gpu (not run)"],
    ]
    assert [row[:4] for row in table_under(text, "With XLA ops too")] == [
        ["sin", "mismatch", "rounds twice", "3"],
        ["sin", "crash", "overflows its stack", ""],
    ]


def test_an_empty_ledger_is_said_in_words():
    texts = tables.table_files(DATABASE, [], {}, {})
    assert texts[tables.NO_XLA_LIMITATIONS].count("\nNone.\n") == 2
    assert "Nothing of what was asked." in texts[tables.COVERAGE]
    assert texts[tables.LIMITED_SUPPORT].count("\nNone.\n") == 2
    assert "No full run was made yet." in texts[tables.LIMITED_SUPPORT]


def test_a_dtype_that_jax_lacks_on_some_versions_is_supported(ledger):
    entry = LEDGER.replace('reason = "LAPACK', 'jax = "<0.11"\nreason = "LAPACK')
    (ledger / "linalg.toml").write_text(entry)
    text = tables.table_files(DATABASE, load(ledger), {}, {})[tables.COVERAGE]
    assert table_under(text, "Primitives")[0][2] == "bfloat16, float32"
    assert table_under(text, "What JAX itself does not implement")[0][4] == "JAX `<0.11`"


def test_a_dtype_that_jax_has_on_one_of_the_devices_is_supported(ledger):
    entry = LEDGER.replace('side = "jax"', 'side = "jax"\ndevices = ["cpu"]')
    (ledger / "linalg.toml").write_text(entry)
    runs = [RUN, RUN | {"device": "gpu"}]
    text = tables.table_files(DATABASE, load(ledger), {}, {"runs": runs})[tables.COVERAGE]
    assert table_under(text, "Primitives")[0][2] == "bfloat16, float32"


def test_the_proof_is_shown_and_what_came_after_it(texts):
    for name in (tables.COVERAGE, tables.LIMITED_SUPPORT):
        assert table_under(texts[name], "Proved on") == [
            [
                *("cpu", "xla", "0.12.0", "2.21.0", "3.12.3", "2026-11-28", "7d40e7c"),
                *("5", "1,500", "1,470", "30 (2.0%)"),
            ]
        ]
    newer = [
        *(harness("qr", "float32", str(i)) for i in range(1000)),
        dataclasses.replace(harness("qr", "float32"), jax_versions=">=0.13"),
    ]
    text = tables.table_files([*DATABASE, *newer], [], {}, {"runs": [RUN]})[tables.COVERAGE]
    assert table_under(text, "Proved on")[0][7] == "5 (+1,000 since)"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([d.name for d in ALL], "common"),
        ([d.name for d in FLOATS] + ["bool", "int8"], "floating, int8, bool"),
        (["float64", "complex128", "float32"], "float32, float64, complex128"),
        (["key<fry>", "int8"], "int8, key<fry>"),
        ([], ""),
    ],
)
def test_dtypes_are_named_by_group(names, text):
    assert dtype_names.dtypes_text(names) == text


def test_the_legend_says_what_a_group_holds(texts):
    assert "- *inexact*: floating, complex\n" in texts[tables.LIMITED_SUPPORT]
    assert "- *complex*: complex64, complex128\n" in texts[tables.LIMITED_SUPPORT]


# --- The command ----------------------------------------------------------------------------


@pytest.fixture
def made_up(monkeypatch, ledger, tmp_path):
    """The command sees the made-up database and ledger, and no results of this checkout."""
    monkeypatch.setattr(tables, "all_harnesses", lambda jax_version: DATABASE)
    monkeypatch.setattr(tables, "load", lambda: load(ledger))
    monkeypatch.setattr(tables, "load_uncovered", lambda: load_uncovered(ledger))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "no results")
    return tmp_path / "tables"


def full_run(**changed) -> list[dict]:
    return [
        row(harness.name, mode=mode, primitive=harness.primitive, **changed)
        for harness in DATABASE
        for mode in ("eager", "graph", "compiled")
    ]


def test_written_tables_are_current(reports, made_up):
    status, printed = reports("tables", "--into", made_up)
    assert status == 0
    names = (tables.COVERAGE, tables.LIMITED_SUPPORT, tables.NO_XLA_LIMITATIONS)
    names += tuple(column.table for column in PROVED)
    for name in (*names, "proved.json"):
        assert f"wrote {made_up / name}" in printed
    assert reports("tables", "--check", "--into", made_up) == (0, "")
    assert reports("tables", "--into", made_up) == (0, "")


def test_tables_written_elsewhere_leave_the_package_alone(reports, made_up):
    shipped = (explained.FOLDER / "limitations.json").read_bytes()
    status, printed = reports("tables", "--into", made_up)
    assert status == 0
    assert f"wrote {made_up / 'limitations.json'}" in printed
    assert (explained.FOLDER / "limitations.json").read_bytes() == shipped


def test_a_stale_table_is_named_with_the_command_that_writes_it(reports, made_up, ledger):
    reports("tables", "--into", made_up)
    before = (made_up / tables.LIMITED_SUPPORT).read_text()
    (ledger / "linalg.toml").write_text(LEDGER.replace("rounds twice", "rounds three times"))
    status, printed = reports("tables", "--check", "--into", made_up)
    assert status == 1
    assert f"{made_up / tables.LIMITED_SUPPORT} is stale" in printed
    assert "python -m reports tables" in printed
    assert tables.COVERAGE not in printed
    assert (made_up / tables.LIMITED_SUPPORT).read_text() == before


def test_missing_tables_are_stale(reports, made_up):
    status, printed = reports("tables", "--check", "--into", made_up)
    assert status == 1
    assert printed.count("is stale") == 7 + len(PROVED) + len(CONSUMER_MODES)


def test_stale_benchmarks_are_named_too(reports, made_up):
    reports("tables", "--into", made_up)
    (made_up / "benchmarks.json").write_text(json.dumps({"cpu": _no_programs()}))
    status, printed = reports("tables", "--check", "--into", made_up)
    assert status == 1
    assert "benchmarks.md is stale" in printed
    assert "benchmarks-cpu.svg is stale" in printed
    reports("tables", "--into", made_up)
    assert reports("tables", "--check", "--into", made_up)[0] == 0


def _no_programs() -> dict:
    words = ("impl", "lowering", "machine", "cores", "jax", "tensorflow", "python")
    rounds = {"cold_rounds": 5, "steady_rounds": 15, "cores": 2, "load": 1}
    return dict.fromkeys(words, "some") | rounds | {"quick": False, "programs": []}


def test_a_full_run_is_kept_as_proof(reports, made_up, write_results):
    rows = full_run()
    rows[0] |= {"outcome": "error", "limitation": "linalg#1"}
    status, _ = reports("tables", "--into", made_up, "--results", write_results("cpu.jsonl", rows))
    assert status == 0
    assert json.loads((made_up / "proved.json").read_text())["runs"] == [
        RUN
        | {"date": "unknown", "commit": "unknown"}
        | {"harnesses": 5, "cells": 15, "passed": 14, "limited": 1}
    ]
    # A check asks for no results, and other versions than these change nothing.
    assert reports("tables", "--check", "--into", made_up)[0] == 0


def test_runs_on_other_versions_and_lowerings_stand_beside_each_other(
    reports, made_up, write_results
):
    for changed in (
        {"jax": "0.10.2"},
        {"jax": "0.12.0"},
        {"jax": "0.12.1"},  # takes the place of 0.12.0
        {"lowering": "no_xla"},
    ):
        path = write_results("cpu.jsonl", full_run(**changed))
        reports("tables", "--into", made_up, "--results", path)
    runs = json.loads((made_up / "proved.json").read_text())["runs"]
    assert [(run["lowering"], run["jax"]) for run in runs] == [
        ("no_xla", "0.12.0"),
        ("xla", "0.10.2"),
        ("xla", "0.12.1"),
    ]


def test_jax_alone_proves_its_own_side(reports, made_up, write_results):
    own = {"mode": "jax", "lowering": "jax", "device": "gpu", "tensorflow": None, "impl": None}
    path = write_results("gpu.jsonl", [row(h.name) | own for h in DATABASE])
    reports("tables", "--into", made_up, "--results", path)
    (run,) = json.loads((made_up / "proved.json").read_text())["runs"]
    assert (run["device"], run["lowering"], run["cells"]) == ("gpu", "jax", 5)


def test_a_run_is_full_without_harnesses_that_its_jax_cannot_run(
    reports, made_up, write_results, monkeypatch
):
    newer = dataclasses.replace(harness("qr", "float32"), jax_versions=">=0.13")
    monkeypatch.setattr(tables, "all_harnesses", lambda jax_version: [*DATABASE, newer])
    path = write_results("cpu.jsonl", full_run(jax="0.12.0"))
    reports("tables", "--into", made_up, "--results", path)
    assert len(json.loads((made_up / "proved.json").read_text())["runs"]) == 1
    path = write_results("cpu.jsonl", full_run(jax="0.13.0"))
    _, printed = reports("tables", "--into", made_up, "--results", path)
    assert "3 of 18 cells did not run" in printed


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (full_run()[:-2], "2 of 15 cells did not run"),
        ([*full_run()[:-1], failure("sin_bfloat16", mode="compiled")], "1 cells are red"),
    ],
)
def test_a_partial_or_red_run_proves_nothing(reports, made_up, write_results, rows, problem):
    path = write_results("cpu.jsonl", rows)
    status, printed = reports("tables", "--into", made_up, "--results", path)
    assert status == 0
    assert f"cpu.jsonl (cpu xla) changes no versions: {problem}" in printed
    proved = json.loads((made_up / "proved.json").read_text())
    (seen,) = proved.pop("seen")
    assert (seen["device"], seen["cells"], seen["of"]) == ("cpu", len(rows), 15)
    assert proved == {"runs": [], **{column.name: [] for column in PROVED}}


def test_what_a_part_of_a_run_saw_is_marked_and_goes_when_it_is_proved(
    reports, made_up, write_results
):
    part = write_results("gpu.jsonl", full_run(device="gpu", lowering="no_xla")[:4])
    reports("tables", "--into", made_up, "--results", part)
    text = (made_up / tables.LIMITED_SUPPORT).read_text()
    assert "| gpu (seen, not proved) | no_xla (seen, not proved) |" in text
    assert "- gpu, no_xla: seen unknown, commit unknown, on JAX 0.12.0," in text
    assert "; 4 of 15 cells" in text
    whole = write_results("whole.jsonl", full_run(device="gpu", lowering="no_xla"))
    reports("tables", "--into", made_up, "--results", whole)
    assert json.loads((made_up / "proved.json").read_text())["seen"] == []
    assert "| gpu | no_xla |" in (made_up / tables.LIMITED_SUPPORT).read_text()


def test_what_came_since_a_run_of_a_column_is_counted(ledger):
    run = RUN | {"mode": "poly", "of": 4, "applicable": 4, "passed": 4, "families": {}}
    proved = {"shape_polymorphism": [run | {"harnesses": 4}], "meshes": []}
    text = tables.table_files(DATABASE, load(ledger), {}, proved)["shape_polymorphism.md"]
    assert "| 2026-11-28 | 7d40e7c | 4 of 4 (+1 since) | 4 |" in text


# --- The real ones --------------------------------------------------------------------------


def test_every_link_of_the_real_tables_leads_somewhere():
    texts = tables.table_files(all_harnesses(None), load(), load_uncovered(), {"runs": [RUN]})
    links = {link for text in texts.values() for link in re.findall(r"\]\(([^)]*)\)", text)}
    paths = [rendering.TABLES / link for link in links if not link.startswith("https://")]
    assert paths
    own = {
        tables.COVERAGE,
        tables.LIMITED_SUPPORT,
        tables.NO_XLA_LIMITATIONS,
        *(column.table for column in PROVED),
    }
    assert [p for p in paths if p.name not in own and not p.exists()] == []
